/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One collector and its life. It leaves by itself when gpuprof is silent for three seconds or has
 * died: whatever happens here, the process ends up without it.
 */
#include "capture/collector/client.h"

#include "base/log.h"
#include "base/memory.h"
#include "capture/collector/quiesce.h"
#include "capture/collector/ring_reader.h"
#include "inject/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What the collector takes: its ring, its library, its tables. And what must be there, as the
 * process goes on to need some itself. */
#define MEMORY_TAKEN	(10 << 20)
#define MEMORY_LEFT_MIN (32ULL << 20)

#define MS_NS	       1000000L
#define ANSWER_TURN_MS 2
#define BUSY_TURNS     850  /* 1.7 seconds: after less, who is killed can be told from who lives */
#define CUPTI_TURNS    500  /* 1 second: where CUDA lets it in, it takes some hundredths */
#define ANSWER_TURNS   5000 /* 10 seconds */
#define ALIVE_TURNS    25   /* between looks whether the process lives */
#define LATER_TURNS    50   /* 0.1 seconds: between tries while an earlier collector leaves, */
#define LATER_TRIES    60   /* which may take as long as a thread is within CUPTI */

extern const unsigned char collector_so_start[], collector_so_end[];

struct collector_client {
	const struct target_process *process; /* the caller's */
	struct ring_reader *ring;
	struct collector_meanwhile meanwhile;
	uint32_t wanted;  /* enum gp_feature bits, now */
	uint32_t whole;	  /* what was asked for when all was wanted */
	uint64_t held_ns; /* a thread, to put it in */
	struct collector_quiesce quiesce;
	bool stopped;
};

static const struct inject_options how = {.name = "libgpuprof-cupti.so", .thread_name = "gpuprof"};

static struct inject_options how_meanwhile(struct collector_meanwhile meanwhile)
{
	struct inject_options options = how;

	options.meanwhile = (struct tracer_meanwhile){meanwhile.take, meanwhile.arg};
	return options;
}

static void sleep_ms(long ms)
{
	struct timespec ts = {.tv_nsec = ms * MS_NS};

	(void)nanosleep(&ts, NULL);
}

static void wait_a_turn(const struct collector_client *g)
{
	g->meanwhile.fn(g->meanwhile.arg);
	sleep_ms(ANSWER_TURN_MS);
}

static size_t image_bytes(void)
{
	return (size_t)(collector_so_end - collector_so_start);
}

/* -EBUSY, -ENOENT: another gpuprof has it, or the collector was just leaving. */
static int open_ring(struct collector_client *g, const struct target_process *p,
		     uint16_t process_index, struct reason *why)
{
	int err = -EAGAIN;

	for (int i = 0; i < ANSWER_TURNS; i++) {
		err = ring_reader__open(p->pid, process_index, why, &g->ring);
		if (err != -EAGAIN && ((err != -ENOENT && err != -EBUSY) || i > BUSY_TURNS))
			break;
		wait_a_turn(g);
	}
	return err;
}

static void serve_quiesce(struct collector_client *g)
{
	collector_quiesce__serve(&g->quiesce, g->process, how.thread_name, g->ring,
				 (struct tracer_meanwhile){g->meanwhile.take, g->meanwhile.arg});
}

/* Looked at now and then. */
static bool has_ended(const struct collector_client *g, int turn)
{
	return turn % ALIVE_TURNS == ALIVE_TURNS - 1 && !target_process__alive(g->process);
}

/* Until it does all of `features`, or says that it cannot. -ESRCH: the process has ended. */
static int wait_for_answer(struct collector_client *g, uint32_t features, int turns,
			   struct reason *why)
{
	uint32_t required =
		features & ~(uint32_t)(GP_FEATURE_SHAPES | GP_FEATURE_TENSORS | GP_FEATURE_MODULES |
				       GP_FEATURE_CALLS | GP_FEATURE_MEMORY);
	struct collector_status s = {0};

	for (int i = 0; i < turns; i++) {
		ring_reader__beat(g->ring);
		serve_quiesce(g);
		ring_reader__status(g->ring, &s);
		/* Shapes, modules and memory may be missing: what is there is worth having. */
		if ((s.active & required) == required &&
		    ((s.active | s.failed) & features) == features)
			return 0;
		if (s.broken || s.state == GP_COLLECTOR_FAILED || (s.failed & required))
			break;
		if (has_ended(g, i))
			return reason_set(why, -ESRCH, "process %d has ended",
					  (int)g->process->pid);
		wait_a_turn(g);
	}
	if (s.message[0])
		return reason_set(why, -ENOTSUP, "%s", s.message);
	return reason_set(why, -ETIMEDOUT, "the collector gave no answer within %d s",
			  turns * ANSWER_TURN_MS / 1000);
}

