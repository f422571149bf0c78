/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "probe/session/sampled_cpus.h"

#include "base/log.h"
#include "common/clock.h"
#include "gpuprof.skel.h"
#include "inspect/kernel/kallsyms.h"
#include "probe/session/cpu_sharing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How many scheduler ticks there must be per sample. */
#define TICKS_PER_SAMPLE 1.5
#define TICKS_LOOKED_FOR 25
/* The CPUs that stop the tick while a single thread runs on them. */
#define TICKLESS_CPUS "/sys/devices/system/cpu/nohz_full"

struct sampled_cpu {
	struct bpf_link *timer; /* NULL: no timer */
	int fd;			/* of the timer, which closes it */
	struct cpu_sharing sharing;
};

struct sampled_cpus {
	struct gpuprof_bpf *bpf;
	/* One for each CPU, in the kernel's map; NULL: the tick is not used. */
	struct gp_sampled_cpu *counted;
	bool refused; /* the kernel refused a timer */
	size_t nr;
	struct sampled_cpu cpus[];
};

/* ---- by what ---- */

/* Whether some CPU may stop its tick while it is busy. */
static bool may_be_tickless(void)
{
	char first = '\0';
	int fd = open(TICKLESS_CPUS, O_RDONLY | O_CLOEXEC);
	ssize_t nr = fd < 0 ? 0 : read(fd, &first, 1);

	if (fd >= 0)
		(void)close(fd);
	return nr > 0 && first >= '0' && first <= '9';
}

/* What the program in the tick must know. */
struct tick {
	uint64_t ns; /* time between two ticks; 0: they cannot be used, or are too rare */
	uint64_t code, function;
};

/* Whether ticks arrive on a busy CPU as expected and are recognised, tried with a program of its
 * own, because loading all of them takes long. */
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
	begin = clock_now_ns();
	while (link && !seen && clock_now_ns() - begin < TICKS_LOOKED_FOR * ns)
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

int sampled_cpus__choose(struct gpuprof_bpf *bpf, uint64_t sample_ns, bool no_tick)
{
	int err, nr = libbpf_num_possible_cpus();
	struct tick tick = {0};

	if (nr < 0)
		return nr;
	if (sample_ns && !no_tick)
		tick_find(sample_ns, &tick);
	bpf->rodata->gp_cpus_nr = (uint32_t)nr;
	bpf->bss->gp_sample_ns = sample_ns;
	bpf->rodata->gp_tick_ns = tick.ns;
	bpf->rodata->gp_tick_code = tick.code;
	bpf->rodata->gp_tick_function = tick.function;
	err = bpf_map__set_autocreate(bpf->maps.sampled_cpus, sample_ns);
	err = err ?: bpf_map__set_max_entries(bpf->maps.sampled_cpus, (uint32_t)nr);
	err = err ?: bpf_program__set_autoload(bpf->progs.gp_tick_check, false);
	err = err ?: bpf_program__set_autoload(bpf->progs.gp_sample_timer, sample_ns);
	return err ?: bpf_program__set_autoload(bpf->progs.gp_sample_tick, tick.ns);
}

/* ---- timers ---- */

static size_t counted_bytes(const struct sampled_cpus *s)
{
	return s->nr * sizeof(*s->counted);
}

/* Starts the CPU's timer. 0, or -errno: -ENODEV if the CPU is offline. */
static int timer_on(struct sampled_cpus *s, size_t cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = s->bpf->bss->gp_sample_ns,
	};
	struct sampled_cpu *c = &s->cpus[cpu];
	int err;

	c->fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (c->fd < 0)
		return -errno;
	c->timer = bpf_program__attach_perf_event(s->bpf->progs.gp_sample_timer, c->fd);
	if (c->timer)
		return 0;
	err = -errno;
	(void)close(c->fd);
	return err;
}

static void timer_off(struct sampled_cpu *c)
{
	(void)bpf_link__destroy(c->timer);
	c->timer = NULL;
}

static int all_on(struct sampled_cpus *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr; i++) {
		int err = timer_on(s, i);

		if (err && err != -ENODEV)
			return err;
		nr += !err;
	}
	return nr ? 0 : -ENODEV;
}

