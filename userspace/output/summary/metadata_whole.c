/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The rest of the table's JSON: the keys about the capture as a whole.
 */
#include "output/format/metadata.h"
#include "output/memory/out_of_memory.h"
#include "output/summary/triggers.h"

#include "base/banned.h"
#include "base/buf.h"

static void process_list(struct json_writer *j, const struct timeline *t)
{
	json__put_array(j, "processes", &json_spaced);
	for (size_t i = 0; i < t->processes.nr; i++) {
		const struct tl_process *p = &t->processes.items[i];

		json__object(j, &json_spaced);
		json__put_i64(j, "pid", p->pid);
		json__key(j, "rank");
		if (p->rank < 0)
			json__null(j);
		else
			json__i64(j, p->rank);
		json__put_text(j, "comm", p->comm);
		json__put_text(j, "cmdline", p->cmdline);
		json__end(j);
	}
	json__end(j);
}

/* When collection was switched off, from the start of the capture. */
static void pause_list(struct json_writer *j, const struct timeline *t)
{
	json__put_array(j, "pauses", &json_spaced);
	for (size_t i = 0; i < t->pauses.nr; i++) {
		const struct tl_pause *p = &t->pauses.items[i];

		json__object(j, &json_spaced);
		json__put_us(j, "start_us", (int64_t)(p->start_ns - t->start_ns));
		json__put_us(j, "us", (int64_t)(p->end_ns - p->start_ns));
		json__put_bool(j, "cpu", p->cpu);
		json__put_bool(j, "gpu", p->gpu);
		json__end(j);
	}
	json__end(j);
}

/* Adds keys for what not every capture has. */
static void what_there_was(struct json_writer *j, const struct timeline *t)
{
	if (t->gpu.any) {
		json__key(j, "gpu");
		metadata_gpu(j, t);
	}
	if (t->gpu_partial)
		json__put_bool(j, "gpu_partial", true);
	if (t->gpu_unseen)
		json__put_bool(j, "gpu_unseen", true);
	if (t->python_gcs.nr) {
		json__key(j, "python_gc");
		metadata_python_gc(j, t);
	}
	if (t->triggers.nr) {
		json__key(j, "triggers");
		triggers_json(j, t);
	}
	if (t->out_of_memory.nr) {
		int err;

		json__key(j, "out_of_memory");
		err = out_of_memory_json(j, t);
		j->out->err = j->out->err ? j->out->err : err;
	}
}

void metadata_whole(struct json_writer *j, const struct timeline *t)
{
	json__put_us(j, "wall_us", (int64_t)(t->end_ns - t->start_ns - t->paused_ns));
	if (t->pauses.nr)
		pause_list(j, t);
	json__put_u64(j, "threads", t->threads.nr);
	process_list(j, t);
	json__key(j, "steps");
	metadata_steps(j, t);
	json__key(j, "losses");
	metadata_losses(j, t);
	json__key(j, "overhead");
	metadata_overhead(j, t);
	json__key(j, "capture");
	metadata_capture(j, t);
	what_there_was(j, t);
}
