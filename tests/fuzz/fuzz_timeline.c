/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events of any content through a recording into a timeline, its tables and its outputs. Fields are
 * mostly small numbers, so that instances, parents, addresses and times meet; some are any number.
 */
#include "fuzz/fuzz_seed.h"
#include "output/flame/flame_tree.h"
#include "output/format/output.h"
#include "recording/recording.h"
#include "timeline/analysis/table.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EVENTS_MAX 2000
#define NAMES_NR   10
#define NAME_BYTES 200
#define STACKS_NR  6

static const char *const names[NAMES_NR] = {"f",
					    "f",
					    "aten::is_leaf",
					    "ProfilerStep#1",
					    "\"\n\xff",
					    "_Z1fPKfS0_Ri",
					    "cudaLaunchKernel_v7000",
					    "cudaLaunchKernel_ptsz",
					    "Optimizer.step#A.step",
					    "enumerate(DataLoader)#B.__next__"};

struct input {
	const uint8_t *at;
	const uint8_t *end;
};

static uint8_t byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* One byte, or eight after a 255. */
static uint64_t number(struct input *in)
{
	uint64_t n = byte(in);

	if (n == 255)
		for (int i = 0; i < 8; i++)
			n = n << 8 | byte(in);
	return n;
}

static uint64_t instance(struct input *in)
{
	uint64_t n = number(in);

	return n && n < 255 ? (1 + n / 100) << 32 | n : n;
}

static void head(struct input *in, struct gp_ev_head *h, uint8_t kind)
{
	uint8_t flags = byte(in);

	*h = (struct gp_ev_head){.kind = kind, .flags = flags, .process = flags >> 6};
	h->tid = (uint32_t)number(in);
	h->time_ns = number(in);
}

static void one_op(struct input *in, struct recording_writer *w)
{
	struct gp_ev_op op = {0};

	head(in, &op.head, GP_EV_OP);
	op.start_ns = number(in);
	op.instance = instance(in);
	op.parent = instance(in);
	op.name_id = byte(in) % (NAMES_NR + 1);
	op.scope = byte(in) % 8;
	op.sequence_nr = (int64_t)number(in) - 1;
	op.forward_thread = byte(in) % 4;
	op.thread_number = byte(in) % 4;
	op.stack_id = (uint32_t)op.instance % (STACKS_NR + 2);
	(void)recording_writer__event(w, &op, sizeof(op));
}

static void one_memory(struct input *in, struct recording_writer *w)
{
	struct gp_ev_memory m = {0};

	head(in, &m.head, GP_EV_MEMORY);
	m.instance = instance(in);
	m.address = number(in);
	m.bytes = (int64_t)number(in) - 100;
	m.allocated_bytes = number(in);
	m.stack_id = (uint32_t)m.address % (STACKS_NR + 2);
	m.device_type = byte(in) % 3;
	m.device_index = (int16_t)number(in);
	(void)recording_writer__event(w, &m, sizeof(m));
}

static void one_thread(struct input *in, struct recording_writer *w)
{
	struct gp_ev_thread t = {0};

	head(in, &t.head, GP_EV_THREAD);
	for (size_t i = 0; i < sizeof(t.comm); i++)
		t.comm[i] = (char)byte(in);
	(void)recording_writer__event(w, &t, sizeof(t));
}

static void one_api(struct input *in, struct recording_writer *w)
{
	struct gp_ev_api a = {0};

	head(in, &a.head, GP_EV_API);
	a.start_ns = number(in);
	a.instance = instance(in);
	a.name_id = byte(in) % (NAMES_NR + 2);
	a.correlation_id = (uint32_t)number(in);
	(void)recording_writer__event(w, &a, sizeof(a));
}

static void one_api_call(struct input *in, struct recording_writer *w)
{
	struct gp_ev_api_call a = {0};

	head(in, &a.api.head, GP_EV_API);
	a.api.start_ns = number(in);
	a.api.instance = instance(in);
	a.api.name_id = byte(in) % (NAMES_NR + 2);
	a.api.bytes = number(in);
	a.api.block[0] = byte(in);
	a.kernel_name_id = byte(in) % (NAMES_NR + 2);
	(void)recording_writer__event(w, &a, sizeof(a));
}

