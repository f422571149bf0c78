/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a Chrome trace says of GPUs beside their work: their properties, and a range around the work
 * of each annotation on each stream.
 */
#include "output/chrome.h"

#include <errno.h>
#include <inttypes.h>

#include "base/banned.h"

/* ---- deviceProperties ---- */

static const struct tl_device *find_device(const struct tl_gpus *gpu, uint32_t device)
{
	for (size_t i = 0; i < gpu->described.nr; i++)
		if (gpu->described.items[i].told.device == device)
			return &gpu->described.items[i];
	return NULL;
}

static void properties(struct chrome *c, const struct tl_device *device)
{
	const struct gp_ev_device *d = &device->told;

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

static void version(struct chrome *c, const char *key, uint32_t told)
{
	if (told)
		buf__printf(&c->out, "  \"%s\": %u,\n", key, told);
}

/* Readers take the place in the list for the device's number: it ends where one is missing. */
void chrome_devices(struct chrome *c)
{
	const struct tl_device *device;

	chrome_lit(&c->out, "  \"deviceProperties\": [\n");
	for (uint32_t i = 0; (device = find_device(&c->t->gpu, i)); i++) {
		if (i)
			chrome_lit(&c->out, ",\n");
		properties(c, device);
	}
	if (find_device(&c->t->gpu, 0))
		chrome_lit(&c->out, "\n");
	chrome_lit(&c->out, "  ],\n");
}

void chrome_versions(struct chrome *c)
{
	const struct tl_device *device = find_device(&c->t->gpu, 0);

	if (!device)
		return;
	version(c, "cupti_version", device->told.cupti_version);
	version(c, "cuda_runtime_version", device->told.runtime_version);
	version(c, "cuda_driver_version", device->told.driver_version);
}

/* ---- annotations ---- */

struct range {
	uint32_t op, device, stream;
	uint64_t start_ns, end_ns;
};

struct ranges {
	VEC(struct range) items;
	struct hash of; /* hash of op, device and stream -> index */
};

/* The innermost annotation around an op, itself included. */
static uint32_t annotation_of(const struct timeline *t, uint32_t op)
{
	while (op != TL_NONE && t->ops.items[op].scope != GP_SCOPE_USER)
		op = t->ops.items[op].parent;
	return op;
}

static int add_work(struct ranges *r, uint32_t op, const struct tl_gpu *g)
{
	uint64_t key = hash_mix((uint64_t)op << 32 | g->device) ^ g->stream;
	struct range new = {op, g->device, g->stream, g->shown_start_ns, g->shown_end_ns};
	const uint64_t *known;
	int err;

	while ((known = hash__find(&r->of, key))) {
		struct range *old = &r->items.items[*known];

		if (old->op == op && old->device == g->device && old->stream == g->stream) {
			if (g->shown_start_ns < old->start_ns)
				old->start_ns = g->shown_start_ns;
			if (g->shown_end_ns > old->end_ns)
				old->end_ns = g->shown_end_ns;
			return 0;
		}
		key = hash_mix(key);
	}
	err = hash__set(&r->of, key, r->items.nr);
	return err ? err : vec_push(&r->items, new);
}

/* One nanosecond wider at each end, so that it encloses its work. */
static void range_slice(struct chrome *c, const struct range *r)
{
	int64_t start = chrome_time(c, r->start_ns), end = chrome_time(c, r->end_ns);

	chrome_begin(c);
	chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":");
	buf__json(&c->out, c->t->ops.items[r->op].name);
	buf__printf(&c->out, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":", r->device,
		    r->stream);
	buf__us(&c->out, start > 0 ? start - 1 : 0);
	chrome_lit(&c->out, ",\"dur\":");
	buf__us(&c->out, end - start + 2);
	buf__printf(&c->out, ",\"args\":{\"External id\":%" PRIu64 "}}", (uint64_t)r->op + 1);
}

int chrome_annotations(struct chrome *c)
{
	const struct tl_gpus *gpu = &c->t->gpu;
	struct ranges r = {0};
	int err = 0;

	for (size_t i = 0; i < gpu->work.nr && !err; i++) {
		const struct tl_gpu *g = &gpu->work.items[i];
		uint32_t op = annotation_of(c->t, g->op);

		/* What overlaps is drawn on other rows. */
		if (op != TL_NONE && tl_gpu_is_work(g) && !g->lane)
			err = add_work(&r, op, g);
	}
	for (size_t i = 0; i < r.items.nr && !err; i++) {
		range_slice(c, &r.items.items[i]);
		err = chrome_drain(c, false);
	}
	vec_done(&r.items);
	hash__done(&r.of);
	return err;
}
