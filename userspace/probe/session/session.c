/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Opens a session, starts and stops recording, and drains the ring. Nothing outlives the session:
 * the kernel removes probes and programs when the descriptors are closed, whoever closes them.
 */
#include "probe/session/session.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "gpuprof.skel.h"
#include "inspect/access/maps.h"
#include "inspect/process/rights.h"
#include "probe/session/session_private.h"
#include "probe/unwind/unwind_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KERNEL_MAP "anon_inode:bpf-map"

/* The programs are timed again after so many pauses: the first pause may come right after the
 * start. */
#define TIMINGS 5

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	log_vat(LOG_DEBUG, fmt, ap);
	return 0;
}

/* Notes that process 0 was stopped: the programs stop it with each of these events. */
static void note_stop(struct probe_session *s, const void *event, size_t bytes)
{
	const struct gp_ev_process *e = event;
	struct probed_process *p;

	if (bytes < sizeof(e->head) || e->head.process ||
	    !(e->head.kind == GP_EV_MAPS ||
	      (e->head.kind == GP_EV_PROCESS && bytes >= sizeof(*e) && e->what == GP_PROCESS_EXEC)))
		return;
	p = session_process(s, e->head.process);
	if (p)
		p->stopped = true;
}

static int on_event(void *arg, void *event, size_t bytes)
{
	struct probe_session *s = arg;
	struct draining *d = &s->draining;

	if (s->options.stop_at_load)
		note_stop(s, event, bytes);
	d->end = d->fn(event, bytes, d->arg);
	d->nr++;
	d->bytes += bytes;
	/* A busy process can fill the ring as fast as we empty it: return to the caller. */
	return d->end || d->bytes >= 2UL * s->options.ring_bytes ? -ECANCELED : 0;
}

/* Without these gpuprof still notices that a process has ended, later and with less detail. */
static void attach_tracepoints(struct probe_session *s)
{
	s->bpf->links.gp_process_exit = bpf_program__attach(s->bpf->progs.gp_process_exit);
	s->bpf->links.gp_process_exec = bpf_program__attach(s->bpf->progs.gp_process_exec);
	s->bpf->links.gp_process_fork = bpf_program__attach(s->bpf->progs.gp_process_fork);
	if (!s->bpf->links.gp_process_exit || !s->bpf->links.gp_process_exec ||
	    !s->bpf->links.gp_process_fork)
		log_warn("the kernel does not report fork, exec and exit: children are missed, and "
			 "a program that replaces the target's is taken for it");
}

/* Excludes the maps' memory from forks: a child has no use for it, and a fork would copy its page
 * tables, thousands of pages for the ring alone. */
static void keep_maps_from_forks(void)
{
	CLEANUP(cleanup_free) char *text = NULL;
	char *line, *rest;
	struct map_line m;

	if (maps_read(getpid(), &text))
		return;
	rest = text;
	while ((line = strsep(&rest, "\n")))
		if (*line && !map_line_parse(line, &m) && !strcmp(m.path, KERNEL_MAP))
			(void)madvise((void *)m.start, m.end - m.start, MADV_DONTFORK);
}

/* Opens what the loaded programs need: ring, unwind tables, tracepoints, samples. 0 or -errno with
 * a reason. */
static int begin_programs(struct probe_session *s, struct reason *why)
{
	int err;

	s->ring = ring_buffer__new(bpf_map__fd(s->bpf->maps.ring), on_event, s, NULL);
	if (!s->ring)
		return reason_set(why, -errno, "cannot map the ring: %s", strerror(errno));
	if (s->options.stacks & GP_STACK_WANT_NATIVE) {
		s->unwind = unwind_maps__new(bpf_map__fd(s->bpf->maps.unwind_ranges),
					     bpf_map__fd(s->bpf->maps.unwind_tables),
					     s->options.cache_dir);
		if (!s->unwind)
			return reason_set(why, -ENOMEM, "out of memory");
	}
	attach_tracepoints(s);
	err = session_sample_new(s, why);
	if (err)
		return err;
	if (!s->options.sample_hz)
		trap_cost__measure(&s->timing.trap_links, s->method,
				   bpf_program__fd(program_of(s->bpf, PROGRAM_ENTRY)),
				   &s->timing.trap_cost);
	keep_maps_from_forks();
	if (s->plans.few && s->options.ops && !s->options.ops_glob)
		log_warn("this kernel has no uprobe_multi (Linux 6.6 has it): only the most common "
			 "operators are probed, others by naming them with --ops");
	return 0;
}

const char *probe_session__no_bpf(const struct probe_session *s)
{
	return s->bpf ? NULL : s->no_bpf_why.text;
}

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static void cleanup_session(struct probe_session **s)
{
	probe_session__free(*s);
}

int probe_session__new(const struct probe_options *options, struct reason *why,
		       struct probe_session **ret_session)
{
	CLEANUP(cleanup_session) struct probe_session *s = NULL;
	int err;

