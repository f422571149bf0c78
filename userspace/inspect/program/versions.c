/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the versions of a process's PyTorch, Python, CUDA and CUPTI in names and in strings of its
 * files. The process chooses all of them, so a version consists of digits, letters, '.', '+', '-'
 * and '_' only.
 */
#include "inspect/program/versions.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/access/process_file.h"
#include "inspect/elf/elf.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define VERSION_PY_BYTES_MAX 65536

static const char unknown[] = "?";

static size_t version_bytes(const char *text, size_t max)
{
	size_t nr = 0;

	while (nr < max &&
	       (isalnum((unsigned char)text[nr]) || (text[nr] && strchr(".+-_", text[nr]))))
		nr++;
	return nr;
}

/* Copies text[0..nr) if it looks like a version and fits. */
static bool set_version(char *to, size_t to_bytes, const char *text, size_t nr)
{
	if (!nr || nr >= to_bytes || !isdigit((unsigned char)text[0]) ||
	    version_bytes(text, nr) != nr)
		return false;
	memcpy(to, text, nr);
	to[nr] = '\0';
	return true;
}

/* "libx.so.12.1.105" -> "12.1.105"; false if nothing follows ".so.". */
static bool version_of_name(const char *name, char *to, size_t to_bytes)
{
	const char *so = strstr(name, ".so.");

	return so && set_version(to, to_bytes, so + 4, strlen(so + 4));
}

static int dots(const char *text)
{
	int nr = 0;

	for (; *text; text++)
		nr += *text == '.';
	return nr;
}

/* The value of "NAME = 'VALUE'" or "NAME: TYPE = 'VALUE'" at the start of a line. */
static bool python_value(const char *text, const char *name, char *to, size_t to_bytes)
{
	size_t name_bytes = strlen(name);

	for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL) {
		const char *at = text + name_bytes, *end;

		if (strncmp(text, name, name_bytes) || !strchr(" :=", *at) || !*at)
			continue;
		at += strcspn(at, "=\n");
		if (*at != '=')
			continue;
		at++;
		at += strspn(at, " \t");
		if (*at != '\'' && *at != '"')
			continue;
		end = at + 1 + strcspn(at + 1, "'\"\n");
		if (*end != *at)
			continue;
		return set_version(to, to_bytes, at + 1, (size_t)(end - at - 1));
	}
	return false;
}

/* Reads torch/version.py: each mapped file below a folder named torch leads to it. */
static char *read_version_py(const struct target_process *p)
{
	for (size_t i = 0; i < p->libraries_nr; i++) {
		const char *path = p->libraries[i].path, *torch = strstr(path, "/torch/");
		char *text = NULL;
		char file[PATH_MAX];

		if (!torch || torch - path > PATH_MAX - 32)
			continue;
		(void)snprintf(file, sizeof(file), "%.*s/torch/version.py", (int)(torch - path),
			       path);
		if (!process_file_read(p->pid, file, VERSION_PY_BYTES_MAX, &text))
			return text;
	}
	return NULL;
}

/* Finds a version `skip` bytes behind the key in the file's read-only data. */
static bool version_behind(const struct target_library *l, const char *key, size_t skip, char *to,
			   size_t to_bytes)
{
	const size_t key_bytes = strlen(key);
	const unsigned char *data, *at;
	struct elf_file *f;
	uint64_t address;
	size_t bytes;
	bool ok = false;

	if (elf_file__open(l->open_path, NULL, &f))
		return false;
	at = data = NULL;
	if (!elf_file__section(f, ".rodata", &data, &bytes, &address))
		at = data;
	while (at && !ok && (at = memmem(at, bytes - (size_t)(at - data), key, key_bytes))) {
		const char *value = (const char *)at + key_bytes + skip;
		size_t left = bytes - (size_t)(at - data) - key_bytes;

		ok = left > skip &&
		     set_version(to, to_bytes, value, version_bytes(value, left - skip));
		at += key_bytes;
	}
	elf_file__free(f);
	return ok;
}

static void read_torch(const struct target_process *p, const char *version_py,
		       struct target_versions *v)
{
	const struct target_library *l = target_process__library(p, "libtorch_cpu.so");

