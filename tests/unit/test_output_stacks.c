/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What is made of stacks: folded lines, speedscope, pprof, flame graphs, the table by stack. Their
 * sums are the table's; backward ops stand at their forward op's stack and say so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "output/flame/stack_samples.h"
#include "outputs.h"
#include "profile.pb-c.h"
#include "sample.h"
#include "stack_example.h"

typedef int (*metric_writer)(struct sink *s, const struct timeline *t, const char *metric);

static struct stack_example open_example(bool hostile)
{
	struct stack_example e;

	stack_example__open(&e, sample_path("stacks.gpuprof"), hostile);
	check_timeline(e.timeline);
	return e;
}

static char *written(const struct timeline *t, metric_writer write, const char *metric,
		     size_t *ret_bytes)
{
	struct sink *s = memory_sink();

	assert_int_equal(write(s, t, metric), 0);
	return sink_text(s, ret_bytes);
}

/* ---- which stack ---- */

static void test_forward(void **state)
{
	struct stack_example e = open_example(false);
	const struct timeline *t = e.timeline;
	uint32_t addmm = find_op(t, "aten::addmm", 0), mm = find_op(t, "aten::mm", 0);
	struct tl_stack s;

	/* The last to begin of those with the number, and all that lies in the backward node. */
	assert_int_equal(
		op_named(t, "autograd::engine::evaluate_function: AddmmBackward0", 0)->forward,
		addmm);
	assert_int_equal(t->ops.items[mm].forward, addmm);
	assert_int_equal(op_named(t, "aten::mm", 1)->forward, TL_NONE);
	assert_int_equal(t->ops.items[addmm].forward, TL_NONE);

	s = timeline__stack(t, t->ops.items[mm].stack_id, mm);
	assert_true(s.is_forward);
	assert_int_equal(s.id, 3);
	assert_int_equal(s.nr, 5);
	s = timeline__stack(t, 0, addmm);
	assert_false(s.is_forward);
	assert_int_equal(s.id, 3);
	s = timeline__stack(t, 4, TL_NONE);
	assert_int_equal(s.flags, GP_STACK_INCOMPLETE);
	s = timeline__stack(t, 0, TL_NONE);
	assert_int_equal(s.nr, 0);
	stack_example__close(&e);
}

/* What Python calls within a backward node keeps its own stack, and what that calls too. */
static void test_hooks(void **state)
{
	struct events *e = events__new();
	const struct timeline *t;

	for (uint32_t i = 1; i < 8; i++)
		events__frame(e, i, "file.py", "f", i);
	events__stack(e, 1, (uint32_t[]){3, 2, 1}, 3);
	events__stack(e, 2, (uint32_t[]){4, 1}, 2);
	events__stack(e, 3, (uint32_t[]){6, 5, 4, 1}, 4);
	events__stack(e, 4, (uint32_t[]){7, 5, 4, 1}, 4);
	events__op(e, (struct event_op){.name = "aten::mul",
					.start_ns = 100,
					.end_ns = 200,
					.instance = 1,
					.sequence_nr = 8,
					.thread_number = 1,
					.stack_id = 1});
	events__op(e, (struct event_op){.name = "MulBackward0",
					.start_ns = 300,
					.end_ns = 900,
					.instance = 2,
					.sequence_nr = 8,
					.forward_thread = 1,
					.scope = GP_SCOPE_BACKWARD,
					.thread_number = 1,
					.stack_id = 2});
	events__op(e, (struct event_op){.name = "aten::neg",
					.start_ns = 400,
					.end_ns = 500,
					.instance = 3,
					.parent = 2,
					.stack_id = 2});
	events__op(e, (struct event_op){.name = "aten::sinh",
					.start_ns = 600,
					.end_ns = 800,
					.instance = 4,
					.parent = 2,
					.stack_id = 3});
	events__op(e, (struct event_op){.name = "aten::empty",
					.start_ns = 650,
					.end_ns = 700,
					.instance = 5,
					.parent = 4,
					.stack_id = 4});
	t = events__timeline(e);
	assert_int_equal(op_named(t, "MulBackward0", 0)->forward, find_op(t, "aten::mul", 0));
	assert_int_equal(op_named(t, "aten::neg", 0)->forward, find_op(t, "aten::mul", 0));
	assert_int_equal(op_named(t, "aten::sinh", 0)->forward, TL_NONE);
	assert_int_equal(op_named(t, "aten::empty", 0)->forward, TL_NONE);
	events__free(e);
}

