/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * CUPTI's course: subscribe (which tells whether it is free); records on, while no other thread is
 * in CUDA (hold.h); every turn the buffers that came back are converted, after the clock was read
 * once more, so that each record lies between two readings; at the end, held again, records off,
 * flush, unsubscribe.
 *
 * How it is given back is another matter (cupti_takedown.h). What CUPTI may call late touches
 * nothing but what is there, the counter and the buffers, which live as long as we do.
 */
#include "collector/cupti/cupti.h"

#include "collector/cupti/cupti_api_filter.h"
#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_clock.h"
#include "collector/cupti/cupti_finalize.h"
#include "collector/cupti/cupti_library.h"
#include "collector/cupti/cupti_records.h"
#include "collector/cupti/devices.h"
#include "collector/runtime/compat.h"
#include "collector/runtime/quiesce.h"
#include "common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMES_FIRST  32768 /* ids of ours, beside those of ops */
#define WHY_BYTES    256
#define MUTE_FLUSHES 2 /* after the records are off, for what ran on the GPU then */

#define CATCH_UP_TRIES 20
#define CATCH_UP_NS    5000000ULL

#define EXIT_TRIES 2000 /* of 1 ms, for the collector's thread to come out of CUPTI */

/* Kernels first: so none of 104 processes died whose threads make graphs, of those that begin with
 * CUPTI_RUNTIME 3 of 170. */
static const uint32_t kinds[] = {CUPTI_KERNEL, CUPTI_RUNTIME, CUPTI_DRIVER,
				 CUPTI_MEMCPY, CUPTI_MEMSET,  CUPTI_PEER_COPY,
				 CUPTI_SYNC,   CUPTI_EVENT,   CUPTI_OVERHEAD};

static struct {
	bool armed, was_armed;
	bool rests;	   /* the records are off */
	uint32_t rests_nr; /* flushes since then */
	bool devices_emitted;
	bool from_start;     /* CUPTI was ours before CUDA did anything */
	pid_t owner;	     /* who was about to arm it last; 0: nobody ever */
	uint32_t own_thread; /* the collector's; 0: not started */
	struct ring_writer *ring;
	struct names *names;
	struct cupti_library library;
	void *subscriber;
	uint32_t thread_ids; /* as they were */
	uint64_t wasted_nr;  /* records that came in spare buffers, by any thread */
	struct cupti_clock clock;
	struct cupti_records records;
	char why[WHY_BYTES];
} session;

/* Who is inside CUPTI on our behalf: the collector's thread, or the one that ends the process,
 * which keeps it. */
static uint32_t inside;
static uint32_t exiting;
static uint32_t ending; /* a thread waits to be it */

/* For request() and complete(). */
static struct {
	bool may_refuse; /* a buffer */
	int (*next_record)(uint8_t *buffer, size_t valid_bytes, void **record);
} buffers;

static void come_out(void)
{
	__atomic_store_n(&inside, 0, __ATOMIC_RELEASE);
}

/* False once the process ends. */
static bool go_inside(void)
{
	while (__atomic_exchange_n(&inside, 1, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&exiting, __ATOMIC_ACQUIRE))
			return false;
		clock_sleep_ms();
	}
	if (!__atomic_load_n(&exiting, __ATOMIC_ACQUIRE))
		return true;
	come_out();
	return false;
}

/* session.why = a + b + c, cut. */
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

/* ---- called by CUPTI, on any thread ---- */

static void request(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records_max)
{
	int saved = errno;

	*ret_records_max = 0;
	cupti_buffers__request(buffers.may_refuse, ret_buffer, ret_bytes);
	errno = saved;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
		     size_t valid_bytes)
{
	uint64_t nr = 0;
	void *record = NULL;

	if (cupti_buffers__complete(buffer, valid_bytes))
		return;
	if (cupti_buffers__spare_is_own(buffer))
		while (!buffers.next_record(buffer, valid_bytes, &record))
			nr++;
	else
		nr = valid_bytes != 0;
	(void)__atomic_fetch_add(&session.wasted_nr, nr, __ATOMIC_RELAXED);
	cupti_buffers__release_spare(buffer);
}

/* ---- on the collector's thread ---- */

