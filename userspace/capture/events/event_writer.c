/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events translated and written. Kernel and collectors number names, inputs and stacks each in
 * their own way; a recording knows the capture's numbers alone.
 */
#include "capture/events/event_writer.h"

#include "base/utf8.h"
#include "capture/process/process_record.h"
#include "common/clock.h"
#include "recording/event_kinds.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Devices of one process that are kept for later recordings. */
#define DEVICES_MAX 256

/* The capture's number of a kernel name. 0: none, or -errno. */
static int64_t kernel_name(struct event_writer *w, uint32_t id)
{
	uint32_t known = names__find(&w->symbols->names, SOURCE_KERNEL, id);
	struct probe_name n;

	if (known || !id || id > probe_session__names(w->probes))
		return known;
	n = probe_session__name(w->probes, id - 1);
	return names__add(&w->symbols->names, SOURCE_KERNEL, id, n.name, n.overload);
}

static int put(struct event_writer *w, const struct event_place *place, const void *event,
	       size_t bytes)
{
	if (place->to)
		return recording_writer__event_of(place->to->writer, place->process, event, bytes);
	w->counts.unwritten_nr += !capture_is_by_steps(w->options);
	return 0;
}

static int put_into(struct segment *to, struct traced_process *m, const void *event, size_t bytes)
{
	uint16_t number;
	int err = process_record__emit(m, to, &number);

	if (!err)
		err = recording_writer__event_of(to->writer, number, event, bytes);
	/* It has no place for the process, and so none for what the process does. */
	return err == -ENOSPC && !recording_writer__error(to->writer) ? 0 : err;
}

/* What every recording needs that is open now. */
static int put_everywhere(struct event_writer *w, struct traced_process *m, const void *event,
			  size_t bytes)
{
	struct segment *const open[] = {w->recordings->segments.current,
					w->recordings->segments.draining};

	for (int i = 0; i < 2; i++) {
		int err = open[i] && !open[i]->broken ? put_into(open[i], m, event, bytes) : 0;

		if (recording_set__note_error(w->recordings, open[i], err))
			return err;
	}
	return 0;
}

/* Describes the event's process and thread. A recording that has no place for the process has none
 * for the event. */
static int emit_where(struct event_writer *w, struct traced_process *m,
		      const struct gp_ev_head *head, struct event_place *place)
{
	uint64_t key = (uint64_t)m->serial << 32 | head->tid;
	const struct gp_ev_thread *thread;
	int err = process_record__emit(m, place->to, &place->process);

	if (err == -ENOSPC && !recording_writer__error(place->to->writer)) {
		place->to = NULL;
		return 0;
	}
	if (err || !head->tid || hash__find(&place->to->threads, key))
		return err;
	err = hash__set(&place->to->threads, key, 1);
	if (err || head->kind == GP_EV_THREAD)
		return err;
	thread = threads__find(w->threads, m->serial, head->tid);
	if (!thread) {
		err = threads__look(w->threads, m->serial, m->process->pid, head->tid,
				    clock_now_ns());
		thread = err ? NULL : threads__find(w->threads, m->serial, head->tid);
	}
	return thread ? put(w, place, thread, sizeof(*thread)) : err;
}

static int put_thread(struct event_writer *w, struct traced_process *m,
		      const struct gp_ev_thread *event)
{
	struct gp_ev_thread ev = *event;
	int err = ev.head.tid ? threads__set(w->threads, m->serial, &ev) : 0;

	return err ? err : put_everywhere(w, m, &ev, sizeof(ev));
}

/* In the capture's numbers. */
static uint32_t inputs_number(struct event_writer *w, uint32_t source, uint32_t id)
{
	uint32_t number = inputs_ids__find(&w->symbols->inputs, source, id);

	if (id && !number)
		w->counts.inputs_lost_nr++;
	return number;
}

