/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Several recordings as one: what counts within one recording only is numbered anew, and everything
 * else stays as it is.
 */
#include "recording/merge.h"
#include "unit/sample.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HOUR_NS (3600ULL * 1000000000ULL)

struct part {
	const char *file;
	const char *boot_id; /* NULL: none */
	const char *name;    /* of its second op's */
	int32_t pid;
	uint64_t start_ns, end_ns;
	uint64_t realtime_ns; /* at the start */
	bool cut;
};

/* What the parts say of their capture, in their order; NULL: nothing. */
struct costs {
	const char *capture_id;
	struct {
		const char *key, *value;
	} reported[10];
};

static const struct costs *costs_of_parts;

/* What the next part calls its frame and its stack. */
static uint32_t frame_id = 4, stack_id = 9;

/* Two ops, an outer one that has a stack and inputs and an inner one, and an allocation. */
static void put_events(struct recording_writer *w, uint64_t at_ns)
{
	struct {
		struct gp_ev_inputs head;
		uint8_t data[8];
	} inputs = {{{.kind = GP_EV_INPUTS, .process = 2, .time_ns = at_ns}, 5, 1},
		    {GP_INPUT_TRUE}};
	struct gp_ev_op_inputs outer = {
		.op = {.head = {.kind = GP_EV_OP, .process = 2, .tid = 7, .time_ns = at_ns + 50},
		       .start_ns = at_ns + 10,
		       .instance = 3ULL << 32 | 1,
		       .sequence_nr = -1,
		       .name_id = 1,
		       .stack_id = stack_id},
		.inputs_id = 5,
	};
	struct gp_ev_op inner = {
		.head = {.kind = GP_EV_OP, .process = 2, .tid = 7, .time_ns = at_ns + 40},
		.start_ns = at_ns + 20,
		.instance = 3ULL << 32 | 2,
		.parent = 3ULL << 32 | 1,
		.sequence_nr = -1,
		.name_id = 2,
	};
	struct gp_ev_memory memory = {
		.head = {.kind = GP_EV_MEMORY, .process = 2, .tid = 7, .time_ns = at_ns + 30},
		.instance = 3ULL << 32 | 2,
		.address = 4096,
		.bytes = 64,
		.stack_id = stack_id,
	};
	struct gp_ev_collective collective = {
		.head = {.kind = GP_EV_COLLECTIVE, .process = 2, .tid = 7, .time_ns = at_ns + 36},
		.start_ns = at_ns + 35,
		.instance = 3ULL << 32 | 2,
		.name_id = 2,
	};
	struct gp_ev_api_call call = {
		.api = {.head = {.kind = GP_EV_API, .process = 2, .tid = 7, .time_ns = at_ns + 38},
			.start_ns = at_ns + 37,
			.name_id = 1},
		.kernel_name_id = 2,
	};

	assert_int_equal(recording_writer__event(w, &inputs, sizeof(inputs)), 0);
	assert_int_equal(recording_writer__event(w, &memory, sizeof(memory)), 0);
	assert_int_equal(recording_writer__event(w, &collective, sizeof(collective)), 0);
	assert_int_equal(recording_writer__event(w, &call, sizeof(call)), 0);
	assert_int_equal(recording_writer__event(w, &inner, sizeof(inner)), 0);
	assert_int_equal(recording_writer__event(w, &outer, sizeof(outer)), 0);
}

