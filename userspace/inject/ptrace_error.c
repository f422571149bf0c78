/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Explains a refusal. ptrace returns EPERM for everything; /proc's data on the process and the
 * machine tells the cases apart.
 */
#include "inject/ptrace_error.h"

#include "inspect/access/status.h"
#include "inspect/process/rights.h"
#include "inspect/program/capabilities.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

pid_t tracer_of(pid_t tid)
{
	long tracer = status_read_number(tid, 0, "TracerPid", 0);

	return tracer > 0 ? (pid_t)tracer : 0;
}

int ptrace_error_reason(pid_t pid, int err, struct reason *why)
{
	long tracer = status_read_number(pid, 0, "TracerPid", 0);
	long uid = status_read_number(pid, 0, "Uid", 0);
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
			"process %d cannot be traced: kernel.yama.ptrace_scope is 3, which "
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
			"process %d cannot be traced: kernel.yama.ptrace_scope is %d and %s", pid,
			scope, text);
	}
	return reason_set(why, -EPERM,
			  "process %d cannot be traced: %s (not dumpable, other namespace or a "
			  "security module); run gpuprof as root on the host, or use --no-inject",
			  pid, strerror(-err));
}