static void one_collective(struct input *in, struct recording_writer *w)
{
	struct gp_ev_collective c = {0};

	head(in, &c.head, GP_EV_COLLECTIVE);
	c.start_ns = number(in);
	c.instance = instance(in);
	c.count = number(in);
	c.communicator = byte(in) % 3;
	c.name_id = byte(in) % (NAMES_NR + 2);
	c.datatype = (int32_t)number(in) - 2;
	c.op = (int32_t)number(in) - 2;
	c.ranks = (int32_t)number(in) - 2;
	(void)recording_writer__event(w, &c, sizeof(c));
}

static void one_cuda_memory(struct input *in, struct recording_writer *w)
{
	struct gp_ev_cuda_memory m = {0};

	head(in, &m.head, GP_EV_CUDA_MEMORY);
	m.instance = instance(in);
	m.address = byte(in) % 8;
	m.bytes = number(in);
	m.what = byte(in) % 5;
	(void)recording_writer__event(w, &m, sizeof(m));
}

static void one_window(struct input *in, struct recording_writer *w)
{
	struct gp_ev_window e = {0};

	head(in, &e.head, GP_EV_WINDOW);
	e.start_ns = number(in);
	e.all_steps_nr = number(in);
	e.inside_ns = number(in);
	e.steps_nr = (uint32_t)number(in);
	(void)recording_writer__event(w, &e, sizeof(e));
}

static void one_device(struct input *in, struct recording_writer *w)
{
	struct gp_ev_device d = {0};
	struct gp_ev_overhead o = {0};

	head(in, &d.head, GP_EV_DEVICE);
	d.device = byte(in) % 3;
	d.sms = (uint32_t)number(in);
	d.threads_per_block = d.threads_per_sm = (uint32_t)number(in);
	d.warp_threads = (uint32_t)number(in);
	d.registers_per_sm = (uint32_t)number(in);
	d.name[0] = (char)byte(in);
	d.driver_version = d.runtime_version = d.cupti_version = (uint32_t)number(in);
	(void)recording_writer__event(w, &d, sizeof(d));
	head(in, &o.head, GP_EV_OVERHEAD);
	o.start_ns = number(in);
	o.what = (uint32_t)number(in);
	(void)recording_writer__event(w, &o, sizeof(o));
}

static void one_kernel(struct input *in, struct recording_writer *w)
{
	struct gp_ev_kernel k = {0};

	head(in, &k.head, GP_EV_KERNEL);
	k.start_ns = number(in);
	k.correlation_id = (uint32_t)number(in);
	k.name_id = byte(in) % (NAMES_NR + 2);
	k.device = (uint32_t)number(in);
	k.stream = (uint32_t)number(in);
	k.context = byte(in) % 3;
	k.dynamic_shared_bytes = k.static_shared_bytes = (int32_t)number(in);
	k.graph = byte(in) % 2;
	k.grid[0] = k.grid[1] = k.grid[2] = (uint32_t)number(in);
	k.block[0] = k.block[1] = k.block[2] = (uint32_t)number(in);
	k.registers = (uint32_t)number(in);
	(void)recording_writer__event(w, &k, sizeof(k));
}

static void one_gpu_memory(struct input *in, struct recording_writer *w)
{
	struct gp_ev_gpu_memory m = {0};

	head(in, &m.head, GP_EV_GPU_MEMORY);
	m.start_ns = number(in);
	m.bytes = number(in);
	m.correlation_id = (uint32_t)number(in);
	m.device = (uint32_t)number(in);
	m.stream = (uint32_t)number(in);
	m.is_set = byte(in) % 2;
	m.copy_kind = byte(in);
	m.src_kind = byte(in);
	m.dst_kind = byte(in);
	m.peer_device = (uint32_t)number(in) - 1;
	(void)recording_writer__event(w, &m, sizeof(m));
}

