/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The life of CUPTI in the process. Arming: subscribe, which shows whether CUPTI is free, then
 * switch the records on while no other thread is in CUDA (runtime/quiesce.h). Every turn
 * cupti_drain.h takes what came. Disarming: with the threads held again, switch the records off,
 * flush, and give CUPTI back (cupti_finalize.h).
 */
#include "collector/cupti/cupti.h"

#include "collector/cupti/cupti_activity.h"
#include "collector/cupti/cupti_drain.h"
#include "collector/cupti/cupti_finalize.h"
#include "collector/cupti/cupti_gate.h"
#include "collector/cupti/cupti_library.h"
#include "collector/runtime/compat.h"
#include "collector/runtime/quiesce.h"
#include "common/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WHY_BYTES      256
#define PAUSED_FLUSHES 2 /* after the records are off, for what the GPU was doing then */
#define CATCH_UP_TRIES 20
#define CATCH_UP_NS    5000000ULL

static struct {
	bool armed, was_armed;
	bool paused;		 /* armed, and the records are off */
	uint32_t paused_flushes; /* flushes since then */
	bool from_start;	 /* CUPTI was ours before CUDA did anything */
	pid_t owner;		 /* the process that last began to arm; 0: none */
	struct gp_ring_page *page;
	struct cupti_library library;
	void *subscriber;
	uint32_t thread_ids; /* CUPTI's setting before us */
	char why[WHY_BYTES];
} session;

/* Joins the three in session.why, cut to its size, and returns that. */
static const char *because(const char *a, const char *b, const char *c)
{
	const char *parts[] = {a, b, c};
	size_t at = 0;

	for (int i = 0; i < 3; i++) {
		size_t bytes = strlen(parts[i]);

		if (bytes > sizeof(session.why) - 1 - at)
			bytes = sizeof(session.why) - 1 - at;
		memcpy(session.why + at, parts[i], bytes);
		at += bytes;
	}
	session.why[at] = '\0';
	return session.why;
}

static const char *result_text(int result)
{
	const char *text = NULL;

	if (session.library.call.cuptiGetResultString(result, &text) || !text)
		return "an unknown error";
	return text;
}

static const char *refused(const char *function, int result)
{
	return because(function, ": ", result_text(result));
}

void cupti__poll(bool flush)
{
	if (!session.armed ||
	    (session.paused && (!flush || ++session.paused_flushes > PAUSED_FLUSHES)) ||
	    !cupti_gate__enter())
		return;
	if (flush)
		cupti_drain__emit_devices();
	cupti_drain__take(flush);
	cupti_gate__leave();
}

/* ---- arming ---- */

/* Everything that may fail after the subscription, except switching the records on. NULL or why. */
static const char *prepare_records(struct ring_writer *w)
{
	const struct cupti_functions *call = &session.library.call;
	int result;

	if (!cupti_drain__begin(w, &session.library))
		return "gpu activity: out of memory";
	if (call->cuptiGetThreadIdType(&session.thread_ids))
		session.thread_ids = CUPTI_THREAD_DEFAULT;
	result = call->cuptiSetThreadIdType(CUPTI_THREAD_SYSTEM);
	if (result)
		return refused("gpu activity: cuptiSetThreadIdType", result);
	result = cupti_drain__register();
	if (result)
		return refused("gpu activity: cuptiActivityRegisterCallbacks", result);
	return cupti_drain__read_clock() ? NULL : "gpu activity: CUPTI gives no time";
}

/* Whether to go on waiting until the threads are held. */
static bool is_still_wanted(void)
{
	return !cupti_gate__is_exiting() &&
	       !__atomic_load_n(&session.page->quit, __ATOMIC_ACQUIRE) &&
	       (__atomic_load_n(&session.page->wanted, __ATOMIC_ACQUIRE) & GP_FEATURE_CUPTI);
}

/* Switches the records on. `starting`: no other thread can be in CUDA. CUPTI_HELD_UP: the threads
 * could not be held outside of CUDA. */