/* ---- sums ---- */

static int add_values(const struct stack_sample *s, void *arg)
{
	uint64_t *sums = arg;

	for (int i = 0; i < STACK_METRIC_NR; i++)
		sums[i] += s->values[i];
	return 0;
}

static void check_sums(const struct timeline *t, bool by_work)
{
	struct table *table = table_of(t, (struct table_options){0});
	uint64_t sums[STACK_METRIC_NR] = {0};

	assert_int_equal(stack_samples_each(t, by_work, add_values, sums), 0);
	assert_int_equal(sums[STACK_CPU], table->self_cpu_total_ns);
	assert_int_equal(sums[STACK_CPU], STACK_EXAMPLE_CPU_NS);
	assert_int_equal(sums[STACK_CUDA], table->self_cuda_total_ns);
	assert_int_equal(sums[STACK_CUDA], STACK_EXAMPLE_CUDA_NS);
	assert_int_equal(sums[STACK_CALLS], STACK_EXAMPLE_CALLS);
	assert_int_equal(sums[STACK_ALLOCATIONS], 4);
	assert_int_equal(sums[STACK_ALLOCATED], STACK_EXAMPLE_ALLOCATED);
	assert_int_equal(sums[STACK_PEAK], STACK_EXAMPLE_CPU_PEAK + STACK_EXAMPLE_CUDA_PEAK);
	table__free(table);
}

static void test_sums(void **state)
{
	struct stack_example e = open_example(false);

	check_sums(e.timeline, false);
	check_sums(e.timeline, true);
	stack_example__close(&e);
}

static int stop(const struct stack_sample *s, void *arg)
{
	return -EIO;
}

static void test_metric_names(void **state)
{
	struct stack_example e = open_example(false);
	struct sink *s = NULL;

	for (int i = 0; i < STACK_METRIC_NR; i++)
		assert_int_equal(stack_metric_of(stack_metric_name(i)), i);
	assert_int_equal(stack_metric_of(NULL), STACK_CPU);
	assert_int_equal(stack_metric_of("self"), -1);
	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_stacks(s, e.timeline, "self"), -EINVAL);
	assert_int_equal(output_pprof(s, e.timeline, ""), -EINVAL);
	assert_int_equal(output_flamegraph(s, e.timeline, "x"), -EINVAL);
	assert_int_equal(output_speedscope(s, e.timeline, "x", "x"), -EINVAL);
	sink__free(s);
	assert_int_equal(stack_samples_each(e.timeline, true, stop, NULL), -EIO);
	stack_example__close(&e);
}

/* ---- folded and speedscope ---- */

#define PYTHON "train.py(10):_<module>;train.py(41):_step"
#define NATIVE                                                                                     \
	PYTHON ";model.py(12):_Net.forward;libtorch_cpu.so:_at::_ops::addmm::call;"                \
	       "libtorch_cpu.so:_at::native::add(at::Tensor_const&)"

static void test_folded(void **state)
{
	struct stack_example e = open_example(false);
	char *text = written(e.timeline, output_stacks, NULL, NULL);

	/* A call of the API stands at its op's stack. */
	assert_string_equal(text,
			    PYTHON ";model.py(12):_Net.forward 400\n" NATIVE " 1590\n"
				   "[truncated];" PYTHON " 500\n"
				   "train.py(10):_<module>;train.py(42):_step 300\n" NATIVE
				   ";[backward] 2000\n" NATIVE ";[backward] 1000\n" NATIVE " 10\n");
	free(text);
	text = written(e.timeline, output_stacks, "self_cuda_time_total", NULL);
	assert_string_equal(text, NATIVE " 2000\n");
	free(text);
	text = written(e.timeline, output_stacks, "calls", NULL);
	assert_non_null(strstr(text,
			       "[incomplete];libtorch_cpu.so:_at::native::add(at::Tensor_const&);"
			       "libgomp.so.1:_0xdead0;do_syscall_64_[k] 1\n"));
	free(text);
	text = written(e.timeline, output_stacks, "peak_bytes", NULL);
	assert_string_equal(text, PYTHON ";model.py(12):_Net.forward 2048\n" NATIVE " 4096\n" NATIVE
					 ";[backward] 20480\n");
	free(text);
	stack_example__close(&e);
}