static void one_sync(struct input *in, struct recording_writer *w)
{
	struct gp_ev_sync_event s = {.sync.event = byte(in), .record_id = byte(in)};

	head(in, &s.sync.head, GP_EV_SYNC);
	s.sync.start_ns = number(in);
	s.sync.correlation_id = (uint32_t)number(in);
	s.sync.context = (s.sync.what = byte(in)) % 3;
	s.sync.stream = (uint32_t)number(in) - 1;
	(void)recording_writer__event(w, &s, byte(in) % 2 ? sizeof(s) : sizeof(s.sync));
}

static void one_cuda_event(struct input *in, struct recording_writer *w)
{
	struct gp_ev_cuda_event c = {.context = byte(in) % 3, .record_id = byte(in)};

	head(in, &c.head, GP_EV_CUDA_EVENT);
	c.head.flags = c.event = byte(in);
	c.correlation_id = c.device = c.stream = (uint32_t)number(in);
	(void)recording_writer__event(w, &c, sizeof(c));
}

static void one_clock(struct input *in, struct recording_writer *w)
{
	struct gp_ev_clock c = {0};

	head(in, &c.head, GP_EV_CLOCK);
	c.gpu_ns = number(in);
	c.width_ns = number(in);
	(void)recording_writer__event(w, &c, sizeof(c));
}

/* Words of any kind, mostly such as begin an input; instances and addresses are those of ops and of
 * allocations. */
static void one_tensors(struct input *in, struct recording_writer *w)
{
	struct {
		struct gp_ev_tensors ev;
		uint64_t words[16];
	} t = {0};
	uint32_t nr;

	head(in, &t.ev.head, GP_EV_TENSORS);
	t.ev.instance = instance(in);
	t.ev.first = byte(in) % 4;
	nr = byte(in) % 17;
	t.ev.words_nr = nr + (byte(in) == 7);
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t what = byte(in) % 8;

		t.words[i] = what << 56 | (what & 4 ? 0 : number(in));
	}
	(void)recording_writer__event(w, &t, sizeof(t.ev) + nr * 8);
}

/* What the operators of these names may write. */
static void one_schemas(struct input *in, struct recording_writer *w)
{
	static const char letters[] = "tTqQlLkKo";
	struct {
		struct gp_ev_schemas ev;
		char text[64];
	} s = {0};
	size_t at = 0;

	head(in, &s.ev.head, GP_EV_SCHEMAS);
	while (at + 20 < sizeof(s.text) && in->at < in->end) {
		at += (size_t)snprintf(s.text + at, 12, "%s ", byte(in) % 2 ? "f" : "is_leaf");
		for (int i = byte(in) % 5; i > 0; i--)
			s.text[at++] = letters[byte(in) % (sizeof(letters) - 1)];
		s.text[at++] = byte(in) % 8 ? '\n' : ' ';
	}
	s.ev.bytes = (uint32_t)at;
	(void)recording_writer__event(w, &s, sizeof(s.ev) + ((at + 7) & ~(size_t)7));
}

/* For kernels to have mangled names of any kind. */
static void one_name(struct input *in, struct recording_writer *w)
{
	char name[NAME_BYTES + 1] = {0};
	size_t bytes = byte(in) % (NAME_BYTES + 1);

	for (size_t i = 0; i < bytes; i++)
		name[i] = (char)byte(in);
	(void)recording_writer__name(w, NAMES_NR, name, "");
}

/* Kinds that are numbers alone. */
static void one_plain(struct input *in, struct recording_writer *w)
{
	static const uint8_t kinds[] = {GP_EV_STEP, GP_EV_PAUSE, GP_EV_PYTHON_GC};
	struct gp_ev_python_gc e = {0};

	head(in, &e.head, kinds[byte(in) % sizeof(kinds)]);
	e.start_ns = number(in);
	e.collected = (int64_t)number(in) - 2;
	e.generation = byte(in) - 2;
	(void)recording_writer__event(w, &e, sizeof(e));
}

