/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What becomes of an event that is believed (drain.c): it goes into a recording, in the capture's
 * numbers and behind the names, threads, stacks that it refers to; or it tells something that the
 * capture itself is to know.
 */
#include "capture/events/event_writer.h"

#include "base/log.h"
#include "base/utf8.h"
#include "capture/control/budget_windows.h"
#include "capture/control/schedule_runner.h"
#include "capture/control/triggers.h"
#include "recording/event_kinds.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Of one process, kept for later recordings. */
#define DEVICES_MAX 256

/* The capture's number of a kernel name. 0: none, or -errno. */
static int64_t kernel_name(struct capture *c, uint32_t id)
{
	uint32_t known = names__find(&c->names, SOURCE_KERNEL, id);
	struct probe_name n;

	if (known || !id || id > probe_session__names(c->probes))
		return known;
	n = probe_session__name(c->probes, id - 1);
	return names__add(&c->names, SOURCE_KERNEL, id, n.name, n.overload);
}

static int put(struct capture *c, const void *event, size_t bytes)
{
	if (c->out)
		return recording_writer__event_of(c->out->writer, c->out_process, event, bytes);
	c->unwritten_nr += !c->schedule_runner;
	return 0;
}

static int put_into(struct segment *to, struct traced_process *m, const void *event, size_t bytes)
{
	uint16_t number;
	int err = capture_emit_process(m, to, &number);

	if (!err)
		err = recording_writer__event_of(to->writer, number, event, bytes);
	/* It has no place for the process, and so none for what the process does. */
	return err == -ENOSPC && !recording_writer__error(to->writer) ? 0 : err;
}

/* What every recording needs that is open now. */
static int put_everywhere(struct capture *c, struct traced_process *m, const void *event,
			  size_t bytes)
{
	struct segment *const open[] = {c->segments.now, c->segments.closing};

	for (int i = 0; i < 2; i++) {
		int err = open[i] && !open[i]->broken ? put_into(open[i], m, event, bytes) : 0;

		if (capture_note_error(c, open[i], err))
			return err;
	}
	return 0;
}

/* Tells the recording of the event's process and thread. One that has no place for the process has
 * none for the event. */
static int emit_where(struct capture *c, struct traced_process *m, const struct gp_ev_head *head)
{
	uint64_t key = (uint64_t)m->serial << 32 | head->tid;
	const struct gp_ev_thread *thread;
	int err = capture_emit_process(m, c->out, &c->out_process);

	if (err == -ENOSPC && !recording_writer__error(c->out->writer)) {
		c->out = NULL;
		return 0;
	}
	if (err || !head->tid || hash__find(&c->out->threads, key))
		return err;
	err = hash__set(&c->out->threads, key, 1);
	if (err || head->kind == GP_EV_THREAD)
		return err;
	thread = threads__find(&c->threads, m->serial, head->tid);
	if (!thread) {
		err = threads__look(&c->threads, m->serial, m->process->pid, head->tid,
				    clock_now_ns());
		thread = err ? NULL : threads__find(&c->threads, m->serial, head->tid);
	}
	return thread ? put(c, thread, sizeof(*thread)) : err;
}

static int put_thread(struct capture *c, struct traced_process *m, const struct gp_ev_thread *event)
{
	struct gp_ev_thread ev = *event;
	int err = ev.head.tid ? threads__set(&c->threads, m->serial, &ev) : 0;

	return err ? err : put_everywhere(c, m, &ev, sizeof(ev));
}

/* In the capture's numbers. */
static uint32_t inputs_number(struct capture *c, uint32_t source, uint32_t id)
{
	uint32_t number = inputs_ids__find(&c->inputs, source, id);

	if (id && !number)
		c->inputs_lost_nr++;
	return number;
}

static int emit_name(struct capture *c, uint32_t number)
{
	return c->out ? names__emit(&c->names, c->out, number) : 0;
}