static struct recording *make(const struct part *p, const struct costs *costs)
{
	const struct recording_frame frame = {
		"", p->name, "lib.so", "", 16, 0, RECORDING_FRAME_NATIVE, false, 0};
	static const struct recording_line lines[] = {{"inlined", "a.h", 3}, {"", "a.c", 7}};
	const struct recording_process process = {
		.index = 2,
		.pid = p->pid,
		.rank = p->pid - 100,
		.world_size = 2,
		.start_boot_ns = 5,
		.comm = "python3",
		.cmdline = "train.py",
	};
	const char *path = sample_path(p->file);
	const uint32_t frames[] = {frame_id, 0};
	struct recording_writer *w;
	struct recording *r;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	if (p->boot_id)
		assert_int_equal(recording_writer__meta(w, "boot_id", p->boot_id), 0);
	assert_int_equal(recording_writer__meta(w, "host", p->file), 0);
	assert_int_equal(recording_writer__meta(w, "mode", "trace"), 0);
	if (costs)
		assert_int_equal(recording_writer__meta(w, "capture_id", costs->capture_id), 0);
	for (size_t i = 0; costs && i < 10 && costs->reported[i].key; i++)
		assert_int_equal(
			recording_writer__meta(w, costs->reported[i].key, costs->reported[i].value),
			0);
	assert_int_equal(recording_writer__process(w, &process), 0);
	assert_int_equal(recording_writer__name(w, 1, "aten::linear", ""), 0);
	assert_int_equal(recording_writer__name(w, 2, p->name, "out"), 0);
	assert_int_equal(recording_writer__frame(w, frame_id, &frame), 0);
	assert_int_equal(recording_writer__frame_lines(w, frame_id, lines, 2), 0);
	assert_int_equal(recording_writer__frame_op(w, frame_id, 2, GP_SCOPE_BACKWARD), 0);
	assert_int_equal(recording_writer__stack(w, stack_id, 2, frames, 2), 0);
	put_events(w, p->start_ns);
	assert_int_equal(recording_writer__loss(w, "ring_full", 3), 0);
	assert_int_equal(recording_writer__window(w, p->start_ns, p->end_ns, p->realtime_ns), 0);
	assert_int_equal(p->cut ? recording_writer__flush(w) : recording_writer__finish(w), 0);
	recording_writer__free(w);
	assert_int_equal(recording__open(path, NULL, &r), 0);
	return r;
}

/* The parts as one; or, of an error, only its reason. */
static int merge(const struct part *parts, size_t nr, struct reason *why,
		 struct recording **ret_merged)
{
	const char *path; /* static memory, which making the parts uses too */
	struct recording *recs[4];
	struct recording_writer *w;
	int err;

	for (size_t i = 0; i < nr; i++)
		recs[i] = make(&parts[i], costs_of_parts ? &costs_of_parts[i] : NULL);
	path = sample_path("merged.gpuprof");
	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	err = recording_merge(recs, nr, NULL, w, why);
	if (!err)
		assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	for (size_t i = 0; i < nr; i++)
		recording__free(recs[i]);
	if (!err) {
		assert_int_equal(recording__open(path, NULL, ret_merged), 0);
		assert_null(recording__damage(*ret_merged));
	}
	return err;
}

struct seen {
	struct gp_ev_op_inputs ops[8];
	size_t ops_nr;
	struct gp_ev_memory memory[4];
	size_t memory_nr;
	uint32_t inputs[4];
	size_t inputs_nr;
	struct gp_ev_collective collectives[4];
	size_t collectives_nr;
	struct gp_ev_api_call calls[4];
	size_t calls_nr;
};

static int see(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	struct seen *s = arg;

	if (head->kind == GP_EV_OP) {
		assert_true(s->ops_nr < 8);
		memcpy(&s->ops[s->ops_nr++], event,
		       bytes < sizeof(*s->ops) ? bytes : sizeof(*s->ops));
	} else if (head->kind == GP_EV_MEMORY) {
		assert_true(s->memory_nr < 4);
		memcpy(&s->memory[s->memory_nr++], event, sizeof(*s->memory));
	} else if (head->kind == GP_EV_INPUTS) {
		assert_true(s->inputs_nr < 4);
		s->inputs[s->inputs_nr++] = ((const struct gp_ev_inputs *)event)->inputs_id;
	} else if (head->kind == GP_EV_COLLECTIVE) {
		assert_true(s->collectives_nr < 4);
		memcpy(&s->collectives[s->collectives_nr++], event, sizeof(*s->collectives));
	} else if (head->kind == GP_EV_API) {
		assert_true(s->calls_nr < 4 && bytes == sizeof(*s->calls));
		memcpy(&s->calls[s->calls_nr++], event, sizeof(*s->calls));
	}
	return 0;
}