static void one_event(struct input *in, struct recording_writer *w)
{
	static void (*const kinds[])(struct input * in, struct recording_writer * w) = {
		one_thread,	one_memory, one_memory,	    one_op,	    one_op,
		one_op,		one_op,	    one_op,	    one_api,	    one_api,
		one_api,	one_kernel, one_kernel,	    one_sync,	    one_clock,
		one_gpu_memory, one_name,   one_tensors,    one_tensors,    one_schemas,
		one_plain,	one_plain,  one_api_call,   one_collective, one_cuda_memory,
		one_device,	one_window, one_cuda_event,
	};

	kinds[byte(in) % (sizeof(kinds) / sizeof(*kinds))](in, w);
}

/* Frames of every kind, one that is missing; stacks of every mark, one that is empty, one deep. */
static void add_stacks(struct recording_writer *w)
{
	uint32_t ids[RECORDING_STACK_FRAMES];

	for (uint32_t i = 0; i < 6; i++) {
		const struct recording_frame f = {
			.kind = i % 3,
			.file = i < 4 ? names[i] : "",
			.function = i < 5 ? names[NAMES_NR - 1 - i] : "",
			.module = i < 4 ? names[i + 1] : "",
			.build_id = i == 1 ? "00" : "",
			.address = i ? UINT64_MAX / i : 0,
			.line = i,
		};

		(void)recording_writer__frame(w, i, &f);
	}
	for (uint32_t i = 0; i < RECORDING_STACK_FRAMES; i++)
		ids[i] = i % 7;
	for (uint32_t i = 1; i <= STACKS_NR; i++)
		(void)recording_writer__stack(w, i, i, ids + i, i < STACKS_NR ? i - 1 : 300);
}

static void fill(struct input *in, struct recording_writer *w)
{
	struct recording_process p = {.pid = 1, .rank = -1, .comm = "c", .cmdline = ""};

	p.pid = (int32_t)number(in);
	(void)recording_writer__process(w, &p);
	for (uint32_t i = 0; i < NAMES_NR; i++)
		(void)recording_writer__name(w, i, names[i], i == 1 ? "out" : "");
	(void)recording_writer__window(w, number(in), number(in), number(in));
	add_stacks(w);
	if (p.pid & 1) {
		(void)recording_writer__meta(w, "steps", "18446744073709551615");
		(void)recording_writer__meta(w, "steps_nr", "3");
		(void)recording_writer__meta(w, "flops", "1");
	}
	if (p.pid & 2)
		(void)recording_writer__meta(w, "overhead_pct", "1");
	for (int i = 0; i < EVENTS_MAX && in->at < in->end; i++)
		one_event(in, w);
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* What every output relies on. */
static void check_ops(const struct timeline *t)
{
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i], *parent;

		check(op->start_ns <= op->end_ns && op->thread < t->threads.nr);
		check(op->self_ns <= op->end_ns - op->start_ns);
		check(op->forward == TL_NONE || op->forward < t->ops.nr);
		if (op->parent == TL_NONE)
			continue;
		check(op->parent < i);
		parent = &t->ops.items[op->parent];
		check(parent->thread == op->thread && parent->depth + 1 == op->depth);
		check(parent->start_ns <= op->start_ns && op->end_ns <= parent->end_ns);
	}
}

static void check_steps(const struct timeline *t)
{
	for (size_t i = 0; i < t->step_series.nr; i++) {
		const struct tl_step_series *s = &t->step_series.items[i];

		check(s->nr && s->first + s->nr <= t->steps.nr && s->thread < t->threads.nr);
	}
	for (size_t i = 0; i < t->steps.nr; i++) {
		const struct tl_step *s = &t->steps.items[i];

		check(s->start_ns <= s->end_ns && s->op < t->ops.nr);
		check(t->ops.items[s->op].start_ns == s->start_ns &&
		      t->ops.items[s->op].end_ns == s->end_ns);
	}
	check(t->paused_ns <= t->end_ns - t->start_ns);
	for (size_t i = 1; i < t->windows.nr; i++)
		check(t->windows.items[i - 1].end_ns <= t->windows.items[i].start_ns);
}

