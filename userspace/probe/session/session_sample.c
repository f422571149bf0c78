/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples threads: the CPUs sample what runs on them (sampled_cpus.h), and a thread of gpuprof
 * visits the waiting threads, less often. Both exist from new to free and idle outside of epochs.
 */
#include "base/log.h"
#include "base/thread.h"
#include "base/vec.h"
#include "common/clock.h"
#include "gpuprof.skel.h"
#include "inspect/process/rights.h"
#include "probe/session/sampled_cpus.h"
#include "probe/session/session_private.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Waits are long, so visits are this many times rarer than samples. A thread in a new wait costs
 * some ten microseconds; if there are many, visits become rarer still, so that all of them together
 * take at most one VISITS_SHARE-th of a CPU. A visit stands for the time since the last one. */
#define TICKS_PER_VISIT	 8
#define VISITS_SHARE	 100
#define VISIT_COST_LEARN 0.2 /* weight of the latest cost */
/* At the samples' pace visits are never rarer than this, or a recording would begin with what was
 * before it. */
#define VISIT_NS_MAX SECOND_NS

/* The waiting threads of one process, and the iterator that visits them. */
struct visited_process {
	pid_t pid;
	struct bpf_link *link;
};

struct sampler {
	struct gpuprof_bpf *bpf;
	pthread_t thread;
	bool has_thread;
	/* The lock protects the members below. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool end;
	struct sampled_cpus *cpus;
	uint64_t period_ns; /* between visits, at least */
	VEC(struct visited_process) processes;
	uint64_t last_ns;     /* time of the last visit; 0: none in this epoch */
	uint64_t pace_ns;     /* between visits, now */
	double visit_cost_ns; /* CPU time of a visit, smoothed */
	uint64_t missed_nr;
	uint64_t cpu_ns;
};

/* Whether programs may call this kernel function. */
static bool kernel_has(const char *function)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has = btf && btf__find_by_name_kind(btf, function, BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return has;
}

int session_sample_choose(const struct probe_session *s, struct gpuprof_bpf *bpf)
{
	bool wanted = s->options.sample_hz;
	uint64_t sample_ns = wanted ? SECOND_NS / s->options.sample_hz : 0;
	int err = sampled_cpus__choose(bpf, sample_ns, s->refused.no_tick);

	/* Of the other programs, only those that follow the process are loaded. */
	for (enum program i = 0; i < PROGRAMS_NR && wanted && !err; i++)
		if (i != PROGRAM_LOADER && i != PROGRAM_CODE_FREED)
			err = bpf_program__set_autoload(program_of(bpf, i), false);
	err = err ?: bpf_program__set_autoload(bpf->progs.gp_look, wanted);
	err = err ?: bpf_program__set_autoload(bpf->progs.gp_sampled_exit, wanted);
	err = err ?: bpf_map__set_autocreate(bpf->maps.sample_walks, wanted);
	err = err ?: bpf_map__set_autocreate(bpf->maps.sampled_threads, wanted);
	if (err || !wanted)
		return err;
	bpf->rodata->gp_task_by_pid = kernel_has("bpf_task_from_pid");
	/* Hardly any two samples have the same stack: those that are not seen again make room. */
	err = bpf_map__set_type(bpf->maps.stacks, BPF_MAP_TYPE_LRU_HASH);
	err = err ?: bpf_map__set_map_flags(bpf->maps.stacks, 0);
	if (err)
		return err;
	return bpf_map__set_max_entries(bpf->maps.sample_walks, bpf->rodata->gp_cpus_nr + 1);
}

/* ---- threads that wait ---- */

/* Runs the program on each thread of the process. False: not on all of them. */
static bool visit_process(const struct visited_process *p)
{
	int fd = bpf_iter_create(bpf_link__fd(p->link));
	char none[64];
	ssize_t nr;

	if (fd < 0)
		return false;
	do
		nr = read(fd, none, sizeof(none));
	while (nr > 0 || (nr < 0 && (errno == EAGAIN || errno == EINTR)));
	(void)close(fd);
	return !nr;
}

static void visit_waiting(struct sampler *m, bool report)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), past = m->last_ns ? now - m->last_ns : 0;

	if (!report) {
		if (past > m->pace_ns + m->pace_ns / 2)
			m->missed_nr += (past + m->pace_ns / 2) / m->pace_ns - 1;
		m->bpf->bss->gp_look_ns = past ? past : m->pace_ns;
		m->last_ns = now;
	}
	__atomic_store_n(&m->bpf->bss->gp_look_emits, report, __ATOMIC_RELEASE);
	for (size_t i = 0; i < m->processes.nr; i++)
		m->missed_nr += !visit_process(&m->processes.items[i]);
}

