/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GPUs in a Chrome trace, apart from their work: their properties, and for each annotation a range
 * around its work on each stream.
 */
#include "output/chrome/chrome.h"
#include "timeline/analysis/gpu_ranges.h"

#include <errno.h>
#include <inttypes.h>

#include "base/banned.h"
#include "common/step_annotations.h"

/* ---- deviceProperties ---- */

/* Of several processes that are shown, the first one's. */
static const struct tl_device *find_device(const struct chrome *c, uint32_t device)
{
	const struct tl_gpus *gpu = &c->t->gpu;

	for (size_t i = 0; i < gpu->described.nr; i++)
		if (gpu->described.items[i].reported.device == device &&
		    chrome_shows(c, gpu->described.items[i].process))
			return &gpu->described.items[i];
	return NULL;
}

static void properties(struct chrome *c, const struct tl_device *device)
{
	const struct gp_ev_device *d = &device->reported;

	struct json_writer *j = &c->json;

	json__object(j, &json_spaced);
	json__new_line(j, 6);
	json__put_u64(j, "id", d->device);
	json__put_text(j, "name", device->name);
	json__put_u64(j, "totalGlobalMem", d->memory_bytes);
	json__new_line(j, 6);
	json__put_u64(j, "computeMajor", d->major);
	json__put_u64(j, "computeMinor", d->minor);
	json__new_line(j, 6);
	json__put_u64(j, "maxThreadsPerBlock", d->threads_per_block);
	json__put_u64(j, "maxThreadsPerMultiprocessor", d->threads_per_sm);
	json__new_line(j, 6);
	json__put_u64(j, "regsPerBlock", d->registers_per_block);
	json__put_u64(j, "warpSize", d->warp_threads);
	json__new_line(j, 6);
	json__put_u64(j, "sharedMemPerBlock", d->shared_per_block);
	json__put_u64(j, "numSms", d->sms);
	json__new_line(j, 6);
	json__put_u64(j, "regsPerMultiprocessor", d->registers_per_sm);
	json__put_u64(j, "sharedMemPerBlockOptin", d->shared_per_block_optin);
	json__new_line(j, 6);
	json__put_u64(j, "sharedMemPerMultiprocessor", d->shared_per_sm);
	json__new_line(j, 4);
	json__end(j);
}

static void version(struct chrome *c, const char *key, uint32_t reported)
{
	if (reported)
		json__put_u64(&c->json, key, reported);
}

/* Readers take the place in the list for the device's number: it ends where one is missing. */
void chrome_devices(struct chrome *c)
{
	const struct tl_device *device;

	json__put_array(&c->json, "deviceProperties", &json_rows);
	for (uint32_t i = 0; (device = find_device(c, i)); i++)
		properties(c, device);
	json__end(&c->json);
}

void chrome_versions(struct chrome *c)
{
	const struct tl_device *device = find_device(c, 0);

	if (!device)
		return;
	version(c, "cupti_version", device->reported.cupti_version);
	version(c, "cuda_runtime_version", device->reported.runtime_version);
	version(c, "cuda_driver_version", device->reported.driver_version);
}

/* ---- annotations ---- */

/* One nanosecond wider at each end, so that it encloses its work. */
static void range_slice(struct chrome *c, const struct gpu_range *r)
{
	int64_t start = chrome_time(c, r->start_ns), end = chrome_time(c, r->end_ns);

	chrome_begin_event(c, "X", "gpu_user_annotation", c->t->ops.items[r->op].name);
	json__put_u64(&c->json, "pid", chrome_gpu_pid(c, r->process, r->device));
	json__put_u64(&c->json, "tid", r->stream);
	json__put_us(&c->json, "ts", start > 0 ? start - 1 : 0);
	json__put_us(&c->json, "dur", end - start + 2);
	chrome_begin_args(c);
	json__put_u64(&c->json, "External id", (uint64_t)r->op + 1);
	chrome_end_args(c);
}

/* TensorBoard would take steps on a GPU for more of them. */
static bool is_for_trace(const struct chrome *c, const struct gpu_range *r)
{
	return chrome_shows(c, r->process) &&
	       !(c->for_tensorboard &&
		 step_marker_of(c->t->ops.items[r->op].name) == STEP_MARKER_PROFILER);
}

int chrome_annotations(struct chrome *c)
{
	struct gpu_ranges r;
	int err = gpu_ranges__find(c->t, true, &r);

	for (size_t i = 0; i < r.items.nr && !err; i++) {
		if (!is_for_trace(c, &r.items.items[i]))
			continue;
		range_slice(c, &r.items.items[i]);
		err = chrome_drain(c, false);
	}
	gpu_ranges__done(&r);
	return err;
}
