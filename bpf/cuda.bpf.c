/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Calls of the CUDA runtime and driver: one program for all entries, one for all exits. A driver
 * call inside a runtime call is part of it and is not emitted; memory is emitted by the outermost
 * call. A call whose end cannot be seen is emitted at its begin, without an end.
 */
#include "stack.bpf.h"
#include "thread.bpf.h"

/* libbpf has it from 1.2 on. */
#ifndef PT_REGS_PARM6
#define PT_REGS_PARM6(x) ((x)->r9)
#endif

#define TAG_LAYOUT(tag)	  (TAG_SCOPE(tag) & 63)
#define TAG_BIT(tag, bit) (TAG_SCOPE(tag) & (bit))

/* Positions of arguments, from 1; those after the sixth are on the stack. 0: none. */
struct layout {
	__u8 bytes, times, shift, stream, kind, address, second;
	__u8 datatype, op, peer, communicator; /* NCCL's, whose count is in `bytes` */
};

static const struct layout layouts[GP_API_LAYOUT_NR] = {
	[GP_API_STREAM_1] = {.stream = 1},
	[GP_API_STREAM_2] = {.stream = 2},
	[GP_API_LAUNCH] = {.stream = 8},
	[GP_API_LAUNCH_DRIVER] = {.stream = 9},
	[GP_API_COPY] = {.bytes = 3, .kind = 4},
	[GP_API_COPY_ASYNC] = {.bytes = 3, .kind = 4, .stream = 5},
	[GP_API_COPY_2D] = {.bytes = 5, .times = 6, .kind = 7},
	[GP_API_COPY_2D_ASYNC] = {.bytes = 5, .times = 6, .kind = 7, .stream = 8},
	[GP_API_COPY_PEER] = {.bytes = 5},
	[GP_API_COPY_PEER_ASYNC] = {.bytes = 5, .stream = 6},
	[GP_API_BYTES] = {.bytes = 3},
	[GP_API_BYTES_ASYNC] = {.bytes = 3, .stream = 4},
	[GP_API_HALVES] = {.bytes = 3, .shift = 1},
	[GP_API_HALVES_ASYNC] = {.bytes = 3, .shift = 1, .stream = 4},
	[GP_API_WORDS] = {.bytes = 3, .shift = 2},
	[GP_API_WORDS_ASYNC] = {.bytes = 3, .shift = 2, .stream = 4},
	[GP_API_ALLOC] = {.address = 1, .bytes = 2},
	[GP_API_ALLOC_MANAGED] = {.address = 1, .bytes = 2},
	[GP_API_ALLOC_HOST] = {.address = 1, .bytes = 2},
	[GP_API_ALLOC_PITCH] = {.address = 1, .second = 2, .bytes = 4},
	[GP_API_ALLOC_ASYNC] = {.address = 1, .bytes = 2, .stream = 3},
	[GP_API_ALLOC_POOL] = {.address = 1, .bytes = 2, .stream = 4},
	[GP_API_ALLOC_PHYSICAL] = {.address = 1, .bytes = 2},
	[GP_API_FREE] = {.address = 1},
	[GP_API_FREE_HOST] = {.address = 1},
	[GP_API_FREE_ASYNC] = {.address = 1, .stream = 2},
	[GP_API_FREE_PHYSICAL] = {.address = 1},
	[GP_API_NCCL_REDUCTION] =
		{.bytes = 3, .datatype = 4, .op = 5, .communicator = 6, .stream = 7},
	[GP_API_NCCL_REDUCE] =
		{.bytes = 3, .datatype = 4, .op = 5, .peer = 6, .communicator = 7, .stream = 8},
	[GP_API_NCCL_BROADCAST] =
		{.bytes = 3, .datatype = 4, .peer = 5, .communicator = 6, .stream = 7},
	[GP_API_NCCL_PEER] = {.bytes = 2, .datatype = 3, .peer = 4, .communicator = 5, .stream = 6},
	[GP_API_NCCL_GATHER] = {.bytes = 3, .datatype = 4, .communicator = 5, .stream = 6},
	[GP_API_NCCL_INIT] = {.communicator = 1},
	[GP_API_FUNCTION] = {.address = 1, .second = 3},
	[GP_API_FUNCTION_OF] = {.address = 1, .second = 2},
};

