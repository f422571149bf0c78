/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One capture's programs, probes, ring and counters. What is attached belongs to a process by its
 * index and to a file by device and inode; a file is planned once in a session. Invariant: exits
 * are attached before entries, so an op that is seen to begin is seen to end.
 */
#include "probe/session.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "gpuprof.skel.h"
#include "probe/link.h"
#include "probe/session_plans.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

/* Of bpf/maps.bpf.h. */
struct counters {
	uint64_t losses[GP_LOSS_NR];
	uint64_t opened;
	uint64_t closed;
	uint64_t other_hits;
};

struct node_table {
	uint64_t address;
	uint64_t process;
};

/* One file probed in one process. */
struct attachment {
	uint16_t process_index;
	bool ops;
	uint32_t plan; /* index into the session's plans */
	struct link_set links;
	uint32_t sites_nr;
	uint32_t refused_nr;
};

struct probed_process {
	uint16_t index;
	bool stopped; /* by stop_at_load, as far as the events that were drained tell */
	uint32_t pid;
};

struct draining {
	int (*fn)(const void *event, size_t bytes, void *arg);
	void *arg;
	size_t bytes;
	int nr;
	int end; /* fn's */
};

struct probe_session {
	struct probe_options options;
	struct gpuprof_bpf *bpf;
	struct ring_buffer *ring;
	struct draining draining;
	enum link_method method;
	struct session_plans plans;
	VEC(struct attachment) attachments;
	VEC(struct probed_process) processes;
	uint32_t epoch;
	bool started;
	uint64_t open_before; /* ops that earlier epochs left open */
	uint64_t open_at_end;
	uint64_t refused_nr; /* sites, since the session began */
	struct probe_summary summary;
};

/* The programs and what they want. */
enum program {
	PROGRAM_EXIT = 0, /* attached in this order */
	PROGRAM_ENTRY = 1,
	PROGRAM_NEW = 2,
	PROGRAM_DELETE = 3,
	PROGRAM_REPORT = 4,
	PROGRAM_LOADER = 5,
	PROGRAM_CATCH = 6,
	PROGRAM_OOM = 7,
	PROGRAM_NODE = 8,
	PROGRAMS_NR = 9,
};

static struct bpf_program *program_of(const struct gpuprof_bpf *bpf, enum program program)
{
	switch (program) {
	case PROGRAM_EXIT:
		return bpf->progs.gp_op_exit;
	case PROGRAM_ENTRY:
		return bpf->progs.gp_op_entry;
	case PROGRAM_NEW:
		return bpf->progs.gp_cpu_new;
	case PROGRAM_DELETE:
		return bpf->progs.gp_cpu_delete;
	case PROGRAM_REPORT:
		return bpf->progs.gp_report_memory;
	case PROGRAM_CATCH:
		return bpf->progs.gp_catch;
	case PROGRAM_NODE:
		return bpf->progs.gp_node_entry;
	case PROGRAM_OOM:
		return bpf->progs.gp_report_oom;
	default:
		return bpf->progs.gp_loader;
	}
}

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	log_vat(LOG_DEBUG, fmt, ap);
	return 0;
}

static struct probed_process *process_of(struct probe_session *s, uint16_t index)
{
	for (size_t i = 0; i < s->processes.nr; i++)
		if (s->processes.items[i].index == index)
			return &s->processes.items[i];
	return NULL;
}

/* The programs stop the process with each of these. */
static void note_stop(struct probe_session *s, const void *event, size_t bytes)
{
	const struct gp_ev_process *e = event;
	struct probed_process *p;

	if (bytes < sizeof(e->head) ||
	    !(e->head.kind == GP_EV_MAPS ||
	      (e->head.kind == GP_EV_PROCESS && bytes >= sizeof(*e) && e->what == GP_PROCESS_EXEC)))
		return;
	p = process_of(s, e->head.process);
	if (p)
		p->stopped = true;
}

