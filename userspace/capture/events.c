/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events on their way into the recording: believed or refused, their names and threads told before
 * they are used. What the kernel's programs say and what a collector inside a process says go the
 * same way, but a collector cannot speak for its process' life.
 */
#include "capture/private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Sources of name numbers: the kernel's probes, then the collectors by process. */
#define SOURCE_KERNEL	    0
#define SOURCE_GUEST(index) (1u + (index))

/* The recording's number of a kernel name, which is written when it is first used. 0: none, or
 * -errno. */
static int64_t kernel_name(struct capture *c, uint32_t id)
{
	uint32_t known = names__find(&c->names, SOURCE_KERNEL, id);
	struct probe_name n;

	if (known || !id || id > probe_session__names(c->probes))
		return known;
	n = probe_session__name(c->probes, id - 1);
	return names__add(&c->names, c->writer, SOURCE_KERNEL, id, n.name, n.overload);
}

static struct member *member_of(struct capture *c, uint16_t index)
{
	return index < c->members.nr ? c->members.items[index] : NULL;
}

/* A thread that the kernel's programs have not told about: its name from /proc. */
static int name_thread(struct capture *c, struct member *m, uint32_t tid)
{
	struct gp_ev_thread ev = {
		.head = {.kind = GP_EV_THREAD, .process = m->index, .tid = tid},
	};
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", (int)m->process->pid, tid);
	f = fopen(path, "re");
	if (f) {
		if (fgets(ev.comm, sizeof(ev.comm), f))
			ev.comm[strcspn(ev.comm, "\n")] = '\0';
		(void)fclose(f);
	}
	ev.head.time_ns = capture_clock_ns(CLOCK_MONOTONIC);
	return recording_writer__event(c->writer, &ev, sizeof(ev));
}

static int note_thread(struct capture *c, struct member *m, const struct gp_ev_head *head)
{
	uint64_t key = (uint64_t)head->process << 32 | head->tid;
	int err;

	if (!head->tid || hash__find(&c->threads, key))
		return 0;
	err = hash__set(&c->threads, key, 1);
	if (err || head->kind == GP_EV_THREAD)
		return err;
	return name_thread(c, m, head->tid);
}

/* In the recording's numbers. */
static uint32_t inputs_number(struct capture *c, uint32_t source, uint32_t id)
{
	uint32_t number = inputs_ids__find(&c->inputs, source, id);

	if (id && !number)
		c->inputs_lost_nr++;
	return number;
}

static int put_op(struct capture *c, uint32_t source, const struct gp_ev_op *op, size_t bytes)
{
	struct gp_ev_op_inputs with = {.op = *op};
	int64_t id = source == SOURCE_KERNEL ? kernel_name(c, op->name_id)
					     : names__find(&c->names, source, op->name_id);

	if (id < 0 && id != -ENOSPC)
		return (int)id;
	with.op.name_id = id > 0 ? (uint32_t)id : 0;
	if (!with.op.name_id)
		c->nameless_nr++;
	if (source == SOURCE_KERNEL || bytes < sizeof(with))
		return recording_writer__event(c->writer, &with.op, sizeof(with.op));
	with.inputs_id = ((const struct gp_ev_op_inputs *)op)->inputs_id;
	with.inputs_id = inputs_number(c, source, with.inputs_id);
	return recording_writer__event(c->writer, &with, sizeof(with));
}

static int put_name(struct capture *c, uint32_t source, const struct gp_ev_name *ev, size_t bytes)
{
	char name[512];
	size_t nr = ev->text_bytes;
	int64_t id;

	if (nr > bytes - sizeof(*ev) || !nr) {
		c->refused_nr++;
		return 0;
	}
	if (nr > sizeof(name) - 1)
		nr = sizeof(name) - 1;
	memcpy(name, ev + 1, nr);
	name[nr] = '\0';
	id = names__add(&c->names, c->writer, source, ev->name_id, name, "");
	if (id == -ENOSPC)
		return 0;
	return id < 0 ? (int)id : 0;
}

