/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Explains a refusal. The kernel returns EPERM for everything. The causes are checked in the order
 * in which they hide each other: capabilities of a user namespace count for nothing outside of it,
 * a missing capability comes before a seccomp filter, and a filter before lockdown and security
 * modules.
 */
#include "inspect/process/rights.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/access/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAP_SYS_ADMIN 21
#define CAP_PERFMON   38
#define CAP_BPF	      39
/* The kernel's PROC_PID_INIT_INO and PROC_USER_INIT_INO. */
#define FIRST_PID_NAMESPACE  0xEFFFFFFCu
#define FIRST_USER_NAMESPACE 0xEFFFFFFDu
#define NAMES_BYTES	     64

static const struct needed {
	uint32_t rights;
	int number;
	bool admin; /* CAP_SYS_ADMIN includes it */
	const char *name;
} needed[] = {
	{RIGHT_BPF, CAP_BPF, true, "BPF"},
	{RIGHT_BPF | RIGHT_PERF, CAP_PERFMON, true, "PERFMON"},
	{RIGHT_PTRACE, RIGHTS_CAP_SYS_PTRACE, false, "SYS_PTRACE"},
};

bool rights_have(int capability)
{
	CLEANUP(cleanup_free) char *text = NULL;

	return !status_read(0, 0, &text) && status_mask(text, "CapEff") >> capability & 1;
}

/* 1: the namespace is the kernel's first one of its kind; 0: it is not; or -errno. */
static int is_first_namespace(const char *path, ino_t first)
{
	struct stat st;

	return stat(path, &st) ? -errno : st.st_ino == first;
}

int rights_in_first_pid_namespace(void)
{
	return is_first_namespace("/proc/self/ns/pid", FIRST_PID_NAMESPACE);
}

bool rights_in_container(void)
{
	return !rights_in_first_pid_namespace() || getenv("KUBERNETES_SERVICE_HOST") ||
	       !access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK);
}

const char *rights_lockdown(void)
{
	static const char *const levels[] = {"none", "integrity", "confidentiality"};
	CLEANUP(cleanup_free) char *text = NULL;
	const char *chosen;

	if (file_read("/sys/kernel/security/lockdown", 256, &text, NULL))
		return "";
	chosen = strchr(text, '[');
	for (size_t i = 0; chosen && i < sizeof(levels) / sizeof(*levels); i++)
		if (!strncmp(chosen + 1, levels[i], strlen(levels[i])))
			return levels[i];
	return "";
}

/* Lists the missing capabilities, each after `before`, with `between` in between. Returns how many.
 */
static int list_missing(enum right right, const char *before, const char *between,
			char to[NAMES_BYTES])
{
	size_t at = 0;
	int nr = 0;

	to[0] = '\0';
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		if (!(needed[i].rights & right) || rights_have(needed[i].number) ||
		    (needed[i].admin && rights_have(CAP_SYS_ADMIN)))
			continue;
		at += (size_t)snprintf(to + at, NAMES_BYTES - at, "%s%s%s", nr ? between : "",
				       before, needed[i].name);
		nr++;
	}
	return nr;
}

static void explain_missing(enum right right, int nr, char *to, size_t bytes)
{
	char names[NAMES_BYTES], docker[NAMES_BYTES], kubernetes[NAMES_BYTES];
	const char *are = nr == 1 ? "is" : "are";

	(void)list_missing(right, "CAP_", " and ", names);
	(void)list_missing(right, "--cap-add ", " ", docker);
	(void)list_missing(right, "", ", ", kubernetes);
	/* A user who is not root becomes root first, in a container as well. */
	if (!geteuid() && rights_in_container())
		(void)snprintf(to, bytes,
			       "%s %s missing; start the container with %s (Docker), or with "
			       "securityContext.capabilities.add: [%s] (Kubernetes)",
			       names, are, docker, kubernetes);
	else
		(void)snprintf(to, bytes, "%s %s missing; run gpuprof as root (sudo)", names, are);
}

static void explain_sys(char *to, size_t bytes)
{
	if (rights_in_container())
		(void)snprintf(to, bytes,
			       "/sys/kernel/btf/vmlinux is missing; start the container with -v "
			       "/sys:/sys:ro (Docker), or with a hostPath volume of /sys at /sys "
			       "(Kubernetes)");
	else
		(void)snprintf(to, bytes,
			       "/sys/kernel/btf/vmlinux is missing; mount /sys, or use a kernel "
			       "with CONFIG_DEBUG_INFO_BTF (every distribution's since 2021)");
}

void rights_explain(enum right right, char *to, size_t bytes)
{
	char names[NAMES_BYTES];
	int missing_nr = list_missing(right, "", "", names);

	if (right == RIGHT_SYS)
		explain_sys(to, bytes);
	else if (right != RIGHT_PTRACE &&
		 !is_first_namespace("/proc/self/ns/user", FIRST_USER_NAMESPACE))
		(void)snprintf(to, bytes,
			       "the root of a user namespace has no right to it; run gpuprof "
			       "outside of the namespace as root (Docker: without userns-remap or "
			       "--userns=host; Kubernetes: hostUsers: true)");
	else if (missing_nr)
		explain_missing(right, missing_nr, to, bytes);
	else if (status_read_number(0, 0, "Seccomp", 0) > 0)
		(void)snprintf(to, bytes,
			       "a seccomp filter forbids it; start the container with "
			       "--security-opt seccomp=unconfined (Docker), or with "
			       "securityContext.seccompProfile.type: Unconfined (Kubernetes)");
	else
		(void)snprintf(to, bytes,
			       "a security module forbids it; see what the kernel's log says "
			       "(dmesg)");
}