static void let_go(struct probed_process *p)
{
	if (p->stopped)
		(void)kill((pid_t)p->pid, SIGCONT);
	p->stopped = false;
}

void probe_session__resume(struct probe_session *s, uint16_t process_index)
{
	struct probed_process *p = process_of(s, process_index);

	if (p)
		let_go(p);
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
	/* A busy target can fill the ring as fast as we empty it: come back to the caller. */
	return d->end || d->bytes >= 2UL * s->options.ring_bytes ? -ECANCELED : 0;
}

/* Opens and loads the programs. 0 or -errno. */
static int load(struct probe_session *s, bool task_storage)
{
	struct gpuprof_bpf *bpf = gpuprof_bpf__open();
	int err;

	if (!bpf)
		return -errno;
	bpf->rodata->gp_task_storage = task_storage;
	bpf->rodata->gp_stop_at_load = s->options.stop_at_load;
	bpf->rodata->gp_wakeup_bytes = s->options.ring_bytes / 4;
	for (enum program i = 0; i < PROGRAMS_NR; i++)
		(void)bpf_program__set_expected_attach_type(
			program_of(bpf, i), (enum bpf_attach_type)link_attach_type(s->method));
	err = bpf_map__set_max_entries(bpf->maps.ring, s->options.ring_bytes);
	if (!err)
		err = bpf_map__set_autocreate(
			task_storage ? bpf->maps.threads_by_tid : bpf->maps.threads, false);
	if (!err && task_storage)
		err = bpf_map__set_autocreate(bpf->maps.no_thread, false);
	if (!err)
		err = gpuprof_bpf__load(bpf);
	if (err)
		gpuprof_bpf__destroy(bpf);
	else
		s->bpf = bpf;
	return err;
}

static int load_either(struct probe_session *s)
{
	const char *no = getenv("GPUPROF_NO_TASK_STORAGE");
	int err = -ENOTSUP;

	if (!no || !*no || !strcmp(no, "0"))
		err = load(s, true);
	if (err && err != -EPERM && err != -ENOMEM) {
		log_debug("no task storage for uprobe programs: threads are kept by number");
		err = load(s, false);
	}
	return err;
}

/* Without these gpuprof still sees that a process has ended, later and with less detail. */
static void attach_tracepoints(struct probe_session *s)
{
	s->bpf->links.gp_process_exit = bpf_program__attach(s->bpf->progs.gp_process_exit);
	s->bpf->links.gp_process_exec = bpf_program__attach(s->bpf->progs.gp_process_exec);
	s->bpf->links.gp_process_fork = bpf_program__attach(s->bpf->progs.gp_process_fork);
	if (!s->bpf->links.gp_process_exit || !s->bpf->links.gp_process_exec ||
	    !s->bpf->links.gp_process_fork)
		log_debug("fork, exec or exit of the target are not told by the kernel");
}

static int explain_load(struct reason *why, int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		return reason_set(why, err,
				  "cannot load BPF programs: not permitted; need CAP_BPF and "
				  "CAP_PERFMON, try sudo");
	case -ENOMEM:
		return reason_set(why, err,
				  "cannot load BPF programs: out of memory; try a smaller ring");
	case -ESRCH:
	case -ENOENT:
		return reason_set(why, err,
				  "cannot load BPF programs: the kernel has no BTF "
				  "(/sys/kernel/btf/vmlinux); try 'gpuprof doctor'");
	default:
		return reason_set(why, err, "cannot load BPF programs: %s; try 'gpuprof doctor'",
				  strerror(-err));
	}
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
	err = session_plans__init(&s->plans, &s->options);
	if (err)
		return reason_set(why, err, "out of memory");
	(void)libbpf_set_print(print_libbpf);
	s->method = link_method_probe();
	err = load_either(s);
	if (err)
		return explain_load(why, err);
	s->ring = ring_buffer__new(bpf_map__fd(s->bpf->maps.ring), on_event, s, NULL);
	if (!s->ring)
		return reason_set(why, -errno, "cannot map the ring: %s", strerror(errno));
	attach_tracepoints(s);
	*ret_session = TAKE(s);
	return 0;
}

