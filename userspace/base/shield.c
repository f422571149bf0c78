/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * As vfork(2) does it: the caller stands still, so that the child may use its thread's storage.
 */
#include "base/shield.h"

#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (256UL << 10)

struct task {
	int (*fn)(void *arg);
	void *arg;
	int result;
};

static int child(void *arg)
{
	struct task *task = arg;

	/* Ctrl-C goes to all of a terminal's group. */
	(void)setsid();
	task->result = task->fn(task->arg);
	return 0;
}

int shield_run(int (*fn)(void *arg), void *arg)
{
	/* It ends without a signal, so that nobody takes it for another child. */
	const int flags = CLONE_VM | CLONE_FILES | CLONE_VFORK;
	struct task task = {.fn = fn, .arg = arg};
	unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	pid_t pid = -1;

	if (stack != MAP_FAILED)
		pid = clone(child, stack + STACK_BYTES, flags, &task);
	if (pid < 0)
		task.result = fn(arg);
	else
		(void)waitpid(pid, NULL, __WCLONE);
	if (stack != MAP_FAILED)
		(void)munmap(stack, STACK_BYTES);
	return task.result;
}
