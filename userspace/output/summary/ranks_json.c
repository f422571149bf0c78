/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The ranks of a job beside each other, as one JSON object. Times are in microseconds; "at_us" is
 * the time since the capture began. What is not known is absent.
 */
#include "output/format/metadata.h"
#include "output/format/output.h"

#include "base/banned.h"

#define BLOCK_BYTES (64 * 1024)

static void row_object(struct json_writer *j, const struct timeline *t, const struct ranks *ranks,
		       const struct rank_row *row)
{
	json__object(j, &json_spaced);
	json__put_i64(j, "rank", row->rank);
	json__put_i64(j, "pid", t->processes.items[row->process].pid);
	json__put_word(j, "times_of", row->by_gpu ? "GPU" : "CPU");
	json__put_u64(j, "collectives", row->calls_nr);
	json__put_u64(j, "peer_calls", row->peer_nr);
	json__put_u64(j, "untimed", row->untimed_nr);
	json__put_duration(j, "communication_us", row->communication_ns);
	json__put_duration(j, "computed_meanwhile_us", row->computed_ns);
	if (ranks->one_clock) {
		json__put_u64(j, "unmatched", row->unmatched_nr);
		json__put_duration(j, "waited_us", row->waited_ns);
		json__put_u64(j, "came_last", row->last_nr);
		json__put_duration(j, "behind_us", row->behind_ns);
	}
	json__end(j);
}

static void at(struct json_writer *j, const struct timeline *t, uint64_t time_ns)
{
	json__put_us(j, "at_us", (int64_t)(time_ns - t->start_ns));
}

static int32_t rank_of(const struct timeline *t, const struct rank_call *call)
{
	return t->processes.items[call->process].rank;
}

static void calls_array(struct json_writer *j, const struct timeline *t, const struct ranks *ranks,
			const struct rank_collective *one)
{
	json__array(j, &json_spaced);
	for (uint32_t i = one->first; i < one->first + one->nr; i++) {
		const struct rank_call *call = &ranks->calls.items[ranks->members.items[i]];

		json__object(j, &json_spaced);
		json__put_i64(j, "rank", rank_of(t, call));
		at(j, t, call->start_ns);
		json__put_duration(j, "us", call->end_ns - call->start_ns);
		json__end(j);
	}
	json__end(j);
}

static void collective_object(struct json_writer *j, const struct timeline *t,
			      const struct ranks *ranks, const struct rank_collective *one)
{
	const struct rank_call *calls = ranks->calls.items;
	const struct rank_call *first = &calls[ranks->members.items[one->first]];

	json__object(j, &json_spaced);
	json__put_word(j, "kind", first->kind);
	if (first->elements)
		json__put_u64(j, "elements", first->elements);
	if (first->shapes)
		json__put_text(j, "input_shapes", first->shapes);
	if (one->last != TL_NONE) {
		json__put_i64(j, "last_rank", rank_of(t, &calls[one->last]));
		json__put_duration(j, "behind_us", one->behind_ns);
		json__put_duration(j, "spread_us", one->spread_ns);
	}
	json__key(j, "ranks");
	calls_array(j, t, ranks, one);
	json__end(j);
}

static void step_object(struct json_writer *j, const struct timeline *t, const struct ranks *ranks,
			const struct rank_step *step)
{
	json__object(j, &json_spaced);
	json__put_u64(j, "step", step->number);
	at(j, t, step->start_ns);
	json__put_duration(j, "us", step->end_ns - step->start_ns);
	json__put_u64(j, "collectives", step->collectives_nr);
	if (step->last != TL_NONE) {
		json__put_i64(j, "last_rank", ranks->rows.items[step->last].rank);
		json__put_duration(j, "behind_us", step->behind_ns);
	}
	json__end(j);
}

static void clocks_object(struct json_writer *j, const struct ranks *ranks)
{
	json__object(j, &json_spaced);
	json__put_bool(j, "comparable", ranks->one_clock);
	if (ranks->one_clock) {
		json__put_duration(j, "error_us", ranks->clock_error_ns);
		json__put_u64(j, "undecided", ranks->undecided_nr);
	}
	json__end(j);
}

static int write_lists(struct sink *s, struct json_writer *j, const struct timeline *t,
		       const struct ranks *ranks)
{
	int err = 0;

	json__put_array(j, "ranks", &json_rows);
	for (size_t i = 0; i < ranks->rows.nr; i++)
		row_object(j, t, ranks, &ranks->rows.items[i]);
	json__end(j);
	json__put_array(j, "collectives", &json_rows);
	for (size_t i = 0; i < ranks->collectives.nr && !err; i++) {
		collective_object(j, t, ranks, &ranks->collectives.items[i]);
		err = sink__drain(s, j->out, BLOCK_BYTES);
	}
	json__end(j);
	json__put_array(j, "steps", &json_rows);
	for (size_t i = 0; i < ranks->steps.nr && !err; i++) {
		step_object(j, t, ranks, &ranks->steps.items[i]);
		err = sink__drain(s, j->out, BLOCK_BYTES);
	}
	json__end(j);
	return err;
}

int output_ranks_json(struct sink *s, const struct timeline *t, const struct ranks *ranks)
{
	struct buf out = {0};
	struct json_writer j;
	int err;

	json__init(&j, &out);
	json__object(&j, &json_document);
	err = write_lists(s, &j, t, ranks);
	json__key(&j, "clocks");
	clocks_object(&j, ranks);
	json__key(&j, "losses");
	metadata_losses(&j, t);
	json__key(&j, "capture");
	metadata_capture(&j, t);
	json__end(&j);
	buf__char(&out, '\n');
	err = err ? err : sink__drain(s, &out, 0);
	buf__done(&out);
	return err;
}