static void check_gpu(const struct timeline *t)
{
	for (uint32_t i = 0; i < t->gpu.api.nr; i++) {
		const struct tl_api *api = &t->gpu.api.items[i];
		const struct tl_op *op = api->op == TL_NONE ? NULL : &t->ops.items[api->op];

		check(api->start_ns <= api->end_ns && api->self_ns <= api->end_ns - api->start_ns);
		check(api->thread < t->threads.nr && (api->parent == TL_NONE || api->parent < i));
		check(!op || (op->start_ns <= api->start_ns && api->end_ns <= op->end_ns));
		check(!op || op->thread == api->thread);
	}
	for (uint32_t i = 0; i < t->gpu.work.nr; i++) {
		const struct tl_gpu *g = &t->gpu.work.items[i];

		check(g->start_ns <= g->end_ns && g->shown_start_ns <= g->shown_end_ns);
		check(g->process < t->processes.nr);
		check(g->api == TL_NONE || g->api < t->gpu.api.nr);
		check(g->op == TL_NONE || g->op < t->ops.nr);
		check(g->lane == TL_NONE || g->device != TL_NONE);
	}
}

static void check_categories(const struct timeline *t)
{
	for (size_t i = 0; i < t->categories.nr; i++) {
		const struct tl_category_change *c = &t->categories.items[i];

		check(c->bytes >= 0 && c->process < t->processes.nr);
		check(c->from < TL_CATEGORIES && c->to < TL_CATEGORIES);
		check(c->change >= TL_PREEXISTING && c->change <= TL_DESTROY);
		check(!i || c[-1].time_ns <= c->time_ns);
	}
}

static void write_stacks(const struct timeline *t, struct sink *s)
{
	struct flame_tree f = {0};

	for (const char *const *metric = output_stack_metrics; *metric; metric++)
		check(!output_stacks(s, t, *metric));
	check(!output_speedscope(s, t, "calls", "fuzz"));
	check(!output_pprof(s, t, "peak_bytes"));
	check(!flame_tree__init(&f, t));
	check(!flame_tree__prune(&f, 9));
	for (size_t i = 1; i < f.nodes.nr; i++)
		check(f.nodes.items[i].parent < i && f.nodes.items[i].frame < f.frames.nr);
	flame_tree__done(&f);
}

static void write_outputs(const struct timeline *t, const char *sort)
{
	struct table_options options = {
		.sort = sort, .by_overload = !sort, .by_stack = sort ? 2 : 0};
	struct output_table_options text = {.limit = -1, .top_level = !sort};
	struct table *table = NULL;
	struct sink *s = NULL;

	check(!table__new(t, &options, NULL, &table));
	check(!sink__new_memory(&s));
	check(!output_table_text(s, table, &text));
	check(!output_table_json(s, t, table, -1));
	check(!output_table_csv(s, table, 3));
	check(!output_chrome(s, t, "fuzz"));
	check(!output_memory_json(s, t));
	check(!output_memory_timeline(s, t, 0, GP_TENSOR_CPU));
	check(!output_memory_timeline_raw(s, t, 0, GP_TENSOR_CPU));
	check(!output_snapshot(s, t, 0));
	check(!output_lightning(s, t));
	check(!output_out_of_memory_text(s, t));
	check(!output_perfetto(s, t));
	write_stacks(t, s);
	check(!sink__finish(s));
	sink__free(s);
	table__free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct recording_writer *w = NULL;
	struct recording *rec = NULL;
	struct timeline *t = NULL;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check(fd >= 0 && !recording_writer__new(path, NULL, &w));
	fill(&in, w);
	check(!recording_writer__finish(w));
	recording_writer__free(w);
	check(!recording__open(path, NULL, &rec));
	check(!timeline__new(rec, NULL, &t));
	check_ops(t);
	check_gpu(t);
	check_categories(t);
	write_outputs(t, NULL);
	timeline__free(t);
	check(!timeline__new_steps(rec, NULL, &t));
	check_ops(t);
	check_gpu(t);
	check_steps(t);
	write_outputs(t, "self_cpu_time_total");
	timeline__free(t);
	recording__free(rec);
	(void)close(fd);
	return 0;
}