static uint64_t visit_period(uint64_t sample_ns)
{
	uint64_t ns = TICKS_PER_VISIT * sample_ns;

	return ns < VISIT_NS_MAX ? ns : VISIT_NS_MAX;
}

/* Waits for the next visit that is due, or for the end. */
static void wait_for_visit(struct sampler *m, uint64_t *due_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct timespec at;

	*due_ns += m->pace_ns;
	if (*due_ns < now)
		*due_ns = now + m->pace_ns - (now - *due_ns) % m->pace_ns;
	at.tv_sec = (time_t)(*due_ns / SECOND_NS);
	at.tv_nsec = (long)(*due_ns % SECOND_NS);
	while (!m->end && !pthread_cond_timedwait(&m->wake, &m->lock, &at))
		;
}

/* After a visit: the next one is due as soon as the share of CPU time permits. */
static void set_pace(struct sampler *m, uint64_t cost_ns)
{
	double pace_ns;

	m->visit_cost_ns += VISIT_COST_LEARN * ((double)cost_ns - m->visit_cost_ns);
	pace_ns = VISITS_SHARE * m->visit_cost_ns;
	m->pace_ns = pace_ns > (double)m->period_ns ? (uint64_t)pace_ns : m->period_ns;
}

static void *sampler_main(void *arg)
{
	struct sampler *m = arg;
	uint64_t due_ns = clock_ns(CLOCK_MONOTONIC);

	(void)pthread_mutex_lock(&m->lock);
	while (!m->end) {
		if (__atomic_load_n(&m->bpf->bss->gp_epoch, __ATOMIC_ACQUIRE)) {
			visit_waiting(m, false);
			set_pace(m, clock_ns(CLOCK_THREAD_CPUTIME_ID) - m->cpu_ns);
			sampled_cpus__poll(m->cpus, clock_now_ns());
		} else {
			m->last_ns = 0;
			sampled_cpus__pause(m->cpus);
		}
		m->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		wait_for_visit(m, &due_ns);
	}
	(void)pthread_mutex_unlock(&m->lock);
	return NULL;
}

static int start_thread(struct sampler *m)
{
	int err = thread_start(&m->thread, "gp-sampler", sampler_main, m);

	m->has_thread = !err;
	return err;
}

int session_sample_add(struct probe_session *s, pid_t pid)
{
	union bpf_iter_link_info info = {.task.pid = (uint32_t)pid};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct visited_process p = {.pid = pid};
	int err;

	if (!s->sampler || bpf_program__fd(s->bpf->progs.gp_look) < 0)
		return 0;
	p.link = bpf_program__attach_iter(s->bpf->progs.gp_look, &opts);
	if (!p.link)
		return -errno;
	(void)pthread_mutex_lock(&s->sampler->lock);
	err = vec_push(&s->sampler->processes, p);
	(void)pthread_mutex_unlock(&s->sampler->lock);
	if (err)
		(void)bpf_link__destroy(p.link);
	return err;
}

void session_sample_drop(struct probe_session *s, pid_t pid)
{
	struct sampler *m = s->sampler;
	size_t kept = 0;

	if (!m)
		return;
	(void)pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->processes.nr; i++) {
		if (m->processes.items[i].pid == pid)
			(void)bpf_link__destroy(m->processes.items[i].link);
		else
			m->processes.items[kept++] = m->processes.items[i];
	}
	m->processes.nr = kept;
	(void)pthread_mutex_unlock(&m->lock);
}

void probe_session__renew_samples(struct probe_session *s)
{
	if (!s->sampler || !s->epochs.started || s->epochs.paused)
		return;
	(void)pthread_mutex_lock(&s->sampler->lock);
	visit_waiting(s->sampler, true);
	__atomic_store_n(&s->bpf->bss->gp_epoch, ++s->epochs.latest, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&s->sampler->lock);
}

void session_end_epoch(struct probe_session *s)
{
	uint32_t *epoch = &s->bpf->bss->gp_epoch;

	if (s->sampler)
		(void)pthread_mutex_lock(&s->sampler->lock);
	if (s->sampler && __atomic_load_n(epoch, __ATOMIC_ACQUIRE))
		visit_waiting(s->sampler, true);
	__atomic_store_n(epoch, 0, __ATOMIC_RELEASE);
	if (s->sampler)
		(void)pthread_mutex_unlock(&s->sampler->lock);
}