static struct seen see_all(struct recording *r)
{
	struct seen s = {.ops_nr = 0};

	assert_int_equal(recording__each_event(r, see, &s), 0);
	return s;
}

static const char *name_of(const struct recording *r, const struct gp_ev_op_inputs *op)
{
	return recording__name(r, op->op.name_id, NULL);
}

static uint64_t loss_of(const struct recording *r, const char *name)
{
	for (size_t i = 0; i < recording__losses(r); i++) {
		uint64_t count;

		if (!strcmp(recording__loss_at(r, i, &count), name))
			return count;
	}
	return 0;
}

static void test_two_processes_of_one_machine(void **state)
{
	static const struct part parts[] = {
		{"b.gpuprof", "x", "aten::mm", 101, 2000, 4000, HOUR_NS + 2000, false},
		{"a.gpuprof", "x", "aten::add", 100, 1000, 3000, HOUR_NS + 900, false},
	};
	uint64_t start, end, realtime;
	const uint32_t *frames;
	struct recording *r;
	uint32_t flags, name, scope;
	struct seen s;
	size_t nr;

	assert_int_equal(merge(parts, 2, NULL, &r), 0);
	s = see_all(r);
	assert_int_equal(s.ops_nr, 4);
	assert_int_equal(s.memory_nr, 2);
	/* The one that began first comes first; times are what they were. */
	assert_string_equal(name_of(r, &s.ops[0]), "aten::add");
	assert_string_equal(name_of(r, &s.ops[1]), "aten::linear");
	assert_string_equal(name_of(r, &s.ops[2]), "aten::mm");
	assert_int_equal(s.ops[1].op.name_id, s.ops[3].op.name_id);
	assert_int_equal(s.ops[1].op.start_ns, 1010);
	assert_int_equal(s.ops[3].op.head.time_ns, 2050);
	/* Each has its own process, instances, inputs and stack, and they still go together. */
	assert_int_not_equal(s.ops[0].op.head.process, s.ops[2].op.head.process);
	for (int i = 0; i < 2; i++) {
		const struct gp_ev_op *inner = &s.ops[2 * i].op, *outer = &s.ops[2 * i + 1].op;

		assert_int_equal(recording__process_at(r, outer->head.process)->pid, 100 + i);
		assert_int_equal(inner->parent, outer->instance);
		assert_int_equal(outer->parent, 0);
		assert_int_equal(s.memory[i].instance, inner->instance);
		assert_int_equal(s.collectives[i].instance, inner->instance);
		assert_int_equal(s.collectives[i].name_id, inner->name_id);
		assert_int_equal(s.calls[i].api.name_id, outer->name_id);
		assert_int_equal(s.calls[i].kernel_name_id, inner->name_id);
		assert_int_equal(s.ops[2 * i + 1].inputs_id, s.inputs[i]);
		assert_int_equal(s.memory[i].stack_id, outer->stack_id);
		frames = recording__stack(r, outer->stack_id, &nr, &flags);
		assert_int_equal(nr, 3);
		assert_int_equal(flags, 2);
		assert_string_equal(recording__frame(r, frames[0]).function, "inlined");
		assert_int_equal(recording__frame(r, frames[1]).line, 7);
		assert_true(recording__frame_op(r, frames[1], &name, &scope));
		assert_int_equal(scope, GP_SCOPE_BACKWARD);
		assert_int_equal(name, inner->name_id);
		assert_int_equal(frames[2], 0);
	}
	assert_int_not_equal(s.ops[1].op.instance, s.ops[3].op.instance);
	assert_int_not_equal(s.inputs[0], s.inputs[1]);
	assert_int_equal(loss_of(r, "ring_full"), 6);
	recording__window(r, &start, &end, &realtime);
	assert_int_equal(start, 1000);
	assert_int_equal(end, 4000);
	assert_int_equal(realtime, HOUR_NS + 900);
	assert_string_equal(recording__meta(r, "host"), "a.gpuprof, b.gpuprof");
	assert_string_equal(recording__meta(r, "mode"), "trace");
	assert_string_equal(recording__meta(r, "clocks"), "one");
	assert_null(recording__meta(r, "damage"));
	recording__free(r);
}