static int emit_name(struct event_writer *w, const struct event_place *place, uint32_t number)
{
	return place->to ? names__emit(&w->symbols->names, place->to, number) : 0;
}

/* The address that names a launch's kernel becomes a name. 0 or -errno. */
static int name_kernel(struct event_writer *w, const struct event_place *place,
		       const struct traced_process *m, struct gp_ev_api_call *ev)
{
	const char *name = !ev->function ? NULL
			   : ev->api.head.flags & GP_API_DRIVER
				   ? kernels__handle(&w->symbols->kernels, m->process, ev->function)
				   : kernels__name(&w->symbols->kernels, m->process, ev->function);
	int64_t number = name ? names__number(&w->symbols->names, name, "") : 0;

	ev->function = 0;
	ev->kernel_name_id = number > 0 ? (uint32_t)number : 0;
	w->counts.nameless_nr += number == -ENOSPC;
	if (number < 0)
		return number == -ENOSPC ? 0 : (int)number;
	return emit_name(w, place, ev->kernel_name_id);
}

/* The capture's number instead of the source's. 0 or -errno. */
static int renumber_stack(struct event_writer *w, const struct event_place *place,
			  const struct traced_process *m, uint32_t source, __u32 *stack_id)
{
	int64_t number;

	if (source == SOURCE_KERNEL && (*stack_id & GP_STACK_EMITTED)) {
		source = SOURCE_COLLECTOR(m->serial);
		*stack_id &= ~GP_STACK_EMITTED;
		w->counts.refused_nr += *stack_id >= GP_RING_STACKS;
		*stack_id = *stack_id < GP_RING_STACKS ? *stack_id : 0;
	}
	if (!*stack_id)
		return 0;
	number = stacks__number(&w->symbols->stacks, source, *stack_id);
	*stack_id = number > 0 ? (uint32_t)number : 0;
	if (number <= 0 || !place->to)
		return number < 0 ? (int)number : 0;
	return stacks__emit(&w->symbols->stacks, place->to, *stack_id);
}

static int put_memory(struct event_writer *w, const struct event_place *place,
		      const struct traced_process *m, uint32_t source,
		      const struct gp_ev_memory *event)
{
	struct gp_ev_memory ev = *event;
	int err = renumber_stack(w, place, m, source, &ev.stack_id);

	return err ? err : put(w, place, &ev, sizeof(ev));
}

static int put_sample(struct event_writer *w, const struct event_place *place,
		      const struct traced_process *m, const struct gp_ev_sample *event)
{
	struct gp_ev_sample ev = *event;
	int err = renumber_stack(w, place, m, SOURCE_KERNEL, &ev.stack_id);

	return err ? err : put(w, place, &ev, sizeof(ev));
}

static int renumber_inputs(struct event_writer *w, const struct event_place *place, uint32_t source,
			   __u32 *inputs_id)
{
	*inputs_id = inputs_number(w, source, *inputs_id);
	return place->to ? inputs_ids__emit(&w->symbols->inputs, place->to, *inputs_id) : 0;
}

/* An event that has a name, of a kind that needs more translated than that or of another one. */
union named_event {
	struct gp_ev_head head;
	struct gp_ev_op_inputs op;
	struct gp_ev_api api;
	struct gp_ev_api_call call;
	struct gp_ev_cuda_memory memory;
	char bytes[512]; /* longer events are cut */
};

/* The number of the name, which stands at `name_at`, becomes the capture's. 0 or -errno. */
static int rename_event(struct event_writer *w, const struct event_place *place, uint32_t source,
			union named_event *ev, size_t name_at)
{
	uint32_t id = 0;
	int64_t known;

	memcpy(&id, ev->bytes + name_at, sizeof(id));
	known = source == SOURCE_KERNEL ? kernel_name(w, id)
					: names__find(&w->symbols->names, source, id);
	if (known < 0 && known != -ENOSPC)
		return (int)known;
	id = known > 0 ? (uint32_t)known : 0;
	if (!id)
		w->counts.nameless_nr++;
	memcpy(ev->bytes + name_at, &id, sizeof(id));
	return emit_name(w, place, id);
}