/* One that was stopped a moment ago must not stay so, whether or not we have heard of it. */
static void forget_process(struct probe_session *s, struct probed_process *p)
{
	(void)bpf_map__delete_elem(s->bpf->maps.processes, &p->pid, sizeof(p->pid), 0);
	p->stopped = s->options.stop_at_load;
	let_go(p);
}

static void detach_all(struct probe_session *s)
{
	for (size_t i = 0; i < s->attachments.nr; i++)
		link_set__done(&s->attachments.items[i].links);
	s->attachments.nr = 0;
	for (size_t i = 0; i < s->processes.nr; i++)
		forget_process(s, &s->processes.items[i]);
	s->processes.nr = 0;
}

void probe_session__free(struct probe_session *s)
{
	if (!s)
		return;
	if (s->bpf)
		detach_all(s);
	vec_done(&s->attachments);
	vec_done(&s->processes);
	ring_buffer__free(s->ring);
	gpuprof_bpf__destroy(s->bpf);
	session_plans__done(&s->plans);
	free(s);
}

static bool is_attached(const struct probe_session *s, uint16_t process_index, uint32_t plan)
{
	for (size_t i = 0; i < s->attachments.nr; i++)
		if (s->attachments.items[i].process_index == process_index &&
		    s->attachments.items[i].plan == plan)
			return true;
	return false;
}

static enum program program_for(const struct probe_function *fn, const struct probe_site *site)
{
	switch (fn->kind) {
	case PROBE_ALLOC:
		return PROGRAM_NEW;
	case PROBE_FREE:
		return PROGRAM_DELETE;
	case PROBE_REPORT:
		return PROGRAM_REPORT;
	case PROBE_LOADER:
		return PROGRAM_LOADER;
	case PROBE_CATCH:
		return PROGRAM_CATCH;
	case PROBE_OOM:
		return PROGRAM_OOM;
	case PROBE_NODE:
		return site->is_exit ? PROGRAM_EXIT : PROGRAM_NODE;
	default:
		return site->is_exit ? PROGRAM_EXIT : PROGRAM_ENTRY;
	}
}

static bool is_wanted(const struct probe_session *s, const struct session_plan *plan, bool ops,
		      uint32_t function)
{
	switch (plan->plan->functions.items[function].kind) {
	case PROBE_OP:
	case PROBE_NODE:
		return ops && plan->wanted[function];
	case PROBE_ALLOC:
	case PROBE_FREE:
	case PROBE_REPORT:
	case PROBE_OOM:
		return s->options.memory;
	case PROBE_CATCH:
		return ops && s->options.ops;
	default:
		return true;
	}
}

/* The sites of one plan that one program takes. */
static size_t collect_sites(const struct probe_session *s, const struct session_plan *plan,
			    enum program program, const struct attachment *a,
			    struct link_site *sites)
{
	size_t nr = 0;

	for (size_t i = 0; i < plan->plan->sites.nr; i++) {
		const struct probe_site *site = &plan->plan->sites.items[i];
		const struct probe_function *fn = &plan->plan->functions.items[site->function];

		if (program_for(fn, site) != program || !is_wanted(s, plan, a->ops, site->function))
			continue;
		sites[nr].offset = site->offset;
		sites[nr++].cookie = (uint64_t)a->process_index << 48 |
				     (uint64_t)(uint16_t)site->sp_delta << 32 |
				     plan->name_ids[site->function];
	}
	return nr;
}