/* The address that names a launch's kernel becomes a name. 0 or -errno. */
static int name_kernel(struct capture *c, const struct traced_process *m, struct gp_ev_api_call *ev)
{
	const char *name = !ev->function ? NULL
			   : ev->api.head.flags & GP_API_DRIVER
				   ? kernels__handle(&c->kernels, m->process, ev->function)
				   : kernels__name(&c->kernels, m->process, ev->function);
	int64_t number = name ? names__number(&c->names, name, "") : 0;

	ev->function = 0;
	ev->kernel_name_id = number > 0 ? (uint32_t)number : 0;
	c->nameless_nr += number == -ENOSPC;
	if (number < 0)
		return number == -ENOSPC ? 0 : (int)number;
	return emit_name(c, ev->kernel_name_id);
}

/* The capture's number instead of the source's. 0 or -errno. */
static int renumber_stack(struct capture *c, const struct traced_process *m, uint32_t source,
			  __u32 *stack_id)
{
	int64_t number;

	if (source == SOURCE_KERNEL && (*stack_id & GP_STACK_EMITTED)) {
		source = SOURCE_COLLECTOR(m->serial);
		*stack_id &= ~GP_STACK_EMITTED;
		c->refused_nr += *stack_id >= GP_RING_STACKS;
		*stack_id = *stack_id < GP_RING_STACKS ? *stack_id : 0;
	}
	number = stacks__number(&c->stacks, source, *stack_id);
	*stack_id = number > 0 ? (uint32_t)number : 0;
	if (number <= 0 || !c->out)
		return number < 0 ? (int)number : 0;
	return stacks__emit(&c->stacks, c->out, *stack_id);
}

static int put_memory(struct capture *c, const struct traced_process *m, uint32_t source,
		      const struct gp_ev_memory *event)
{
	struct gp_ev_memory ev = *event;
	int err = renumber_stack(c, m, source, &ev.stack_id);

	return err ? err : put(c, &ev, sizeof(ev));
}

static int put_sample(struct capture *c, const struct traced_process *m,
		      const struct gp_ev_sample *event)
{
	struct gp_ev_sample ev = *event;
	int err = renumber_stack(c, m, SOURCE_KERNEL, &ev.stack_id);

	return err ? err : put(c, &ev, sizeof(ev));
}

static int renumber_inputs(struct capture *c, uint32_t source, __u32 *inputs_id)
{
	*inputs_id = inputs_number(c, source, *inputs_id);
	return c->out ? inputs_ids__emit(&c->inputs, c->out, *inputs_id) : 0;
}

/* An event whose name's number, at `name_at`, becomes the capture's; so do those of its
 * stack and, of an op, of its inputs, which only collectors tell. */