	if (!power_of_two(options->ring_bytes) || options->ring_bytes < 65536)
		return reason_set(why, -EINVAL,
				  "cannot make a ring of %u bytes: it must be a power of two "
				  "of at least 65536",
				  options->ring_bytes);
	s = calloc(1, sizeof(*s));
	if (!s)
		return reason_set(why, -ENOMEM, "out of memory");
	s->options = *options;
	s->timing.stats_fd = -1;
	err = session_sample_check(s, why);
	if (err)
		return err;
	s->closer = link_closer__new();
	if (!s->closer)
		return reason_set(why, -ENOMEM, "out of memory");
	(void)libbpf_set_print(print_libbpf);
	s->method = link_method_probe();
	err = session_plans__init(&s->plans, &s->options, s->method == LINK_PERF_EVENT);
	if (err)
		return reason_set(why, err, "%s",
				  err == -E2BIG ? "too many patterns of operators; give fewer"
						: "out of memory");
	err = session_load(s, options->allow_no_bpf ? &s->no_bpf_why : why);
	if (err && !options->allow_no_bpf)
		return err;
	err = err ?: begin_programs(s, why);
	if (err && s->bpf)
		return err;
	*ret_session = TAKE(s);
	return 0;
}

void probe_session__free(struct probe_session *s)
{
	if (!s)
		return;
	session_sample_free(s);
	if (s->bpf)
		session_detach_all(s);
	link_closer__free(s->closer);
	unwind_maps__free(s->unwind);
	session_time_end(s);
	link_set__done(&s->timing.trap_links);
	vec_done(&s->attachments);
	vec_done(&s->processes);
	vec_done(&s->coverage.missed);
	vec_done(&s->refused.names);
	ring_buffer__free(s->ring);
	gpuprof_bpf__destroy(s->bpf);
	session_plans__done(&s->plans);
	free(s);
}

bool probe_session__sees_forks(const struct probe_session *s)
{
	return s->bpf && s->bpf->links.gp_process_fork && s->bpf->links.gp_process_exec &&
	       rights_in_first_pid_namespace() > 0;
}

/* Sets the epoch; 0: nothing is recorded. */
static void set_epoch(struct probe_session *s, uint32_t epoch)
{
	if (s->bpf && !epoch)
		session_end_epoch(s);
	else if (s->bpf)
		__atomic_store_n(&s->bpf->bss->gp_epoch, epoch, __ATOMIC_RELEASE);
	s->epochs.paused = !epoch;
}

void probe_session__start(struct probe_session *s)
{
	struct counters c;

	if (s->epochs.started)
		return;
	counters_read(s->bpf, &c);
	s->epochs.open_before = c.opened - c.closed;
	s->epochs.started = true;
	if (s->bpf)
		session_time_begin(s);
	set_epoch(s, ++s->epochs.latest);
}

void probe_session__pause(struct probe_session *s, bool pause)
{
	struct counters c;

	if (!s->epochs.started || pause == s->epochs.paused)
		return;
	if (!pause) {
		if (s->timing.begun_nr++ < TIMINGS)
			session_time_begin(s);
		set_epoch(s, ++s->epochs.latest);
		return;
	}
	set_epoch(s, 0);
	counters_read(s->bpf, &c);
	s->epochs.open_at_end += c.opened - c.closed - s->epochs.open_before;
	s->epochs.open_before = c.opened - c.closed;
}

void probe_session__stop(struct probe_session *s)
{
	struct counters c;

	set_epoch(s, 0);
	session_detach_all(s);
	session_time_end(s);
	if (!s->epochs.started)
		return;
	s->epochs.started = false;
	counters_read(s->bpf, &c);
	s->epochs.open_at_end += c.opened - c.closed - s->epochs.open_before;
}

int probe_session__ring_fd(const struct probe_session *s)
{
	return s->ring ? ring_buffer__epoll_fd(s->ring) : -1;
}

int probe_session__drain(struct probe_session *s,
			 int (*fn)(const void *event, size_t bytes, void *arg), void *arg)
{
	int nr;

	if (!s->ring)
		return 0;
	session_time_check(s);
	if (s->unwind)
		unwind_maps__collect(s->unwind, false);
	/* The caller has had its chance to probe what the last call reported. */
	for (size_t i = 0; i < s->processes.nr; i++)
		session_continue(&s->processes.items[i]);
	s->draining = (struct draining){.fn = fn, .arg = arg};
	nr = ring_buffer__consume(s->ring);
	if (s->draining.end)
		return s->draining.end < 0 ? s->draining.end : s->draining.nr;
	return nr < 0 && nr != -ECANCELED ? nr : s->draining.nr;
}

size_t probe_session__names(const struct probe_session *s)
{
	return s->plans.names.nr;
}

struct probe_name probe_session__name(const struct probe_session *s, size_t i)
{
	return s->plans.names.items[i];
}

void probe_session__losses(const struct probe_session *s, uint64_t ret_losses[GP_LOSS_NR])
{
	struct counters c;

	counters_read(s->bpf, &c);
	memcpy(ret_losses, c.losses, sizeof(c.losses));
	ret_losses[GP_LOSS_OPEN_AT_END] += s->epochs.open_at_end;
	ret_losses[GP_LOSS_SAMPLE_MISSED] += session_sample_missed(s);
	ret_losses[GP_LOSS_PROBE] += s->coverage.summary.not_placed_nr + s->coverage.refused_nr;
}

void probe_session__summary(const struct probe_session *s, struct probe_summary *ret_summary)
{
	*ret_summary = s->coverage.summary;
	ret_summary->not_placed_nr += (uint32_t)s->coverage.refused_nr;
	ret_summary->method = !s->bpf			       ? "none"
			      : s->method == LINK_UPROBE_MULTI ? "uprobe_multi"
							       : "perf_event";
}