/* Nested ops, an exception, an allocation and its free. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const uint8_t seed[] = {
		1, 10, 250, 20,				   /* pid, window */
		3, 0,  7,   50, 20, 3, 2,   0, 0, 6, 0, 1, /* op 3 in op 2 */
		3, 1,  7,   80, 15, 2, 1,   1, 7, 0, 0, 1, /* op 2 in op 1, by exception */
		3, 0,  7,   70, 10, 1, 0,   0, 0, 6, 1, 2, /* op 1 */
		1, 0,  7,   30, 3,  9, 200, 0, 0, 0,	   /* allocation in op 3 */
		1, 3,  7,   60, 1,  9, 100, 0, 0, 0,	   /* its free */
	};

	/* A call in an op, seen by CUPTI and a uprobe, and its kernel with a name of its own. */
	static const uint8_t gpu_seed[] = {
		1,  10, 250, 20,				       /* pid, window */
		16, 5,	'_', 'Z', '1', 'f', 'v',		       /* a name */
		3,  0,	7,   90,  20,  3,   2,	 0, 0, 6, 0,  1,       /* op */
		8,  1,	7,   60,  41,  0,   6,	 9,		       /* CUPTI */
		8,  0,	7,   62,  40,  3,   7,	 0,		       /* uprobe */
		11, 0,	0,   99,  70,  9,   8,	 0, 7, 1, 16, 0,       /* kernel */
		11, 0,	0,   120, 98,  9,   5,	 0, 7, 1, 16, 0,       /* overlaps */
		13, 0,	0,   140, 130, 10,  3,	 1, 8, 0,	       /* synchronisation */
		15, 0,	0,   160, 150, 64,  10,	 0, 7, 0, 1,  1, 3, 0, /* copy */
	};

	/* Ops and three optimizer steps, one of them in an annotation; then a pause. */
	static const uint8_t step_seed[] = {
		2,  10, 250, 20,			    /* pid, window */
		3,  0,	7,   40,  30,  1, 0, 8, 7, 0, 0, 1, /* optimizer */
		3,  0,	7,   60,  50,  2, 0, 0, 0, 0, 0, 1, /* op */
		3,  0,	7,   90,  80,  4, 3, 8, 7, 0, 0, 1, /* optimizer within */
		3,  0,	7,   95,  70,  3, 0, 0, 7, 0, 0, 1, /* that annotation */
		3,  0,	7,   140, 130, 5, 0, 8, 7, 0, 0, 1, /* optimizer */
		21, 1,	7,   120, 110,			    /* pause */
	};

	/* Schemas of f; an op f, its tensor and that one's allocation. */
	static const uint8_t tensors_seed[] = {
		1,  10, 250, 20,					    /* pid, window */
		19, 0,	7,   5,	 1,  2, 0,   1, 1,			    /* f tT */
		1,  0,	7,   30, 3,  9, 200, 0, 0, 0,			    /* allocation */
		17, 0,	7,   40, 3,  0, 4,   0, 1, 9, 0, 100, 1, 9, 0, 100, /* its tensor, twice */
		3,  0,	7,   50, 40, 3, 0,   0, 0, 6, 0, 1,		    /* the op */
	};

	fuzz_seed(*argc, *argv, "nested", seed, sizeof(seed));
	fuzz_seed(*argc, *argv, "steps", step_seed, sizeof(step_seed));
	fuzz_seed(*argc, *argv, "tensors", tensors_seed, sizeof(tensors_seed));
	fuzz_seed(*argc, *argv, "gpu", gpu_seed, sizeof(gpu_seed));
	return 0;
}