static int put_named(struct capture *c, struct traced_process *m, uint32_t source,
		     const void *event, size_t bytes, size_t name_at)
{
	union {
		struct gp_ev_head head;
		struct gp_ev_op_inputs op;
		struct gp_ev_api api;
		struct gp_ev_api_call call;
		struct gp_ev_cuda_memory memory;
		struct gp_ev_collective collective;
		struct gp_ev_kernel kernel;
		struct gp_ev_module_call module_call;
		char bytes[1];
	} ev;
	uint32_t id = 0;
	int64_t known;
	bool wanted;
	int err = 0;

	if (bytes > sizeof(ev))
		bytes = sizeof(ev);
	memcpy(&ev, event, bytes);
	memcpy(&id, ev.bytes + name_at, sizeof(id));
	known = source == SOURCE_KERNEL ? kernel_name(c, id) : names__find(&c->names, source, id);
	if (known < 0 && known != -ENOSPC)
		return (int)known;
	id = known > 0 ? (uint32_t)known : 0;
	if (!id)
		c->nameless_nr++;
	memcpy(ev.bytes + name_at, &id, sizeof(id));
	err = emit_name(c, id);
	if (err)
		return err;
	if (ev.head.kind == GP_EV_OP && source == SOURCE_KERNEL)
		bytes = sizeof(ev.op.op);
	else if (ev.head.kind == GP_EV_OP && bytes >= sizeof(ev.op))
		err = renumber_inputs(c, source, &ev.op.inputs_id);
	else if (ev.head.kind == GP_EV_API && bytes >= sizeof(ev.call))
		err = name_kernel(c, m, &ev.call);
	if (!err && ev.head.kind == GP_EV_OP)
		err = renumber_stack(c, m, source, &ev.op.op.stack_id);
	else if (!err && ev.head.kind == GP_EV_CUDA_MEMORY)
		err = renumber_stack(c, m, source, &ev.memory.stack_id);
	wanted = !c->windows || ev.head.kind != GP_EV_OP || budget_windows_want(c, &ev.op.op);
	if (!err && wanted)
		err = put(c, &ev, bytes);
	if (!err && c->schedule_runner && ev.head.kind == GP_EV_OP)
		schedule_runner_op(c, ev.head.process, &ev.op.op);
	if (!err && c->windows && ev.head.kind == GP_EV_OP)
		budget_windows_op(c, ev.head.process, &ev.op.op);
	if (!err && c->triggers && ev.head.kind == GP_EV_OP)
		err = triggers_op(c, &ev.op.op, names__text(&c->names, id));
	return err;
}

static int put_name(struct capture *c, uint32_t source, const struct gp_ev_name *ev, size_t bytes)
{
	char name[GP_RING_NAME_BYTES + 1];
	size_t nr = ev->text_bytes;
	int64_t id;

	if (nr > bytes - sizeof(*ev)) {
		c->refused_nr++;
		return 0;
	}
	if (nr > sizeof(name) - 1)
		nr = sizeof(name) - 1;
	memcpy(name, ev + 1, nr);
	name[nr] = '\0';
	id = names__add(&c->names, source, ev->name_id, name, "");
	if (id == -ENOSPC)
		return 0;
	return id < 0 ? (int)id : 0;
}

/* One that fills its room was cut. */
static void copy_text(char *to, const char *from, size_t bytes)
{
	memcpy(to, from, bytes);
	to[bytes - 1] = '\0';
	if (to[bytes - 2])
		to[utf8_whole_bytes(to, bytes - 1)] = '\0';
}

static int put_found_name(struct capture *c, const struct gp_ev_found_name *ev)
{
	char name[GP_FOUND_NAME_BYTES], overload[GP_FOUND_OVERLOAD_BYTES];
	int64_t id;

	copy_text(name, ev->name, sizeof(name));
	copy_text(overload, ev->overload, sizeof(overload));
	id = names__add(&c->names, SOURCE_KERNEL, ev->name_id, name, overload);
	return id < 0 && id != -ENOSPC ? (int)id : 0;
}

static int put_stack(struct capture *c, struct traced_process *m, uint32_t source,
		     const struct gp_ev_stack *ev, size_t bytes)
{
	int err = stacks__put(&c->stacks, m->python, source, ev, bytes);

	if (!err && source == SOURCE_KERNEL && c->native_stacks.waiting.nr)
		err = native_stacks__release(&c->native_stacks, &c->stacks, ev->stack_id);
	if (err != -EBADMSG)
		return err;
	c->refused_nr++;
	return 0;
}

static int put_native(struct capture *c, struct traced_process *m, const struct gp_ev_native *ev,
		      size_t bytes)
{
	int err;

	capture_look_at_code(c, m);
	err = native_stacks__put(&c->native_stacks, &c->stacks, m->process, ev, bytes);
	if (err != -EBADMSG)
		return err;
	c->refused_nr++;
	return 0;
}

/* Not to be had is a normal outcome: stacks that come to that code are marked and counted. */
static void load_unwind_table(struct capture *c, struct traced_process *m,
			      const struct gp_ev_unwind *ev)
{
	int err = probe_session__load_unwind(c->probes, m->index, ev->address);

	if (err)
		log_debug("%d: no unwind table for the code at %#llx: %s", (int)m->process->pid,
			  (unsigned long long)ev->address, strerror(-err));
}

