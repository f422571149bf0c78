/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "inject/injection_lock.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/cleanup.h"

/* Milliseconds to wait for a holder to listen, and for one that ends: the tracer of a gpuprof that
 * was killed holds the lock until the kernel has ended it too. */
#define LISTENS_MS 20
#define ENDS_MS	   500

static socklen_t name_of(const struct target_process *p, struct sockaddr_un *ret_name)
{
	int n;

	*ret_name = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(ret_name->sun_path + 1, sizeof(ret_name->sun_path) - 1,
		     "gpuprof-inject-%d-%llu", p->pid, (unsigned long long)p->start_ticks);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Anybody can take such a name. It counts only if its holder may attach to the process: root, the
 * process's user, or ours. */
static bool is_taken_by_right(const struct target_process *p, const struct sockaddr_un *name,
			      socklen_t bytes)
{
	CLEANUP(cleanup_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred peer = {0};
	socklen_t peer_bytes = sizeof(peer);

	if (fd < 0 || connect(fd, (const struct sockaddr *)name, bytes))
		return errno == EAGAIN;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes))
		return false;
	return !peer.uid || peer.uid == p->uid || peer.uid == geteuid();
}

int injection_lock(const struct target_process *p, struct reason *why, int *ret_fd)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	int CLEANUP(cleanup_fd) fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t bytes = name_of(p, &name);

	if (fd < 0)
		return reason_set(why, -errno, "cannot make a socket: %s", strerror(errno));
	for (int held_ms = 0, strange_ms = 0; bind(fd, (struct sockaddr *)&name, bytes);) {
		bool by_right = is_taken_by_right(p, &name, bytes);

		if (!by_right && strange_ms++ >= LISTENS_MS)
			break;
		if (by_right && held_ms++ >= ENDS_MS)
			return reason_set(why, -EBUSY,
					  "another gpuprof is attaching to process %d; try "
					  "again",
					  p->pid);
		(void)nanosleep(&pause, NULL);
	}
	(void)listen(fd, 1);
	*ret_fd = take_fd(&fd);
	return 0;
}
