/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The gate lies in a page of its own that a fork's child finds zeroed (MADV_WIPEONFORK), so that it
 * is shut there.
 */
#include "collector/torch/ops_session.h"

#include "collector/python/stack_cache.h"
#include "collector/runtime/compat.h"
#include "common/clock.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAVE_TRIES 10000 /* of 1 ms: a thread may be stopped inside a callback */

struct session ops_session;
struct gate *ops_gate;
bool ops_fence_needed;
uint64_t ops_missed_nr;

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Maps the gate's page. 0 or -errno. */
static int make_gate(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	/* Linux 4.14. Without it a child made by clone() would write into our ring. */
	if (madvise(p, bytes, MADV_WIPEONFORK)) {
		int err = -errno;

		(void)munmap(p, bytes);
		return err;
	}
	ops_gate = p;
	return 0;
}

int ops_session_init(void)
{
	int err = ops_gate ? 0 : make_gate();

	ops_fence_needed = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0;
	return err;
}

/* True when no thread is inside a callback any more. */
bool ops_wait_until_left(void)
{
	int tries = 0;

	if (ops_fence_needed || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (struct thread_state *t = thread_states__first(); t; t = t->next) {
		while (__atomic_load_n(&t->busy, __ATOMIC_ACQUIRE)) {
			if (++tries > LEAVE_TRIES)
				return false;
			clock_sleep_ms();
		}
	}
	return true;
}

void ops_begin_epoch(struct session *s, struct thread_state *t)
{
	t->epoch = s->epoch;
	__atomic_store_n(&t->depth, 0, __ATOMIC_RELAXED);
	/* Calls that a thread has left which ended meanwhile. */
	modules__leave(&t->modules, s->ring, s->epoch);
	t->modules.epoch = s->epoch;
	t->modules.tid = t->tid;
	memset(t->names, 0, sizeof(t->names));
	t->stack.state = 0;
	t->stack.checks_nr = 0;
	t->stack.calls_checks_nr = 0;
	t->stack.calls[t->stack.calls_now].nr = 0;
	t->top = s->caches_stacks ? stack_cache__claim() : NULL;
	t->torch_thread = (uint32_t)s->torch.current_thread();
}
