/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Decides before the program runs whether CUDA can load the collector: a static program has no
 * loader, and CUDA ignores the environment of a program with more rights than its caller. gpuprof
 * then goes on without GPU times and says why.
 */
#include "cli/record/run_gpu.h"

#include "capture/collector/client.h"
#include "inspect/elf/elf.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/banned.h"

#define VARIABLE "CUDA_INJECTION64_PATH"
#define NVTX	 "NVTX_INJECTION64_PATH"

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* The file that execvp() will run. */
static bool find_program(const char *command, char path[PATH_MAX])
{
	const char *at = getenv("PATH");

	if (strchr(command, '/'))
		return snprintf(path, PATH_MAX, "%s", command) < PATH_MAX && is_program(path);
	for (at = at ? at : "/usr/bin:/bin"; *at; at += *at == ':') {
		size_t nr = strcspn(at, ":");

		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)nr, nr ? at : ".", command) <
			    PATH_MAX &&
		    is_program(path))
			return true;
		at += nr;
	}
	return false;
}

static bool gives_rights(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	return ((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
	       ((st.st_mode & S_ISGID) && st.st_gid != getgid()) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Another program runs a script; nothing is known about that yet, so it counts as not static. */
static bool is_static(const char *path)
{
	const unsigned char *data;
	struct elf_file *f;
	struct reason why;
	uint64_t address;
	size_t bytes;
	bool none;

	if (elf_file__open(path, &why, &f))
		return false;
	none = elf_file__section(f, ".interp", &data, &bytes, &address) == -ENOENT;
	elf_file__free(f);
	return none;
}

char *run_gpu_library(const char *command, const char *cache_dir, struct reason *why)
{
	const char *present = getenv(VARIABLE);
	char path[PATH_MAX], *library = NULL;

	if (present && *present)
		(void)reason_set(why, 0, "another tool uses " VARIABLE " ('%s'); unset it",
				 present);
	else if (!cache_dir)
		(void)reason_set(why, 0,
				 "there is no folder for the collector; set GPUPROF_CACHE_DIR");
	else if (find_program(command, path) && gives_rights(path))
		(void)reason_set(why, 0,
				 "'%s' runs with more rights than its caller, and CUDA then loads "
				 "nothing for it; attach to it while it runs",
				 path);
	else if (find_program(command, path) && is_static(path))
		(void)reason_set(why, 0,
				 "'%s' is linked statically, so nothing can be loaded into it",
				 path);
	else if (collector_image_write(cache_dir, why, &library))
		library = NULL;
	return library;
}

void run_gpu_invite(const char *library, bool children, bool nvtx)
{
	char pid[16];

	(void)snprintf(pid, sizeof(pid), "%d", children ? 0 : (int)getpid());
	(void)setenv(VARIABLE, library, 1);
	/* Leaves another tool's value alone. */
	if (nvtx)
		(void)setenv(NVTX, library, 0);
	(void)setenv("GPUPROF_RUN", pid, 1);
}