static bool read_clock(void)
{
	struct gp_ev_clock ev = {.head.kind = GP_EV_CLOCK};
	struct clock_reading reading;

	if (!cupti_clock__read(session.library.call.cuptiGetTimestamp, &reading))
		return false;
	(void)cupti_clock__add(&session.clock, &reading);
	ev.head.time_ns = reading.time_ns;
	ev.gpu_ns = reading.gpu_ns;
	ev.width_ns = reading.width_ns;
	(void)ring_writer__write(session.ring, &ev, sizeof(ev));
	return true;
}

static void count_dropped(void)
{
	uint64_t wasted = __atomic_exchange_n(&session.wasted_nr, 0, __ATOMIC_RELAXED);
	size_t nr = 0;

	if (session.library.call.cuptiActivityGetNumDroppedRecords(NULL, 0, &nr))
		nr = 0;
	if (!nr && !wasted)
		return;
	ring_writer__count(session.ring, GP_LOSS_GPU_DROPPED, nr + wasted);
	/* They may have been the ones that told of graphs. */
	cupti_finalize__note_graphs();
}

static void take_records(bool flush)
{
	uint8_t indices[BUFFERS_NR];
	uint32_t nr;

	if (flush)
		(void)session.library.call.cuptiActivityFlushAll(CUPTI_FLUSH_COMPLETED);
	nr = cupti_buffers__take(indices);
	/* After they were taken: no time in them is later than this reading. Each turn, because the
	 * clock is another once CUDA is ready. */
	(void)read_clock();
	for (uint32_t i = 0; i < nr; i++) {
		size_t valid_bytes;
		uint8_t *content = cupti_buffers__content(indices[i], &valid_bytes);

		if (valid_bytes)
			cupti_records__convert(&session.records, content, valid_bytes);
		cupti_buffers__release(indices[i]);
	}
	if (flush)
		count_dropped();
}

/* Not while threads are held: the loader and the driver are asked, whose locks they may have. While
 * CUDA is getting ready it tells of none. */
static void emit_devices(void)
{
	if (!session.devices_emitted)
		session.devices_emitted = devices__emit(session.ring, &session.library);
}

void cupti__poll(bool flush)
{
	if (!session.armed || (session.rests && (!flush || ++session.rests_nr > MUTE_FLUSHES)) ||
	    !go_inside())
		return;
	if (flush)
		emit_devices();
	take_records(flush);
	come_out();
}

/* When the GPU came to the record of an event: as Kineto asks for it, from CUDA 13 on. */
static void time_events(uint8_t enable)
{
	const struct cupti_functions *call = &session.library.call;

	if (session.library.version >= CUPTI_VERSION_13_0 &&
	    call->cuptiActivityEnableCudaEventDeviceTimestamps)
		(void)call->cuptiActivityEnableCudaEventDeviceTimestamps(enable);
}

/* What CUPTI gave back as it went: nothing can be asked about it any more. */
static void drop_late(void)
{
	uint8_t indices[BUFFERS_NR];
	uint32_t nr = cupti_buffers__take(indices);
	uint64_t lost = __atomic_exchange_n(&session.wasted_nr, 0, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < nr; i++) {
		size_t valid_bytes;

		(void)cupti_buffers__content(indices[i], &valid_bytes);
		lost += valid_bytes != 0;
		cupti_buffers__release(indices[i]);
	}
	if (lost)
		ring_writer__count(session.ring, GP_LOSS_GPU_DROPPED, lost);
}

static void disable_kinds(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		(void)session.library.call.cuptiActivityDisable(kinds[i]);
}

static void silence_noise(void)
{
	const struct cupti_functions *call = &session.library.call;

	for (size_t i = 0; i < sizeof(cupti_noisy_runtime) / sizeof(cupti_noisy_runtime[0]); i++)
		if (call->cuptiActivityEnableRuntimeApi)
			(void)call->cuptiActivityEnableRuntimeApi(cupti_noisy_runtime[i], 0);
	for (size_t i = 0; i < sizeof(cupti_noisy_driver) / sizeof(cupti_noisy_driver[0]); i++)
		if (call->cuptiActivityEnableDriverApi)
			(void)call->cuptiActivityEnableDriverApi(cupti_noisy_driver[i], 0);
}