/* Copies the event to *ret_ev and translates it: its name, at `name_at`, its stack and, of an op,
 * its inputs, which only collectors report. 0 and its bytes, or -errno. */
static int translate_named(struct event_writer *w, const struct event_place *place,
			   struct traced_process *m, uint32_t source, const void *event,
			   size_t *bytes, size_t name_at, union named_event *ret_ev)
{
	union named_event *ev = ret_ev;
	int err;

	if (*bytes > sizeof(*ev))
		*bytes = sizeof(*ev);
	memcpy(ev, event, *bytes);
	err = rename_event(w, place, source, ev, name_at);
	if (err)
		return err;
	if (ev->head.kind == GP_EV_OP && source == SOURCE_KERNEL)
		*bytes = sizeof(ev->op.op);
	else if (ev->head.kind == GP_EV_OP && *bytes >= sizeof(ev->op))
		err = renumber_inputs(w, place, source, &ev->op.inputs_id);
	else if (ev->head.kind == GP_EV_API && *bytes >= sizeof(ev->call))
		err = name_kernel(w, place, m, &ev->call);
	if (!err && ev->head.kind == GP_EV_OP)
		err = renumber_stack(w, place, m, source, &ev->op.op.stack_id);
	else if (!err && ev->head.kind == GP_EV_CUDA_MEMORY)
		err = renumber_stack(w, place, m, source, &ev->memory.stack_id);
	return err;
}

static int put_named(struct event_writer *w, const struct event_place *place,
		     struct traced_process *m, uint32_t source, const void *event, size_t bytes,
		     size_t name_at)
{
	union named_event ev;
	int err = translate_named(w, place, m, source, event, &bytes, name_at, &ev);

	return err ? err : put(w, place, &ev, bytes);
}

int event_writer__put_op(struct event_writer *w, const struct event_place *place,
			 struct traced_process *m, uint32_t source, const void *event, size_t bytes,
			 bool wanted, struct gp_ev_op *ret_op)
{
	union named_event ev;
	int err = translate_named(w, place, m, source, event, &bytes,
				  offsetof(struct gp_ev_op, name_id), &ev);

	if (!err && wanted)
		err = put(w, place, &ev, bytes);
	*ret_op = ev.op.op;
	return err;
}