static int tick_on(struct sampled_cpus *s)
{
	void *map = mmap(NULL, counted_bytes(s), PROT_READ | PROT_WRITE, MAP_SHARED,
			 bpf_map__fd(s->bpf->maps.sampled_cpus), 0);

	if (map == MAP_FAILED)
		return -errno;
	s->counted = map;
	s->bpf->links.gp_sample_tick = bpf_program__attach(s->bpf->progs.gp_sample_tick);
	return s->bpf->links.gp_sample_tick ? 0 : -errno;
}

struct sampled_cpus *sampled_cpus__new(struct gpuprof_bpf *bpf)
{
	size_t nr = bpf->rodata->gp_cpus_nr;
	struct sampled_cpus *s = calloc(1, sizeof(*s) + nr * sizeof(s->cpus[0]));
	int err;

	if (!s)
		return NULL;
	s->bpf = bpf;
	s->nr = nr;
	err = bpf->rodata->gp_tick_ns ? tick_on(s) : all_on(s);
	if (!err)
		return s;
	sampled_cpus__free(s);
	errno = -err;
	return NULL;
}

int sampled_cpus__set_period(struct sampled_cpus *s, uint64_t period_ns)
{
	/* Set before the timers: their first tick under the new period must see that it changed. */
	__atomic_store_n(&s->bpf->bss->gp_sample_ns, period_ns, __ATOMIC_RELEASE);
	for (size_t i = 0; i < s->nr; i++)
		if (s->cpus[i].timer && ioctl(s->cpus[i].fd, PERF_EVENT_IOC_PERIOD, &period_ns))
			return -errno;
	return 0;
}

/* ---- CPUs that are shared ---- */

/* The tick stops sampling at once when the timer's turn begins, and the timer ends before the tick
 * goes on. Each then sees where the other one was last. */
static void give_to_timer(struct sampled_cpus *s, size_t cpu, uint64_t turn)
{
	__u64 *now = &s->counted[cpu].timer_turn;
	int err;

	__atomic_store_n(now, turn, __ATOMIC_RELEASE);
	err = timer_on(s, cpu);
	if (!err) {
		log_debug("CPU %zu is shared: a timer takes its samples", cpu);
		return;
	}
	__atomic_store_n(now, 0, __ATOMIC_RELEASE);
	s->cpus[cpu].sharing = (struct cpu_sharing){0};
	if (err == -ENODEV)
		return; /* the CPU has gone offline */
	s->refused = true;
	log_warn("CPU %zu is shared, and samples of it cannot be taken by a timer: %s; shares of "
		 "threads that hand work to each other may be wrong",
		 cpu, strerror(-err));
}

static void give_to_tick(struct sampled_cpus *s, size_t cpu)
{
	timer_off(&s->cpus[cpu]);
	__atomic_store_n(&s->counted[cpu].timer_turn, 0, __ATOMIC_RELEASE);
	log_debug("CPU %zu: its samples are the tick's again", cpu);
}

void sampled_cpus__poll(struct sampled_cpus *s, uint64_t now_ns)
{
	for (size_t i = 0; s->counted && i < s->nr; i++) {
		struct sampled_cpu *c = &s->cpus[i];
		struct gp_sampled_cpu is = s->counted[i];
		bool timer = cpu_sharing__poll(&c->sharing, &is, now_ns, s->bpf->bss->gp_sample_ns);

		if (timer && !c->timer && !s->refused)
			give_to_timer(s, i, now_ns);
		else if (!timer && c->timer)
			give_to_tick(s, i);
	}
}

void sampled_cpus__pause(struct sampled_cpus *s)
{
	for (size_t i = 0; s->counted && i < s->nr; i++) {
		if (s->cpus[i].timer)
			give_to_tick(s, i);
		s->cpus[i].sharing = (struct cpu_sharing){0};
	}
}

void sampled_cpus__free(struct sampled_cpus *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr; i++)
		timer_off(&s->cpus[i]);
	if (s->counted)
		(void)munmap(s->counted, counted_bytes(s));
	free(s);
}
