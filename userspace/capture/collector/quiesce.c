/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "capture/collector/quiesce.h"

#include "base/log.h"
#include "common/clock.h"
#include "inject/quiesce.h"

#include <errno.h>

/* Threads are held for WINDOW_MS at most until all are, for a third of the time; a try ends after
 * SEARCH_MS. After STRICT_NS threads may be in
 * a call that waits for the GPU, as one of several always may be. Once CUPTI is at it, it gets
 * LIMIT_MS, and LONGER_MS in the midst of what must not be cut short. An attach waits a second for
 * the answer. LIMIT_MS and LONGER_MS together stay below TRACER_SILENCE_MS. */
#define WINDOW_MS 20
#define SEARCH_MS 100
#define LIMIT_MS  500
#define LONGER_MS 1300
#define STRICT_NS 400000000ULL
#define REFUSE_NS 800000000ULL

_Static_assert(LIMIT_MS + LONGER_MS < TRACER_SILENCE_MS, "the tracer is not killed meanwhile");

static int while_held(bool all_out, void *arg)
{
	return ring_reader__give_quiesce(arg, all_out, LIMIT_MS, LONGER_MS);
}

static void emit(const struct target_process *p, const struct quiesce_result *r,
		 enum quiesce_end end)
{
	if (end == QUIESCE_UNWANTED)
		return;
	log_info("%d: its threads (%u, %u of them in a call that waits for the GPU) were held for "
		 "%llu us outside of CUDA as CUPTI came or went%s",
		 (int)p->pid, r->held_nr, r->waiting_nr, (unsigned long long)r->held_ns / 1000,
		 end == QUIESCE_DONE ? "" : "; it was not done by then");
}

static int try(struct collector_quiesce *h, const struct target_process *p, const char *own,
	       struct ring_reader *r, bool strict, struct tracer_meanwhile meanwhile,
	       struct reason *why)
{
	/* Programs with the runtime linked in are in the driver but for a few instructions; the
	 * driver calls compilers of its own. */
	static const char *const libraries[] = {"libcuda.so",
						"libcudart",
						"libcupti.so",
						"libnvidia-",
						"memfd:libgpuprof-cupti",
						"libgpuprof-cupti",
						NULL};
	/* "cuStreamSynchronize", "cudaMemcpyAsync" (to memory that is not pinned) */
	static const char *const waiting[] = {"Synchronize", "Memcpy", NULL};
	const struct quiesce_options options = {.libraries = libraries,
						.waiting = strict ? NULL : waiting,
						.not_waiting = "Graph",
						.thread_name = own,
						.window_ms = WINDOW_MS,
						.search_ms = SEARCH_MS,
						.meanwhile = meanwhile};
	struct quiesce_result result;
	int err = quiesce_threads(p, &options, while_held, r, why, &result);

	h->held_ns += result.held_ns;
	if (!err)
		emit(p, &result, (enum quiesce_end)result.answer);
	return err;
}

void collector_quiesce__serve(struct collector_quiesce *h, const struct target_process *p,
			      const char *own, struct ring_reader *r,
			      struct tracer_meanwhile meanwhile)
{
	uint64_t now = clock_now_ns();
	struct reason why = {0};
	int err;

	if (!ring_reader__asks_quiesce(r)) {
		h->asked_ns = 0;
		return;
	}
	if (!h->asked_ns)
		h->asked_ns = now;
	err = try(h, p, own, r, now < h->asked_ns + STRICT_NS, meanwhile, &why);
	if (!err || ((err == -EAGAIN || err == -EBUSY) && clock_now_ns() < h->asked_ns + REFUSE_NS))
		return;
	log_info("%d: %s", (int)p->pid, why.text);
	ring_reader__refuse_quiesce(r);
}
