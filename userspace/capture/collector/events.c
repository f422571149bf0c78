/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Validates events from a collector. Each kind has one function that checks all of its fields and
 * rewrites what only gpuprof can know: process, thread, times of the machine's clock. The ids of
 * names and stacks lie where the table of kinds says.
 */
#include "capture/collector/events.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/utf8.h"
#include "common/clock.h"
#include "recording/event_kinds.h"
#include "recording/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_S       1000000000LL
#define SCOPE_MAX      64
#define AHEAD_NS       NS_PER_S /* an event may seem to lie this far in the future */
#define BEFORE_NS      NS_PER_S /* a GPU's time, converted, may seem to lie this far before */
#define PREFIX_SHIFT   52
#define OFFSETS_BYTES  4096
#define OFFSET_S_MAX   (1LL << 32)
#define PREFIX_OURS    (1ULL << 11) /* bit 63 of an instance */
#define PREFIX_PROCESS 0x7ffU

/* More than any GPU or CUPTI has. */
#define DEVICES	     4096U
#define CBIDS	     65536U
#define KINDS	     256U
#define GRID_MAX     0x7fffffffU
#define BLOCK_MAX    1024U
#define REGISTERS    65536U
#define SHARED_BYTES (16 << 20)
#define GPU_BYTES    (1ULL << 56)
#define WIDTH_NS     (60 * NS_PER_S)

/* What the process's time namespace adds to CLOCK_MONOTONIC. */
static int64_t clock_offset(pid_t pid)
{
	CLEANUP(cleanup_free) char *text = NULL;
	char path[64];
	const char *line;
	int64_t s, ns;
	size_t bytes;

	(void)snprintf(path, sizeof(path), "/proc/%d/timens_offsets", pid);
	if (file_read(path, OFFSETS_BYTES, &text, &bytes))
		return 0;
	line = strstr(text, "monotonic");
	if (!line || sscanf(line, "monotonic %" SCNd64 " %" SCNd64, &s, &ns) != 2)
		return 0;
	if (s < -OFFSET_S_MAX || s > OFFSET_S_MAX || ns < 0 || ns >= NS_PER_S)
		return 0;
	return s * NS_PER_S + ns;
}

static uint64_t machine_now(void)
{
	return clock_now_ns() - (uint64_t)clock_offset(getpid());
}

void collector_events__init(struct collector_events *e, pid_t pid, uint16_t process_index)
{
	*e = (struct collector_events){
		.process_index = process_index,
		.opened_ns = machine_now(),
		.clock_offset_ns = clock_offset(pid),
	};
	tid_map__init(&e->tids, pid);
}

void collector_events__done(struct collector_events *e)
{
	tid_map__done(&e->tids);
}

uint64_t collector_events__now(struct collector_events *e)
{
	tid_map__round(&e->tids);
	return machine_now();
}

static bool instance_is_ours(const struct collector_events *e, uint64_t instance)
{
	return instance >> PREFIX_SHIFT == (PREFIX_OURS | (e->process_index & PREFIX_PROCESS));
}

static bool op_is_sane(const struct collector_events *e, const struct gp_ev_op *op, uint64_t now_ns)
{
	return op->start_ns >= e->opened_ns && op->start_ns <= op->head.time_ns &&
	       op->head.time_ns <= now_ns + AHEAD_NS && instance_is_ours(e, op->instance) &&
	       (!op->parent || instance_is_ours(e, op->parent)) && op->parent != op->instance &&
	       op->scope < SCOPE_MAX && op->sequence_nr >= -1;
}

static bool is_announced(const struct collector_events *e, uint32_t id)
{
	return id < COLLECTOR_NAMES && (e->announced[id / 8] & 1U << id % 8);
}

static void validate_inputs_id(const struct collector_events *e, struct gp_ev_op_inputs *with)
{
	uint32_t id = with->inputs_id;

	/* So many frames no stack has. */
	if (with->same_calls > GP_STACK_FRAMES + 1)
		with->same_calls = 0;
	if (id && (id >= COLLECTOR_INPUTS || !(e->announced_inputs[id / 8] & 1U << id % 8)))
		with->inputs_id = GP_INPUTS_LOST;
}