	if (!l)
		l = target_process__library(p, "libtorch.so");
	if (!l)
		return;
	if (version_py && python_value(version_py, "__version__", v->torch, sizeof(v->torch)))
		return;
	/* Its build settings contain "TORCH_VERSION=2.1.0," or the same with a space. */
	if (version_behind(l, "TORCH_VERSION", 1, v->torch, sizeof(v->torch)))
		return;
	if (version_of_name(file_base_name(l->path), v->torch, sizeof(v->torch)))
		return;
	memcpy(v->torch, unknown, sizeof(unknown));
}

const struct target_library *target_python_file(const struct target_process *p)
{
	const struct target_library *l = target_process__library(p, "libpython");

	for (size_t i = 0; !l && i < p->libraries_nr; i++)
		if (!strcmp(p->libraries[i].path, p->exe) &&
		    !strncmp(file_base_name(p->exe), "python", 6))
			l = &p->libraries[i];
	return l;
}

/* Py_Version, an exported constant since 3.11: 0x030b02f0 is 3.11.2. */
static bool python_from_symbol(struct elf_file *f, char *to, size_t to_bytes)
{
	const unsigned char *data;
	struct elf_symbol sym;
	uint64_t address, n;
	size_t bytes;

	if (elf_file__symbol(f, "Py_Version", &sym) ||
	    elf_file__section(f, ".rodata", &data, &bytes, &address) || sym.address < address ||
	    bytes < sizeof(n) || sym.address - address > bytes - sizeof(n))
		return false;
	memcpy(&n, data + (sym.address - address), sizeof(n));
	if (n >> 24 != 3 && n >> 24 != 2)
		return false;
	(void)snprintf(to, to_bytes, "%u.%u.%u", (unsigned int)(n >> 24 & 0xff),
		       (unsigned int)(n >> 16 & 0xff), (unsigned int)(n >> 8 & 0xff));
	return true;
}

/* Finds the string "X.Y.Z" (PY_VERSION) by itself in the read-only data; `minor` is "X.Y". */
static bool python_from_string(struct elf_file *f, const char *minor, char *to, size_t to_bytes)
{
	const unsigned char *data, *at;
	uint64_t address;
	size_t bytes, key_bytes;
	char key[24];

	if (elf_file__section(f, ".rodata", &data, &bytes, &address))
		return false;
	key_bytes = (size_t)snprintf(key + 1, sizeof(key) - 1, "%s.", minor) + 1;
	key[0] = '\0';
	for (at = data; (at = memmem(at, bytes - (size_t)(at - data), key, key_bytes)); at++) {
		size_t left = bytes - (size_t)(at - data) - 1;
		size_t nr = version_bytes((const char *)at + 1, left);

		if (nr < left && !at[1 + nr] && nr > key_bytes - 1 && isdigit(at[key_bytes]) &&
		    set_version(to, to_bytes, (const char *)at + 1, nr))
			return true;
	}
	return false;
}

/* "libpython3.10.so.1.0", "python3.9d" -> "3.10", "3.9". */
static bool minor_of_name(const char *name, char *to, size_t to_bytes)
{
	const char *at = strstr(name, "python");
	size_t nr = 0;

	if (!at)
		return false;
	at += strlen("python");
	while (isdigit((unsigned char)at[nr]))
		nr++;
	if (!nr || at[nr] != '.' || !isdigit((unsigned char)at[nr + 1]))
		return false;
	for (nr++; isdigit((unsigned char)at[nr]);)
		nr++;
	return set_version(to, to_bytes, at, nr);
}

static void read_python(const struct target_process *p, struct target_versions *v)
{
	const struct target_library *l = target_python_file(p);
	char minor[8] = "";
	struct elf_file *f;
	bool ok = false;

	if (!l)
		return;
	(void)minor_of_name(file_base_name(l->path), minor, sizeof(minor));
	if (!elf_file__open(l->open_path, NULL, &f)) {
		ok = python_from_symbol(f, v->python, sizeof(v->python)) ||
		     (minor[0] && python_from_string(f, minor, v->python, sizeof(v->python)));
		elf_file__free(f);
	}
	if (!ok)
		(void)snprintf(v->python, sizeof(v->python), "%s", minor[0] ? minor : unknown);
}

