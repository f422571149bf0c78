/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A Chrome trace made as the tool makes it: events into a recording, the recording into a timeline,
 * the timeline into the trace. Two threads, forward and backward, as few steps as the viewer shows
 * without scrolling.
 */
#include "page/make_trace.h"

#include <stdio.h>

#include "output/format/output.h"

#define STEPS	 6
#define STEP_NS	 1000000
#define START_NS 9000000000ULL

static const char *const names[] = {
	"aten::linear", "aten::addmm",
	"aten::relu",	"autograd::engine::evaluate_function: AddmmBackward0",
	"aten::mm",	"step </script><b>&\"\\"};

enum { LINEAR, ADDMM, RELU, BACKWARD, MM, NOTE, NAMES_NR };

struct span {
	uint32_t name;
	uint32_t tid;
	uint64_t from_ns, to_ns; /* within the step */
	uint64_t number, parent; /* of the instance, within the step and thread */
	uint32_t scope;
};

/* Children before parents, as the kernel side tells them. */
static const struct span step[] = {
	{ADDMM, 100, 120000, 280000, 3, 2, GP_SCOPE_FUNCTION},
	{LINEAR, 100, 100000, 300000, 2, 1, GP_SCOPE_FUNCTION},
	{RELU, 100, 320000, 400000, 4, 1, GP_SCOPE_FUNCTION},
	{NOTE, 100, 50000, 900000, 1, 0, GP_SCOPE_USER},
	{MM, 101, 510000, 700000, 2, 1, GP_SCOPE_FUNCTION},
	{BACKWARD, 101, 500000, 800000, 1, 0, GP_SCOPE_BACKWARD},
};

static uint64_t instance(const struct span *s, uint64_t number, uint64_t i)
{
	return number ? (uint64_t)(s->tid - 99) << 32 | (i * 8 + number) : 0;
}

static int add_op(struct recording_writer *w, const struct span *s, uint64_t i)
{
	struct gp_ev_op op = {
		.head = {.kind = GP_EV_OP,
			 .tid = s->tid,
			 .time_ns = START_NS + i * STEP_NS + s->to_ns},
		.start_ns = START_NS + i * STEP_NS + s->from_ns,
		.instance = instance(s, s->number, i),
		.parent = instance(s, s->parent, i),
		.sequence_nr = s->name == ADDMM || s->name == BACKWARD ? (int64_t)i : -1,
		.forward_thread = s->name == BACKWARD ? 1 : 0,
		.thread_number = s->tid - 99,
		.name_id = s->name + 1,
		.scope = s->scope,
	};

	return recording_writer__event(w, &op, sizeof(op));
}

static int add_memory(struct recording_writer *w, uint64_t i, bool is_free)
{
	struct gp_ev_memory m = {
		.head = {.kind = GP_EV_MEMORY,
			 .flags = is_free ? GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN : 0,
			 .tid = 100,
			 .time_ns = START_NS + i * STEP_NS + (is_free ? 390000 : 130000)},
		.instance = instance(&step[0], is_free ? 4 : 3, i),
		.address = 0x1000,
		.bytes = is_free ? 0 : 4096,
		.device_index = -1,
	};

	return recording_writer__event(w, &m, sizeof(m));
}

static int fill(struct recording_writer *w)
{
	const struct recording_process p = {
		.pid = 4242, .rank = -1, .world_size = -1, .comm = "python3", .cmdline = "python3"};
	int err = recording_writer__process(w, &p);

	for (uint32_t i = 0; i < NAMES_NR && !err; i++)
		err = recording_writer__name(w, i + 1, names[i], "");
	for (uint64_t i = 0; i < STEPS && !err; i++) {
		for (size_t j = 0; j < sizeof(step) / sizeof(step[0]) && !err; j++)
			err = add_op(w, &step[j], i);
		if (!err)
			err = add_memory(w, i, false);
		if (!err)
			err = add_memory(w, i, true);
	}
	if (!err)
		err = recording_writer__window(w, START_NS, START_NS + STEPS * STEP_NS,
					       1700000000000000000ULL);
	return err ? err : recording_writer__finish(w);
}

static int make_recording(const char *path, struct reason *why)
{
	struct recording_writer *w = NULL;
	int err = recording_writer__new(path, why, &w);

	if (!err)
		err = fill(w);
	recording_writer__free(w);
	return err;
}

static int write_trace(const struct timeline *t, const char *folder, const char *name)
{
	struct sink *s = NULL;
	char path[4096];
	int err;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	err = sink__new_path(path, &s);
	if (!err)
		err = output_chrome(s, t, name);
	if (!err)
		err = sink__finish(s);
	sink__free(s);
	return err;
}

int make_trace(const char *folder)
{
	struct recording *rec = NULL;
	struct timeline *t = NULL;
	struct reason why = {};
	char path[4096];
	int err;

	(void)snprintf(path, sizeof(path), "%s/trace.gpuprof", folder);
	err = make_recording(path, &why);
	if (!err)
		err = recording__open(path, &why, &rec);
	if (!err)
		err = timeline__new(rec, &why, &t);
	if (!err)
		err = write_trace(t, folder, "trace.json");
	if (!err)
		err = write_trace(t, folder, "trace.json.gz");
	if (err)
		fprintf(stderr, "make_page: trace: %d %s\n", err, why.text);
	timeline__free(t);
	recording__free(rec);
	return err;
}