static __always_inline __u32 cuda_what(__u32 layout)
{
	switch (layout) {
	case GP_API_ALLOC_MANAGED:
		return GP_CUDA_MANAGED;
	case GP_API_ALLOC_HOST:
	case GP_API_FREE_HOST:
		return GP_CUDA_HOST;
	case GP_API_ALLOC_PHYSICAL:
	case GP_API_FREE_PHYSICAL:
		return GP_CUDA_PHYSICAL;
	default:
		return GP_CUDA_DEVICE;
	}
}

/* ---- arguments ---- */

/* `sp` is the address of the return address. */
static __noinline __u64 argument(struct pt_regs *ctx, __u64 sp, __u32 number)
{
	__u64 value = 0;

	switch (number) {
	case 0:
		return 0;
	case 1:
		return PT_REGS_PARM1(ctx);
	case 2:
		return PT_REGS_PARM2(ctx);
	case 3:
		return PT_REGS_PARM3(ctx);
	case 4:
		return PT_REGS_PARM4(ctx);
	case 5:
		return PT_REGS_PARM5(ctx);
	case 6:
		return PT_REGS_PARM6(ctx);
	default:
		if (bpf_probe_read_user(&value, sizeof(value),
					(const void *)(sp + 8 * (__u64)(number - 6))))
			return 0;
		return value;
	}
}

/* cudaLaunchConfig_t, and with other types CUlaunchConfig: the stream lies at 32 in both. */
struct launch_config {
	__u32 grid[3];
	__u32 block[3];
	__u32 shared_bytes; /* the runtime's is a size_t: small enough */
	__u32 pad;
	__u64 stream;
};

static __always_inline void take_config(struct gp_ev_api_call *call, const void *at)
{
	struct launch_config config = {};

	if (bpf_probe_read_user(&config, sizeof(config), at))
		return;
	for (int i = 0; i < 3; i++) {
		call->api.grid[i] = config.grid[i];
		call->api.block[i] = config.block[i];
	}
	call->api.shared_bytes = config.shared_bytes;
	call->api.stream = config.stream;
}

static __noinline int take_launch(struct pt_regs *ctx, __u64 sp, __u32 layout,
				  struct gp_ev_api_call *call)
{
	struct gp_ev_api *api;

	if (!call)
		return 0;
	api = &call->api;
	call->function = argument(
		ctx, sp, layout == GP_API_LAUNCH_EX || layout == GP_API_LAUNCH_DRIVER_EX ? 2 : 1);
	if (layout == GP_API_LAUNCH) {
		/* Two dim3 by value: three words in two registers each. */
		api->grid[0] = (__u32)PT_REGS_PARM2(ctx);
		api->grid[1] = (__u32)(PT_REGS_PARM2(ctx) >> 32);
		api->grid[2] = (__u32)PT_REGS_PARM3(ctx);
		api->block[0] = (__u32)PT_REGS_PARM4(ctx);
		api->block[1] = (__u32)(PT_REGS_PARM4(ctx) >> 32);
		api->block[2] = (__u32)PT_REGS_PARM5(ctx);
		api->shared_bytes = (__u32)argument(ctx, sp, 7);
	} else if (layout == GP_API_LAUNCH_DRIVER) {
		api->grid[0] = (__u32)PT_REGS_PARM2(ctx);
		api->grid[1] = (__u32)PT_REGS_PARM3(ctx);
		api->grid[2] = (__u32)PT_REGS_PARM4(ctx);
		api->block[0] = (__u32)PT_REGS_PARM5(ctx);
		api->block[1] = (__u32)PT_REGS_PARM6(ctx);
		api->block[2] = (__u32)argument(ctx, sp, 7);
		api->shared_bytes = (__u32)argument(ctx, sp, 8);
	} else {
		take_config(call, (const void *)PT_REGS_PARM1(ctx));
	}
	return 0;
}

