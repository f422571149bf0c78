/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sampling: the scheduler's tick or, where that is too seldom, a timer on each CPU runs a program
 * that looks at what runs there, and a thread of gpuprof looks, more seldom, at the threads that
 * wait. Both go on from new to free; while there is no epoch they do nothing.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "gpuprof.skel.h"
#include "probe/session_private.h"
#include "target/kallsyms.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* So many times as seldom as the timers tick: waits are long. A thread in a new wait costs us some
 * ten microseconds, so with many of them we look more seldom still, for all looks to take one in
 * LOOKS_SHARE of a CPU's nanoseconds. A look stands for the time since the last one. */
#define TICKS_PER_LOOK 8
#define LOOKS_SHARE    100
#define LOOK_LEARN     0.2 /* weight of the latest */
/* By the samples' pace no more seldom than this, or a recording begins with what was before. */
#define LOOK_NS_MAX SECOND_NS

/* So many ticks of the scheduler must come for one sample that is due. */
#define TICKS_PER_SAMPLE 1.5
#define TICKS_LOOKED_FOR 25
/* The CPUs that have no tick while one thread alone runs on them. */
#define TICKLESS_CPUS "/sys/devices/system/cpu/nohz_full"

/* Threads of one process, for the program that looks at them. */
struct looked_at {
	pid_t pid;
	struct bpf_link *link;
};

/* Of one CPU. */
struct timer {
	struct bpf_link *link; /* closes fd */
	int fd;
};

struct sampler {
	struct gpuprof_bpf *bpf;
	VEC(struct timer) timers;
	pthread_t thread;
	bool has_thread;
	/* The rest is under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool end;
	uint64_t period_ns; /* of looks, at least */
	VEC(struct looked_at) processes;
	uint64_t last_ns;    /* of the last look, 0: none in this epoch */
	uint64_t pace_ns;    /* of looks, now */
	double look_cost_ns; /* CPU time of one, lately */
	uint64_t missed_nr;
	uint64_t cpu_ns;
};

/* Some CPU may go without a tick while it is busy. */
static bool may_be_tickless(void)
{
	char first = '\0';
	int fd = open(TICKLESS_CPUS, O_RDONLY | O_CLOEXEC);
	ssize_t nr = fd < 0 ? 0 : read(fd, &first, 1);

	if (fd >= 0)
		(void)close(fd);
	return nr > 0 && first >= '0' && first <= '9';
}

/* What the program within the tick has to know. */
struct tick {
	uint64_t ns; /* the time between two, 0: they are not to be used, or come too seldom */
	uint64_t code, function;
};

/* Whether ticks come as they should, on a CPU that is busy, and are understood: by a program that
 * is loaded for this alone, as the whole takes long. */
static bool ticks_come(const struct tick *tick, uint64_t ns)
{
	struct gpuprof_bpf *bpf = gpuprof_bpf__open();
	struct bpf_program *program;
	struct bpf_link *link = NULL;
	struct bpf_map *map;
	uint64_t begin;
	bool seen = false;

	if (!bpf)
		return false;
	bpf_object__for_each_program(program, bpf->obj)
	{
		(void)bpf_program__set_autoload(program, program == bpf->progs.gp_tick_check);
	}
	bpf_object__for_each_map(map, bpf->obj)
	{
		if (!bpf_map__is_internal(map))
			(void)bpf_map__set_autocreate(map, false);
	}
	bpf->rodata->gp_tick_code = tick->code;
	bpf->rodata->gp_tick_function = tick->function;
	if (!gpuprof_bpf__load(bpf))
		link = bpf_program__attach(bpf->progs.gp_tick_check);
	begin = clock_ns(CLOCK_MONOTONIC);
	while (link && !seen && clock_ns(CLOCK_MONOTONIC) - begin < TICKS_LOOKED_FOR * ns)
		seen = __atomic_load_n(&bpf->bss->gp_ticks_seen, __ATOMIC_ACQUIRE);
	(void)bpf_link__destroy(link);
	gpuprof_bpf__destroy(bpf);
	return seen;
}

static void tick_find(uint64_t sample_ns, struct tick *tick)
{
	/* Until 6.7, and since. */
	static const char *const names[] = {"asm_sysvec_apic_timer_interrupt", "tick_sched_timer",
					    "tick_nohz_handler"};
	const char *no = getenv("GPUPROF_NO_TICK");
	uint64_t at[sizeof(names) / sizeof(names[0])];
	struct timespec each;

	if ((no && *no && strcmp(no, "0") != 0) || may_be_tickless() ||
	    clock_getres(CLOCK_MONOTONIC_COARSE, &each) || each.tv_sec ||
	    (double)sample_ns < TICKS_PER_SAMPLE * (double)each.tv_nsec ||
	    kallsyms__addresses(names, sizeof(names) / sizeof(names[0]), at))
		return;
	tick->code = at[0];
	tick->function = at[1] ? at[1] : at[2];
	if (tick->code && tick->function && ticks_come(tick, (uint64_t)each.tv_nsec))
		tick->ns = (uint64_t)each.tv_nsec;
}