static void assert_meta(const struct recording *r, const char *key, const char *value)
{
	if (!value)
		assert_null(recording__meta(r, key));
	else
		assert_string_equal(recording__meta(r, key), value);
}

static struct recording *merge_costs(const struct part *parts, size_t nr, const struct costs *costs)
{
	struct recording *r;

	costs_of_parts = costs;
	assert_int_equal(merge(parts, nr, NULL, &r), 0);
	costs_of_parts = NULL;
	return r;
}

/* Two recordings of one capture, the second with what was timed in the first as well, and one of
 * another. */
static void test_costs(void **state)
{
	static const struct part parts[] = {
		{"a.gpuprof", "x", "aten::mm", 100, 1000, 2000, HOUR_NS, false},
		{"b.gpuprof", "x", "aten::mm", 100, 3000, 4000, HOUR_NS, false},
		{"c.gpuprof", "x", "aten::mm", 101, 3000, 4000, HOUR_NS, false},
	};
	static const struct costs costs[] = {
		{"one",
		 {{"probe_hits", "10"},
		  {"callback_ops", "100"},
		  {"callback_memory", "0"},
		  {"callback_timed", "10"},
		  {"callback_ns", "40"},
		  {"cost_cpu_ns", "1000"},
		  {"cost_gpu_ns", "7"},
		  {"cost_probes_ns", "3"},
		  {"cost_op_ns", "50"},
		  {"cost_op_windows", "5"}}},
		{"one",
		 {{"probe_hits", "0"},
		  {"callback_ops", "50"},
		  {"callback_memory", "100"},
		  {"callback_timed", "15"},
		  {"callback_ns", "60"},
		  {"cost_cpu_ns", "500"}}},
		{"two",
		 {{"probe_hits", "1"},
		  {"callback_ops", "0"},
		  {"callback_memory", "0"},
		  {"callback_timed", "4"},
		  {"cost_cpu_ns", "9"},
		  {"cost_probes_ns", "4"},
		  {"cost_setup_ns", "x"}}},
	};
	struct recording *r = merge_costs(parts, 3, costs);

	assert_meta(r, "callback_ops", "150");
	assert_meta(r, "callback_memory", "100");
	/* Of the first capture what its second recording says, which has the first's in it. */
	assert_meta(r, "callback_timed", "19");
	/* Times the 2 * 150 + 100 callbacks it is 200 * 40 + 200 * 60. */
	assert_meta(r, "callback_ns", "50");
	assert_meta(r, "cost_cpu_ns", "1509");
	/* Who has none does not tell it. */
	assert_meta(r, "cost_gpu_ns", "7");
	/* One should have told it, and has not. */
	assert_meta(r, "cost_probes_ns", NULL);
	assert_meta(r, "cost_setup_ns", NULL);
	/* One had operators, and does not know what they cost: from how many windows says nothing.
	 */
	assert_meta(r, "cost_op_ns", NULL);
	assert_meta(r, "cost_op_windows", NULL);
	/* From 2000 to 3000. */
	assert_meta(r, "gaps_ns", "1000");
	recording__free(r);
}