static __noinline int take_collective(struct pt_regs *ctx, __u64 sp, __u32 layout,
				      struct gp_ev_collective *ev)
{
	const struct layout *l;

	if (!ev || layout >= GP_API_LAYOUT_NR)
		return 0;
	l = &layouts[layout];
	ev->count = argument(ctx, sp, l->bytes);
	ev->stream = argument(ctx, sp, l->stream);
	ev->communicator = argument(ctx, sp, l->communicator);
	ev->datatype = l->datatype ? (__s32)argument(ctx, sp, l->datatype) : -1;
	ev->op = l->op ? (__s32)argument(ctx, sp, l->op) : -1;
	ev->peer = l->peer ? (__s32)argument(ctx, sp, l->peer) : -1;
	ev->ranks = layout == GP_API_NCCL_INIT ? (__s32)PT_REGS_PARM2(ctx) : 0;
	/* The id between the two is passed in memory. */
	ev->rank = layout == GP_API_NCCL_INIT ? (__s32)PT_REGS_PARM3(ctx) : -1;
	return 0;
}

static __always_inline bool is_collective(__u32 tag)
{
	return TAG_LAYOUT(tag) >= GP_API_NCCL_CALL && TAG_LAYOUT(tag) < GP_API_FUNCTION;
}

static __always_inline bool is_function_call(__u32 tag)
{
	return TAG_LAYOUT(tag) >= GP_API_FUNCTION;
}

static __always_inline void take_arguments(struct pt_regs *ctx, struct api_frame *f, __u64 sp)
{
	__u32 layout = TAG_LAYOUT(f->tag);
	const struct layout *l;

	if (layout >= GP_API_LAYOUT_NR)
		return;
	if (is_collective(f->tag)) {
		(void)take_collective(ctx, sp, layout, &f->collective);
		return;
	}
	l = &layouts[layout];
	f->call.api.stream = argument(ctx, sp, l->stream);
	f->call.api.bytes = argument(ctx, sp, l->bytes) << (l->shift & 3);
	if (l->times)
		f->call.api.bytes *= argument(ctx, sp, l->times);
	if (l->kind)
		f->call.copy_kind = (__u32)argument(ctx, sp, l->kind);
	f->address = argument(ctx, sp, l->address);
	f->second = argument(ctx, sp, l->second);
	if (layout >= GP_API_LAUNCH && layout <= GP_API_LAUNCH_DRIVER_EX)
		(void)take_launch(ctx, sp, layout, &f->call);
}

/* ---- open calls ---- */

static __noinline int emit_collective(struct thread_state *t, struct api_frame *f, __u64 end_ns)
{
	struct gp_ev_collective *ev = &f->collective;

	ev->head = f->call.api.head;
	ev->head.kind = GP_EV_COLLECTIVE;
	ev->head.flags = 0;
	ev->head.time_ns = end_ns;
	ev->start_ns = f->call.api.start_ns;
	ev->instance = f->call.api.instance;
	ev->name_id = f->call.api.name_id;
	/* The call has written it. */
	if (TAG_LAYOUT(f->tag) == GP_API_NCCL_INIT &&
	    (!end_ns || bpf_probe_read_user(&ev->communicator, sizeof(ev->communicator),
					    (const void *)ev->communicator)))
		ev->communicator = 0;
	emit_copy(ev, sizeof(*ev), t);
	return 0;
}

static __always_inline void api_emit(struct thread_state *t, struct api_frame *f, __u64 end_ns)
{
	if (f->silent)
		return;
	if (!end_ns)
		count_loss(GP_LOSS_API_END);
	if (is_collective(f->tag)) {
		(void)emit_collective(t, f, end_ns);
		return;
	}
	f->call.api.head.time_ns = end_ns;
	emit_copy(&f->call, sizeof(f->call), t);
}

/* Returns the open call with this index. The verifier must see the bound of the very register from
 * which the address is made. */