static void validate_name_id(struct collector_events *e, __u32 *id)
{
	if (is_announced(e, *id))
		return;
	*id = 0;
	e->names_lost_nr++;
}

static void validate_stack_id(struct collector_events *e, __u32 *id)
{
	if (!*id || (*id < GP_RING_STACKS && (e->announced_stacks[*id / 8] & 1U << *id % 8)))
		return;
	*id = 0;
	e->stacks_lost_nr++;
}

/* Clears the ids, of an event that is otherwise good, that stand for nothing. */
static void validate_ids(struct collector_events *e, void *event, const struct event_kind *kind)
{
	char *fields = event;

	if (kind->name_ids[0])
		validate_name_id(e, (__u32 *)(fields + kind->name_ids[0]));
	if (kind->stack_id)
		validate_stack_id(e, (__u32 *)(fields + kind->stack_id));
}

/* Sets what only gpuprof knows of an event on a thread, and of one on none. */
static void set_head(struct collector_events *e, struct gp_ev_head *head, uint8_t flags)
{
	head->flags = flags;
	head->process = e->process_index;
	head->tid = tid_map__get(&e->tids, head->tid);
}

static void set_head_threadless(const struct collector_events *e, struct gp_ev_head *head,
				uint8_t flags)
{
	head->flags = flags;
	head->process = e->process_index;
	head->tid = 0;
}

static bool validate_op(struct collector_events *e, struct gp_ev_op *op, size_t bytes,
			uint64_t now_ns)
{
	if (bytes == sizeof(struct gp_ev_op_inputs))
		validate_inputs_id(e, (struct gp_ev_op_inputs *)op);
	else if (bytes != sizeof(*op))
		return false;
	op->start_ns -= (uint64_t)e->clock_offset_ns;
	op->head.time_ns -= (uint64_t)e->clock_offset_ns;
	if (!op_is_sane(e, op, now_ns))
		return false;
	set_head(e, &op->head, GP_OP_CALLBACK | (op->head.flags & (GP_OP_EXCEPTION | GP_OP_ASYNC)));
	return true;
}

/* Any number: it is only compared with others of the thread. */
static bool validate_cpu_time(struct collector_events *e, struct gp_ev_cpu_time *c, size_t bytes,
			      uint64_t now_ns)
{
	if (bytes != sizeof(*c))
		return false;
	c->head.time_ns -= (uint64_t)e->clock_offset_ns;
	set_head(e, &c->head, 0);
	return c->head.time_ns >= e->opened_ns && c->head.time_ns <= now_ns + AHEAD_NS;
}

static bool validate_stack(struct collector_events *e, struct gp_ev_stack *s, size_t bytes)
{
	uint32_t id;

	if (bytes < sizeof(*s) || !s->frames_nr || s->frames_nr > GP_STACK_FRAMES ||
	    bytes != sizeof(*s) + s->frames_nr * sizeof(struct gp_stack_frame) || !s->stack_id ||
	    s->stack_id >= GP_RING_STACKS)
		return false;
	id = s->stack_id;
	s->head = (struct gp_ev_head){
		.kind = GP_EV_STACK,
		.flags = s->head.flags & (GP_STACK_TRUNCATED | GP_STACK_INCOMPLETE),
		.process = e->process_index,
	};
	e->announced_stacks[id / 8] |= (uint8_t)(1U << id % 8);
	return true;
}