/* Kernels are what it is all about; a CUPTI without one of the others is as good as it can be. */
static int enable_kinds(void)
{
	int kernels = CUPTI_UNSUPPORTED;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int result = session.library.call.cuptiActivityEnable(kinds[i]);

		if (kinds[i] == CUPTI_KERNEL)
			kernels = result;
	}
	silence_noise();
	time_events(1);
	return kernels;
}

/* Everything that may fail after the subscription, but for the records. NULL or why. */
static const char *prepare_records(void)
{
	const struct cupti_functions *call = &session.library.call;
	int result;

	session.names = names__new(NAMES_FIRST);
	if (!session.names || !cupti_buffers__open())
		return "gpu activity: out of memory";
	cupti_clock__init(&session.clock);
	cupti_records__init(&session.records, session.ring, session.names, &session.library,
			    &session.clock);
	cupti_records__set_own_thread(&session.records, session.own_thread);
	if (call->cuptiGetThreadIdType(&session.thread_ids))
		session.thread_ids = CUPTI_THREAD_DEFAULT;
	result = call->cuptiSetThreadIdType(CUPTI_THREAD_SYSTEM);
	if (result)
		return refused("gpu activity: cuptiSetThreadIdType", result);
	result = call->cuptiActivityRegisterCallbacks(request, complete);
	if (result)
		return refused("gpu activity: cuptiActivityRegisterCallbacks", result);
	return read_clock() ? NULL : "gpu activity: CUPTI tells no time";
}

/* While a hold is waited for to come by: whether it still is to. */
static bool is_still_to_come(void)
{
	const struct gp_ring_page *page = session.ring->page;

	return !__atomic_load_n(&ending, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&page->quit, __ATOMIC_ACQUIRE) &&
	       (__atomic_load_n(&page->wanted, __ATOMIC_ACQUIRE) & GP_FEATURE_CUPTI);
}

/* `starting`: no other thread can be in CUDA. CUPTI_HELD_UP: one was, whenever it was tried. */
static enum cupti_outcome begin_records(bool starting, const char **why_text)
{
	struct gp_ring_page *page = session.ring->page;
	bool may = starting || (quiesce__begin(page, is_still_to_come) != GP_QUIESCE_NONE &&
				quiesce__use(page));
	int result = may ? enable_kinds() : 0;

	if (result) {
		disable_kinds();
		time_events(0);
	}
	if (!starting)
		quiesce__end(page);
	*why_text = result ? refused("gpu activity: kernels", result) : NULL;
	if (may)
		return result ? CUPTI_REFUSED : CUPTI_ARMED;
	*why_text = "gpu activity: no moment was found in which none of the process's threads is "
		    "in a call of CUDA; GPU times come when there is one";
	return CUPTI_HELD_UP;
}

static void end_records(void)
{
	disable_kinds();
	take_records(true);
}

/* Buffers with records that are not complete; those count as having no times. */
static void take_incomplete(void)
{
	(void)session.library.call.cuptiActivityFlushAll(CUPTI_FLUSH_FORCED);
	take_records(true);
}

/* Runs before what CUDA has registered for the end of the process, because it was registered later:
 * takes the last records, and keeps our thread away from a CUDA that is going. */
static void at_exit(void)
{
	int tries = 0;

	if (session.owner != getpid() || __atomic_load_n(&exiting, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
	while (__atomic_exchange_n(&inside, 1, __ATOMIC_ACQUIRE)) {
		if (++tries > EXIT_TRIES) {
			__atomic_store_n(&exiting, 1, __ATOMIC_RELEASE);
			return;
		}
		clock_sleep_ms();
	}
	if (session.armed) {
		end_records();
		/* With the records off, because this is a thread of the target. */
		emit_devices();
		take_incomplete();
	}
	__atomic_store_n(&exiting, 1, __ATOMIC_RELEASE);
}

static void let_go(void)
{
	cupti_buffers__close();
	names__free(session.names);
	session.names = NULL;
	cupti_library__release(&session.library);
}

/* The library that may be taken, or else what comes of it. */
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

static void emit_end(struct gp_ring_page *page, enum gp_cupti_end end)
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
	session.ring = w;
	buffers.next_record = call->cuptiActivityGetNextRecord;
	buffers.may_refuse = session.library.version >= CUPTI_VERSION_12_9;
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
		let_go();
		return CUPTI_LATER;
	}
	cupti_finalize__begin(&session.library, session.subscriber);
	/* To end the wait for a hold; what CUPTI registers while its records go on comes later. */
	if (!session.owner)
		(void)atexit(at_exit);
	session.owner = getpid();
	*why_text = prepare_records();
	found = *why_text ? CUPTI_REFUSED : begin_records(starting, why_text);
	if (found == CUPTI_ARMED) {
		if (!session.was_armed)
			(void)atexit(at_exit);
		session.was_armed = true;
		session.armed = true;
		emit_end(w->page, GP_CUPTI_OURS);
		session.from_start |= starting;
		session.devices_emitted = false;
		return CUPTI_ARMED;
	}
	(void)call->cuptiSetThreadIdType(session.thread_ids);
	(void)call->cuptiUnsubscribe(session.subscriber);
	emit_end(w->page, found == CUPTI_HELD_UP ? GP_CUPTI_LEFT_CALLS : GP_CUPTI_LEFT_REFUSED);
	let_go();
	return found;
}

