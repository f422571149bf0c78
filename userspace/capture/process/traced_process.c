/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One process of a capture. Its end is seen by a pidfd, which cannot be mistaken for that of a
 * later process with the same number.
 */
#include "capture/process/traced_process.h"

#include "capture/collector/client.h"
#include "capture/symbols/python_code.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

int traced_process__init(struct traced_process *m, struct target_process *p, struct reason *why)
{
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);

	if (fd < 0)
		return reason_set(why, -errno, "cannot watch %d: it has ended", (int)p->pid);
	if (!target_process__alive(p)) {
		(void)close(fd);
		return reason_set(why, -ESRCH, "cannot attach to %d: it has ended", (int)p->pid);
	}
	*m = (struct traced_process){.process = p, .pidfd = fd};
	return 0;
}

void traced_process__shed(struct traced_process *m)
{
	target_process__shed(m->process);
	python_codes__free(m->python);
	m->python = NULL;
	buf__done(&m->schemas);
	vec_done(&m->devices);
	if (m->pidfd >= 0)
		(void)close(m->pidfd);
	m->pidfd = -1;
}

void traced_process__done(struct traced_process *m)
{
	traced_process__shed(m);
	target_process__free(m->process);
	m->process = NULL;
}

bool traced_process__has_exited(const struct traced_process *m)
{
	struct pollfd p = {.fd = m->pidfd, .events = POLLIN};

	return m->pidfd < 0 || poll(&p, 1, 0) == 1;
}

void traced_process__note_exec(struct traced_process *m, bool follow)
{
	if (follow)
		m->maps.changed = m->renamed = true;
	else
		m->end = PROCESS_EXECED;
}

bool traced_process__has_cuda(const struct traced_process *m)
{
	return target_process__library(m->process, "libcuda.so") ||
	       target_process__library(m->process, "libcudart.so");
}

bool traced_process__reports(const struct traced_process *m, uint32_t features)
{
	return m->collector && (collector_client__active(m->collector) & features);
}
