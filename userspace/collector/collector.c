/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * libgpuprof-cupti.so: a collector in the target. One exported function makes the ring and starts
 * one thread, which follows what gpuprof writes into the ring's page and leaves when gpuprof says
 * so or stops beating. A later call starts afresh, with a new ring. The library never unloads
 * (linked with nodelete): PyTorch may keep addresses of its callbacks for as long as an op runs.
 */
#include "collector/cupti/cupti.h"
#include "collector/python/stack_cache.h"
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

/* How long the thread sleeps if nobody wakes it. */
#define TURN_NS 100000000L
/* gpuprof has gone when it has been silent for so long and for so many of our turns (a machine that
 * was paused is no sign of death), or has not come at all for FIRST_BEAT_NS. A later gpuprof that
 * wants the place gets it after HAND_OVER_NS. */
#define HEARTBEAT_NS	3000000000ULL
#define HEARTBEAT_TURNS 25
#define FIRST_BEAT_NS	30000000000ULL
#define HAND_OVER_NS	1500000000ULL
/* Turns between looks for PyTorch. */
#define RETRY_TURNS 5
/* Turns between flushes of CUPTI, and between tries to have it. */
#define SECOND_TURNS 10
/* Where all threads are held for each try. */
#define CUPTI_TURNS_MAX (32 * SECOND_TURNS)
/* Of 1 ms, in InitializeInjection(), in which a thread of the target waits: gpuprof comes again,
 * CUDA does not. */
#define LEAVE_TRIES	 5
#define LEAVE_TRIES_CUDA 2000
#define READER_TRIES	 2000

/* What the callbacks can do: operators, or annotations alone. */
#define OPS_FEATURES (uint32_t)(GP_FEATURE_OPS | GP_FEATURE_STEPS)
/* What is read from Python's frames. */
#define STACK_FEATURES (uint32_t)(GP_FEATURE_STACKS | GP_FEATURE_MODULES | GP_FEATURE_CALLS)

enum phase { PHASE_IDLE = 0, PHASE_RUNNING = 1, PHASE_LEAVING = 2 };

static struct {
	int phase;	    /* enum phase */
	uint32_t calls_nr;  /* of InitializeInjection(): each renews the time to wait for gpuprof */
	uint32_t hand_over; /* a later gpuprof waits for the thread to leave */
	uint64_t silent_since_ns; /* the last sign of life; 0: none yet */
	pid_t owner;
	bool early; /* CUPTI was armed before the thread was started */
	struct ring_writer ring;
} self = {.ring.fd = -1};

/* The thread's own. */
struct follower {
	struct gp_ring_page *page;
	struct ops_extras extras; /* as they were asked for when the ops were armed */
	struct gp_python python;  /* own copy: the page may be scribbled on */
	uint32_t wanted;	  /* as it was at the last turn */
	uint32_t active;	  /* as told; the page itself may be scribbled on */
	uint32_t failed;
	uint32_t refused; /* will not change until no longer wanted */
	uint32_t turns;
	uint32_t cupti_not_before; /* the next try to have CUPTI, */
	uint32_t cupti_pause;	   /* turns after the one before that */
	uint32_t calls_nr;	   /* the last ones seen */
	uint64_t heartbeat_ns;	   /* the last one seen, */
	uint64_t seen_ns;	   /* when it came, */
	uint32_t seen_turn;	   /* and in which turn */
	const char *ops_why;
	const char *memory_why;
	const char *cupti_why;
};

/* For gpuprof's account of what it costs. */
static void emit_own_cpu(const struct follower *f)
{
	__atomic_store_n(&f->page->thread_cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID),
			 __ATOMIC_RELAXED);
}

static void add_text(char *message, size_t bytes, const char *text)
{
	size_t at = strlen(message);
	size_t nr = strlen(text);

	if (at && at + 2 < bytes) {
		memcpy(message + at, "; ", 2);
		at += 2;
	}
	if (nr > bytes - 1 - at)
		nr = bytes - 1 - at;
	memcpy(message + at, text, nr);
}

/* The message first, so that who sees the bit finds its reason. */
static void emit(struct follower *f, uint32_t active, uint32_t failed)
{
	struct gp_ring_page *page = f->page;
	char message[sizeof(page->message)] = "";

	if ((failed & OPS_FEATURES) && f->ops_why)
		add_text(message, sizeof(message), f->ops_why);
	if ((failed & GP_FEATURE_SHAPES) && f->extras.shapes_why)
		add_text(message, sizeof(message), f->extras.shapes_why);
	if ((failed & STACK_FEATURES) && f->extras.stacks_why)
		add_text(message, sizeof(message), f->extras.stacks_why);
	if ((failed & GP_FEATURE_TENSORS) && f->extras.tensors_why)
		add_text(message, sizeof(message), f->extras.tensors_why);
	if ((failed & GP_FEATURE_MEMORY) && f->memory_why)
		add_text(message, sizeof(message), f->memory_why);
	if ((failed & GP_FEATURE_CUPTI) && f->cupti_why)
		add_text(message, sizeof(message), f->cupti_why);
	memcpy(page->message, message, sizeof(message));
	page->stack_tops = active & GP_FEATURE_STACKS ? stack_cache__address() : 0;
	__atomic_store_n(&page->failed, failed, __ATOMIC_RELEASE);
	__atomic_store_n(&page->active, active, __ATOMIC_RELEASE);
	f->active = active;
	f->failed = failed;
}