/* Recordings of samples of one capture, though what else they count by is their own. */
static void test_costs_of_samples(void **state)
{
	static const struct part parts[] = {
		{"a.gpuprof", "x", "aten::mm", 100, 1000, 2000, HOUR_NS, false},
		{"b.gpuprof", "x", "aten::mm", 100, 2000, 3000, HOUR_NS, false},
	};
	static const struct costs costs[] = {
		{"one",
		 {{"mode", "sample"},
		  {"probe_hits", "1"},
		  {"probe_program_runs", "100"},
		  {"callback_processes", "1"},
		  {"sampler_ns", "5"}}},
		{"one",
		 {{"mode", "sample"},
		  {"probe_hits", "3"},
		  {"probe_program_runs", "200"},
		  {"probe_program_ns", "70"},
		  {"callback_processes", "1"},
		  {"sampler_ns", "6"}}},
	};
	struct recording *r = merge_costs(parts, 2, costs);

	assert_meta(r, "probe_hits", "4");
	assert_meta(r, "probe_program_runs", "200");
	/* Of one hit it is not known. */
	assert_meta(r, "probe_program_ns", NULL);
	assert_meta(r, "callback_processes", "1");
	assert_meta(r, "sampler_ns", "11");
	assert_meta(r, "gaps_ns", NULL);
	recording__free(r);
}

/* Of the one that was cut before it could tell its costs they are not known, nor so of both. */
static void test_costs_of_a_cut_part(void **state)
{
	static const struct part parts[] = {
		{"a.gpuprof", "x", "aten::mm", 100, 1000, 2000, HOUR_NS, true},
		{"b.gpuprof", "x", "aten::mm", 101, 3000, 4000, HOUR_NS, false},
	};
	static const struct costs costs[] = {
		{"one", {{NULL, NULL}}},
		{"two",
		 {{"probe_hits", "5"},
		  {"callback_ops", "50"},
		  {"callback_ns", "60"},
		  {"callback_timed", "3"},
		  {"cost_cpu_ns", "500"},
		  {"cost_gpu_ns", "7"}}},
	};
	struct recording *r = merge_costs(parts, 2, costs);

	assert_meta(r, "callback_ops", NULL);
	assert_meta(r, "callback_ns", "60");
	assert_meta(r, "cost_cpu_ns", NULL);
	assert_meta(r, "cost_gpu_ns", NULL);
	assert_meta(r, "callback_timed", NULL);
	recording__free(r);
}

/* A result has numbers of its own, though it is of the same capture as a third part. */
static void test_merged_again(void **state)
{
	static const struct part parts[] = {
		{"a.gpuprof", "x", "aten::mm", 100, 1000, 2000, HOUR_NS, false},
		{"b.gpuprof", "x", "aten::add", 101, 3000, 4000, HOUR_NS, false},
		{"c.gpuprof", "x", "aten::relu", 102, 5000, 6000, HOUR_NS, false},
	};
	static const struct costs costs[] = {{"one", {{"callback_timed", "2"}}},
					     {"one", {{"callback_timed", "3"}}},
					     {"one", {{"callback_timed", "4"}}}};
	struct recording *recs[2];
	struct recording_writer *w;
	struct recording *ab, *c, *r;
	const uint32_t *frames;
	const char *path;
	uint32_t flags;
	struct seen s;
	size_t nr;

	ab = merge_costs(parts, 2, costs);
	frame_id = stack_id = 1;
	c = make(&parts[2], &costs[2]);
	frame_id = 4;
	stack_id = 9;
	path = sample_path("again.gpuprof");
	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	recs[0] = ab;
	recs[1] = c;
	assert_int_equal(recording_merge(recs, 2, NULL, w, NULL), 0);
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	recording__free(ab);
	recording__free(c);
	assert_int_equal(recording__open(path, NULL, &r), 0);
	s = see_all(r);
	assert_int_equal(s.ops_nr, 6);
	for (size_t i = 0; i < 3; i++) {
		frames = recording__stack(r, s.ops[2 * i + 1].op.stack_id, &nr, &flags);
		assert_int_equal(nr, 3);
		/* What the first two call by one number is one frame: they are of one capture. */
		assert_string_equal(recording__frame(r, frames[1]).function,
				    parts[i == 1 ? 0 : i].name);
	}
	assert_meta(r, "gaps_ns", "2000");
	assert_meta(r, "callback_timed", "4");
	recording__free(r);
}