static void want(struct collector_client *g, uint32_t features)
{
	g->wanted = features;
	ring_reader__want(g->ring, features);
}

/* CUPTI first: CUDA may keep it waiting, and with it the collector's thread, which would then see
 * neither that gpuprof has died nor that the capture has ended: nothing else is to be in force
 * until it has answered. That it is not to be had, or not yet, is a normal outcome: the collector
 * goes on trying. */
static int begin(struct collector_client *g, const struct target_process *p, uint16_t process_index,
		 uint32_t features, bool any_cupti, const struct gp_python *python,
		 struct reason *why)
{
	uint32_t gpu = features & GP_FEATURE_CUPTI;
	uint32_t others = features & ~gpu;
	struct reason gpu_why = {0};
	int err = open_ring(g, p, process_index, why), gpu_err = 0;

	if (err)
		return err;
	ring_reader__beat(g->ring);
	if (any_cupti)
		ring_reader__take_any_cupti(g->ring);
	if (python)
		ring_reader__set_python(g->ring, python);
	if (gpu) {
		want(g, gpu);
		gpu_err = wait_for_answer(g, gpu, CUPTI_TURNS, &gpu_why);
	}
	if (gpu_err == -ESRCH) {
		*why = gpu_why;
		return gpu_err;
	}
	if (gpu_err == -ETIMEDOUT)
		(void)reason_set(&gpu_why, 0,
				 "GPU times come later%s: CUDA has not let CUPTI in for a second, "
				 "as when a thread waits for the GPU",
				 others ? ", and operators by uprobes, which cost more" : "");
	if (others && gpu_err != -ETIMEDOUT) {
		want(g, features);
		err = wait_for_answer(g, others, ANSWER_TURNS, why);
		if (err == -ESRCH || (err && !gpu))
			return err;
		if (err)
			want(g, gpu);
	}
	g->whole = g->wanted;
	if (!err)
		*why = gpu_why;
	return 0;
}

/* Once. *ret_returned is enum gp_collector_start; *held_ns grows by what it cost the thread. */
static int call_door(const struct target_process *p, struct collector_meanwhile meanwhile,
		     uint64_t *held_ns, struct reason *why, uint64_t *ret_returned)
{
	struct inject_options options = how_meanwhile(meanwhile);
	struct inject_result result = {0};
	int err = inject_library(p, collector_so_start, image_bytes(), &options, why, &result);

	if (err)
		return err;
	*held_ns += result.held_us * 1000;
	*ret_returned = result.returned;
	if (result.refusal[0])
		log_warn("%d: it is refused code in memory files (%s): the collector came by a "
			 "file in its folder %s, which is removed already",
			 (int)p->pid, result.refusal, result.folder);
	if (result.returned == GP_START_RUNS)
		log_info("%d: collector put in by thread %d after %u stops in %llu us, which cost "
			 "the thread %llu us",
			 (int)p->pid, (int)result.tid, result.stops,
			 (unsigned long long)result.waited_us, (unsigned long long)result.held_us);
	return 0;
}

/* *held_ns grows by the time that it cost threads. */
static int put_in(const struct target_process *p, struct collector_meanwhile meanwhile,
		  uint64_t *held_ns, struct reason *why)
{
	uint64_t left = memory_left_of(p->pid), returned = GP_START_LATER;
	int err = 0;

	if (left < MEMORY_LEFT_MIN)
		return reason_set(why, -ENOMEM,
				  "there are only %llu MB of memory left for the process, of "
				  "which the collector takes %d",
				  (unsigned long long)(left >> 20), MEMORY_TAKEN >> 20);
	for (int i = 0; !err && returned == GP_START_LATER && i < LATER_TRIES; i++) {
		for (int turn = 0; i && turn < LATER_TURNS; turn++) {
			meanwhile.fn(meanwhile.arg);
			sleep_ms(ANSWER_TURN_MS);
		}
		err = call_door(p, meanwhile, held_ns, why, &returned);
	}
	if (err || returned == GP_START_RUNS)
		return err;
	if (returned == GP_START_LATER)
		return reason_set(why, -EAGAIN, "an earlier collector is still leaving %d",
				  (int)p->pid);
	return reason_set(why, -ENOTSUP, "the collector would not start in %d", (int)p->pid);
}

int collector_client__new(const struct target_process *p, uint16_t process_index, uint32_t features,
			  bool any_cupti, const struct gp_python *python,
			  struct collector_meanwhile meanwhile, struct reason *why,
			  struct collector_client **ret_collector)
{
	struct collector_client *g;
	uint64_t held_ns = 0;
	int err = put_in(p, meanwhile, &held_ns, why);