/* What the ops tell besides, as far as it is wanted; they are in force. */
static uint32_t extras_in_force(struct follower *f, uint32_t wanted)
{
	struct ops_extras *e = &f->extras;
	uint32_t in_force = 0;

	if (e->python && !e->stacks_why)
		e->stacks_why = ops__stacks_refused();
	if (e->shapes && !e->shapes_why)
		in_force |= GP_FEATURE_SHAPES;
	if (e->tensors && !e->tensors_why)
		in_force |= GP_FEATURE_TENSORS;
	if (e->python && !e->stacks_why)
		in_force |= STACK_FEATURES;
	in_force |= GP_FEATURE_CPU_TIME | GP_FEATURE_OPS_ALONE;
	return wanted & in_force;
}

/* Brings the op callbacks in line; returns which of them are in force. */
static uint32_t follow_ops(struct follower *f, uint32_t wanted, uint32_t active)
{
	enum torch_result result;

	if (!wanted) {
		f->refused &= ~OPS_FEATURES;
		f->ops_why = NULL;
		f->extras = (struct ops_extras){0};
		return active && !ops__disarm() ? active : 0;
	}
	if (!active) {
		if ((f->refused & OPS_FEATURES) || (f->ops_why && f->turns % RETRY_TURNS))
			return 0;
		f->python = f->page->python;
		f->extras = (struct ops_extras){
			.shapes = f->wanted & GP_FEATURE_SHAPES,
			.tensors = f->wanted & GP_FEATURE_TENSORS,
			.stacks = f->wanted & GP_FEATURE_STACKS,
			.modules = f->wanted & GP_FEATURE_MODULES,
			.calls = f->wanted & GP_FEATURE_CALLS,
		};
		if (f->extras.stacks || f->extras.modules)
			f->extras.python = &f->python;
		result = ops__arm(&self.ring, &f->extras, &f->ops_why);
		if (result == TORCH_REFUSED)
			f->refused |= OPS_FEATURES;
		if (result != TORCH_BOUND)
			return 0;
	}
	ops__cover(wanted & GP_FEATURE_OPS,
		   (wanted & GP_FEATURE_STEPS) || !(f->wanted & GP_FEATURE_OPS_ALONE));
	ops__emit_cpu_time(f->wanted & GP_FEATURE_CPU_TIME, !(wanted & GP_FEATURE_OPS));
	return wanted;
}

/* Brings allocations in line; `ops`: operators are told. Returns whether they are in force. */
static uint32_t follow_memory(struct follower *f, uint32_t wanted, bool ops)
{
	const char *why;

	wanted &= GP_FEATURE_MEMORY;
	if (!wanted) {
		f->refused &= ~(uint32_t)GP_FEATURE_MEMORY;
		f->memory_why = NULL;
	}
	if (f->refused & GP_FEATURE_MEMORY)
		return 0;
	why = ops__emit_memory(wanted && ops);
	if (why) {
		f->memory_why = why;
		f->refused |= GP_FEATURE_MEMORY;
	}
	return ops && !why ? wanted : 0;
}

/* Brings CUPTI in line; returns whether it is in force. */
static bool follow_cupti(struct follower *f, uint32_t wanted, bool active)
{
	enum cupti_outcome outcome;

	if (!(wanted & GP_FEATURE_CUPTI)) {
		f->refused &= ~(uint32_t)GP_FEATURE_CUPTI;
		if (f->turns >= f->cupti_not_before)
			f->cupti_why = NULL;
		if (!(wanted & GP_FEATURE_CUPTI_HELD)) {
			cupti__disarm();
			return false;
		}
		cupti__pause_records();
		cupti__poll(f->turns % SECOND_TURNS == 0);
		return false;
	}
	if (active)
		cupti__poll(f->turns % SECOND_TURNS == 0);
	if (active || (f->refused & GP_FEATURE_CUPTI))
		return active;
	if (f->cupti_why && (f->turns < f->cupti_not_before || f->turns % SECOND_TURNS))
		return false;
	outcome = cupti__arm(&self.ring, false, f->page->any_cupti, &f->cupti_why);
	if (outcome == CUPTI_HELD_UP) {
		f->cupti_not_before = f->turns + f->cupti_pause;
		if (f->cupti_pause < CUPTI_TURNS_MAX)
			f->cupti_pause *= 2;
	}
	if (outcome == CUPTI_REFUSED)
		f->refused |= GP_FEATURE_CUPTI;
	return outcome == CUPTI_ARMED;
}