static void test_two_machines(void **state)
{
	/* The second began half a second later by the time of day, and was booted long before. */
	static const struct part parts[] = {
		{"a.gpuprof", "x", "aten::mm", 100, 1000, 3000, HOUR_NS, false},
		{"b.gpuprof", "y", "aten::mm", 100, HOUR_NS / 2, HOUR_NS / 2 + 2000,
		 HOUR_NS + 500000000, false},
	};
	uint64_t start, end, realtime;
	struct recording *r;
	struct seen s;

	assert_int_equal(merge(parts, 2, NULL, &r), 0);
	s = see_all(r);
	assert_int_equal(s.ops_nr, 4);
	/* One pid, and not one process. */
	assert_int_not_equal(s.ops[0].op.head.process, s.ops[2].op.head.process);
	assert_int_equal(s.ops[3].op.start_ns - s.ops[1].op.start_ns, 500000000);
	assert_int_equal(s.ops[3].op.head.time_ns - s.ops[1].op.head.time_ns, 500000000);
	assert_int_equal(s.ops[3].op.start_ns, HOUR_NS / 2 + 10);
	assert_int_equal(s.collectives[1].start_ns - s.collectives[0].start_ns, 500000000);
	recording__window(r, &start, &end, &realtime);
	assert_int_equal(s.ops[1].op.start_ns, start + 10);
	assert_int_equal(end, HOUR_NS / 2 + 2000);
	assert_int_equal(realtime, HOUR_NS);
	assert_string_equal(recording__meta(r, "clocks"), "time of day");
	recording__free(r);
}

static void test_one_process_twice(void **state)
{
	struct part parts[] = {
		{"b.gpuprof", "x", "aten::mm", 100, 5000, 7000, HOUR_NS + 5000, false},
		{"a.gpuprof", "x", "aten::mm", 100, 1000, 3000, HOUR_NS + 1000, true},
	};
	struct reason why = {0};
	struct recording *r;
	struct seen s;

	assert_int_equal(merge(parts, 2, &why, &r), 0);
	s = see_all(r);
	assert_int_equal(s.ops_nr, 4);
	assert_int_equal(recording__processes(r), 1);
	assert_int_equal(s.ops[0].op.head.process, s.ops[3].op.head.process);
	assert_int_not_equal(s.ops[1].op.instance, s.ops[3].op.instance);
	/* What was cut stays known. */
	assert_non_null(strstr(recording__meta(r, "damage"), "part 1: cut after"));
	recording__free(r);
	/* Twice at a time it cannot be. */
	parts[0].start_ns = 2000;
	parts[1].cut = false;
	assert_int_equal(merge(parts, 2, &why, &r), -EINVAL);
	assert_string_equal(why.text, "two of the recordings hold process 100 at the same time: "
				      "merge only one of them");
	/* Without a boot id it may be another one. */
	parts[0].boot_id = parts[1].boot_id = NULL;
	assert_int_equal(merge(parts, 2, &why, &r), 0);
	assert_int_equal(recording__processes(r), 2);
	recording__free(r);
}

static void test_names_as_long_as_they_come(void **state)
{
	static char names[2][5000];
	struct part parts[] = {
		{"a.gpuprof", "x", names[0], 100, 1000, 3000, HOUR_NS, false},
		{"b.gpuprof", "x", names[1], 101, 1000, 3000, HOUR_NS, false},
	};
	struct recording *r;
	struct seen s;

	memset(names, 'a', sizeof(names));
	names[0][4998] = 'b';
	names[0][4999] = names[1][4999] = '\0';
	assert_int_equal(merge(parts, 2, NULL, &r), 0);
	s = see_all(r);
	assert_string_not_equal(name_of(r, &s.ops[0]), name_of(r, &s.ops[2]));
	recording__free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_processes_of_one_machine),
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_costs_of_samples),
		cmocka_unit_test(test_costs_of_a_cut_part),
		cmocka_unit_test(test_merged_again),
		cmocka_unit_test(test_two_machines),
		cmocka_unit_test(test_one_process_twice),
		cmocka_unit_test(test_names_as_long_as_they_come),
	};

	return cmocka_run_group_tests_name("recording_merge", tests, NULL, NULL);
}