	if (err)
		return err;
	g = calloc(1, sizeof(*g));
	if (!g)
		return reason_set(why, -ENOMEM, "out of memory");
	g->process = p;
	g->meanwhile = meanwhile;
	err = begin(g, p, process_index, features, any_cupti, python, why);
	/* A gpuprof that was killed a moment before looked alive to its collector, which by now
	 * hands over, or has gone. */
	if (err == -EBUSY || err == -ENOENT)
		err = put_in(p, meanwhile, &held_ns, why)
			      ?: begin(g, p, process_index, features, any_cupti, python, why);
	g->held_ns += held_ns;
	if (err) {
		collector_client__stop(g, err == -ESRCH, NULL, NULL);
		collector_client__free(g, p, err == -ESRCH);
		return err;
	}
	*ret_collector = g;
	return 0;
}

int collector_client__adopt(const struct target_process *p, uint16_t process_index, bool any_cupti,
			    struct collector_meanwhile meanwhile, struct reason *why,
			    struct collector_client **ret_collector)
{
	struct collector_client *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return reason_set(why, -ENOMEM, "out of memory");
	err = ring_reader__open(p->pid, process_index, why, &g->ring);
	if (err) {
		free(g);
		return err;
	}
	ring_reader__beat(g->ring);
	if (any_cupti)
		ring_reader__take_any_cupti(g->ring);
	g->process = p;
	g->meanwhile = meanwhile;
	g->whole = GP_FEATURE_CUPTI;
	want(g, GP_FEATURE_CUPTI);
	*ret_collector = g;
	return 0;
}

bool collector_client__failed_features(const struct collector_client *g, uint32_t features,
				       struct reason *ret_why)
{
	struct collector_status s;

	ring_reader__status(g->ring, &s);
	if (!(s.failed & features))
		return false;
	(void)reason_set(ret_why, 0, "%s", s.message);
	return true;
}

bool collector_client__requested(const struct collector_client *g, uint32_t features)
{
	return (g->wanted & features) == features;
}

bool collector_client__supports(const struct collector_client *g, uint32_t features)
{
	return g->whole & features;
}

void collector_client__request(struct collector_client *g, uint32_t features)
{
	bool all = g->wanted == g->whole;

	g->whole |= features;
	if (!g->stopped && all && (g->wanted & features) != features)
		want(g, g->wanted | features);
}

void collector_client__release(struct collector_client *g, uint32_t features)
{
	g->whole &= ~features;
	if (!g->stopped && (g->wanted & features))
		want(g, g->wanted & ~features);
}

void collector_client__only(struct collector_client *g, uint32_t features)
{
	features &= g->whole | GP_FEATURE_STEPS | GP_FEATURE_CUPTI_HELD;
	if (!(g->whole & GP_FEATURE_CUPTI))
		features &= ~(uint32_t)GP_FEATURE_CUPTI_HELD;
	if (!(g->whole & GP_FEATURE_OPS) || (g->whole & GP_FEATURE_OPS_ALONE))
		features &= ~(uint32_t)GP_FEATURE_STEPS;
	if (!g->stopped && g->wanted != features)
		want(g, features);
}

bool collector_client__follows(const struct collector_client *g)
{
	struct collector_status s;

	ring_reader__status(g->ring, &s);
	return s.broken || (s.active == (g->wanted & ~s.failed));
}

uint32_t collector_client__active(const struct collector_client *g)
{
	struct collector_status s;

	ring_reader__status(g->ring, &s);
	return s.broken ? 0 : s.active;
}

uint64_t collector_client__stack_cache(const struct collector_client *g)
{
	return collector_client__active(g) & GP_FEATURE_STACKS ? ring_reader__stack_cache(g->ring)
							       : 0;
}

/* The message has one part for each feature that is missing, "; " between them. */
void collector_client__feature_error(const struct collector_client *g, const char *what,
				     struct reason *ret_why)
{
	struct collector_status s;
	const char *text;

	ring_reader__status(g->ring, &s);
	text = strstr(s.message, what);
	text = text && !strncmp(text + strlen(what), ": ", 2) ? text + strlen(what) + 2 : "";
	(void)reason_set(ret_why, 0, "%.*s", (int)strcspn(text, ";"), text);
}

void collector_client__retain(struct collector_client *g, uint32_t features, collector_event_fn fn,
			      void *arg)
{
	struct collector_status s;

	if (g->stopped)
		return;
	g->whole &= features;
	want(g, g->wanted & features);
	for (int i = 0; i < ANSWER_TURNS; i++) {
		if (fn && ring_reader__drain(g->ring, fn, arg) < 0)
			fn = NULL;
		ring_reader__status(g->ring, &s);
		if (s.broken || s.state != GP_COLLECTOR_READY || !(s.active & ~features) ||
		    has_ended(g, i))
			return;
		serve_quiesce(g);
		wait_a_turn(g);
	}
}

