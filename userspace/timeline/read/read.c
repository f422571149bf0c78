/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads the events of a recording into columns. Names are interned once per id, so that later
 * stages compare pointers.
 */
#include "timeline/read/context.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

#define EVENTS_PER_LOOK 65536 /* at which the memory left is checked */

/* More than anyone orders by hand. */
#define PAUSES_MAX	  1024
#define TRIGGERS_MAX	  64
#define THREAD_STACKS_MAX 4096

/* Names that torch.profiler drops before it builds its tree. */
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

/* Finds or makes the entry of a name in b->reader.names. TL_NONE with b->err set. */
static uint32_t name_of(struct build *b, uint32_t id)
{
	const uint64_t *known = hash__find(&b->reader.name_of, id);
	struct tl_name name;
	const char *overload = "";

	if (known)
		return (uint32_t)*known;
	name.name = build_intern(b, recording__name(b->t->recording, id, &overload));
	name.overload = build_intern(b, overload);
	if (b->err)
		return TL_NONE;
	name.unlisted = is_unlisted(name.name);
	if (hash__set(&b->reader.name_of, id, b->reader.names.nr) ||
	    vec_push(&b->reader.names, name)) {
		b->err = -ENOMEM;
		return TL_NONE;
	}
	return (uint32_t)b->reader.names.nr - 1;
}

static uint32_t inputs_of(struct build *b, const struct gp_ev_op *e, size_t bytes)
{
	const struct gp_ev_op_inputs *with = (const struct gp_ev_op_inputs *)e;
	const uint64_t *known;

	if (bytes < sizeof(*with) || !with->inputs_id)
		return TL_NONE;
	known = hash__find(&b->inputs.of, with->inputs_id);
	b->inputs.any = true;
	b->inputs.invalid_nr += !known;
	b->inputs.valueless_nr += known && b->t->inputs.items[*known].valueless;
	return known ? (uint32_t)*known : TL_NONE;
}

static uint32_t same_calls_of(struct build *b, const struct gp_ev_op *e, size_t bytes)
{
	const struct gp_ev_op_inputs *with = (const struct gp_ev_op_inputs *)e;

	if (bytes < sizeof(*with) || !with->same_calls)
		return 0;
	b->python_calls.any = true;
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
		b->windows.cut_nr += timeline__window_at(b->t, op.start_ns) != TL_NONE;
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
	name = &b->reader.names.items[name_at];
	op.name = name->name;
	op.overload = name->overload;
	op.unlisted = name->unlisted;
	build_extend_time(b, op.start_ns, op.end_ns);
	return vec_push(&b->t->ops, op) ?: vec_push(&b->tree.parents, e->parent);
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
	m.before = m.time_ns < b->context.window_start_ns;
	if (m.time_ns > b->context.window_end_ns)
		return 0;
	if (b->memory.nr >= TL_NONE - 1)
		return -EFBIG;
	m.thread = build_thread_of(b, &e->head);
	if (b->err)
		return b->err;
	if (!m.before)
		build_extend_time(b, m.time_ns, m.time_ns);
	return vec_push(&b->memory, m);
}

/* A free only says that the memory is CUDA's own, so managed memory has no type of its own. */
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
	size_t nr = b->steps.begins.nr;

	if (begin.time_ns >= TL_TIME_END_NS ||
	    (nr && begin.time_ns <= b->steps.begins.items[nr - 1].time_ns)) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	begin.thread = build_thread_of(b, &e->head);
	return b->err ? b->err : vec_push(&b->steps.begins, begin);
}

/* Reads a pause. Pauses of one side come in order and do not overlap; anything else makes no
 * sense. */
static int read_pause(struct build *b, const struct gp_ev_pause *e)
{
	struct tl_pause p = {
		.start_ns = e->start_ns,
		.end_ns = e->head.time_ns,
		.cpu = e->head.flags & 1,
		.gpu = e->head.flags & 2,
	};

	/* Windows describe the other pauses more exactly. */
	if (b->windows.exact && !(p.cpu && e->head.flags & GP_PAUSE_ASKED))
		return 0;
	if (p.end_ns < p.start_ns || p.end_ns >= TL_TIME_END_NS ||
	    (p.cpu && p.start_ns < b->reader.paused_until_ns) || b->t->pauses.nr == PAUSES_MAX) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	if (p.cpu)
		b->reader.paused_until_ns = p.end_ns;
	if (b->windows.exact)
		b->t->unwanted_ns += p.end_ns - p.start_ns;
	if (b->windows.of_gpu && p.gpu && b->windows.gpu_unwanted.nr < PAUSES_MAX)
		b->err = vec_push(&b->windows.gpu_unwanted,
				  ((struct tl_span){.start_ns = p.start_ns, .end_ns = p.end_ns}));
	if (b->err)
		return b->err;
	if (b->windows.exact || (b->windows.of_gpu && !p.cpu))
		return 0;
	build_extend_time(b, p.start_ns, p.end_ns);
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
	build_extend_time(b, gc.start_ns, gc.end_ns);
	return b->err ? b->err : vec_push(&b->t->python_gcs, gc);
}

/* Stops reading when memory runs short. Joining takes up to as much memory again as reading did: a
 * quarter with operators alone, nine tenths with everything that can be recorded. If that is not
 * left, other processes would lose theirs. */
static int look_at_memory(struct build *b)
{
	struct memory_now now;

	if (!memory_now(&now) || now.own <= b->reader.memory_before)
		return 0;
	now.own -= b->reader.memory_before;
	if (now.left >= now.own)
		return 0;
	b->reader.short_of = now;
	return -ENOMEM;
}

/* Calls the reader of a kind. The event is at least as long as its kind. */
static int read_kind(struct build *b, uint8_t kind, const void *event, size_t bytes)
{
	switch (kind) {
	case GP_EV_OP:
		return read_op(b, event, bytes);
	case GP_EV_MEMORY:
		return read_memory(b, event);
	case GP_EV_CUDA_MEMORY:
		return read_cuda_memory(b, event);
	case GP_EV_THREAD:
		return read_thread(b, event);
	case GP_EV_PAUSE:
		return read_pause(b, event);
	case GP_EV_TRIGGER:
		return read_trigger(b, event);
	case GP_EV_THREAD_STACK:
		return read_thread_stack(b, event);
	case GP_EV_PYTHON_GC:
		return read_python_gc(b, event);
	case GP_EV_STEP:
		return read_step(b, event);
	case GP_EV_SAMPLE:
		return build_sample(b, event);
	case GP_EV_INPUTS:
		return build_inputs(b, event, bytes);
	case GP_EV_MODULE_CALL:
		return build_module_call(b, event);
	case GP_EV_TENSORS:
		return build_tensors(b, event, bytes);
	case GP_EV_SCHEMAS:
		return build_schemas(b, event, bytes);
	default:
		return build_read_gpu(b, event, bytes);
	}
}

static int read_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	struct build *b = arg;

	if (++b->reader.events_nr % EVENTS_PER_LOOK == 0)
		b->err = look_at_memory(b);
	if (b->err)
		return b->err;
	b->err = read_kind(b, head->kind, event, bytes);
	return b->err;
}

int build_read(struct build *b, struct recording *rec)
{
	struct memory_now now;
	int err;

	b->reader.memory_before = memory_now(&now) ? now.own : 0;
	build_limits(b);
	err = build_processes(b, rec);
	if (!err)
		err = build_windows(b, rec);
	if (err)
		return err;
	err = recording__each_event(rec, read_event, b);
	return err ?: look_at_memory(b);
}
