/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events of a recording into columns. Names are interned once per id, so that later stages compare
 * pointers; a process or thread that nothing describes is made up from what its events say.
 */
#include "timeline/model/build.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

#define EVENTS_PER_LOOK 65536 /* at the memory that is left */
#define PROCESS_NR	65536

/* More than anyone orders by hand. */
#define PAUSES_MAX	  1024
#define TRIGGERS_MAX	  64
#define THREAD_STACKS_MAX 4096

/* Processes that nothing names are told apart by pids that no process has. */
#define UNKNOWN_PID -1000

/* Dropped by torch.profiler before it builds its tree. */
static const char *const unlisted_names[] = {
	"[memory]",
	"[OutOfMemory]",
	"profiler::_record_function_enter",
	"profiler::_record_function_enter_new",
	"profiler::_record_function_exit",
	"aten::is_leaf",
	"aten::output_nr",
	"aten::_version",
};

static bool is_unlisted(const char *name)
{
	for (size_t i = 0; i < sizeof(unlisted_names) / sizeof(*unlisted_names); i++)
		if (!strcmp(name, unlisted_names[i]))
			return true;
	return false;
}

const char *build_keep(struct build *b, const char *text)
{
	const char *kept = intern__str(b->t->private->intern, text ? text : "");

	if (!kept)
		b->err = -ENOMEM;
	return kept;
}

/* No pid is that large. */
#define ROW_PID_STEP 10000000

static int64_t row_pid(struct build *b, int32_t pid)
{
	const uint64_t *known = hash__find(&b->pids, (uint32_t)pid);
	uint64_t nr = known ? *known : 0;

	if (hash__set(&b->pids, (uint32_t)pid, nr + 1))
		b->err = -ENOMEM;
	return pid + (int64_t)nr * ROW_PID_STEP;
}

static int add_process(struct build *b, uint32_t index, const struct recording_process *p)
{
	struct tl_process out = {
		.pid = p ? p->pid : UNKNOWN_PID - (int32_t)index,
		.rank = p ? p->rank : -1,
		.comm = build_keep(b, p ? p->comm : "?"),
		.cmdline = build_keep(b, p ? p->cmdline : ""),
	};

	out.row_pid = row_pid(b, out.pid);
	if (b->err)
		return b->err;
	b->process_of[index] = (uint32_t)b->t->processes.nr;
	return vec_push(&b->t->processes, out);
}

static int read_processes(struct build *b, const struct recording *rec)
{
	b->process_of = malloc(PROCESS_NR * sizeof(*b->process_of));
	if (!b->process_of)
		return -ENOMEM;
	for (size_t i = 0; i < PROCESS_NR; i++)
		b->process_of[i] = TL_NONE;
	for (size_t i = 0; i < recording__processes(rec); i++) {
		const struct recording_process *p = recording__process_at(rec, i);
		int err;

		if (!p || p->index >= PROCESS_NR || b->process_of[p->index] != TL_NONE)
			continue;
		err = add_process(b, p->index, p);
		if (err)
			return err;
	}
	return 0;
}

uint32_t build_process_of(struct build *b, const struct gp_ev_head *head)
{
	if (b->process_of[head->process] != TL_NONE)
		return b->process_of[head->process];
	b->counts[TL_PROCESS_UNKNOWN]++;
	if (add_process(b, head->process, NULL)) {
		b->err = -ENOMEM;
		return TL_NONE;
	}
	return b->process_of[head->process];
}

uint32_t build_thread_of(struct build *b, const struct gp_ev_head *head)
{
	uint64_t key = (uint64_t)head->process << 32 | head->tid;
	struct tl_thread thread = {.tid = head->tid};
	uint64_t *known;

	if (build_process_of(b, head) == TL_NONE)
		return TL_NONE;
	if (b->last_thread != TL_NONE && b->last_thread_key == key)
		return b->last_thread;
	known = hash__find(&b->thread_of, key);
	b->last_thread_key = key;
	if (known) {
		b->last_thread = (uint32_t)*known;
		return b->last_thread;
	}
	thread.process = b->process_of[head->process];
	thread.comm = build_keep(b, "");
	b->last_thread = (uint32_t)b->t->threads.nr;
	if (b->err || vec_push(&b->t->threads, thread) ||
	    hash__set(&b->thread_of, key, b->last_thread)) {
		b->err = -ENOMEM;
		b->last_thread = TL_NONE;
	}
	return b->last_thread;
}