bool collector_client__has_exited(const struct collector_client *g)
{
	struct collector_status s;

	ring_reader__status(g->ring, &s);
	return !g->stopped &&
	       (s.broken || s.state == GP_COLLECTOR_INERT || s.state == GP_COLLECTOR_FAILED);
}

int collector_client__take(struct collector_client *g, collector_event_fn fn, void *arg)
{
	if (!g->stopped)
		ring_reader__beat(g->ring);
	return ring_reader__drain(g->ring, fn, arg);
}

int collector_client__drain(struct collector_client *g, collector_event_fn fn, void *arg)
{
	if (!g->stopped)
		serve_quiesce(g);
	return collector_client__take(g, fn, arg);
}

uint64_t collector_client__drain_deadline_ns(const struct collector_client *g)
{
	return ring_reader__drain_deadline_ns(g->ring);
}

void collector_client__begin(struct collector_client *g)
{
	ring_reader__begin(g->ring);
}

/* CUPTI was given back, but not taken down. */
static void emit_of_cupti(const struct collector_client *g)
{
	static const char *const why[] = {
		[GP_CUPTI_LEFT_CALLS] =
			"its threads could not be held outside of CUDA for long enough",
		[GP_CUPTI_LEFT_SILENT] = "gpuprof had not answered for some time",
		[GP_CUPTI_LEFT_GRAPHS] =
			"before CUDA 13.0 that is not safe where CUDA graphs came, or may have",
		[GP_CUPTI_LEFT_OLD] = "before CUDA 12.6 that is not safe",
		[GP_CUPTI_LEFT_REFUSED] = "CUPTI, or the driver, would not",
	};
	uint32_t end = ring_reader__cupti_end(g->ring);

	if (end < GP_CUPTI_LEFT_CALLS || end > GP_CUPTI_LEFT_REFUSED)
		return;
	log_warn("%d: CUPTI was let go of but not taken down (%s): calls of CUDA may take some "
		 "microseconds longer from now on%s",
		 (int)g->process->pid, why[end],
		 end == GP_CUPTI_LEFT_OLD ? "" : ", until a later gpuprof leaves");
}

void collector_client__stop(struct collector_client *g, bool gone, collector_event_fn fn, void *arg)
{
	struct collector_status s;

	if (g->stopped || !g->ring)
		return;
	g->stopped = true;
	if (gone) {
		ring_reader__process_gone(g->ring);
		return;
	}
	ring_reader__quit(g->ring);
	for (int i = 0; i < ANSWER_TURNS; i++) {
		if (fn && ring_reader__drain(g->ring, fn, arg) < 0)
			fn = NULL;
		ring_reader__status(g->ring, &s);
		if (s.broken || s.state == GP_COLLECTOR_INERT || s.state == GP_COLLECTOR_FAILED) {
			emit_of_cupti(g);
			return;
		}
		if (has_ended(g, i)) {
			ring_reader__process_gone(g->ring);
			return;
		}
		serve_quiesce(g);
		/* Other collectors may wait for the same. */
		wait_a_turn(g);
	}
	log_warn("the collector has not answered for 10 s: it leaves by itself when the process "
		 "lets it run");
}

void collector_client__losses(const struct collector_client *g, uint64_t losses[GP_LOSS_NR])
{
	ring_reader__losses(g->ring, losses);
}

void collector_client__timed(const struct collector_client *g, struct callback_cost *cost)
{
	uint64_t ns, nr;

	ring_reader__timed(g->ring, &ns, &nr);
	/* Nobody waits a second in one. */
	if (nr > UINT32_MAX || ns / 1000000000 >= nr)
		return;
	cost->timed_ns += ns;
	cost->timed_nr += nr;
}

uint64_t collector_client__thread_cpu_ns(const struct collector_client *g)
{
	return ring_reader__thread_cpu_ns(g->ring);
}

uint64_t collector_client__take_held_ns(struct collector_client *g)
{
	uint64_t ns = g->held_ns + g->quiesce.held_ns;

	g->held_ns = g->quiesce.held_ns = 0;
	return ns;
}

void collector_client__free(struct collector_client *g, const struct target_process *p, bool gone)
{
	struct inject_options options;
	struct inject_result result;
	struct reason why = {0};
	bool left = false;

	if (!g)
		return;
	options = how_meanwhile(g->meanwhile);
	ring_reader__free(g->ring);
	free(g);
	if (gone || !target_process__alive(p))
		return;
	if (inject_remove(p, &options, &why, &result, &left))
		log_info("%d: the collector stays, inert: %s", (int)p->pid, why.text);
	else if (left)
		log_info("%d: the collector stays, inert", (int)p->pid);
}
