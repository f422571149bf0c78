/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The tracer: a process of its own that does the ptrace work, so that it can be killed. Whatever it
 * reads belongs to the traced process (files, memory, kernel locks on its address space) and may
 * block it for ever, with threads stopped. A timer kills it when it has been silent for too long;
 * the kernel then releases all threads, and each goes on from where it was (see tracee.h).
 */
#ifndef GP_INJECT_TRACER_H
#define GP_INJECT_TRACER_H

#include <stddef.h>
#include <stdint.h>

/* The longest time that the tracer may keep threads stopped without a sign of life. Whatever it
 * calls while threads are stopped must return within it. */
#define TRACER_SILENCE_MS 1900

/* What gpuprof does every few milliseconds while its tracer works: the process runs on and its
 * events must be read. It must not start another tracer. fn NULL: nothing. */
struct tracer_meanwhile {
	void (*fn)(void *arg);
	void *arg;
};

/* Runs fn(shared, arg) in a child process and waits for its end. The child gets and returns the
 * `bytes` at `shared`; nothing else that it writes comes back. No signal but SIGKILL reaches it,
 * and it ends when the calling thread does. Returns fn's result; -ETIMEDOUT: it was killed because
 * it was silent, or after total_ms in all (then `shared` is unchanged); -ECANCELED: somebody else
 * ended it; or another -errno: it could not be started. */
int tracer_run(int (*fn)(void *shared, void *arg), void *arg, void *shared, size_t bytes,
	       uint32_t total_ms, const struct tracer_meanwhile *meanwhile);

/* Inside fn(): a sign of life. Has no effect elsewhere. */
void tracer_pulse(void);

/* Inside fn(): threads may be stopped from now on, so silence counts. */
void tracer_stops(void);

#endif /* GP_INJECT_TRACER_H */