static void follow(struct follower *f)
{
	const uint32_t cupti = GP_FEATURE_CUPTI;
	uint32_t wanted = __atomic_load_n(&f->page->wanted, __ATOMIC_ACQUIRE);
	const char *cupti_why = f->cupti_why;
	uint32_t now = f->active & cupti;
	uint32_t failed;

	f->wanted = wanted;
	now |= follow_ops(f, wanted & OPS_FEATURES, f->active & OPS_FEATURES);
	if (now & OPS_FEATURES)
		now |= extras_in_force(f, wanted);
	now |= follow_memory(f, wanted, now & GP_FEATURE_OPS) | (wanted & GP_FEATURE_CUPTI_HELD);
	/* Told before CUPTI is asked, which may take seconds to answer. */
	failed = (wanted & ~now & ~cupti) | (f->failed & wanted & cupti);
	if (now != f->active || failed != f->failed)
		emit(f, now, failed);
	now &= ~cupti;
	if (follow_cupti(f, wanted, f->active & cupti))
		now |= cupti;
	if (now != f->active || (wanted & ~now) != f->failed || cupti_why != f->cupti_why)
		emit(f, now, wanted & ~now);
}

static bool abandoned(struct follower *f)
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
		f->seen_turn = f->turns;
		__atomic_store_n(&self.silent_since_ns, beat_ns ? now : 0, __ATOMIC_RELAXED);
		return false;
	}
	return now - f->seen_ns > (beat_ns ? HEARTBEAT_NS : FIRST_BEAT_NS) &&
	       f->turns - f->seen_turn > HEARTBEAT_TURNS;
}

static void leave(struct follower *f, enum gp_collector_state state)
{
	bool left = ops__disarm();

	cupti__disarm();
	if (!left)
		f->ops_why = "operator callbacks: a thread is stopped inside one";
	if (state != GP_COLLECTOR_FAILED)
		emit(f, 0, left ? 0 : GP_FEATURE_OPS);
	__atomic_store_n(&self.phase, PHASE_LEAVING, __ATOMIC_RELEASE);
	__atomic_store_n(&f->page->state, state, __ATOMIC_RELEASE);
	/* A ring that a stopped thread may still write to stays mapped. */
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
	struct follower f = {.page = self.ring.page, .cupti_pause = SECOND_TURNS};

	(void)prctl(PR_SET_NAME, "gpuprof", 0, 0, 0);
	cupti__set_own_thread();
	if (ring_writer__populate(&self.ring)) {
		memcpy(f.page->message, no_memory, sizeof(no_memory));
		leave(&f, GP_COLLECTOR_FAILED);
		return NULL;
	}
	if (self.early)
		emit(&f, GP_FEATURE_CUPTI, 0);
	__atomic_store_n(&f.page->state, GP_COLLECTOR_READY, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&f.page->quit, __ATOMIC_ACQUIRE) && !abandoned(&f)) {
		follow(&f);
		f.turns++;
		emit_own_cpu(&f);
		(void)__atomic_add_fetch(&f.page->beat, 1, __ATOMIC_RELAXED);
		/* gpuprof wakes us when it has changed `wanted` or `quit`. */
		(void)syscall(SYS_futex, &f.page->wanted, FUTEX_WAIT, f.wanted, &turn, NULL, 0);
	}
	leave(&f, GP_COLLECTOR_INERT);
	return NULL;
}

/* In a fork's child: the ring and the thread are the parent's. */
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

/* Whether the gpuprof that the running collector works for seems to have died. */
static bool reader_is_silent(void)
{
	uint64_t since_ns = __atomic_load_n(&self.silent_since_ns, __ATOMIC_RELAXED);

	return since_ns && clock_now_ns() - since_ns > HAND_OVER_NS;
}

/* True if the caller is to start the collector; else *ret_result says what there is. */
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

/* For this very process, and not for its children, to which the environment goes too, unless those
 * are to be recorded as well: then it says 0. */
static bool is_invited(void)
{
	long wanted = is_by_cuda() ? strtol(getenv("GPUPROF_RUN"), NULL, 10) : -1;

	return !wanted || wanted == getpid();
}

/* Nothing of what the process does from now on may be missed: CUPTI is taken at once, on CUDA's own
 * thread (ours would wait for CUDA, and CUDA for us). */
static void arm_early(void)
{
	const char *why;

	if (ring_writer__populate(&self.ring))
		return;
	self.ring.page->wanted = GP_FEATURE_CUPTI;
	self.early = cupti__arm(&self.ring, true, false, &why) == CUPTI_ARMED;
}

/* gpuprof comes for the ring in a moment: a short program must not have ended by then. */
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
	if (!fork_watched && pthread_atfork(fork_guard__hold, fork_guard__let_go, forget)) {
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
 * The only door: enum gp_collector_start. Called by gpuprof inside the target, or by CUDA when it
 * finds this library in CUDA_INJECTION64_PATH.
 */
__attribute__((visibility("default"))) int InitializeInjection(void);

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	int saved = errno;
	enum gp_collector_start result = GP_START_FAILED;
	bool invited = is_invited(), by_cuda = is_by_cuda();

	/* A child made without fork()'s handlers. */
	if (self.owner && self.owner != getpid())
		forget();
	(void)__atomic_add_fetch(&self.calls_nr, 1, __ATOMIC_RELAXED);
	/* Somebody else's child: there will be no gpuprof for it. */
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