/* One line a sample, however the names are. */
static void test_folded_hostile(void **state)
{
	struct stack_example e = open_example(true);
	char *text = written(e.timeline, output_stacks, "calls", NULL), *rest = text, *line;
	int lines = 0;

	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		lines++;
		assert_int_equal(strcspn(line, "\x1b\t\r"), strlen(line));
		assert_string_equal(strchr(line, ' '), " 1");
	}
	assert_int_equal(lines, STACK_EXAMPLE_CALLS - 1);
	free(text);
	stack_example__close(&e);
}

static void test_speedscope(void **state)
{
	struct stack_example e = open_example(false);
	struct sink *s = NULL;
	char *text;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_speedscope(s, e.timeline, "peak_bytes", "train"), 0);
	text = sink_text(s, NULL);
	assert_non_null(strstr(text, "\"name\":\"held at the memory peak\",\"unit\":\"bytes\","
				     "\"startValue\":0,\"endValue\":26624,"));
	assert_non_null(strstr(text, "{\"name\":\"[backward]\"}"));
	assert_non_null(strstr(text, "{\"name\":\"at::native::add(at::Tensor const&)\","
				     "\"file\":\"/usr/lib/libtorch_cpu.so\"}"));
	assert_non_null(strstr(text, "\"weights\":[2048,4096,20480]}]}"));
	free(text);
	stack_example__close(&e);
}

/* ---- pprof ---- */

static Pprof__Profile *unpack(char *bytes, size_t nr)
{
	Pprof__Profile *p = pprof__profile__unpack(NULL, nr, (uint8_t *)bytes);

	assert_non_null(p);
	free(bytes);
	return p;
}

static const char *text_at(const Pprof__Profile *p, int64_t at)
{
	assert_true(at >= 0 && (size_t)at < p->n_string_table);
	return p->string_table[at];
}

static const Pprof__Location *location_at(const Pprof__Profile *p, uint64_t id)
{
	assert_true(id >= 1 && id <= p->n_location);
	assert_int_equal(p->location[id - 1]->id, id);
	return p->location[id - 1];
}

/* Name of the n-th location of a sample. */
static const char *frame_name(const Pprof__Profile *p, const Pprof__Sample *s, size_t n)
{
	const Pprof__Location *l;

	assert_true(n < s->n_location_id);
	l = location_at(p, s->location_id[n]);
	assert_int_equal(l->n_line, 1);
	assert_true(l->line[0]->function_id >= 1 && l->line[0]->function_id <= p->n_function);
	return text_at(p, p->function[l->line[0]->function_id - 1]->name);
}

static const char *label_of(const Pprof__Profile *p, const Pprof__Sample *s, const char *key,
			    int64_t *ret_num)
{
	for (size_t i = 0; i < s->n_label; i++)
		if (!strcmp(text_at(p, s->label[i]->key), key)) {
			*ret_num = s->label[i]->num;
			return text_at(p, s->label[i]->str);
		}
	return NULL;
}

/* All that a reader relies on. */
static void check_profile(const Pprof__Profile *p)
{
	assert_string_equal(text_at(p, 0), "");
	assert_true(p->n_sample > 0);
	for (size_t i = 0; i < p->n_sample; i++) {
		assert_int_equal(p->sample[i]->n_value, p->n_sample_type);
		for (size_t k = 0; k < p->sample[i]->n_location_id; k++)
			(void)frame_name(p, p->sample[i], k);
	}
	for (size_t i = 0; i < p->n_mapping; i++)
		assert_int_equal(p->mapping[i]->id, i + 1);
	for (size_t i = 0; i < p->n_function; i++) {
		assert_int_equal(p->function[i]->id, i + 1);
		(void)text_at(p, p->function[i]->filename);
	}
	for (size_t i = 0; i < p->n_location; i++) {
		const Pprof__Location *l = p->location[i];

		assert_true(l->mapping_id <= p->n_mapping);
		if (l->mapping_id && l->address)
			assert_true(l->address < p->mapping[l->mapping_id - 1]->memory_limit);
	}
}

static int64_t sum_of(const Pprof__Profile *p, size_t type)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->n_sample; i++)
		sum += p->sample[i]->value[type];
	return sum;
}