static bool validate_name(struct collector_events *e, struct gp_ev_name *name, size_t bytes)
{
	char *text = (char *)(name + 1);

	if (bytes < sizeof(*name) || name->text_bytes > GP_RING_NAME_BYTES ||
	    bytes != sizeof(*name) + ((name->text_bytes + 7) & ~7U) || !name->name_id ||
	    name->name_id >= COLLECTOR_NAMES)
		return false;
	/* In a recording a text ends at one. */
	for (uint32_t i = 0; i < name->text_bytes; i++)
		if (!text[i])
			text[i] = '?';
	/* One that long was cut. */
	if (name->text_bytes == GP_RING_NAME_BYTES)
		name->text_bytes = (uint32_t)utf8_whole_bytes(text, GP_RING_NAME_BYTES);
	/* Also after the last of a text that fills its words. */
	memset(text + name->text_bytes, 0, 8);
	name->head = (struct gp_ev_head){.kind = GP_EV_NAME, .process = e->process_index};
	e->announced[name->name_id / 8] |= (uint8_t)(1U << name->name_id % 8);
	return true;
}

static bool validate_module_call(struct collector_events *e, struct gp_ev_module_call *c,
				 size_t bytes, uint64_t now_ns)
{
	if (bytes != sizeof(*c))
		return false;
	c->start_ns -= (uint64_t)e->clock_offset_ns;
	c->head.time_ns -= (uint64_t)e->clock_offset_ns;
	if (c->start_ns < e->opened_ns || c->start_ns > c->head.time_ns ||
	    c->head.time_ns > now_ns + AHEAD_NS || !instance_is_ours(e, c->first) ||
	    c->last < c->first || c->last >> 32 != c->first >> 32 || c->depth >= GP_MODULE_DEPTH)
		return false;
	set_head(e, &c->head, 0);
	return true;
}

static bool validate_inputs(struct collector_events *e, struct gp_ev_inputs *in, size_t bytes)
{
	uint8_t *data = (uint8_t *)(in + 1);
	uint32_t id;

	if (bytes < sizeof(*in) || in->bytes > GP_INPUTS_BYTES_MAX ||
	    bytes != sizeof(*in) + ((in->bytes + 7) & ~7U) || !in->inputs_id ||
	    in->inputs_id >= COLLECTOR_INPUTS || !inputs_are_sane(data, in->bytes))
		return false;
	id = in->inputs_id;
	memset(data + in->bytes, 0, bytes - sizeof(*in) - in->bytes);
	in->head = (struct gp_ev_head){.kind = GP_EV_INPUTS, .process = e->process_index};
	e->announced_inputs[id / 8] |= (uint8_t)(1U << id % 8);
	return true;
}

static bool validate_tensors(struct collector_events *e, struct gp_ev_tensors *t, size_t bytes,
			     uint64_t now_ns)
{
	if (bytes < sizeof(*t) || t->words_nr > GP_TENSOR_WORDS_MAX ||
	    bytes != sizeof(*t) + (size_t)t->words_nr * 8 || !instance_is_ours(e, t->instance))
		return false;
	t->head.time_ns -= (uint64_t)e->clock_offset_ns;
	set_head(e, &t->head, 0);
	return t->head.time_ns >= e->opened_ns && t->head.time_ns <= now_ns + AHEAD_NS;
}

/* Start and end of what CUPTI told: to the machine's clock, and whether they can be. */
static bool validate_times(const struct collector_events *e, struct gp_ev_head *head,
			   __u64 *start_ns, uint64_t now_ns)
{
	*start_ns -= (uint64_t)e->clock_offset_ns;
	head->time_ns -= (uint64_t)e->clock_offset_ns;
	return *start_ns + BEFORE_NS >= e->opened_ns && *start_ns <= head->time_ns &&
	       head->time_ns <= now_ns + AHEAD_NS;
}

static bool validate_api(struct collector_events *e, struct gp_ev_api *api, size_t bytes,
			 uint64_t now_ns)
{
	if (bytes != sizeof(*api) || !validate_times(e, &api->head, &api->start_ns, now_ns) ||
	    api->cbid >= CBIDS)
		return false;
	*api = (struct gp_ev_api){
		.head = {.kind = GP_EV_API,
			 .flags = GP_API_CUPTI | (api->head.flags & GP_API_DRIVER),
			 .process = e->process_index,
			 .tid = tid_map__get(&e->tids, api->head.tid),
			 .time_ns = api->head.time_ns},
		.start_ns = api->start_ns,
		.name_id = api->name_id,
		.cbid = api->cbid,
		.correlation_id = api->correlation_id,
		.result = api->result,
	};
	return true;
}

