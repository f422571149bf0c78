/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The ranks of a job beside each other, as one JSON object. Times are microseconds, "at_us" those
 * since the capture began. What cannot be told is absent.
 */
#include "output/format/columns.h"
#include "output/format/metadata.h"
#include "output/format/output.h"

#include <inttypes.h>

#include "base/banned.h"

static void us(struct buf *out, const char *name, uint64_t ns)
{
	columns_us(out, COLUMNS_JSON, name, ns);
}

static void number(struct buf *out, const char *name, uint64_t n)
{
	columns_u64(out, COLUMNS_JSON, name, n);
}

static void row_object(struct buf *out, const struct timeline *t, const struct ranks *ranks,
		       const struct rank_row *row)
{
	buf__printf(out, "{\"rank\": %" PRId32 ", \"pid\": %" PRId32 ", \"times_of\": \"%s\"",
		    row->rank, t->processes.items[row->process].pid, row->by_gpu ? "GPU" : "CPU");
	number(out, "collectives", row->calls_nr);
	number(out, "peer_calls", row->peer_nr);
	number(out, "untimed", row->untimed_nr);
	us(out, "communication_us", row->communication_ns);
	us(out, "computed_meanwhile_us", row->computed_ns);
	if (ranks->one_clock) {
		number(out, "unmatched", row->unmatched_nr);
		us(out, "waited_us", row->waited_ns);
		number(out, "came_last", row->last_nr);
		us(out, "behind_us", row->behind_ns);
	}
	buf__char(out, '}');
}

static void at(struct buf *out, const struct timeline *t, uint64_t time_ns)
{
	buf__str(out, ", \"at_us\": ");
	buf__us(out, (int64_t)(time_ns - t->start_ns));
}

static int32_t rank_of(const struct timeline *t, const struct rank_call *call)
{
	return t->processes.items[call->process].rank;
}

static void collective_object(struct buf *out, const struct timeline *t, const struct ranks *ranks,
			      const struct rank_collective *one)
{
	const struct rank_call *calls = ranks->calls.items;
	const struct rank_call *first = &calls[ranks->members.items[one->first]];

	buf__printf(out, "{\"kind\": \"%s\"", first->kind);
	if (first->elements)
		number(out, "elements", first->elements);
	if (first->shapes) {
		buf__str(out, ", \"input_shapes\": ");
		buf__json(out, first->shapes);
	}
	if (one->last != TL_NONE) {
		buf__printf(out, ", \"last_rank\": %" PRId32, rank_of(t, &calls[one->last]));
		us(out, "behind_us", one->behind_ns);
		us(out, "spread_us", one->spread_ns);
	}
	buf__str(out, ", \"ranks\": [");
	for (uint32_t i = one->first; i < one->first + one->nr; i++) {
		const struct rank_call *call = &calls[ranks->members.items[i]];

		buf__printf(out, "%s{\"rank\": %" PRId32, i > one->first ? ", " : "",
			    rank_of(t, call));
		at(out, t, call->start_ns);
		us(out, "us", call->end_ns - call->start_ns);
		buf__char(out, '}');
	}
	buf__str(out, "]}");
}

static void step_object(struct buf *out, const struct timeline *t, const struct ranks *ranks,
			const struct rank_step *step)
{
	buf__printf(out, "{\"step\": %" PRIu64, step->number);
	at(out, t, step->start_ns);
	us(out, "us", step->end_ns - step->start_ns);
	number(out, "collectives", step->collectives_nr);
	if (step->last != TL_NONE) {
		buf__printf(out, ", \"last_rank\": %" PRId32, ranks->rows.items[step->last].rank);
		us(out, "behind_us", step->behind_ns);
	}
	buf__char(out, '}');
}

static void clocks(struct buf *out, const struct ranks *ranks)
{
	buf__printf(out, "\"comparable\": %s", ranks->one_clock ? "true" : "false");
	if (ranks->one_clock) {
		us(out, "error_us", ranks->clock_error_ns);
		number(out, "undecided", ranks->undecided_nr);
	}
}

static int write_object(struct sink *s, struct buf *out, const char *between)
{
	buf__str(out, between);
	return sink__drain(s, out, 0);
}

static int write_lists(struct sink *s, struct buf *out, const struct timeline *t,
		       const struct ranks *ranks)
{
	int err = write_object(s, out, "{\n  \"ranks\": [");

	for (size_t i = 0; i < ranks->rows.nr; i++) {
		buf__str(out, i ? ",\n    " : "\n    ");
		row_object(out, t, ranks, &ranks->rows.items[i]);
	}
	buf__str(out, "\n  ],\n  \"collectives\": [");
	for (size_t i = 0; i < ranks->collectives.nr && !err; i++) {
		buf__str(out, i ? ",\n    " : "\n    ");
		collective_object(out, t, ranks, &ranks->collectives.items[i]);
		err = write_object(s, out, "");
	}
	buf__str(out, "\n  ],\n  \"steps\": [");
	for (size_t i = 0; i < ranks->steps.nr && !err; i++) {
		buf__str(out, i ? ",\n    " : "\n    ");
		step_object(out, t, ranks, &ranks->steps.items[i]);
		err = write_object(s, out, "");
	}
	return err;
}

int output_ranks_json(struct sink *s, const struct timeline *t, const struct ranks *ranks)
{
	struct buf out = {0};
	int err = write_lists(s, &out, t, ranks);

	buf__str(&out, "\n  ],\n  \"clocks\": {");
	clocks(&out, ranks);
	buf__str(&out, "},\n  \"losses\": ");
	describe_losses(&out, t);
	buf__str(&out, ",\n  \"capture\": ");
	describe_capture(&out, t);
	err = err ? err : write_object(s, &out, "\n}\n");
	buf__done(&out);
	return err;
}