static int put_name(struct event_writer *w, uint32_t source, const struct gp_ev_name *ev,
		    size_t bytes)
{
	char name[GP_RING_NAME_BYTES + 1];
	size_t nr = ev->text_bytes;
	int64_t id;

	if (nr > bytes - sizeof(*ev)) {
		w->counts.refused_nr++;
		return 0;
	}
	if (nr > sizeof(name) - 1)
		nr = sizeof(name) - 1;
	memcpy(name, ev + 1, nr);
	name[nr] = '\0';
	id = names__add(&w->symbols->names, source, ev->name_id, name, "");
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

static int put_found_name(struct event_writer *w, const struct gp_ev_found_name *ev)
{
	char name[GP_FOUND_NAME_BYTES], overload[GP_FOUND_OVERLOAD_BYTES];
	int64_t id;

	copy_text(name, ev->name, sizeof(name));
	copy_text(overload, ev->overload, sizeof(overload));
	id = names__add(&w->symbols->names, SOURCE_KERNEL, ev->name_id, name, overload);
	return id < 0 && id != -ENOSPC ? (int)id : 0;
}

static int put_stack(struct event_writer *w, struct traced_process *m, uint32_t source,
		     const struct gp_ev_stack *ev, size_t bytes)
{
	int err = stacks__put(&w->symbols->stacks, m->python, source, ev, bytes);

	if (!err && source == SOURCE_KERNEL && w->symbols->native_stacks.waiting.nr)
		err = native_stacks__release(&w->symbols->native_stacks, &w->symbols->stacks,
					     ev->stack_id);
	if (err != -EBADMSG)
		return err;
	w->counts.refused_nr++;
	return 0;
}

static int put_native(struct event_writer *w, struct traced_process *m,
		      const struct gp_ev_native *ev, size_t bytes)
{
	int err;

	err = native_stacks__put(&w->symbols->native_stacks, &w->symbols->stacks, m->process, ev,
				 bytes);
	if (err != -EBADMSG)
		return err;
	w->counts.refused_nr++;
	return 0;
}

struct segment *event_writer__segment(const struct event_writer *w, const void *event)
{
	struct segment *draining = w->recordings->segments.draining;
	const struct gp_ev_head *head = event;
	uint64_t start_ns, time_ns = head->time_ns;

	if (!draining)
		return w->recordings->segments.current;
	start_ns = event_start_ns(event);
	if (start_ns && (capture_is_by_steps(w->options) || !time_ns))
		time_ns = start_ns;
	return time_ns < draining->end_ns ? draining : w->recordings->segments.current;
}

/* For the recordings that begin later. */
static int keep_device(struct traced_process *m, const struct gp_ev_device *ev)
{
	for (size_t i = 0; i < m->devices.nr; i++)
		if (m->devices.items[i].device == ev->device)
			return 0;
	return m->devices.nr < DEVICES_MAX ? vec_push(&m->devices, *ev) : 0;
}

static int put_device(struct event_writer *w, struct traced_process *m,
		      const struct gp_ev_device *ev)
{
	int err = keep_device(m, ev);

	return err ? err : put_everywhere(w, m, ev, sizeof(*ev));
}

static int learn_function(struct event_writer *w, const struct traced_process *m,
			  const struct gp_ev_function *ev)
{
	char name[sizeof(ev->name)];

	memcpy(name, ev->name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	return kernels__learn(&w->symbols->kernels, m->process, ev->handle, name, ev->of);
}

int event_writer__place(struct event_writer *w, struct traced_process *m, const void *event,
			struct event_place *ret_place)
{
	struct segment *to = event_writer__segment(w, event);

	w->counts.events_nr++;
	*ret_place = (struct event_place){.to = to && !to->broken ? to : NULL};
	return ret_place->to ? emit_where(w, m, event, ret_place) : 0;
}

int event_writer__put(struct event_writer *w, const struct event_place *place,
		      struct traced_process *m, uint32_t source, const void *event, size_t bytes)
{
	size_t name_at;

	switch (((const struct gp_ev_head *)event)->kind) {
	case GP_EV_NAME:
		return put_name(w, source, event, bytes);
	case GP_EV_FOUND_NAME:
		return put_found_name(w, event);
	case GP_EV_INPUTS:
		return inputs_ids__add(&w->symbols->inputs, source, event, bytes);
	case GP_EV_STACK:
		return put_stack(w, m, source, event, bytes);
	case GP_EV_NATIVE:
		return put_native(w, m, event, bytes);
	case GP_EV_FUNCTION:
		return learn_function(w, m, event);
	case GP_EV_MEMORY:
		return put_memory(w, place, m, source, event);
	case GP_EV_SAMPLE:
		return put_sample(w, place, m, event);
	/* The capture's own: they are in no recording. */
	case GP_EV_UNWIND:
	case GP_EV_MAPS:
	case GP_EV_CPU_TIME:
		return 0;
	case GP_EV_THREAD:
		return put_thread(w, m, event);
	case GP_EV_DEVICE:
		return put_device(w, m, event);
	case GP_EV_CLOCK:
		m->clock = *(const struct gp_ev_clock *)event;
		return put(w, place, event, bytes);
	default:
		name_at = event_kind_of(event)->name_ids[0];
		return name_at ? put_named(w, place, m, source, event, bytes, name_at)
			       : put(w, place, event, bytes);
	}
}