static enum cupti_outcome begin_records(bool starting, const char **why_text)
{
	bool may = starting || (quiesce__begin(session.page, is_still_wanted) != GP_QUIESCE_NONE &&
				quiesce__use(session.page));
	int result = may ? cupti_activity__enable(&session.library) : 0;

	if (result) {
		cupti_activity__disable(&session.library);
		cupti_activity__disable_timestamps(&session.library);
	}
	if (!starting)
		quiesce__end(session.page);
	*why_text = result ? refused("gpu activity: kernels", result) : NULL;
	if (may)
		return result ? CUPTI_REFUSED : CUPTI_ARMED;
	*why_text = "gpu activity: no moment was found in which none of the process's threads is "
		    "in a call of CUDA; GPU times come when there is one";
	return CUPTI_HELD_UP;
}

static void end_records(void)
{
	cupti_activity__disable(&session.library);
	cupti_drain__take(true);
}

/* Takes the last records as the process ends, and then keeps our thread away from a CUDA that is
 * shutting down. It was registered after CUDA's own exit handlers, so it runs before them. */
static void at_exit(void)
{
	if (session.owner != getpid() || !cupti_gate__enter_at_exit())
		return;
	if (session.armed) {
		end_records();
		/* After the records are off, because this thread's calls are not left out. */
		cupti_drain__emit_devices();
		cupti_drain__take_incomplete();
	}
	cupti_gate__shut();
}

static void release(void)
{
	cupti_drain__end();
	cupti_library__release(&session.library);
}

/* Finds a CUPTI that may be armed (CUPTI_ARMED), or says what to return instead. */
static enum cupti_outcome bind_library(bool starting, bool any, const char **why_text)
{
	enum cupti_found found = cupti_library__bind(&session.library, starting, why_text);
	const char *danger;

	if (found != CUPTI_FOUND)
		return found == CUPTI_ABSENT ? CUPTI_LATER : CUPTI_REFUSED;
	danger = cupti_library__danger(&session.library, starting || session.from_start);
	if (!danger || any)
		return CUPTI_ARMED;
	*why_text = danger;
	cupti_library__release(&session.library);
	return CUPTI_REFUSED;
}

static void report_end(struct gp_ring_page *page, enum gp_cupti_end end)
{
	__atomic_store_n(&page->cupti_end, end, __ATOMIC_RELEASE);
}

static enum cupti_outcome arm(struct ring_writer *w, bool starting, bool any, const char **why_text)
{
	enum cupti_outcome found;
	const struct cupti_functions *call = &session.library.call;
	int result;

	found = bind_library(starting, any, why_text);
	if (found != CUPTI_ARMED)
		return found;
	session.page = w->page;
	result = call->cuptiSubscribe(&session.subscriber, cupti_finalize__on_call, NULL);
	if (result == CUPTI_SECOND_SUBSCRIBER || result == CUPTI_LIMIT_REACHED)
		*why_text =
			because("gpu activity: CUPTI is in use by ", cupti_library__other_user(),
				" in this process; GPU times come when it is free again");
	else if (result)
		*why_text = because("gpu activity: cuptiSubscribe: ", result_text(result),
				    "; compare libcupti's CUDA with the driver's, which nvidia-smi "
				    "shows");
	if (result) {
		release();
		return CUPTI_LATER;
	}
	cupti_finalize__begin(&session.library, session.subscriber);
	/* Registered now so that an exit ends the wait for held threads, and once more when armed,
	 * to run before what CUPTI registers as its records are switched on. */
	if (!session.owner)
		(void)atexit(at_exit);
	session.owner = getpid();
	*why_text = prepare_records(w);
	found = *why_text ? CUPTI_REFUSED : begin_records(starting, why_text);
	if (found == CUPTI_ARMED) {
		if (!session.was_armed)
			(void)atexit(at_exit);
		session.was_armed = true;
		session.armed = true;
		report_end(w->page, GP_CUPTI_OURS);
		session.from_start |= starting;
		return CUPTI_ARMED;
	}
	(void)call->cuptiSetThreadIdType(session.thread_ids);
	(void)call->cuptiUnsubscribe(session.subscriber);
	report_end(w->page, found == CUPTI_HELD_UP ? GP_CUPTI_LEFT_CALLS : GP_CUPTI_LEFT_REFUSED);
	release();
	return found;
}