static void check_types(const Pprof__Profile *p)
{
	static const struct {
		const char *name, *unit;
		int64_t sum;
	} types[] = {{"cpu", "nanoseconds", STACK_EXAMPLE_CPU_NS},
		     {"cuda", "nanoseconds", STACK_EXAMPLE_CUDA_NS},
		     {"calls", "count", STACK_EXAMPLE_CALLS},
		     {"alloc_objects", "count", 4},
		     {"alloc_space", "bytes", STACK_EXAMPLE_ALLOCATED},
		     {"peak_space", "bytes", STACK_EXAMPLE_CPU_PEAK + STACK_EXAMPLE_CUDA_PEAK}};

	assert_int_equal(p->n_sample_type, sizeof(types) / sizeof(*types));
	for (size_t i = 0; i < p->n_sample_type; i++) {
		assert_string_equal(text_at(p, p->sample_type[i]->type), types[i].name);
		assert_string_equal(text_at(p, p->sample_type[i]->unit), types[i].unit);
		assert_int_equal(sum_of(p, i), types[i].sum);
	}
}

static const Pprof__Sample *sample_with_leaf(const Pprof__Profile *p, const char *leaf, size_t type)
{
	for (size_t i = 0; i < p->n_sample; i++)
		if (!strcmp(frame_name(p, p->sample[i], 0), leaf) && p->sample[i]->value[type])
			return p->sample[i];
	fail_msg("no sample has the leaf %s", leaf);
	return NULL;
}

static void test_pprof(void **state)
{
	struct stack_example e = open_example(false);
	const Pprof__Location *l;
	const Pprof__Sample *s;
	Pprof__Profile *p;
	int64_t num;
	size_t nr;
	char *bytes = written(e.timeline, output_pprof, "peak_bytes", &nr);

	p = unpack(bytes, nr);
	check_profile(p);
	check_types(p);
	assert_string_equal(text_at(p, p->default_sample_type), "peak_space");
	assert_int_equal(p->time_nanos, STACK_EXAMPLE_REALTIME);
	assert_int_equal(p->duration_nanos, STACK_EXAMPLE_WINDOW_NS);
	assert_int_equal(p->n_comment, 1);
	assert_non_null(strstr(text_at(p, p->comment[0]), "losses: ring_full: 3, depth: 0, "));

	/* The kernel, its op, native and Python frames, each at its place. */
	s = sample_with_leaf(p, "sgemm_128x64", 1);
	assert_string_equal(frame_name(p, s, 1), "aten::addmm");
	assert_string_equal(frame_name(p, s, 2), "at::native::add(at::Tensor const&)");
	assert_string_equal(frame_name(p, s, 6), "<module>");
	assert_int_equal(s->n_location_id, 7);
	assert_string_equal(label_of(p, s, "op", &num), "aten::addmm");
	assert_string_equal(label_of(p, s, "device", &num), "cuda:0");
	l = location_at(p, s->location_id[2]);
	assert_int_equal(l->address, 0x1234);
	assert_string_equal(text_at(p, p->mapping[l->mapping_id - 1]->filename),
			    "/usr/lib/libtorch_cpu.so");
	assert_string_equal(text_at(p, p->mapping[l->mapping_id - 1]->build_id),
			    "0123456789abcdef");
	l = location_at(p, s->location_id[5]);
	assert_int_equal(l->line[0]->line, 41);

	s = sample_with_leaf(p, "autograd::engine::evaluate_function: AddmmBackward0", 0);
	assert_string_equal(frame_name(p, s, 1), "[backward]");
	assert_string_equal(label_of(p, s, "thread", &num), "pt_autograd_0");
	(void)label_of(p, s, "tid", &num);
	assert_int_equal(num, 200);
	(void)label_of(p, s, "pid", &num);
	assert_int_equal(num, 4242);
	s = sample_with_leaf(p, "aten::relu", 0);
	assert_string_equal(frame_name(p, s, s->n_location_id - 1), "[truncated]");
	s = sample_with_leaf(p, "aten::zero_", 0);
	assert_string_equal(frame_name(p, s, 1), "[no stack]");
	pprof__profile__free_unpacked(p, NULL);
	stack_example__close(&e);
}

static bool is_utf8_line(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c < 0x20 || *c == 0x7f || *c == 0xff || *c == 0xfe)
			return false;
	return true;
}

static void test_pprof_hostile(void **state)
{
	struct stack_example e = open_example(true);
	Pprof__Profile *p;
	char *bytes;
	size_t nr;

	bytes = written(e.timeline, output_pprof, NULL, &nr);
	p = unpack(bytes, nr);
	check_profile(p);
	check_types(p);
	for (size_t i = 0; i < p->n_string_table; i++)
		assert_true(is_utf8_line(p->string_table[i]));
	pprof__profile__free_unpacked(p, NULL);
	stack_example__close(&e);
}

