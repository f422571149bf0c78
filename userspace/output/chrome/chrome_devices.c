/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a Chrome trace says of GPUs beside their work: their properties, and a range around the work
 * of each annotation on each stream.
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

	buf__printf(&c->out, "    {\n      \"id\": %u, \"name\": ", d->device);
	buf__json(&c->out, device->name);
	buf__printf(&c->out, ", \"totalGlobalMem\": %" PRIu64 ",\n", (uint64_t)d->memory_bytes);
	buf__printf(&c->out, "      \"computeMajor\": %u, \"computeMinor\": %u,\n", d->major,
		    d->minor);
	buf__printf(&c->out,
		    "      \"maxThreadsPerBlock\": %u, \"maxThreadsPerMultiprocessor\": %u,\n",
		    d->threads_per_block, d->threads_per_sm);
	buf__printf(&c->out, "      \"regsPerBlock\": %u, \"warpSize\": %u,\n",
		    d->registers_per_block, d->warp_threads);
	buf__printf(&c->out, "      \"sharedMemPerBlock\": %u, \"numSms\": %u,\n",
		    d->shared_per_block, d->sms);
	buf__printf(&c->out,
		    "      \"regsPerMultiprocessor\": %u, \"sharedMemPerBlockOptin\": %u,\n",
		    d->registers_per_sm, d->shared_per_block_optin);
	buf__printf(&c->out, "      \"sharedMemPerMultiprocessor\": %u\n    }", d->shared_per_sm);
}

static void version(struct chrome *c, const char *key, uint32_t reported)
{
	if (reported)
		buf__printf(&c->out, "  \"%s\": %u,\n", key, reported);
}

/* Readers take the place in the list for the device's number: it ends where one is missing. */
void chrome_devices(struct chrome *c)
{
	const struct tl_device *device;

	chrome_lit(&c->out, "  \"deviceProperties\": [\n");
	for (uint32_t i = 0; (device = find_device(c, i)); i++) {
		if (i)
			chrome_lit(&c->out, ",\n");
		properties(c, device);
	}
	if (find_device(c, 0))
		chrome_lit(&c->out, "\n");
	chrome_lit(&c->out, "  ],\n");
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

	chrome_begin(c);
	chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":");
	buf__json(&c->out, c->t->ops.items[r->op].name);
	buf__printf(&c->out, ",\"pid\":%" PRIu64 ",\"tid\":%" PRIu32 ",\"ts\":",
		    chrome_gpu_pid(c, r->process, r->device), r->stream);
	buf__us(&c->out, start > 0 ? start - 1 : 0);
	chrome_lit(&c->out, ",\"dur\":");
	buf__us(&c->out, end - start + 2);
	buf__printf(&c->out, ",\"args\":{\"External id\":%" PRIu64 "}}", (uint64_t)r->op + 1);
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