/* Index into b->names, TL_NONE with b->err set. */
static uint32_t name_of(struct build *b, uint32_t id)
{
	const uint64_t *known = hash__find(&b->name_of, id);
	struct tl_name name;
	const char *overload = "";

	if (known)
		return (uint32_t)*known;
	name.name = build_keep(b, recording__name(b->t->recording, id, &overload));
	name.overload = build_keep(b, overload);
	if (b->err)
		return TL_NONE;
	name.unlisted = is_unlisted(name.name);
	if (hash__set(&b->name_of, id, b->names.nr) || vec_push(&b->names, name)) {
		b->err = -ENOMEM;
		return TL_NONE;
	}
	return (uint32_t)b->names.nr - 1;
}

void build_saw_time(struct build *b, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns < b->first_ns)
		b->first_ns = from_ns;
	if (to_ns > b->last_ns)
		b->last_ns = to_ns;
}

bool build_in_window(const struct build *b, uint64_t from_ns, uint64_t to_ns)
{
	return from_ns >= b->window_start_ns && to_ns <= b->window_end_ns &&
	       (!b->has_windows || timeline__in_windows(b->t, from_ns, to_ns));
}

/* Recordings by steps hold more than their window: see FORMAT.md. */
static void set_limits(struct build *b)
{
	uint64_t realtime_ns;

	b->window_end_ns = UINT64_MAX;
	if (!recording__meta(b->t->recording, "steps"))
		return;
	recording__window(b->t->recording, &b->window_start_ns, &b->window_end_ns, &realtime_ns);
	if (b->window_end_ns <= b->window_start_ns)
		b->window_end_ns = UINT64_MAX;
}

static uint32_t inputs_of(struct build *b, const struct gp_ev_op *e, size_t bytes)
{
	const struct gp_ev_op_inputs *with = (const struct gp_ev_op_inputs *)e;
	const uint64_t *known;

	if (bytes < sizeof(*with) || !with->inputs_id)
		return TL_NONE;
	known = hash__find(&b->inputs_of, with->inputs_id);
	b->has_inputs = true;
	b->inputs_invalid_nr += !known;
	b->valueless_nr += known && b->t->inputs.items[*known].valueless;
	return known ? (uint32_t)*known : TL_NONE;
}

static uint32_t same_calls_of(struct build *b, const struct gp_ev_op *e, size_t bytes)
{
	const struct gp_ev_op_inputs *with = (const struct gp_ev_op_inputs *)e;

	if (bytes < sizeof(*with) || !with->same_calls)
		return 0;
	b->has_calls = true;
	return with->same_calls;
}

static int read_op(struct build *b, const struct gp_ev_op *e, size_t bytes)
{
	const struct tl_name *name;
	uint32_t name_at;
	struct tl_op op = {
		.start_ns = e->start_ns,
		.end_ns = e->head.time_ns,
		.instance = e->instance,
		.parent = TL_NONE,
		.module_call = TL_NONE,
		.sequence_nr = e->sequence_nr,
		.forward_thread = e->forward_thread,
		.scope = e->scope,
		.stack_id = e->stack_id,
		.flags = e->head.flags,
		.thread_number = e->thread_number,
		.inputs = TL_NONE,
	};

	if (op.end_ns < op.start_ns || op.end_ns >= TL_TIME_END_NS) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	if (!build_in_window(b, op.start_ns, op.end_ns)) {
		b->window_cut_nr += timeline__window_at(b->t, op.start_ns) != TL_NONE;
		return 0;
	}
	if (b->t->ops.nr >= TL_NONE - 1)
		return -EFBIG;
	op.thread = build_thread_of(b, &e->head);
	name_at = name_of(b, e->name_id);
	op.inputs = inputs_of(b, e, bytes);
	op.python_call = same_calls_of(b, e, bytes);
	if (b->err)
		return b->err;
	name = &b->names.items[name_at];
	op.name = name->name;
	op.overload = name->overload;
	op.unlisted = name->unlisted;
	build_saw_time(b, op.start_ns, op.end_ns);
	return vec_push(&b->t->ops, op) ?: vec_push(&b->parents, e->parent);
}