static bool kernel_is_sane(const struct gp_ev_kernel *k)
{
	for (int i = 0; i < 3; i++)
		if (k->grid[i] > GRID_MAX || k->block[i] > BLOCK_MAX)
			return false;
	return k->device < DEVICES && k->registers < REGISTERS && k->static_shared_bytes >= 0 &&
	       k->static_shared_bytes <= SHARED_BYTES && k->dynamic_shared_bytes >= 0 &&
	       k->dynamic_shared_bytes <= SHARED_BYTES;
}

static bool validate_kernel(struct collector_events *e, struct gp_ev_kernel *k, size_t bytes,
			    uint64_t now_ns)
{
	if (bytes != sizeof(*k) || !validate_times(e, &k->head, &k->start_ns, now_ns) ||
	    !kernel_is_sane(k))
		return false;
	if (k->queued_ns)
		k->queued_ns -= (uint64_t)e->clock_offset_ns;
	if (k->queued_ns > k->start_ns || k->queued_ns + BEFORE_NS < e->opened_ns)
		k->queued_ns = 0;
	set_head_threadless(e, &k->head, 0);
	k->reserved = 0;
	return true;
}

static bool validate_gpu_memory(struct collector_events *e, struct gp_ev_gpu_memory *m,
				size_t bytes, uint64_t now_ns)
{
	if (bytes != sizeof(*m) || !validate_times(e, &m->head, &m->start_ns, now_ns) ||
	    m->bytes > GPU_BYTES || m->device >= DEVICES || m->is_set > 1 ||
	    (m->peer_device >= DEVICES && m->peer_device != UINT32_MAX))
		return false;
	set_head_threadless(e, &m->head, 0);
	m->reserved = 0;
	return true;
}

static bool validate_sync(struct collector_events *e, struct gp_ev_sync *s, size_t bytes,
			  uint64_t now_ns)
{
	if (bytes != sizeof(struct gp_ev_sync_event) ||
	    !validate_times(e, &s->head, &s->start_ns, now_ns) || s->what >= KINDS)
		return false;
	set_head_threadless(e, &s->head, 0);
	s->reserved = 0;
	return true;
}

/* The size of what is freed is known by its allocation. */
static bool validate_memory(struct collector_events *e, struct gp_ev_memory *m, size_t bytes,
			    uint64_t now_ns)
{
	bool is_free = m->head.flags & GP_MEMORY_FREE;

	if (bytes != sizeof(*m) || (is_free ? !m->address : m->bytes <= 0))
		return false;
	*m = (struct gp_ev_memory){
		.head = {.kind = GP_EV_MEMORY,
			 .flags = is_free ? GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN : 0,
			 .process = e->process_index,
			 .tid = tid_map__get(&e->tids, m->head.tid),
			 .time_ns = m->head.time_ns - (uint64_t)e->clock_offset_ns},
		.address = m->address,
		.bytes = is_free ? 0 : m->bytes,
		.device_type = GP_DEVICE_CPU,
		.device_index = -1,
		.stack_id = is_free ? 0 : m->stack_id,
	};
	return m->head.time_ns >= e->opened_ns && m->head.time_ns <= now_ns + AHEAD_NS;
}

static bool validate_cuda_event(struct collector_events *e, struct gp_ev_cuda_event *c,
				size_t bytes, uint64_t now_ns)
{
	__u64 start_ns = c->head.time_ns;

	if (bytes != sizeof(*c) || !validate_times(e, &c->head, &start_ns, now_ns) ||
	    (c->device >= DEVICES && c->device != UINT32_MAX))
		return false;
	set_head_threadless(e, &c->head, c->head.flags & GP_CUDA_EVENT_TIMED);
	c->reserved = 0;
	return true;
}