/* Takes the runtime's version; its wheel names the file by the major number only, and then PyTorch
 * knows better. Without a runtime library, takes the driver's. */
static void read_cuda(const struct target_process *p, const char *version_py,
		      struct target_versions *v)
{
	const struct target_library *runtime = target_process__library(p, "libcudart");
	const struct target_library *driver = target_process__library(p, "libcuda.so");
	char name[24] = "", torch[24] = "";

	if (runtime) {
		(void)version_of_name(file_base_name(runtime->path), name, sizeof(name));
		if (!dots(name) && version_py &&
		    python_value(version_py, "cuda", torch, sizeof(torch)) &&
		    (!name[0] || !strncmp(torch, name, strlen(name))))
			memcpy(name, torch, sizeof(name));
		(void)snprintf(v->cuda, sizeof(v->cuda), "%s", name[0] ? name : unknown);
	} else if (driver) {
		if (version_of_name(file_base_name(driver->path), name, sizeof(name) - 7))
			(void)snprintf(v->cuda, sizeof(v->cuda), "driver %.16s", name);
		else
			memcpy(v->cuda, unknown, sizeof(unknown));
	}
}

/* Keeps the longest version of any libcupti in a folder: links to the same file have shorter ones.
 */
static int note_cupti(const char *name, void *arg)
{
	char found[sizeof(((struct target_versions *)NULL)->cupti)];
	char *best = arg;

	if (strncmp(name, "libcupti", 8) || !strstr(name, ".so"))
		return 0;
	if (!version_of_name(name, found, sizeof(found)))
		memcpy(found, unknown, sizeof(unknown));
	if (!best[0] || dots(found) > dots(best) || !strcmp(best, unknown))
		memcpy(best, found, sizeof(found));
	return 0;
}

static void read_cupti(const struct target_process *p, struct target_versions *v)
{
	/* Relative to libcudart's folder: itself, a toolkit, the wheels' layout. */
	static const char *const beside[] = {"", "/../extras/CUPTI/lib64", "/../../cuda_cupti/lib",
					     "/../../../extras/CUPTI/lib64",
					     "/../../nvidia/cuda_cupti/lib"};
	static const char *const common[] = {"/usr/local/cuda/extras/CUPTI/lib64",
					     "/usr/lib/x86_64-linux-gnu",
					     "/usr/lib/aarch64-linux-gnu"};
	const struct target_library *l = target_process__library(p, "libcupti");
	char folder[PATH_MAX + 64];

	if (l) {
		v->cupti_mapped = true;
		(void)note_cupti(file_base_name(l->path), v->cupti);
		return;
	}
	l = target_process__library(p, "libcudart");
	for (size_t i = 0; l && !v->cupti[0] && i < sizeof(beside) / sizeof(*beside); i++) {
		(void)snprintf(folder, sizeof(folder), "%.*s%s",
			       (int)(file_base_name(l->path) - l->path), l->path, beside[i]);
		(void)process_folder_each_name(p->pid, folder, note_cupti, v->cupti);
	}
	if (!l)
		l = target_process__library(p, "libcuda.so");
	for (size_t i = 0; l && !v->cupti[0] && i < sizeof(common) / sizeof(*common); i++)
		(void)process_folder_each_name(p->pid, common[i], note_cupti, v->cupti);
}

bool target_nccl_version(const struct target_process *p, char *to, size_t to_bytes)
{
	const struct target_library *l = target_process__library(p, "libnccl.so");

	if (!l || !version_behind(l, "NCCL version ", 0, to, to_bytes))
		return false;
	to[strcspn(to, "+")] = '\0';
	return true;
}

void target_versions_read(const struct target_process *p, struct target_versions *ret_versions)
{
	CLEANUP(cleanup_free) char *version_py = read_version_py(p);
	struct target_versions v = {0};

	read_torch(p, version_py, &v);
	read_python(p, &v);
	read_cuda(p, version_py, &v);
	read_cupti(p, &v);
	*ret_versions = v;
}
