/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The rest of the table's JSON: what is told of the capture as a whole.
 */
#include "output/format/metadata.h"
#include "output/memory/out_of_memory.h"
#include "output/summary/triggers.h"

#include "base/banned.h"

static void process_list(struct buf *out, const struct timeline *t)
{
	for (size_t i = 0; i < t->processes.nr; i++) {
		const struct tl_process *p = &t->processes.items[i];

		buf__printf(out, "%s{\"pid\": %d, \"rank\": ", i ? ", " : "", p->pid);
		if (p->rank < 0)
			buf__str(out, "null");
		else
			buf__i64(out, p->rank);
		buf__str(out, ", \"comm\": ");
		buf__json(out, p->comm);
		buf__str(out, ", \"cmdline\": ");
		buf__json(out, p->cmdline);
		buf__char(out, '}');
	}
}

/* When collection was switched off, from the start of the capture. */
static void pause_list(struct buf *out, const struct timeline *t)
{
	buf__str(out, ",\n  \"pauses\": [");
	for (size_t i = 0; i < t->pauses.nr; i++) {
		const struct tl_pause *p = &t->pauses.items[i];

		buf__str(out, i ? ", {\"start_us\": " : "{\"start_us\": ");
		buf__us(out, (int64_t)(p->start_ns - t->start_ns));
		buf__str(out, ", \"us\": ");
		buf__us(out, (int64_t)(p->end_ns - p->start_ns));
		buf__printf(out, ", \"cpu\": %s, \"gpu\": %s}", p->cpu ? "true" : "false",
			    p->gpu ? "true" : "false");
	}
	buf__char(out, ']');
}

void describe_whole(struct buf *out, const struct timeline *t)
{
	buf__str(out, "  \"wall_us\": ");
	buf__us(out, (int64_t)(t->end_ns - t->start_ns - t->paused_ns));
	if (t->pauses.nr)
		pause_list(out, t);
	buf__printf(out, ",\n  \"threads\": %zu,\n  \"processes\": [", t->threads.nr);
	process_list(out, t);
	buf__str(out, "],\n  \"steps\": ");
	describe_steps(out, t);
	buf__str(out, ",\n  \"losses\": ");
	describe_losses(out, t);
	buf__str(out, ",\n  \"overhead\": ");
	describe_overhead(out, t);
	buf__str(out, ",\n  \"capture\": ");
	describe_capture(out, t);
	if (t->gpu.any) {
		buf__str(out, ",\n  \"gpu\": ");
		describe_gpu(out, t);
	}
	if (t->gpu_partial)
		buf__str(out, ",\n  \"gpu_partial\": true");
	if (t->gpu_unseen)
		buf__str(out, ",\n  \"gpu_unseen\": true");
	if (t->python_gcs.nr) {
		buf__str(out, ",\n  \"python_gc\": ");
		describe_python_gc(out, t);
	}
	if (t->triggers.nr) {
		buf__str(out, ",\n  \"triggers\": ");
		describe_triggers(out, t);
	}
	if (t->out_of_memory.nr) {
		int err;

		buf__str(out, ",\n  \"out_of_memory\": ");
		err = out_of_memory_json(out, t);
		out->err = out->err ? out->err : err;
	}
	buf__str(out, "\n}\n");
}