/* As it was. */
static enum cupti_outcome wake(const char **why_text)
{
	int result;

	/* Records lie between two readings, and it may have rested for long. */
	(void)read_clock();
	result = enable_kinds();
	*why_text = result ? refused("gpu activity: kernels", result) : NULL;
	session.rests = result != 0;
	if (result)
		disable_kinds();
	return result ? CUPTI_REFUSED : CUPTI_ARMED;
}

enum cupti_outcome cupti__arm(struct ring_writer *w, bool starting, bool any, const char **why_text)
{
	enum cupti_outcome outcome;

	*why_text = "gpu activity: the process is ending";
	if (!go_inside())
		return CUPTI_REFUSED;
	outcome = session.armed ? wake(why_text) : arm(w, starting, any, why_text);
	come_out();
	return outcome;
}

/* What runs on the GPU now is told by a later turn. */
void cupti__pause_records(void)
{
	if (!session.armed || session.rests || !go_inside())
		return;
	emit_devices();
	end_records();
	/* Nothing tells of those that come while it rests. */
	cupti_finalize__note_graphs();
	session.rests = true;
	session.rests_nr = 0;
	come_out();
}

/* What comes while it is waited for, so that little is left to be done. */
static bool take_what_comes(void)
{
	take_records(true);
	return !__atomic_load_n(&ending, __ATOMIC_ACQUIRE);
}

/* Until what comes meanwhile is little: threads are held while the rest is taken. */
static void catch_up(void)
{
	uint64_t begin_ns;

	for (int i = 0; i < CATCH_UP_TRIES; i++) {
		begin_ns = clock_now_ns();
		if (!take_what_comes() || clock_now_ns() - begin_ns < CATCH_UP_NS)
			return;
	}
}

/* GP_CUPTI_DOWN: threads are held until it is done. */
static enum gp_cupti_end use_quiesce(struct gp_ring_page *page, enum gp_quiesce held)
{
	if (held == GP_QUIESCE_ALL_OUT && quiesce__use(page))
		return GP_CUPTI_DOWN;
	return quiesce__is_silent(page) ? GP_CUPTI_LEFT_SILENT : GP_CUPTI_LEFT_CALLS;
}

void cupti__disarm(void)
{
	const struct cupti_functions *call = &session.library.call;
	struct gp_ring_page *page;
	enum gp_quiesce held;

	if (!session.armed || !go_inside())
		return;
	page = session.ring->page;
	emit_devices();
	catch_up();
	held = quiesce__begin(page, take_what_comes);
	end_records();
	take_incomplete();
	time_events(0);
	(void)call->cuptiSetThreadIdType(session.thread_ids);
	if (session.records.graphs_seen)
		cupti_finalize__note_graphs();
	emit_end(page, cupti_finalize__give_back(use_quiesce(page, held)));
	quiesce__end(page);
	drop_late();
	session.armed = session.rests = false;
	let_go();
	come_out();
}

void cupti__set_own_thread(void)
{
	session.own_thread = (uint32_t)syscall(SYS_gettid);
	cupti_records__set_own_thread(&session.records, session.own_thread);
}

void cupti__forget(void)
{
	session.own_thread = 0;
	session.armed = session.rests = false;
	names__free(session.names);
	session.names = NULL;
	session.ring = NULL;
	cupti_finalize__forget();
	inside = ending = 0;
}