static __always_inline struct api_frame *api_at(struct thread_state *t, __u32 i)
{
	if (i >= GP_API_DEPTH)
		return 0;
	asm volatile("" : "+r"(i));
	return &t->apis[i & (GP_API_DEPTH - 1)];
}

static __always_inline struct api_frame *api_top(struct thread_state *t)
{
	return api_at(t, t->api_depth - 1);
}

static __always_inline void api_pop(struct thread_state *t)
{
	struct counters *c = counters_get();

	t->api_depth--;
	if (c)
		__sync_fetch_and_add(&c->closed, 1);
}

struct close_apis {
	struct thread_state *thread;
	__u64 sp;
};

static long close_api_one(__u32 n, struct close_apis *c)
{
	struct api_frame *f = api_top(c->thread);

	if (!f || f->sp >= c->sp)
		return loop_end();
	api_emit(c->thread, f, 0);
	api_pop(c->thread);
	return 0;
}

/* Closes calls whose frames lie below sp: they ended without passing a probed exit. Out of line
 * because it is rare. */
static __noinline int api_close_dead(struct thread_state *t, __u64 sp)
{
	struct close_apis c = {.thread = t, .sp = sp};

	(void)bpf_loop(GP_API_DEPTH, close_api_one, &c, 0);
	t->api_over_sp = 0;
	return 0;
}

static __always_inline void api_settle(struct thread_state *t, __u64 sp)
{
	const struct api_frame *f = api_top(t);

	if (f && f->sp < sp)
		(void)api_close_dead(t, sp);
}

static __always_inline bool is_memory_call(__u32 tag)
{
	return TAG_LAYOUT(tag) >= GP_API_MEMORY && TAG_LAYOUT(tag) < GP_API_NCCL_CALL;
}

/* Pushes a frame with everything but the arguments. NULL (counted) if none is left. */
static __always_inline struct api_frame *api_push(struct thread_state *t, __u64 sp, __u32 tag,
						  __u32 name_id, __u64 now)
{
	const struct api_frame *outer = api_top(t);
	__u32 depth = t->api_depth;
	struct api_frame *f = api_at(t, depth);
	struct counters *c;

	if (!f) {
		if (sp > t->api_over_sp)
			t->api_over_sp = sp;
		count_loss(GP_LOSS_DEPTH);
		return 0;
	}
	__builtin_memset(&f->call, 0, sizeof(f->call));
	f->sp = sp;
	f->tag = tag;
	/* CUDA calls inside NCCL's are emitted as usual. */
	f->silent = outer && TAG_BIT(tag, GP_API_IS_DRIVER) && !is_collective(outer->tag) &&
		    (outer->silent || !TAG_BIT(outer->tag, GP_API_IS_DRIVER));
	f->in_memory_call = outer && (outer->in_memory_call || is_memory_call(outer->tag));
	emit_head(&f->call.api.head, GP_EV_API,
		  GP_API_RESULT_UNKNOWN | (TAG_BIT(tag, GP_API_IS_DRIVER) ? GP_API_DRIVER : 0), t,
		  0);
	f->call.api.start_ns = now;
	f->call.api.instance = thread_instance(t, t->depth);
	f->call.api.name_id = name_id;
	f->call.copy_kind = GP_COPY_KIND_NONE;
	t->api_depth = depth + 1;
	c = counters_get();
	if (c)
		__sync_fetch_and_add(&c->opened, 1);
	return f;
}

static __always_inline bool api_is_off(__u64 cookie)
{
	__u32 tag = COOKIE_TAG(cookie), process = COOKIE_PROCESS(cookie);

	return (gp_api_off[process >> 6] >> (process & 63) & 1) && !is_collective(tag) &&
	       !(gp_cuda_memory && is_memory_call(tag));
}

