/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One capture. Order matters at both ends: everything is probed before events may flow, and the
 * probes are off the targets before the last drain, so that a slow disk never holds a target up.
 */
#include "capture/capture.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "capture/guest.h"
#include "capture/member.h"
#include "capture/names.h"
#include "probe/session.h"
#include "recording/recording.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL

/* Sources of name numbers: the kernel's probes, then the collectors by process. */
#define SOURCE_KERNEL	    0
#define SOURCE_GUEST(index) (1u + (index))

struct capture {
	struct capture_options options;
	struct probe_session *probes;
	struct recording_writer *writer;
	struct names names;
	struct hash threads; /* process << 32 | tid: named in the recording already */
	VEC(struct member *) members;
	size_t kernel_names; /* of the session's names, taken over so far */
	uint64_t start_ns, end_ns, start_realtime_ns, flushed_ns;
	uint64_t events_nr, refused_nr, nameless_nr, open_at_start_nr, left_nr;
	uint64_t guest_losses[GP_LOSS_NR]; /* of collectors that are gone */
	bool started, stopped;
	int failed; /* the first error that ends the capture */
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

static int write_meta(struct capture *c)
{
	struct utsname u = {0};
	char cpus[24];
	int err;

	(void)uname(&u);
	(void)snprintf(cpus, sizeof(cpus), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	err = recording_writer__meta(c->writer, "gpuprof", GPUPROF_VERSION);
	err = err ?: recording_writer__meta(c->writer, "mode", "trace");
	err = err ?: recording_writer__meta(c->writer, "host", u.nodename);
	err = err ?: recording_writer__meta(c->writer, "kernel", u.release);
	err = err ?: recording_writer__meta(c->writer, "machine", u.machine);
	err = err ?: recording_writer__meta(c->writer, "cpus", cpus);
	err = err
		      ?: recording_writer__meta(c->writer, "ops",
						c->options.ops_glob
							? c->options.ops_glob
							: (c->options.ops ? "all" : "none"));
	return err ?: recording_writer__meta(c->writer, "memory", c->options.memory ? "1" : "0");
}

int capture__new(const struct capture_options *options, struct reason *why,
		 struct capture **ret_capture)
{
	struct probe_options probe = {
		.ring_bytes = options->ring_bytes,
		.ops = options->ops,
		.memory = options->memory,
		.ops_glob = options->ops_glob,
		.cache_dir = options->cache_dir,
		.stop_at_load = options->follow_exec,
	};
	struct capture *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return reason_set(why, -ENOMEM, "out of memory");
	c->options = *options;
	err = probe_session__new(&probe, why, &c->probes);
	if (!err)
		err = recording_writer__new(options->output_path, why, &c->writer);
	if (!err && write_meta(c))
		err = reason_set(why, -EIO, "cannot write '%s'", options->output_path);
	if (err) {
		capture__free(c);
		return err;
	}
	*ret_capture = c;
	return 0;
}

/* ---- events ---- */

static int take_kernel_names(struct capture *c)
{
	size_t nr = probe_session__names(c->probes);

	for (; c->kernel_names < nr; c->kernel_names++) {
		struct probe_name n = probe_session__name(c->probes, c->kernel_names);
		int64_t id =
			names__add(&c->names, c->writer, SOURCE_KERNEL, n.id, n.name, n.overload);

		if (id < 0)
			return (int)id;
	}
	return 0;
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
	ev.head.time_ns = now_ns(CLOCK_MONOTONIC);
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

static int put_op(struct capture *c, uint32_t source, const struct gp_ev_op *op)
{
	struct gp_ev_op ev = *op;

	ev.name_id = names__find(&c->names, source, op->name_id);
	if (!ev.name_id)
		c->nameless_nr++;
	return recording_writer__event(c->writer, &ev, sizeof(ev));
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

static void note_process(struct capture *c, struct member *m, const struct gp_ev_process *ev)
{
	if (ev->what != GP_PROCESS_EXEC || m->end)
		return;
	if (c->options.follow_exec)
		m->maps_changed = true;
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
		return put_op(c, source, event);
	case GP_EV_NAME:
		return put_name(c, source, event, bytes);
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
	    head->kind == GP_EV_PROCESS) {
		c->refused_nr++;
		return 0;
	}
	if (head->kind != GP_EV_NAME && before_start(c, event))
		return 0;
	err = put_event(c, member_of(c, head->process), SOURCE_GUEST(head->process), event, bytes);
	if (err)
		c->failed = err;
	return err;
}

static void drain(struct capture *c)
{
	if (!c->failed)
		(void)probe_session__drain(c->probes, on_kernel_event, c);
	for (size_t i = 0; i < c->members.nr && !c->failed; i++)
		if (c->members.items[i]->guest)
			(void)guest__drain(c->members.items[i]->guest, on_guest_event, c);
}

/* ---- processes ---- */

static int write_process(struct capture *c, const struct member *m)
{
	struct recording_process rp = {
		.index = m->index,
		.pid = m->process->pid,
		.rank = -1,
		.world_size = -1,
		.start_boot_ns = m->process->start_boot_ns,
		.comm = m->process->comm,
		.cmdline = m->process->cmdline ? m->process->cmdline : "",
	};

	return recording_writer__process(c->writer, &rp);
}

static void put_guest_in(struct capture *c, struct member *m)
{
	struct reason why = {0};

	if (!c->options.inject || !c->options.ops || c->options.ops_glob)
		return;
	if (!target_process__library(m->process, "libtorch_cpu.so"))
		return;
	if (guest__new(m->process, m->index, GP_FEATURE_OPS, &why, &m->guest))
		log_info("%d: operators by uprobes: %s", (int)m->process->pid, why.text);
}

static int probe_member(struct capture *c, struct member *m, struct reason *why)
{
	bool callbacks = m->guest && (guest__active(m->guest) & GP_FEATURE_OPS);
	int n = probe_session__attach(c->probes, m->process, m->index, !callbacks, why);

	if (n < 0)
		return n;
	return take_kernel_names(c);
}

int capture__add(struct capture *c, pid_t pid, struct reason *why)
{
	struct target_process *p;
	struct member *m;
	int err;

	for (size_t i = 0; i < c->members.nr; i++)
		if (c->members.items[i]->process->pid == pid)
			return reason_set(why, -EEXIST, "%d was named twice", (int)pid);
	err = target_process__new(pid, why, &p);
	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	err = m ? member__init(m, p, (uint16_t)c->members.nr, why) : -ENOMEM;
	if (err) {
		target_process__free(p);
		free(m);
		return err;
	}
	err = vec_push(&c->members, m);
	if (err) {
		member__done(m);
		free(m);
		return err;
	}
	put_guest_in(c, m);
	drain(c);
	err = probe_member(c, m, why);
	return err ? err : write_process(c, m);
}

/* The collector has left by itself: operators by uprobes from here on. What it lost meanwhile is
 * not known. */
static void replace_guest(struct capture *c, struct member *m)
{
	struct reason why = {0};

	log_warn("%d: the collector has left, because gpuprof was stopped for seconds or its ring "
		 "was "
		 "damaged: operators are missing for that time and come by uprobes from now on",
		 (int)m->process->pid);
	c->left_nr++;
	guest__stop(m->guest, false);
	(void)guest__drain(m->guest, on_guest_event, c);
	guest__losses(m->guest, c->guest_losses);
	guest__free(TAKE(m->guest), m->process, false);
	if (probe_member(c, m, &why) < 0)
		log_warn("%d: cannot be probed: %s", (int)m->process->pid, why.text);
}

/* Libraries that came since: probed from now on. */
static void probe_anew(struct capture *c, struct member *m)
{
	struct reason why = {0};
	int err;

	m->maps_changed = false;
	err = target_process__update_libraries(m->process, &why);
	if (err > 0)
		err = probe_member(c, m, &why);
	if (err < 0 && !member__has_exited(m))
		log_warn("%d: new libraries cannot be probed: %s", (int)m->process->pid, why.text);
	probe_session__resume(c->probes, m->index);
}

static void end_member(struct capture *c, struct member *m)
{
	if (m->end == MEMBER_EXITED)
		log_at(LOG_WARN, "%d (%s) has ended", (int)m->process->pid, m->process->comm);
	else
		log_at(LOG_WARN, "%d (%s) runs another program now (exec): its capture has ended",
		       (int)m->process->pid, m->process->comm);
	if (m->guest)
		guest__stop(m->guest, true);
	probe_session__detach(c->probes, m->index);
}

/* How many are still there. */
static int watch_members(struct capture *c)
{
	int here = 0;

	for (size_t i = 0; i < c->members.nr; i++) {
		struct member *m = c->members.items[i];
		bool was_here = m->end != MEMBER_EXITED;

		if (was_here && member__has_exited(m)) {
			drain(c);
			if (!m->end) {
				m->end = MEMBER_EXITED;
				end_member(c, m);
			}
			m->end = MEMBER_EXITED;
		} else if (m->end == MEMBER_EXECED && !m->exec_told) {
			m->exec_told = true;
			end_member(c, m);
		} else if (!m->end && m->maps_changed) {
			probe_anew(c, m);
		} else if (!m->end && m->guest && guest__has_left(m->guest)) {
			replace_guest(c, m);
		}
		here += !m->end;
	}
	return here;
}

/* ---- the course of a capture ---- */

int capture__start(struct capture *c, struct reason *why)
{
	drain(c);
	c->start_realtime_ns = now_ns(CLOCK_REALTIME);
	c->start_ns = now_ns(CLOCK_MONOTONIC);
	c->flushed_ns = c->start_ns;
	if (recording_writer__window(c->writer, c->start_ns, 0, c->start_realtime_ns) ||
	    recording_writer__flush(c->writer))
		return reason_set(why, -EIO, "cannot write '%s'", c->options.output_path);
	c->started = true;
	probe_session__start(c->probes);
	return 0;
}

static void read_losses(const struct capture *c, uint64_t ret_losses[GP_LOSS_NR])
{
	struct probe_summary summary;

	probe_session__losses(c->probes, ret_losses);
	probe_session__summary(c->probes, &summary);
	ret_losses[GP_LOSS_PROBE] = summary.not_placed_nr;
	ret_losses[GP_LOSS_RECORD] += c->refused_nr;
	ret_losses[GP_LOSS_NAMES] += c->nameless_nr;
	ret_losses[GP_LOSS_OPEN_AT_START] += c->open_at_start_nr;
	ret_losses[GP_LOSS_COLLECTOR_LEFT] += c->left_nr;
	for (size_t i = 0; i < c->members.nr; i++)
		if (c->members.items[i]->guest)
			guest__losses(c->members.items[i]->guest, ret_losses);
	for (int i = 0; i < GP_LOSS_NR; i++)
		ret_losses[i] += c->guest_losses[i];
}

static int write_losses(struct capture *c)
{
	uint64_t losses[GP_LOSS_NR];
	int err = 0;

	read_losses(c, losses);
	for (int i = 0; i < GP_LOSS_NR && !err; i++)
		err = recording_writer__loss(c->writer, recording_loss_name(i), losses[i]);
	return err;
}

int capture__poll(struct capture *c, int timeout_ms, struct reason *why)
{
	struct pollfd fd = {.fd = probe_session__ring_fd(c->probes), .events = POLLIN};
	uint64_t now;
	int here;

	(void)poll(&fd, 1, timeout_ms);
	drain(c);
	here = watch_members(c);
	now = now_ns(CLOCK_MONOTONIC);
	if (!c->failed && now - c->flushed_ns > SECOND_NS) {
		c->flushed_ns = now;
		c->failed = write_losses(c) ?: recording_writer__flush(c->writer);
	}
	if (c->failed)
		return reason_set(why, c->failed, "cannot write '%s': %s", c->options.output_path,
				  strerror(-c->failed));
	return here;
}

static int write_number(struct capture *c, const char *key, uint64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return recording_writer__meta(c->writer, key, text);
}

static int write_end(struct capture *c)
{
	struct capture_status s;
	int err;

	capture__status(c, &s);
	err = write_losses(c);
	err = err ?: write_number(c, "probe_hits", probe_session__hits(c->probes));
	err = err ?: write_number(c, "probe_sites", s.sites_nr);
	err = err ?: write_number(c, "callback_processes", s.callbacks_nr);
	err = err ?: recording_writer__meta(c->writer, "probe_method", s.method);
	err = err
		      ?: recording_writer__window(c->writer, c->start_ns, c->end_ns,
						  c->start_realtime_ns);
	return err ?: recording_writer__finish(c->writer);
}

int capture__stop(struct capture *c, struct reason *why)
{
	if (c->stopped || !c->started)
		return 0;
	c->stopped = true;
	for (size_t i = 0; i < c->members.nr; i++)
		if (c->members.items[i]->guest && !c->members.items[i]->end)
			guest__stop(c->members.items[i]->guest,
				    member__has_exited(c->members.items[i]));
	probe_session__stop(c->probes);
	c->end_ns = now_ns(CLOCK_MONOTONIC);
	drain(c);
	if (!c->failed)
		c->failed = write_end(c);
	if (c->failed)
		return reason_set(why, c->failed, "cannot write '%s': %s", c->options.output_path,
				  strerror(-c->failed));
	return 0;
}

void capture__free(struct capture *c)
{
	struct reason why;

	if (!c)
		return;
	(void)capture__stop(c, &why);
	for (size_t i = 0; i < c->members.nr; i++) {
		struct member *m = c->members.items[i];

		if (m->guest)
			guest__free(m->guest, m->process, m->end || member__has_exited(m));
		member__done(m);
		free(m);
	}
	vec_done(&c->members);
	probe_session__free(c->probes);
	recording_writer__free(c->writer);
	names__done(&c->names);
	hash__done(&c->threads);
	free(c);
}

void capture__status(const struct capture *c, struct capture_status *ret_status)
{
	uint64_t losses[GP_LOSS_NR];
	struct probe_summary summary;
	struct capture_status s = {.events_nr = c->events_nr};

	read_losses(c, losses);
	probe_session__summary(c->probes, &summary);
	s.lost_nr =
		losses[GP_LOSS_RING_FULL] + losses[GP_LOSS_RECORD] + losses[GP_LOSS_COLLECTOR_FULL];
	s.bytes = recording_writer__bytes(c->writer);
	s.running_ns =
		c->started ? (c->stopped ? c->end_ns : now_ns(CLOCK_MONOTONIC)) - c->start_ns : 0;
	s.sites_nr = summary.sites_nr;
	s.functions_nr = summary.functions_nr;
	s.not_placed_nr = summary.not_placed_nr;
	s.method = summary.method;
	s.processes_nr = (uint32_t)c->members.nr;
	for (size_t i = 0; i < c->members.nr; i++)
		s.callbacks_nr += c->members.items[i]->guest &&
				  (guest__active(c->members.items[i]->guest) & GP_FEATURE_OPS);
	*ret_status = s;
}