static void add_to_summary(struct probe_session *s, const struct session_plan *plan, bool ops)
{
	for (size_t i = 0; i < plan->plan->functions.nr; i++)
		if (is_wanted(s, plan, ops, (uint32_t)i)) {
			if (plan->plan->functions.items[i].placed)
				s->summary.functions_nr++;
			else
				s->summary.not_placed_nr++;
		}
	for (size_t i = 0; i < plan->plan->sites.nr; i++)
		if (is_wanted(s, plan, ops, plan->plan->sites.items[i].function)) {
			s->summary.sites_nr++;
			s->summary.single_stepped_nr += !plan->plan->sites.items[i].emulated;
		}
}

static int attach_programs(struct probe_session *s, struct attachment *a,
			   const struct session_plan *plan, pid_t pid, const char *path)
{
	struct link_site *sites = calloc(plan->plan->sites.nr + 1, sizeof(*sites));
	int attached = sites ? 0 : -ENOMEM;

	for (enum program i = 0; i < PROGRAMS_NR && attached >= 0; i++) {
		size_t refused = 0;
		size_t nr = collect_sites(s, plan, i, a, sites);

		attached = link_attach(&a->links, s->method, bpf_program__fd(program_of(s->bpf, i)),
				       pid, path, sites, nr, &refused);
		a->refused_nr += (uint32_t)refused;
		if (attached > 0)
			a->sites_nr += (uint32_t)attached;
	}
	free(sites);
	return attached < 0 ? attached : 0;
}

/* Tells the programs where this process has the virtual tables of the file's autograd nodes. */
static int name_nodes(struct probe_session *s, const struct session_plan *plan,
		      const struct target_library *lib, uint16_t process_index)
{
	for (size_t i = 0; i < plan->plan->nodes.nr && s->options.ops; i++) {
		struct node_table key = {.address = lib->base + plan->plan->nodes.items[i].table,
					 .process = process_index};
		int err = bpf_map__update_elem(s->bpf->maps.node_names, &key, sizeof(key),
					       &plan->node_ids[i], sizeof(uint32_t), BPF_ANY);

		if (err)
			return err;
	}
	return 0;
}

/* How many sites of one file were attached, or -errno. */
static int attach_library(struct probe_session *s, const struct target_process *p,
			  const struct target_library *lib, uint16_t process_index, bool ops,
			  struct reason *why)
{
	struct attachment a = {.process_index = process_index, .ops = ops};
	const struct session_plan *plan;
	int err = session_plans__get(&s->plans, lib, why, &a.plan);

	if (err)
		return err;
	plan = &s->plans.items.items[a.plan];
	err = plan->plan && ops ? name_nodes(s, plan, lib, process_index) : 0;
	if (err)
		return reason_set(why, err, "cannot name what '%s' defines", lib->path);
	if (!plan->plan || !plan->plan->functions.nr || is_attached(s, process_index, a.plan))
		return 0;
	err = vec_reserve(&s->attachments, 1);
	if (!err)
		err = attach_programs(s, &a, plan, p->pid, lib->open_path);
	if (err) {
		link_set__done(&a.links);
		return reason_set(why, err, "cannot probe '%s' in process %d: %s", lib->path,
				  (int)p->pid, strerror(-err));
	}
	s->refused_nr += a.refused_nr;
	s->attachments.items[s->attachments.nr++] = a;
	add_to_summary(s, plan, a.ops);
	return (int)a.sites_nr;
}

static int know_process(struct probe_session *s, pid_t pid, uint16_t process_index)
{
	struct probed_process known = {.index = process_index, .pid = (uint32_t)pid};
	uint32_t index = process_index;

	if (process_of(s, process_index))
		return 0;
	if (vec_push(&s->processes, known))
		return -ENOMEM;
	return bpf_map__update_elem(s->bpf->maps.processes, &known.pid, sizeof(known.pid), &index,
				    sizeof(index), BPF_ANY);
}