static int put_stack(struct capture *c, struct member *m, const struct gp_ev_stack *ev,
		     size_t bytes)
{
	int err = stacks__put(&c->stacks, c->writer, m->python, ev, bytes);

	if (err != -EBADMSG)
		return err;
	c->refused_nr++;
	return 0;
}

static void note_process(struct capture *c, struct member *m, const struct gp_ev_process *ev)
{
	if (ev->what != GP_PROCESS_EXEC || m->end)
		return;
	if (c->options.follow_exec)
		m->maps_changed = m->renamed = true;
	else
		m->end = MEMBER_EXECED;
}

static int put_event(struct capture *c, struct member *m, uint32_t source, const void *event,
		     size_t bytes)
{
	const struct gp_ev_head *head = event;
	int err = note_thread(c, m, head);

	if (err)
		return err;
	c->events_nr++;
	switch (head->kind) {
	case GP_EV_OP:
		return put_op(c, source, event, bytes);
	case GP_EV_NAME:
		return put_name(c, source, event, bytes);
	case GP_EV_INPUTS:
		return inputs_ids__add(&c->inputs, c->writer, source, event, bytes);
	case GP_EV_STACK:
		return put_stack(c, m, event, bytes);
	case GP_EV_MAPS:
		m->maps_changed = true;
		return 0;
	case GP_EV_PROCESS:
		note_process(c, m, event);
		return recording_writer__event(c->writer, event, bytes);
	default:
		return recording_writer__event(c->writer, event, bytes);
	}
}

/* Whether an event may be looked at: its kind known here and its length enough. */
static bool believable(struct capture *c, const void *event, size_t bytes)
{
	const struct gp_ev_head *head = event;
	size_t need = bytes < sizeof(*head) ? 0 : recording_event_bytes(head->kind);

	return need && bytes >= need && member_of(c, head->process);
}

static int on_kernel_event(const void *event, size_t bytes, void *arg)
{
	struct capture *c = arg;
	const struct gp_ev_head *head = event;
	int err;

	if (!believable(c, event, bytes)) {
		c->refused_nr++;
		return 0;
	}
	err = put_event(c, member_of(c, head->process), SOURCE_KERNEL, event, bytes);
	if (err)
		c->failed = err;
	return err;
}

/* A collector collects from the moment it is armed, a little before the capture's window opens. */
static bool before_start(struct capture *c, const void *event)
{
	const struct gp_ev_head *head = event;
	const struct gp_ev_op *op = event;

	if (!c->started || head->time_ns < c->start_ns)
		return true;
	if (head->kind != GP_EV_OP || op->start_ns >= c->start_ns)
		return false;
	c->open_at_start_nr++;
	return true;
}

static int on_guest_event(const void *event, size_t bytes, void *arg)
{
	struct capture *c = arg;
	const struct gp_ev_head *head = event;
	int err;

	if (!believable(c, event, bytes) || head->kind == GP_EV_MAPS ||
	    head->kind == GP_EV_PROCESS || head->kind == GP_EV_STACK) {
		c->refused_nr++;
		return 0;
	}
	if (head->kind != GP_EV_NAME && head->kind != GP_EV_INPUTS && before_start(c, event))
		return 0;
	err = put_event(c, member_of(c, head->process), SOURCE_GUEST(head->process), event, bytes);
	if (err)
		c->failed = err;
	return err;
}

void capture_drain(struct capture *c)
{
	if (!c->failed)
		(void)probe_session__drain(c->probes, on_kernel_event, c);
	for (size_t i = 0; i < c->members.nr && !c->failed; i++)
		if (c->members.items[i]->guest)
			(void)guest__drain(c->members.items[i]->guest, on_guest_event, c);
}

void capture_drain_guest(struct capture *c, struct guest *g)
{
	if (!c->failed)
		(void)guest__drain(g, on_guest_event, c);
}