int session_sample_choose(const struct probe_session *s, struct gpuprof_bpf *bpf)
{
	bool wanted = s->options.sample_hz;
	uint64_t sample_ns = wanted ? SECOND_NS / s->options.sample_hz : 0;
	struct tick tick = {0};
	int err;

	if (wanted && !s->no_tick)
		tick_find(sample_ns, &tick);
	err = bpf_program__set_autoload(bpf->progs.gp_sample_timer, wanted && !tick.ns);

	err = err ?: bpf_program__set_autoload(bpf->progs.gp_tick_check, false);
	err = err ?: bpf_program__set_autoload(bpf->progs.gp_sample_tick, tick.ns);

	/* Of the others only those that follow the process. */
	for (enum program i = 0; i < PROGRAMS_NR && wanted && !err; i++)
		if (i != PROGRAM_LOADER && i != PROGRAM_CODE_FREED)
			err = bpf_program__set_autoload(session_program(bpf, i), false);
	err = err ?: bpf_program__set_autoload(bpf->progs.gp_look, wanted);
	err = err ?: bpf_program__set_autoload(bpf->progs.gp_sampled_exit, wanted);
	err = err ?: bpf_map__set_autocreate(bpf->maps.sample_walks, wanted);
	err = err ?: bpf_map__set_autocreate(bpf->maps.sampled_threads, wanted);
	if (err || !wanted)
		return err;
	/* Hardly two samples are at the same instruction: what is not seen again makes room. */
	err = bpf_map__set_type(bpf->maps.stacks, BPF_MAP_TYPE_LRU_HASH);
	err = err ?: bpf_map__set_map_flags(bpf->maps.stacks, 0);
	if (err)
		return err;
	bpf->rodata->gp_cpus_nr = (uint32_t)libbpf_num_possible_cpus();
	bpf->bss->gp_sample_ns = sample_ns;
	bpf->rodata->gp_tick_ns = tick.ns;
	bpf->rodata->gp_tick_code = tick.code;
	bpf->rodata->gp_tick_function = tick.function;
	return bpf_map__set_max_entries(bpf->maps.sample_walks, bpf->rodata->gp_cpus_nr + 1);
}

/* ---- threads that run ---- */

/* 0, or -errno: -ENODEV if there is no such CPU now. */
static int timer_on(struct sampler *m, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = m->bpf->bss->gp_sample_ns,
	};
	int err, fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	struct timer timer = {.fd = fd};

	if (fd < 0)
		return -errno;
	timer.link = bpf_program__attach_perf_event(m->bpf->progs.gp_sample_timer, fd);
	err = timer.link ? vec_push(&m->timers, timer) : -errno;
	if (!timer.link)
		(void)close(fd);
	else if (err)
		(void)bpf_link__destroy(timer.link);
	return err;
}

static int timers_on(struct sampler *m)
{
	int nr = libbpf_num_possible_cpus(), err = nr > 0 ? 0 : nr;

	if (m->bpf->rodata->gp_tick_ns) {
		m->bpf->links.gp_sample_tick = bpf_program__attach(m->bpf->progs.gp_sample_tick);
		return m->bpf->links.gp_sample_tick ? 0 : -errno;
	}
	for (int cpu = 0; cpu < nr && !err; cpu++) {
		err = timer_on(m, cpu);
		if (err == -ENODEV)
			err = 0;
	}
	return err ? err : m->timers.nr ? 0 : -ENODEV;
}

/* ---- threads that wait ---- */

/* Runs the program on each thread of the process. */
static void look_at(const struct looked_at *p)
{
	int fd = bpf_iter_create(bpf_link__fd(p->link));
	char none[64];
	ssize_t nr;

	if (fd < 0)
		return;
	do
		nr = read(fd, none, sizeof(none));
	while (nr > 0 || (nr < 0 && (errno == EAGAIN || errno == EINTR)));
	(void)close(fd);
}

static void look(struct sampler *m, bool tell)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), past = m->last_ns ? now - m->last_ns : 0;

	if (!tell) {
		if (past > m->pace_ns + m->pace_ns / 2)
			m->missed_nr += (past + m->pace_ns / 2) / m->pace_ns - 1;
		m->bpf->bss->gp_look_ns = past ? past : m->pace_ns;
		m->last_ns = now;
	}
	__atomic_store_n(&m->bpf->bss->gp_look_tells, tell, __ATOMIC_RELEASE);
	for (size_t i = 0; i < m->processes.nr; i++)
		look_at(&m->processes.items[i]);
}

static uint64_t look_period(uint64_t sample_ns)
{
	uint64_t ns = TICKS_PER_LOOK * sample_ns;

	return ns < LOOK_NS_MAX ? ns : LOOK_NS_MAX;
}

/* The next time of the pace that is still to come. */
static void wait_for_turn(struct sampler *m, uint64_t *turn_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct timespec at;

	*turn_ns += m->pace_ns;
	if (*turn_ns < now)
		*turn_ns = now + m->pace_ns - (now - *turn_ns) % m->pace_ns;
	at.tv_sec = (time_t)(*turn_ns / SECOND_NS);
	at.tv_nsec = (long)(*turn_ns % SECOND_NS);
	while (!m->end && !pthread_cond_timedwait(&m->wake, &m->lock, &at))
		;
}

