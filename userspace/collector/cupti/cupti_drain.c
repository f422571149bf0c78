/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * CUPTI may call back late. Its callbacks touch only what lives as long as this library: the
 * counter of wasted records, the buffers and `callbacks`.
 */
#include "collector/cupti/cupti_drain.h"

#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_clock.h"
#include "collector/cupti/cupti_finalize.h"
#include "collector/cupti/cupti_records.h"
#include "collector/cupti/devices.h"
#include "collector/runtime/compat.h"

#include <errno.h>

#define NAMES_FIRST 32768 /* the first id of our names; those of ops are below */

static struct {
	struct ring_writer *ring;
	const struct cupti_library *library;
	struct names *names;
	uint32_t own_thread; /* the collector's; 0: not started */
	bool devices_emitted;
	struct cupti_clock clock;
	struct cupti_records records;
} drain;

static struct {
	bool may_refuse;    /* requests for a buffer */
	uint64_t wasted_nr; /* records that came in spare buffers */
	int (*next_record)(uint8_t *buffer, size_t valid_bytes, void **record);
} callbacks;

/* ---- called by CUPTI, on any thread ---- */

static void request(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records_max)
{
	int saved = errno;

	*ret_records_max = 0;
	cupti_buffers__request(callbacks.may_refuse, ret_buffer, ret_bytes);
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
		while (!callbacks.next_record(buffer, valid_bytes, &record))
			nr++;
	else
		nr = valid_bytes != 0;
	(void)__atomic_fetch_add(&callbacks.wasted_nr, nr, __ATOMIC_RELAXED);
	cupti_buffers__release_spare(buffer);
}

/* ---- inside the gate ---- */

bool cupti_drain__begin(struct ring_writer *ring, const struct cupti_library *library)
{
	callbacks.next_record = library->call.cuptiActivityGetNextRecord;
	callbacks.may_refuse = library->version >= CUPTI_VERSION_12_9;
	drain.ring = ring;
	drain.library = library;
	drain.devices_emitted = false;
	drain.names = names__new(NAMES_FIRST);
	if (!drain.names || !cupti_buffers__open())
		return false;
	cupti_clock__init(&drain.clock);
	cupti_records__init(&drain.records, ring, drain.names, library, &drain.clock);
	cupti_records__set_own_thread(&drain.records, drain.own_thread);
	return true;
}

int cupti_drain__register(void)
{
	return drain.library->call.cuptiActivityRegisterCallbacks(request, complete);
}

void cupti_drain__end(void)
{
	cupti_buffers__close();
	names__free(drain.names);
	drain.names = NULL;
}

bool cupti_drain__read_clock(void)
{
	struct gp_ev_clock ev = {.head.kind = GP_EV_CLOCK};
	struct clock_reading reading;

	if (!cupti_clock__read(drain.library->call.cuptiGetTimestamp, &reading))
		return false;
	(void)cupti_clock__add(&drain.clock, &reading);
	ev.head.time_ns = reading.time_ns;
	ev.gpu_ns = reading.gpu_ns;
	ev.width_ns = reading.width_ns;
	(void)ring_writer__write(drain.ring, &ev, sizeof(ev));
	return true;
}

static uint64_t take_wasted(void)
{
	return __atomic_exchange_n(&callbacks.wasted_nr, 0, __ATOMIC_RELAXED);
}

static void count_dropped(void)
{
	uint64_t wasted = take_wasted();
	size_t nr = 0;

	if (drain.library->call.cuptiActivityGetNumDroppedRecords(NULL, 0, &nr))
		nr = 0;
	if (!nr && !wasted)
		return;
	ring_writer__count(drain.ring, GP_LOSS_GPU_DROPPED, nr + wasted);
	/* The lost records may have been those of graphs. */
	cupti_finalize__note_graphs();
}

void cupti_drain__take(bool flush)
{
	uint8_t indices[BUFFERS_NR];
	uint32_t nr;

	if (flush)
		(void)drain.library->call.cuptiActivityFlushAll(CUPTI_FLUSH_COMPLETED);
	nr = cupti_buffers__take(indices);
	/* Read after the buffers were taken: no time in them is later than this reading. Read in
	 * each turn, because CUPTI uses another clock once CUDA is ready. */
	(void)cupti_drain__read_clock();
	for (uint32_t i = 0; i < nr; i++) {
		size_t valid_bytes;
		uint8_t *content = cupti_buffers__content(indices[i], &valid_bytes);

		if (valid_bytes)
			cupti_records__convert(&drain.records, content, valid_bytes);
		cupti_buffers__release(indices[i]);
	}
	if (drain.records.graphs_seen)
		cupti_finalize__note_graphs();
	if (flush)
		count_dropped();
}

void cupti_drain__take_incomplete(void)
{
	(void)drain.library->call.cuptiActivityFlushAll(CUPTI_FLUSH_FORCED);
	cupti_drain__take(true);
}

void cupti_drain__drop_late(void)
{
	uint8_t indices[BUFFERS_NR];
	uint32_t nr = cupti_buffers__take(indices);
	uint64_t lost = take_wasted();

	for (uint32_t i = 0; i < nr; i++) {
		size_t valid_bytes;

		(void)cupti_buffers__content(indices[i], &valid_bytes);
		lost += valid_bytes != 0;
		cupti_buffers__release(indices[i]);
	}
	if (lost)
		ring_writer__count(drain.ring, GP_LOSS_GPU_DROPPED, lost);
}

void cupti_drain__emit_devices(void)
{
	if (!drain.devices_emitted)
		drain.devices_emitted = devices__emit(drain.ring, drain.library);
}

void cupti_drain__set_own_thread(uint32_t tid)
{
	drain.own_thread = tid;
	cupti_records__set_own_thread(&drain.records, tid);
}

void cupti_drain__forget(void)
{
	drain.own_thread = 0;
	names__free(drain.names);
	drain.names = NULL;
	drain.ring = NULL;
}