/* ---- flame graphs ---- */

static void test_flamegraph(void **state)
{
	struct stack_example e = open_example(true);
	size_t bytes;
	char *text = written(e.timeline, output_flamegraph, "calls", &bytes);
	char *data = strstr(text, "{\"schema\":\"gpuprof-flame-1\""), *end;

	assert_non_null(data);
	assert_non_null(strstr(data, "\"metric\":\"calls\""));
	assert_non_null(strstr(data, "\"ring_full\": 3"));
	end = strstr(data, "</script>");
	assert_non_null(end);
	/* No name gets out of the element that holds the data. */
	assert_true(end - data > 1000);
	assert_null(memchr(data, '<', (size_t)(end - data)));
	assert_int_equal(strlen(text), bytes);
	free(text);
	stack_example__close(&e);
}

/* Each process by itself, where there are several. */
static void test_flamegraph_processes(void **state)
{
	struct events *e = events__new();
	char *text;

	events__process(e, 1, 77, "worker");
	for (uint16_t i = 0; i < 2; i++)
		events__op(e, (struct event_op){.name = "aten::mul",
						.start_ns = 100,
						.end_ns = 200,
						.process = i,
						.tid = 100U + i,
						.instance = (i + 1ULL) << 32 | 1});
	text = written(events__timeline(e), output_flamegraph, NULL, NULL);
	assert_non_null(strstr(text, "[\"python (pid 4242)\",6]"));
	assert_non_null(strstr(text, "[\"worker (pid 77)\",6]"));
	assert_non_null(strstr(text, "\"parents\":[-1,0,1,2,0,4,5],"));
	free(text);
	events__free(e);
}

/* More nodes than a page can hold: the small ones are joined, and it says so. */
static void test_flamegraph_prunes(void **state)
{
	struct stack_example e;
	unsigned int parents = 0;
	char *text, *at;

	stack_example__open_large(&e, sample_path("large.gpuprof"), 3000, 40);
	text = written(e.timeline, output_flamegraph, NULL, NULL);
	assert_non_null(strstr(text, "[\"[smaller ones]\",6]"));
	assert_null(strstr(text, "\"left_out\":0,"));
	at = strstr(text, "\"parents\":[");
	assert_non_null(at);
	for (; *at != ']'; at++)
		parents += *at == ',';
	assert_in_range(parents, 1000, 100000);
	free(text);
	stack_example__close(&e);
}

/* ---- the table ---- */

static char *table_text(const struct timeline *t, uint32_t depth, char form)
{
	const struct output_table_options text = {.limit = -1};
	struct table *table = table_of(t, (struct table_options){.by_stack = depth});
	struct sink *s = memory_sink();

	if (form == 't')
		assert_int_equal(output_table_text(s, table, &text), 0);
	else if (form == 'c')
		assert_int_equal(output_table_csv(s, table, -1), 0);
	else
		assert_int_equal(output_table_json(s, t, table, -1), 0);
	table__free(table);
	return sink_text(s, NULL);
}

static void test_table(void **state)
{
	struct stack_example e = open_example(false);
	char *text = table_text(e.timeline, 2, 't');

	assert_non_null(strstr(text, "  Source Location  "));
	assert_non_null(
		strstr(text, "  libtorch_cpu.so: at::native::add(at::Tensor const&) [backward]  "));
	assert_non_null(strstr(text, "  libgomp.so.1: 0xdead0  "));
	free(text);
	text = table_text(e.timeline, 2, 'j');
	assert_non_null(
		strstr(text, "\"stack\": [\"libtorch_cpu.so: at::native::add(at::Tensor const&)\", "
			     "\"Operators_2.cpp(33): at::_ops::addmm::call\"], "
			     "\"is_forward_stack\": true"));
	free(text);
	text = table_text(e.timeline, 1, 'c');
	assert_non_null(strstr(
		text, ",\"[backward];libtorch_cpu.so: at::native::add(at::Tensor const&)\"\r\n"));
	assert_non_null(strstr(text, ",train.py(41): step\r\n"));
	free(text);
	stack_example__close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hooks),
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_metric_names),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_folded_hostile),
		cmocka_unit_test(test_speedscope),
		cmocka_unit_test(test_pprof),
		cmocka_unit_test(test_pprof_hostile),
		cmocka_unit_test(test_flamegraph),
		cmocka_unit_test(test_flamegraph_prunes),
		cmocka_unit_test(test_flamegraph_processes),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