static void note_process(struct capture *c, struct traced_process *m,
			 const struct gp_ev_process *ev)
{
	if (ev->what == GP_PROCESS_FORK && c->options.children)
		capture_note_child(c, ev->value);
	if (ev->what == GP_PROCESS_EXIT)
		m->exit_status = ev->value;
	if (ev->what == GP_PROCESS_EXEC && !m->end)
		traced_process__note_exec(m, c->options.follow_exec || c->options.children);
}

struct segment *event_segment(const struct capture *c, const void *event)
{
	struct segment *closing = c->segments.closing;
	const struct gp_ev_head *head = event;
	uint64_t start_ns, time_ns = head->time_ns;

	if (!closing)
		return c->segments.now;
	start_ns = event_start_ns(event);
	if (start_ns && (c->schedule_runner || !time_ns))
		time_ns = start_ns;
	return time_ns < closing->end_ns ? closing : c->segments.now;
}

/* What the recordings that begin later are told of. */
static int keep_device(struct traced_process *m, const struct gp_ev_device *ev)
{
	for (size_t i = 0; i < m->devices.nr; i++)
		if (m->devices.items[i].device == ev->device)
			return 0;
	return m->devices.nr < DEVICES_MAX ? vec_push(&m->devices, *ev) : 0;
}

static int put_device(struct capture *c, struct traced_process *m, const struct gp_ev_device *ev)
{
	int err = keep_device(m, ev);

	return err ? err : put_everywhere(c, m, ev, sizeof(*ev));
}

static int learn_function(struct capture *c, const struct traced_process *m,
			  const struct gp_ev_function *ev)
{
	char name[sizeof(ev->name)];

	memcpy(name, ev->name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	return kernels__learn(&c->kernels, m->process, ev->handle, name, ev->of);
}

int event_put(struct capture *c, struct traced_process *m, uint32_t source, const void *event,
	      size_t bytes)
{
	const struct gp_ev_head *head = event;
	size_t name_at;
	int err;

	c->events_nr++;
	c->out = event_segment(c, event);
	if (c->out && c->out->broken)
		c->out = NULL;
	err = c->out ? emit_where(c, m, head) : 0;
	if (!err && c->triggers)
		err = triggers_event(c, event);
	if (err)
		return err;
	switch (head->kind) {
	case GP_EV_NAME:
		return put_name(c, source, event, bytes);
	case GP_EV_FOUND_NAME:
		return put_found_name(c, event);
	case GP_EV_INPUTS:
		return inputs_ids__add(&c->inputs, source, event, bytes);
	case GP_EV_STACK:
		return put_stack(c, m, source, event, bytes);
	case GP_EV_NATIVE:
		return put_native(c, m, event, bytes);
	case GP_EV_UNWIND:
		load_unwind_table(c, m, event);
		return 0;
	case GP_EV_FUNCTION:
		return learn_function(c, m, event);
	case GP_EV_MEMORY:
		return put_memory(c, m, source, event);
	case GP_EV_SAMPLE:
		return put_sample(c, m, event);
	case GP_EV_MAPS:
		m->maps_changed = true;
		return 0;
	case GP_EV_CPU_TIME:
		if (c->windows)
			budget_windows_cpu_time(c, event);
		return 0;
	case GP_EV_PROCESS:
		note_process(c, m, event);
		return put(c, event, bytes);
	case GP_EV_THREAD:
		return put_thread(c, m, event);
	case GP_EV_DEVICE:
		return put_device(c, m, event);
	case GP_EV_CLOCK:
		m->clock = *(const struct gp_ev_clock *)event;
		return put(c, event, bytes);
	default:
		name_at = event_kind_of(event)->name_ids[0];
		return name_at ? put_named(c, m, source, event, bytes, name_at)
			       : put(c, event, bytes);
	}
}