static int read_memory(struct build *b, const struct gp_ev_memory *e)
{
	struct raw_memory m = {
		.time_ns = e->head.time_ns,
		.instance = e->instance,
		.address = e->address,
		.bytes = e->bytes,
		.allocated_bytes = e->head.flags & GP_MEMORY_TOTALS ? e->allocated_bytes : 0,
		.reserved_bytes = e->head.flags & GP_MEMORY_TOTALS ? e->reserved_bytes : 0,
		.device_type = e->device_type,
		.device_index = e->device_index,
		.stack_id = e->stack_id,
		.flags = e->head.flags,
		.op = TL_NONE,
	};

	if (m.time_ns >= TL_TIME_END_NS) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	m.before = m.time_ns < b->window_start_ns;
	if (m.time_ns > b->window_end_ns)
		return 0;
	if (b->memory.nr >= TL_NONE - 1)
		return -EFBIG;
	m.thread = build_thread_of(b, &e->head);
	if (b->err)
		return b->err;
	if (!m.before)
		build_saw_time(b, m.time_ns, m.time_ns);
	return vec_push(&b->memory, m);
}

/* What is freed is only known to be CUDA's own: managed memory has no kind of its own. */
static int read_cuda_memory(struct build *b, const struct gp_ev_cuda_memory *e)
{
	struct gp_ev_memory m = {
		.head = e->head,
		.instance = e->instance,
		.address = e->address,
		.bytes = e->bytes > INT64_MAX ? INT64_MAX : (__s64)e->bytes,
		.device_type = TL_DEVICE_CUDA_CALLS,
		.device_index = -1,
		.stack_id = e->stack_id,
	};

	if (e->what == GP_CUDA_HOST)
		m.device_type = TL_DEVICE_CUDA_HOST;
	else if (e->what == GP_CUDA_PHYSICAL)
		m.device_type = TL_DEVICE_CUDA_PHYSICAL;
	m.head.flags &= GP_MEMORY_FREE;
	if (m.head.flags)
		m.head.flags |= GP_MEMORY_SIZE_UNKNOWN;
	return read_memory(b, &m);
}

static int read_thread(struct build *b, const struct gp_ev_thread *e)
{
	uint32_t thread = build_thread_of(b, &e->head);
	const char *comm;

	if (b->err)
		return b->err;
	comm = intern__get(b->t->private->intern, e->comm, strnlen(e->comm, GP_COMM_BYTES));
	if (!comm)
		return -ENOMEM;
	b->t->threads.items[thread].comm = comm;
	return 0;
}

static int read_step(struct build *b, const struct gp_ev_step *e)
{
	struct step_begin begin = {.time_ns = e->head.time_ns, .cycle_nr = e->cycle_nr};
	size_t nr = b->step_begins.nr;

	if (begin.time_ns >= TL_TIME_END_NS ||
	    (nr && begin.time_ns <= b->step_begins.items[nr - 1].time_ns)) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	begin.thread = build_thread_of(b, &e->head);
	return b->err ? b->err : vec_push(&b->step_begins, begin);
}

/* In order, and those of one side apart from each other: anything else makes no sense. */
static int read_pause(struct build *b, const struct gp_ev_pause *e)
{
	struct tl_pause p = {
		.start_ns = e->start_ns,
		.end_ns = e->head.time_ns,
		.cpu = e->head.flags & 1,
		.gpu = e->head.flags & 2,
	};

	/* Of the others windows say it more exactly. */
	if (b->has_windows && !(p.cpu && e->head.flags & GP_PAUSE_ASKED))
		return 0;
	if (p.end_ns < p.start_ns || p.end_ns >= TL_TIME_END_NS ||
	    (p.cpu && p.start_ns < b->paused_until_ns) || b->t->pauses.nr == PAUSES_MAX) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	if (p.cpu)
		b->paused_until_ns = p.end_ns;
	if (b->has_windows)
		b->t->unwanted_ns += p.end_ns - p.start_ns;
	if (b->has_gpu_windows && p.gpu && b->gpu_unwanted.nr < PAUSES_MAX)
		b->err = vec_push(&b->gpu_unwanted,
				  ((struct tl_span){.start_ns = p.start_ns, .end_ns = p.end_ns}));
	if (b->err)
		return b->err;
	if (b->has_windows || (b->has_gpu_windows && !p.cpu))
		return 0;
	build_saw_time(b, p.start_ns, p.end_ns);
	return vec_push(&b->t->pauses, p);
}

static int read_trigger(struct build *b, const struct gp_ev_trigger *e)
{
	struct tl_trigger t = {.reported = *e, .thread = TL_NONE};

	if (e->head.time_ns >= TL_TIME_END_NS || e->start_ns > e->head.time_ns ||
	    e->bound_ns >= TL_TIME_END_NS || e->usual_ns >= TL_TIME_END_NS ||
	    b->t->triggers.nr == TRIGGERS_MAX) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	if (e->head.tid)
		t.thread = build_thread_of(b, &e->head);
	return b->err ? b->err : vec_push(&b->t->triggers, t);
}

