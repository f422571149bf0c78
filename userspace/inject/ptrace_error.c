/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * ptrace says EPERM for everything; what /proc tells about the process and the machine tells the
 * cases apart.
 */
#include "inject/ptrace_error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/process/rights.h"
#include "inspect/program/capabilities.h"

/* The number after "name:" in /proc/PID/status, or -1. */
static long status_number(pid_t pid, const char *name)
{
	char CLEANUP(cleanup_free) *text = NULL;
	char path[32], key[32];
	const char *field;
	size_t bytes;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	(void)snprintf(key, sizeof(key), "\n%s:", name);
	if (file_read(path, 65536, &text, &bytes))
		return -1;
	field = strstr(text, key);
	return field ? strtol(field + strlen(key), NULL, 10) : -1;
}

pid_t tracer_of(pid_t tid)
{
	long tracer = status_number(tid, "TracerPid");

	return tracer > 0 ? (pid_t)tracer : 0;
}

int ptrace_error_reason(pid_t pid, int err, struct reason *why)
{
	long tracer = status_number(pid, "TracerPid");
	long uid = status_number(pid, "Uid");
	int scope = capabilities_yama_scope();

	if (err == -ESRCH || err == -ENOENT || tracer < 0)
		return reason_set(why, -ESRCH, "process %d has ended", pid);
	if (tracer > 0)
		return reason_set(why, -EPERM,
				  "process %d is traced by process %ld already; end that first, or "
				  "use --no-inject",
				  pid, tracer);
	if (scope >= 3)
		return reason_set(
			why, -EPERM,
			"process %d cannot be touched: kernel.yama.ptrace_scope is 3, which "
			"forbids it to everybody; use --no-inject",
			pid);
	if (geteuid() && uid >= 0 && (uid_t)uid != geteuid())
		return reason_set(
			why, -EPERM,
			"process %d belongs to user %ld; run gpuprof as that user or with "
			"sudo",
			pid, uid);
	if (scope && !rights_have(RIGHTS_CAP_SYS_PTRACE)) {
		char text[256];

		rights_explain(RIGHT_PTRACE, text, sizeof(text));
		return reason_set(
			why, -EPERM,
			"process %d cannot be touched: kernel.yama.ptrace_scope is %d and %s", pid,
			scope, text);
	}
	return reason_set(why, -EPERM,
			  "process %d cannot be traced: %s (not dumpable, other namespace or a "
			  "security module); run gpuprof as root on the host, or use --no-inject",
			  pid, strerror(-err));
}