int probe_session__attach(struct probe_session *s, const struct target_process *p,
			  uint16_t process_index, bool ops, struct reason *why)
{
	int total = 0, err = know_process(s, p->pid, process_index);

	if (err)
		return reason_set(why, err, "cannot follow process %d: %s", (int)p->pid,
				  strerror(-err));
	for (size_t i = 0; i < p->libraries_nr; i++) {
		struct reason inner = {""};
		int one = attach_library(s, p, &p->libraries[i], process_index, ops, &inner);

		if (one == -ENOMEM || one == -ESRCH || one == -EPERM || one == -EMFILE)
			return reason_set(why, one, "%s", inner.text);
		if (one < 0)
			log_debug("%s", inner.text);
		else
			total += one;
	}
	return total;
}

void probe_session__detach(struct probe_session *s, uint16_t process_index)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->attachments.nr; i++) {
		if (s->attachments.items[i].process_index == process_index)
			link_set__done(&s->attachments.items[i].links);
		else
			s->attachments.items[kept++] = s->attachments.items[i];
	}
	s->attachments.nr = kept;
	kept = 0;
	for (size_t i = 0; i < s->processes.nr; i++) {
		if (s->processes.items[i].index == process_index)
			forget_process(s, &s->processes.items[i]);
		else
			s->processes.items[kept++] = s->processes.items[i];
	}
	s->processes.nr = kept;
}

/* The counters of all CPUs together. */
static void read_counters(const struct probe_session *s, struct counters *ret_counters)
{
	int cpus = libbpf_num_possible_cpus();
	struct counters *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;
	uint64_t *sum = (uint64_t *)ret_counters;
	uint32_t zero = 0;

	memset(ret_counters, 0, sizeof(*ret_counters));
	if (each && !bpf_map__lookup_elem(s->bpf->maps.counters, &zero, sizeof(zero), each,
					  (size_t)cpus * sizeof(*each), 0))
		for (int i = 0; i < cpus; i++)
			for (size_t k = 0; k < sizeof(*each) / sizeof(uint64_t); k++)
				sum[k] += ((const uint64_t *)&each[i])[k];
	free(each);
}

void probe_session__start(struct probe_session *s)
{
	struct counters c;

	if (s->started)
		return;
	read_counters(s, &c);
	s->open_before = c.opened - c.closed;
	s->started = true;
	__atomic_store_n(&s->bpf->bss->gp_epoch, ++s->epoch, __ATOMIC_RELEASE);
}

void probe_session__stop(struct probe_session *s)
{
	struct counters c;

	__atomic_store_n(&s->bpf->bss->gp_epoch, 0, __ATOMIC_RELEASE);
	detach_all(s);
	if (!s->started)
		return;
	s->started = false;
	read_counters(s, &c);
	s->open_at_end += c.opened - c.closed - s->open_before;
}

int probe_session__ring_fd(const struct probe_session *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

int probe_session__drain(struct probe_session *s,
			 int (*fn)(const void *event, size_t bytes, void *arg), void *arg)
{
	int nr;

	/* The caller has had its chance at those that the last call told of. */
	for (size_t i = 0; i < s->processes.nr; i++)
		let_go(&s->processes.items[i]);
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

	read_counters(s, &c);
	memcpy(ret_losses, c.losses, sizeof(c.losses));
	ret_losses[GP_LOSS_OPEN_AT_END] += s->open_at_end;
	ret_losses[GP_LOSS_PROBE] += s->summary.not_placed_nr + s->refused_nr;
}

uint64_t probe_session__hits(const struct probe_session *s)
{
	struct counters c;

	read_counters(s, &c);
	/* An op that an exception ended was closed by the hit of another. */
	return c.opened + c.closed - c.losses[GP_LOSS_EXCEPTION] + c.losses[GP_LOSS_OPEN_AT_START] +
	       c.losses[GP_LOSS_RECORD] + c.losses[GP_LOSS_DEPTH] + c.other_hits;
}

void probe_session__summary(const struct probe_session *s, struct probe_summary *ret_summary)
{
	*ret_summary = s->summary;
	ret_summary->method = s->method == LINK_UPROBE_MULTI ? "uprobe_multi" : "perf_event";
}