/* Switches the records of a paused session on again. */
static enum cupti_outcome resume_records(const char **why_text)
{
	int result;

	/* Records lie between two readings, and the last one may be old. */
	(void)cupti_drain__read_clock();
	result = cupti_activity__enable(&session.library);
	*why_text = result ? refused("gpu activity: kernels", result) : NULL;
	session.paused = result != 0;
	if (result)
		cupti_activity__disable(&session.library);
	return result ? CUPTI_REFUSED : CUPTI_ARMED;
}

enum cupti_outcome cupti__arm(struct ring_writer *w, bool starting, bool any, const char **why_text)
{
	enum cupti_outcome outcome;

	*why_text = "gpu activity: the process is ending";
	if (!cupti_gate__enter())
		return CUPTI_REFUSED;
	outcome = session.armed ? resume_records(why_text) : arm(w, starting, any, why_text);
	cupti_gate__leave();
	return outcome;
}

/* ---- pausing and disarming ---- */

/* A later turn takes the records of what the GPU is doing now. */
void cupti__pause_records(void)
{
	if (!session.armed || session.paused || !cupti_gate__enter())
		return;
	cupti_drain__emit_devices();
	end_records();
	/* CUDA graphs that come while paused leave no record. */
	cupti_finalize__note_graphs();
	session.paused = true;
	session.paused_flushes = 0;
	cupti_gate__leave();
}

/* Takes what has come, so that little is left once the threads are held. False: hurry. */
static bool take_what_came(void)
{
	cupti_drain__take(true);
	return !cupti_gate__is_exiting();
}

/* Takes records until few come meanwhile, because threads are held while the rest is taken. */
static void catch_up(void)
{
	uint64_t begin_ns;

	for (int i = 0; i < CATCH_UP_TRIES; i++) {
		begin_ns = clock_now_ns();
		if (!take_what_came() || clock_now_ns() - begin_ns < CATCH_UP_NS)
			return;
	}
}

/* GP_CUPTI_DOWN if the threads are held until quiesce__end(), else why they are not. */
static enum gp_cupti_end use_quiesce(struct gp_ring_page *page, enum gp_quiesce held)
{
	if (held == GP_QUIESCE_ALL_OUT && quiesce__use(page))
		return GP_CUPTI_DOWN;
	return quiesce__is_silent(page) ? GP_CUPTI_LEFT_SILENT : GP_CUPTI_LEFT_CALLS;
}

void cupti__disarm(void)
{
	const struct cupti_functions *call = &session.library.call;
	struct gp_ring_page *page = session.page;
	enum gp_quiesce held;

	if (!session.armed || !cupti_gate__enter())
		return;
	cupti_drain__emit_devices();
	catch_up();
	held = quiesce__begin(page, take_what_came);
	end_records();
	cupti_drain__take_incomplete();
	cupti_activity__disable_timestamps(&session.library);
	(void)call->cuptiSetThreadIdType(session.thread_ids);
	report_end(page, cupti_finalize__give_back(use_quiesce(page, held)));
	quiesce__end(page);
	cupti_drain__drop_late();
	session.armed = session.paused = false;
	release();
	cupti_gate__leave();
}

void cupti__set_own_thread(void)
{
	cupti_drain__set_own_thread((uint32_t)syscall(SYS_gettid));
}

void cupti__forget(void)
{
	session.armed = session.paused = false;
	session.page = NULL;
	cupti_drain__forget();
	cupti_finalize__forget();
	cupti_gate__forget();
}