SEC("uprobe")
int gp_api_entry(struct pt_regs *ctx)
{
	struct op_site site;
	struct thread_state *t;
	struct api_frame *f;

	if (!gp_epoch || api_is_off(bpf_get_attach_cookie(ctx)) || !op_begin(ctx, &site))
		return 0;
	t = site.thread;
	api_settle(t, site.sp + 1);
	f = api_push(t, site.sp, COOKIE_TAG(site.cookie), COOKIE_NAME(site.cookie), site.now);
	if (!f)
		return 0;
	take_arguments(ctx, f, site.sp);
	if (TAG_BIT(f->tag, GP_API_HAS_EXIT))
		return 0;
	api_emit(t, f, 0);
	api_pop(t);
	return 0;
}

/* ---- memory ---- */

static __noinline int emit_memory(struct pt_regs *ctx, struct thread_state *t, struct api_frame *f,
				  __u64 now)
{
	__u32 layout = TAG_LAYOUT(f->tag), stack_id = 0;
	struct gp_ev_cuda_memory *event;
	bool is_free = layout >= GP_API_FREE;
	__u64 address = f->address, bytes = f->call.api.bytes, pitch = 0;

	/* The result is where the argument points. */
	if (!is_free && bpf_probe_read_user(&address, sizeof(address), (const void *)f->address))
		address = 0;
	if (f->second && !bpf_probe_read_user(&pitch, sizeof(pitch), (const void *)f->second))
		bytes *= pitch;
	if (!address)
		return 0;
	if (gp_stacks && !is_free)
		stack_id = stack_id_now(ctx, t, now);
	event = emit_reserve(sizeof(*event));
	if (!event)
		return 0;
	emit_head(&event->head, GP_EV_CUDA_MEMORY, is_free ? GP_MEMORY_FREE : 0, t, now);
	event->instance = f->call.api.instance;
	event->address = address;
	event->bytes = is_free ? 0 : bytes;
	event->name_id = f->call.api.name_id;
	event->what = cuda_what(layout);
	event->stack_id = stack_id;
	event->reserved = 0;
	emit_submit(event, t);
	return 0;
}

/* ---- handles of kernels ---- */

static __noinline int emit_function(struct thread_state *t, struct api_frame *f, __u64 now)
{
	bool named = TAG_LAYOUT(f->tag) == GP_API_FUNCTION;
	struct gp_ev_function *event = emit_reserve(sizeof(*event));
	long nr = 0;

	if (!event)
		return 0;
	emit_head(&event->head, GP_EV_FUNCTION, 0, t, now);
	if (bpf_probe_read_user(&event->handle, sizeof(event->handle), (const void *)f->address))
		event->handle = 0;
	event->of = named ? 0 : f->second;
	if (named)
		nr = bpf_probe_read_user_str(event->name, sizeof(event->name),
					     (const void *)f->second);
	if (nr <= 0 || nr >= GP_FUNCTION_NAME_BYTES)
		event->name[0] = '\0';
	emit_submit(event, t);
	return 0;
}

SEC("uprobe")
int gp_api_exit(struct pt_regs *ctx)
{
	struct op_site site;
	struct thread_state *t;
	struct api_frame *f;

	if (!op_site_at(ctx, &site))
		return 0;
	t = site.thread;
	/* The exit of a call that was too deep to have a frame. */
	if (site.sp <= t->api_over_sp)
		return 0;
	api_settle(t, site.sp);
	t->api_over_sp = 0;
	f = api_top(t);
	if (!f || f->tag != COOKIE_TAG(site.cookie)) {
		if (!api_is_off(site.cookie))
			count_loss(t->api_depth ? GP_LOSS_RECORD : GP_LOSS_OPEN_AT_START);
		return 0;
	}
	/* For these calls the return instruction itself is probed. */
	if (is_memory_call(f->tag) || is_function_call(f->tag)) {
		f->call.api.result = (__u32)PT_REGS_RC(ctx);
		f->call.api.head.flags &= (__u8)~GP_API_RESULT_UNKNOWN;
		if (!f->call.api.result && is_function_call(f->tag))
			(void)emit_function(t, f, site.now);
		else if (!f->call.api.result && !f->in_memory_call)
			(void)emit_memory(ctx, t, f, site.now);
	}
	api_emit(t, f, site.now);
	api_pop(t);
	return 0;
}