static int read_thread_stack(struct build *b, const struct gp_ev_thread_stack *e)
{
	struct tl_thread_stack s = {.time_ns = e->head.time_ns, .stack_id = e->stack_id};

	if (s.time_ns >= TL_TIME_END_NS || b->t->thread_stacks.nr == THREAD_STACKS_MAX) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	s.thread = build_thread_of(b, &e->head);
	return b->err ? b->err : vec_push(&b->t->thread_stacks, s);
}

static int read_python_gc(struct build *b, const struct gp_ev_python_gc *e)
{
	struct tl_python_gc gc = {.start_ns = e->start_ns,
				  .end_ns = e->head.time_ns,
				  .collected = e->collected,
				  .generation = e->generation};

	if (gc.end_ns < gc.start_ns || gc.end_ns >= TL_TIME_END_NS) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	if (!build_in_window(b, gc.start_ns, gc.end_ns))
		return 0;
	gc.thread = build_thread_of(b, &e->head);
	build_saw_time(b, gc.start_ns, gc.end_ns);
	return b->err ? b->err : vec_push(&b->t->python_gcs, gc);
}

/* Joining takes up to as much again as reading has by then: a quarter with operators alone, nine
 * tenths with all that can be recorded. Where that is not left, others would have to give it. */
static int look_at_memory(struct build *b)
{
	struct memory_now now;

	if (!memory_now(&now) || now.own <= b->memory_before)
		return 0;
	now.own -= b->memory_before;
	if (now.left >= now.own)
		return 0;
	b->short_of = now;
	return -ENOMEM;
}

static int read_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	struct build *b = arg;

	if (++b->events_nr % EVENTS_PER_LOOK == 0)
		b->err = look_at_memory(b);
	if (b->err)
		return b->err;
	if (head->kind == GP_EV_OP && bytes >= sizeof(struct gp_ev_op))
		b->err = read_op(b, event, bytes);
	else if (head->kind == GP_EV_MEMORY && bytes >= sizeof(struct gp_ev_memory))
		b->err = read_memory(b, event);
	else if (head->kind == GP_EV_CUDA_MEMORY && bytes >= sizeof(struct gp_ev_cuda_memory))
		b->err = read_cuda_memory(b, event);
	else if (head->kind == GP_EV_THREAD && bytes >= sizeof(struct gp_ev_thread))
		b->err = read_thread(b, event);
	else if (head->kind == GP_EV_PAUSE && bytes >= sizeof(struct gp_ev_pause))
		b->err = read_pause(b, event);
	else if (head->kind == GP_EV_TRIGGER && bytes >= sizeof(struct gp_ev_trigger))
		b->err = read_trigger(b, event);
	else if (head->kind == GP_EV_THREAD_STACK && bytes >= sizeof(struct gp_ev_thread_stack))
		b->err = read_thread_stack(b, event);
	else if (head->kind == GP_EV_PYTHON_GC && bytes >= sizeof(struct gp_ev_python_gc))
		b->err = read_python_gc(b, event);
	else if (head->kind == GP_EV_STEP && bytes >= sizeof(struct gp_ev_step))
		b->err = read_step(b, event);
	else if (head->kind == GP_EV_SAMPLE && bytes >= sizeof(struct gp_ev_sample))
		b->err = build_sample(b, event);
	else if (head->kind == GP_EV_INPUTS && bytes >= sizeof(struct gp_ev_inputs))
		b->err = build_inputs(b, event, bytes);
	else if (head->kind == GP_EV_MODULE_CALL && bytes >= sizeof(struct gp_ev_module_call))
		b->err = build_module_call(b, event);
	else if (head->kind == GP_EV_TENSORS && bytes >= sizeof(struct gp_ev_tensors))
		b->err = build_tensors(b, event, bytes);
	else if (head->kind == GP_EV_SCHEMAS && bytes >= sizeof(struct gp_ev_schemas))
		b->err = build_schemas(b, event, bytes);
	else
		b->err = build_read_gpu(b, event, bytes);
	return b->err;
}

int build_read(struct build *b, struct recording *rec)
{
	struct memory_now now;
	int err;

	b->memory_before = memory_now(&now) ? now.own : 0;
	b->last_thread = TL_NONE;
	b->first_ns = UINT64_MAX;
	set_limits(b);
	err = read_processes(b, rec);
	if (!err)
		err = build_windows(b, rec);
	if (err)
		return err;
	err = recording__each_event(rec, read_event, b);
	return err ?: look_at_memory(b);
}