uint64_t session_sample_missed(const struct probe_session *s)
{
	return s->sampler ? __atomic_load_n(&s->sampler->missed_nr, __ATOMIC_RELAXED) : 0;
}

uint64_t probe_session__sampler_ns(const struct probe_session *s)
{
	return s->sampler ? __atomic_load_n(&s->sampler->cpu_ns, __ATOMIC_RELAXED) : 0;
}

uint64_t probe_session__sampling_ns(const struct probe_session *s)
{
	struct counters c;

	if (!s->sampler)
		return 0;
	counters_read(s->bpf, &c);
	return c.sampling_ns;
}

int probe_session__set_sample_period(struct probe_session *s, uint64_t period_ns)
{
	struct sampler *m = s->sampler;
	uint64_t before_ns;
	int err;

	if (!m || !period_ns)
		return 0;
	(void)pthread_mutex_lock(&m->lock);
	before_ns = m->bpf->bss->gp_sample_ns;
	err = sampled_cpus__set_period(m->cpus, period_ns);
	if (err)
		(void)sampled_cpus__set_period(m->cpus, before_ns);
	else
		m->period_ns = visit_period(period_ns);
	(void)pthread_mutex_unlock(&m->lock);
	return err;
}

bool probe_session__samples_by_tick(const struct probe_session *s)
{
	return s->sampler && s->bpf->rodata->gp_tick_ns;
}

/* ---- both ---- */

static int init_locks(struct sampler *m)
{
	pthread_condattr_t attr;
	int err = pthread_condattr_init(&attr);

	err = err ?: pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = err ?: pthread_cond_init(&m->wake, &attr);
	err = err ?: pthread_mutex_init(&m->lock, NULL);
	return -err;
}

static int explain_no_samples(int err, struct reason *why)
{
	char text[320];

	if (err != -EPERM && err != -EACCES)
		return reason_set(why, err, "cannot sample: %s; see 'gpuprof doctor'",
				  strerror(-err));
	rights_explain(RIGHT_PERF, text, sizeof(text));
	return reason_set(why, err, "cannot sample: %s", text);
}

int session_sample_check(const struct probe_session *s, struct reason *why)
{
	if (!s->options.sample_hz || rights_in_first_pid_namespace() > 0)
		return 0;
	return reason_set(
		why, -EOPNOTSUPP,
		"cannot sample from within a PID namespace; start the container with "
		"--pid=host --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE (Docker), or "
		"with hostPID: true and securityContext.capabilities.add: [BPF, PERFMON, "
		"SYS_PTRACE] (Kubernetes), or use --mode trace");
}

int session_sample_new(struct probe_session *s, struct reason *why)
{
	struct sampler *m;
	int err;

	if (!s->options.sample_hz)
		return 0;
	m = calloc(1, sizeof(*m));
	err = m ? init_locks(m) : -ENOMEM;
	if (err) {
		free(m);
		return reason_set(why, err, "out of memory");
	}
	m->bpf = s->bpf;
	m->period_ns = m->pace_ns = visit_period(SECOND_NS / s->options.sample_hz);
	s->sampler = m;
	if (!s->bpf->rodata->gp_task_by_pid)
		log_warn("this kernel has no bpf_task_from_pid() (Linux 6.2 has it): waiting "
			 "threads are sampled without their Python stacks");
	s->bpf->links.gp_sampled_exit = bpf_program__attach(s->bpf->progs.gp_sampled_exit);
	if (s->bpf->links.gp_sampled_exit)
		m->cpus = sampled_cpus__new(s->bpf);
	err = m->cpus ? start_thread(m) : -errno;
	return err ? explain_no_samples(err, why) : 0;
}

void session_sample_free(struct probe_session *s)
{
	struct sampler *m = s->sampler;

	if (!m)
		return;
	if (m->has_thread) {
		(void)pthread_mutex_lock(&m->lock);
		m->end = true;
		(void)pthread_cond_signal(&m->wake);
		(void)pthread_mutex_unlock(&m->lock);
		(void)pthread_join(m->thread, NULL);
	}
	sampled_cpus__free(m->cpus);
	for (size_t i = 0; i < m->processes.nr; i++)
		(void)bpf_link__destroy(m->processes.items[i].link);
	vec_done(&m->processes);
	(void)pthread_cond_destroy(&m->wake);
	(void)pthread_mutex_destroy(&m->lock);
	free(m);
	s->sampler = NULL;
}
