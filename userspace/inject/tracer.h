/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The tracer: a process of its own that does the ptrace work, so that it can be ended. Whatever it
 * looks at is the target's (files, memory, locks of the kernel on its address space) and may make
 * it wait for ever, with threads of the target stopped. So a timer kills it once it has been silent
 * for too long; the kernel then lets all its threads go, and each goes on from where it was, as
 * tracee.h says.
 */
#ifndef GP_INJECT_TRACER_H
#define GP_INJECT_TRACER_H

#include <stddef.h>
#include <stdint.h>

/* No thread of the target stays stopped for longer than this because the tracer waits. What it
 * calls while threads are stopped must be done within that time. */
#define TRACER_SILENCE_MS 1900

/* What gpuprof does every few milliseconds while its tracer works: the target runs on, and what it
 * tells is to be taken. It must not start another tracer. fn NULL: nothing. */
struct tracer_meanwhile {
	void (*fn)(void *arg);
	void *arg;
};

/* Runs fn(shared, arg) in a child process and waits for its end. `shared` is `bytes` of the
 * caller's that the child finds and changes; nothing else that it writes comes back. No signal
 * reaches it but SIGKILL; it ends when the calling thread does. Returns what fn did; -ETIMEDOUT: it
 * was killed, for its silence or after total_ms in all (`shared` is as before then); -ECANCELED: it
 * was ended by somebody else; or another -errno: it could not be started. */
int tracer_run(int (*fn)(void *shared, void *arg), void *arg, void *shared, size_t bytes,
	       uint32_t total_ms, const struct tracer_meanwhile *meanwhile);

/* In fn(): a sign of life. Nothing elsewhere. */
void tracer_pulse(void);

/* In fn(): from now on threads of the target may be stopped, and silence counts. */
void tracer_stops(void);

#endif /* GP_INJECT_TRACER_H */
