/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * libgpuprof-cupti.so: the collector inside the traced process. One exported function makes the
 * ring and starts one thread. The thread does what gpuprof writes into the ring's page, and leaves
 * when gpuprof says so or its heartbeat stops. A later call starts anew, with a new ring. The
 * library never unloads (linked with nodelete): PyTorch may keep addresses of its callbacks for as
 * long as an op runs.
 */
#include "collector/cupti/cupti.h"
#include "collector/features.h"
#include "collector/runtime/compat.h"
#include "collector/runtime/fork_guard.h"
#include "collector/runtime/ring_writer.h"
#include "collector/torch/ops.h"
#include "common/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The thread sleeps for so long if nobody wakes it: one turn. */
#define TURN_NS 100000000L
/* gpuprof counts as gone after a silence of HEARTBEAT_NS that also lasted HEARTBEAT_TURNS of our
 * turns (a machine may have been paused), or if it has not come at all within FIRST_BEAT_NS. A
 * later gpuprof may take over after a silence of HAND_OVER_NS. */
#define HEARTBEAT_NS	3000000000ULL
#define HEARTBEAT_TURNS 25
#define FIRST_BEAT_NS	30000000000ULL
#define HAND_OVER_NS	1500000000ULL
/* Tries of 1 ms in InitializeInjection(), where a thread of the process waits. gpuprof calls again
 * if that was too short; CUDA does not. */
#define LEAVE_TRIES	 5
#define LEAVE_TRIES_CUDA 2000
#define READER_TRIES	 2000

enum phase { PHASE_IDLE = 0, PHASE_RUNNING = 1, PHASE_LEAVING = 2 };

static struct {
	int phase;		  /* enum phase */
	uint32_t calls_nr;	  /* calls of InitializeInjection(): each restarts FIRST_BEAT_NS */
	uint32_t hand_over;	  /* a later gpuprof waits for the thread to leave */
	uint64_t silent_since_ns; /* gpuprof's last sign of life; 0: none yet */
	pid_t owner;		  /* the process that opened the ring; 0: none has */
	bool early;		  /* CUPTI was armed before the thread was started */
	struct ring_writer ring;
} self = {.ring.fd = -1};

/* State of the collector's thread. */
struct follower {
	struct features features;
	struct gp_ring_page *page;
	uint32_t calls_nr;     /* the last value seen */
	uint64_t heartbeat_ns; /* the last one seen, */
	uint64_t seen_ns;      /* when it came, */
	uint32_t seen_turn;    /* and in which turn */
};

/* For gpuprof's own cost in its report. */
static void report_own_cpu(const struct follower *f)
{
	__atomic_store_n(&f->page->thread_cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID),
			 __ATOMIC_RELAXED);
}

static bool reader_is_gone(struct follower *f)
{
	uint64_t beat_ns = __atomic_load_n(&f->page->heartbeat_ns, __ATOMIC_RELAXED);
	uint32_t calls_nr = __atomic_load_n(&self.calls_nr, __ATOMIC_RELAXED);
	uint64_t now = clock_now_ns();

	if (__atomic_load_n(&self.hand_over, __ATOMIC_RELAXED))
		return true;
	if (beat_ns != f->heartbeat_ns || (!beat_ns && calls_nr != f->calls_nr)) {
		f->heartbeat_ns = beat_ns;
		f->calls_nr = calls_nr;
		f->seen_ns = now;
		f->seen_turn = f->features.turns;
		__atomic_store_n(&self.silent_since_ns, beat_ns ? now : 0, __ATOMIC_RELAXED);
		return false;
	}
	return now - f->seen_ns > (beat_ns ? HEARTBEAT_NS : FIRST_BEAT_NS) &&
	       f->features.turns - f->seen_turn > HEARTBEAT_TURNS;
}

static void leave(struct follower *f, enum gp_collector_state state)
{
	bool left = features__disarm(&f->features);

	if (state != GP_COLLECTOR_FAILED)
		features__report(&f->features, 0, left ? 0 : GP_FEATURE_OPS);
	__atomic_store_n(&self.phase, PHASE_LEAVING, __ATOMIC_RELEASE);
	__atomic_store_n(&f->page->state, state, __ATOMIC_RELEASE);
	/* The ring stays mapped if a stopped thread may still write to it. */
	ops__release();
	if (left)
		ring_writer__close(&self.ring);
	else
		ring_writer__close_fd(&self.ring);
	__atomic_store_n(&self.phase, PHASE_IDLE, __ATOMIC_RELEASE);
}

static void *run(void *arg)
{
	static const struct timespec turn = {.tv_nsec = TURN_NS};
	static const char no_memory[] = "the collector's ring: not enough memory in the process's "
					"control group";
	struct follower f = {.page = self.ring.page};

	features__init(&f.features, &self.ring);
	(void)prctl(PR_SET_NAME, "gpuprof", 0, 0, 0);
	cupti__set_own_thread();
	if (ring_writer__populate(&self.ring)) {
		memcpy(f.page->message, no_memory, sizeof(no_memory));
		leave(&f, GP_COLLECTOR_FAILED);
		return NULL;
	}
	if (self.early)
		features__report(&f.features, GP_FEATURE_CUPTI, 0);
	__atomic_store_n(&f.page->state, GP_COLLECTOR_READY, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&f.page->quit, __ATOMIC_ACQUIRE) && !reader_is_gone(&f)) {
		features__poll(&f.features);
		report_own_cpu(&f);
		(void)__atomic_add_fetch(&f.page->beat, 1, __ATOMIC_RELAXED);
		/* gpuprof wakes us when it has changed `wanted` or `quit`. */
		(void)syscall(SYS_futex, &f.page->wanted, FUTEX_WAIT, f.features.wanted, &turn,
			      NULL, 0);
	}
	leave(&f, GP_COLLECTOR_INERT);
	return NULL;
}

