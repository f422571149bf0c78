/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Changes the capabilities of one thread with the system calls themselves: libraries change all
 * threads at once.
 */
#include "base/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (1ULL << (capability))

uint64_t privileges_of_capture(void)
{
	return BIT(CAP_BPF) | BIT(CAP_PERFMON) | /* programs, rings and probes */
	       BIT(CAP_SYS_ADMIN) |		 /* /proc/PID/map_files; probes before Linux 5.8 */
	       BIT(CAP_SYS_PTRACE) |		 /* other processes' memory and libraries */
	       BIT(CAP_DAC_OVERRIDE); /* their files, whoever owns them: /proc/PID/mem too */
}

uint64_t privileges_of_output(void)
{
	return BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN) | BIT(CAP_FOWNER);
}

/* A capability that the kernel does not know is none that could be given away. */
static int drop_bounding(uint64_t keep)
{
	for (int i = 0; i < 64; i++) {
		if (keep & BIT(i) || prctl(PR_CAPBSET_READ, i, 0, 0, 0) <= 0)
			continue;
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0))
			return -errno;
	}
	return 0;
}

static int set_own(uint64_t keep)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(keep >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

static bool may_change_bounding(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	return !syscall(SYS_capget, &head, data) && (data[0].effective & BIT(CAP_SETPCAP));
}

int privileges_keep(uint64_t keep, struct reason *why)
{
	int err = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		err = -errno;
	/* Without the right to, it has been done (or nothing could be gained anyway). */
	if (!err && may_change_bounding())
		err = drop_bounding(keep);
	err = err ? err : set_own(keep);
	return err ? reason_set(why, err, "cannot give privileges away: %s", strerror(-err)) : 0;
}
