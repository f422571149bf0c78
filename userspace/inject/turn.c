/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "inject/turn.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

int turn_take(const struct target_process *p, struct reason *why, int *ret_fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int CLEANUP(cleanup_fd) fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int n;

	if (fd < 0)
		return reason_set(why, -errno, "cannot make a socket: %s", strerror(errno));
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "gpuprof-inject-%d-%llu", p->pid,
		     (unsigned long long)p->start_ticks);
	if (bind(fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
		return reason_set(why, -EBUSY,
				  "another gpuprof is just attaching to process %d; try again",
				  p->pid);
	*ret_fd = take_fd(&fd);
	return 0;
}