/* Forgets everything in a fork's child: the ring and the thread belong to the parent. */
static void forget(void)
{
	fork_guard__forget();
	ops__forget();
	cupti__forget();
	ring_writer__close(&self.ring);
	self.owner = 0;
	__atomic_store_n(&self.phase, PHASE_IDLE, __ATOMIC_RELEASE);
}

static bool start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int err;

	if (pthread_attr_init(&attr))
		return false;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, run, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return !err;
}

/* Whether the gpuprof that the running thread serves seems to have died. */
static bool reader_is_silent(void)
{
	uint64_t since_ns = __atomic_load_n(&self.silent_since_ns, __ATOMIC_RELAXED);

	return since_ns && clock_now_ns() - since_ns > HAND_OVER_NS;
}

/* True if the caller is to start the collector; else *ret_result says why not. */
static bool begin(int tries_max, enum gp_collector_start *ret_result)
{
	*ret_result = GP_START_LATER;
	for (int tries = 0; tries < tries_max; tries++) {
		int phase = PHASE_IDLE;

		if (__atomic_compare_exchange_n(&self.phase, &phase, PHASE_RUNNING, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return true;
		if (phase == PHASE_RUNNING && !reader_is_silent()) {
			*ret_result = GP_START_RUNS;
			return false;
		}
		if (phase == PHASE_RUNNING)
			__atomic_store_n(&self.hand_over, 1, __ATOMIC_RELAXED);
		clock_sleep_ms();
	}
	return false;
}

/* Whether `gpuprof run` has asked CUDA to load us, by CUDA_INJECTION64_PATH. */
static bool is_by_cuda(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	Dl_info info;

	return path && getenv("GPUPROF_RUN") && dladdr((void *)start_thread, &info) &&
	       info.dli_fname && !strcmp(info.dli_fname, path);
}

/* Whether `gpuprof run` wants this process. GPUPROF_RUN names it by PID, because its children
 * inherit the environment; 0 means that the children are recorded too. */
static bool is_invited(void)
{
	long wanted = is_by_cuda() ? strtol(getenv("GPUPROF_RUN"), NULL, 10) : -1;

	return !wanted || wanted == getpid();
}

/* Arms CUPTI at once, so that no GPU work is missed. That runs on the thread that initializes CUDA:
 * ours would wait for CUDA while CUDA waits for us. */
static void arm_early(void)
{
	const char *why;

	if (ring_writer__populate(&self.ring))
		return;
	self.ring.page->wanted = GP_FEATURE_CUPTI;
	self.early = cupti__arm(&self.ring, true, false, &why) == CUPTI_ARMED;
}

/* Waits until gpuprof has opened the ring, because a short program might end before. */
static void wait_for_reader(void)
{
	for (int i = 0; i < READER_TRIES; i++) {
		if (__atomic_load_n(&self.ring.page->heartbeat_ns, __ATOMIC_RELAXED))
			return;
		clock_sleep_ms();
	}
}

static bool start(bool invited)
{
	static bool fork_watched;

	if (ops__init() || ring_writer__open(&self.ring, RING_DATA_BYTES))
		return false;
	if (!fork_watched && pthread_atfork(fork_guard__hold, fork_guard__release, forget)) {
		ring_writer__close(&self.ring);
		return false;
	}
	fork_watched = true;
	self.owner = getpid();
	self.hand_over = 0;
	self.silent_since_ns = 0;
	self.early = false;
	if (invited)
		arm_early();
	if (!start_thread()) {
		cupti__disarm();
		ring_writer__close(&self.ring);
		return false;
	}
	if (invited)
		wait_for_reader();
	return true;
}

/*
 * The only entry point. gpuprof calls it inside the process, or CUDA does if CUDA_INJECTION64_PATH
 * names this library. Returns enum gp_collector_start.
 */
__attribute__((visibility("default"))) int InitializeInjection(void);

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	int saved = errno;
	enum gp_collector_start result = GP_START_FAILED;
	bool invited = is_invited(), by_cuda = is_by_cuda();

	/* This is a child that was made without running fork()'s handlers. */
	if (self.owner && self.owner != getpid())
		forget();
	(void)__atomic_add_fetch(&self.calls_nr, 1, __ATOMIC_RELAXED);
	/* This is a child that nobody records: no gpuprof will come. */
	if (!invited && by_cuda) {
		errno = saved;
		return GP_START_FAILED;
	}
	if (begin(by_cuda ? LEAVE_TRIES_CUDA : LEAVE_TRIES, &result)) {
		result = start(invited) ? GP_START_RUNS : GP_START_FAILED;
		if (result == GP_START_FAILED)
			__atomic_store_n(&self.phase, PHASE_IDLE, __ATOMIC_RELEASE);
	}
	errno = saved;
	return by_cuda && result == GP_START_LATER ? GP_START_FAILED : result;
}