static bool validate_clock(struct collector_events *e, struct gp_ev_clock *c, size_t bytes,
			   uint64_t now_ns)
{
	__u64 start_ns = c->head.time_ns;

	if (bytes != sizeof(*c) || !validate_times(e, &c->head, &start_ns, now_ns) || !c->gpu_ns ||
	    c->width_ns > WIDTH_NS)
		return false;
	set_head_threadless(e, &c->head, 0);
	return true;
}

static bool validate_overhead(struct collector_events *e, struct gp_ev_overhead *o, size_t bytes,
			      uint64_t now_ns)
{
	if (bytes != sizeof(*o) || !validate_times(e, &o->head, &o->start_ns, now_ns) ||
	    o->what >> 16 >= KINDS)
		return false;
	o->head.flags = 0;
	o->head.process = e->process_index;
	o->head.tid = o->head.tid ? tid_map__get(&e->tids, o->head.tid) : 0;
	o->reserved = 0;
	return true;
}

static bool validate_device(struct collector_events *e, struct gp_ev_device *d, size_t bytes,
			    uint64_t now_ns)
{
	const __u32 *number = &d->major;
	__u64 start_ns = d->head.time_ns;

	if (bytes != sizeof(*d) || !validate_times(e, &d->head, &start_ns, now_ns) ||
	    d->device >= DEVICES || d->memory_bytes > GPU_BYTES)
		return false;
	for (; number <= &d->blocks_per_sm; number++)
		if (*number > INT32_MAX)
			return false;
	if (d->clock_khz > INT32_MAX || d->driver_version > INT32_MAX ||
	    d->runtime_version > INT32_MAX || d->cupti_version > INT32_MAX)
		return false;
	d->reserved = d->reserved2 = 0;
	d->name[sizeof(d->name) - 1] = '\0';
	set_head_threadless(e, &d->head, 0);
	return true;
}

static bool validate_kind(struct collector_events *e, void *event, size_t bytes, uint64_t now_ns)
{
	switch (((const struct gp_ev_head *)event)->kind) {
	case GP_EV_OP:
		return validate_op(e, event, bytes, now_ns);
	case GP_EV_MEMORY:
		return validate_memory(e, event, bytes, now_ns);
	case GP_EV_NAME:
		return validate_name(e, event, bytes);
	case GP_EV_CPU_TIME:
		return validate_cpu_time(e, event, bytes, now_ns);
	case GP_EV_INPUTS:
		return validate_inputs(e, event, bytes);
	case GP_EV_STACK:
		return validate_stack(e, event, bytes);
	case GP_EV_MODULE_CALL:
		return validate_module_call(e, event, bytes, now_ns);
	case GP_EV_TENSORS:
		return validate_tensors(e, event, bytes, now_ns);
	case GP_EV_API:
		return validate_api(e, event, bytes, now_ns);
	case GP_EV_KERNEL:
		return validate_kernel(e, event, bytes, now_ns);
	case GP_EV_GPU_MEMORY:
		return validate_gpu_memory(e, event, bytes, now_ns);
	case GP_EV_SYNC:
		return validate_sync(e, event, bytes, now_ns);
	case GP_EV_CUDA_EVENT:
		return validate_cuda_event(e, event, bytes, now_ns);
	case GP_EV_CLOCK:
		return validate_clock(e, event, bytes, now_ns);
	case GP_EV_OVERHEAD:
		return validate_overhead(e, event, bytes, now_ns);
	case GP_EV_DEVICE:
		return validate_device(e, event, bytes, now_ns);
	default:
		return false;
	}
}

size_t collector_events__validate(struct collector_events *e, void *event, size_t bytes,
				  uint64_t now_ns)
{
	if (bytes < sizeof(struct gp_ev_head) || bytes < event_kind_of(event)->bytes ||
	    !validate_kind(e, event, bytes, now_ns)) {
		e->refused_nr++;
		return 0;
	}
	validate_ids(e, event, event_kind_of(event));
	return bytes;
}
