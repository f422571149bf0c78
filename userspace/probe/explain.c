/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a refused load of the programs means for people.
 */
#include "probe/explain.h"

#include <errno.h>
#include <string.h>

int probe_explain_load(struct reason *why, int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		return reason_set(why, err,
				  "cannot load BPF programs: not permitted; need CAP_BPF and "
				  "CAP_PERFMON, try sudo");
	case -ENOMEM:
		return reason_set(why, err,
				  "cannot load BPF programs: out of memory; try a smaller ring");
	case -ESRCH:
	case -ENOENT:
		return reason_set(why, err,
				  "cannot load BPF programs: the kernel has no BTF "
				  "(/sys/kernel/btf/vmlinux); try 'gpuprof doctor'");
	default:
		return reason_set(why, err, "cannot load BPF programs: %s; try 'gpuprof doctor'",
				  strerror(-err));
	}
}