/* A look has been; the next one comes as soon as all of them may. */
static void set_pace(struct sampler *m, uint64_t cost_ns)
{
	double pace_ns;

	m->look_cost_ns += LOOK_LEARN * ((double)cost_ns - m->look_cost_ns);
	pace_ns = LOOKS_SHARE * m->look_cost_ns;
	m->pace_ns = pace_ns > (double)m->period_ns ? (uint64_t)pace_ns : m->period_ns;
}

static void *sampler_main(void *arg)
{
	struct sampler *m = arg;
	uint64_t turn_ns = clock_ns(CLOCK_MONOTONIC);

	(void)pthread_mutex_lock(&m->lock);
	while (!m->end) {
		if (__atomic_load_n(&m->bpf->bss->gp_epoch, __ATOMIC_ACQUIRE)) {
			look(m, false);
			set_pace(m, clock_ns(CLOCK_THREAD_CPUTIME_ID) - m->cpu_ns);
		} else {
			m->last_ns = 0;
		}
		m->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		wait_for_turn(m, &turn_ns);
	}
	(void)pthread_mutex_unlock(&m->lock);
	return NULL;
}

/* Signals are the main thread's. */
static int start_thread(struct sampler *m)
{
	sigset_t all, before;
	int err;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&m->thread, NULL, sampler_main, m);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	m->has_thread = !err;
	return -err;
}

int session_sample_add(struct probe_session *s, pid_t pid)
{
	union bpf_iter_link_info info = {.task.pid = (uint32_t)pid};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct looked_at p = {.pid = pid};
	int err;

	if (!s->sampler)
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
	if (!s->sampler || !s->started || s->paused)
		return;
	(void)pthread_mutex_lock(&s->sampler->lock);
	look(s->sampler, true);
	__atomic_store_n(&s->bpf->bss->gp_epoch, ++s->epoch, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&s->sampler->lock);
}

void session_end_epoch(struct probe_session *s)
{
	uint32_t *epoch = &s->bpf->bss->gp_epoch;

	if (s->sampler)
		(void)pthread_mutex_lock(&s->sampler->lock);
	if (s->sampler && __atomic_load_n(epoch, __ATOMIC_ACQUIRE))
		look(s->sampler, true);
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
	session_counters(s, &c);
	return c.sampling_ns;
}

static int set_period(struct sampler *m, uint64_t period_ns)
{
	/* Before the timers: their first tick that goes by it sees that it is another one. */
	__atomic_store_n(&m->bpf->bss->gp_sample_ns, period_ns, __ATOMIC_RELEASE);
	for (size_t i = 0; i < m->timers.nr; i++)
		if (ioctl(m->timers.items[i].fd, PERF_EVENT_IOC_PERIOD, &period_ns))
			return -errno;
	return 0;
}

int probe_session__set_sample_period(struct probe_session *s, uint64_t period_ns)
{
	struct sampler *m = s->sampler;
	uint64_t before_ns;
	int err;

	if (!m || !period_ns)
		return 0;
	before_ns = m->bpf->bss->gp_sample_ns;
	err = set_period(m, period_ns);
	if (err) {
		(void)set_period(m, before_ns);
		return err;
	}
	(void)pthread_mutex_lock(&m->lock);
	m->period_ns = look_period(period_ns);
	(void)pthread_mutex_unlock(&m->lock);
	return 0;
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

int session_sample_new(struct probe_session *s, struct reason *why)
{
	struct sampler *m;
	int err;

	if (!s->options.sample_hz)
		return 0;
	if (!session_in_first_pid_namespace())
		return reason_set(why, -EOPNOTSUPP,
				  "cannot sample from within a PID namespace; run gpuprof outside "
				  "of the container, or with --mode trace");
	m = calloc(1, sizeof(*m));
	err = m ? init_locks(m) : -ENOMEM;
	if (err) {
		free(m);
		return reason_set(why, err, "out of memory");
	}
	m->bpf = s->bpf;
	m->period_ns = m->pace_ns = look_period(SECOND_NS / s->options.sample_hz);
	s->sampler = m;
	s->bpf->links.gp_sampled_exit = bpf_program__attach(s->bpf->progs.gp_sampled_exit);
	err = s->bpf->links.gp_sampled_exit ? timers_on(m) : -errno;
	err = err ?: start_thread(m);
	if (err)
		return reason_set(why, err, "cannot sample: %s; need CAP_PERFMON, try sudo",
				  strerror(-err));
	return 0;
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
	for (size_t i = 0; i < m->timers.nr; i++)
		(void)bpf_link__destroy(m->timers.items[i].link);
	for (size_t i = 0; i < m->processes.nr; i++)
		(void)bpf_link__destroy(m->processes.items[i].link);
	vec_done(&m->timers);
	vec_done(&m->processes);
	(void)pthread_cond_destroy(&m->wake);
	(void)pthread_mutex_destroy(&m->lock);
	free(m);
	s->sampler = NULL;
}
