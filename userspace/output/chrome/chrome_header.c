/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The keys before a Chrome trace's events, and the names of its rows. The key "gpuprof" holds what
 * no other profiler writes: how the trace was captured, and what is missing from it.
 */
#include "output/chrome/chrome.h"
#include "output/format/metadata.h"

#include <stdio.h>

#include "base/banned.h"

/* The base is the beginning of the day, so that the traces of several processes share it. Kineto
 * takes a quarter of a year, with which a double just about tells two nanoseconds apart: sums of ts
 * and dur in doubles then let a child end after its parent. */
#define BASE_STEP_NS (86400ULL * 1000000000ULL)

/* Without the time of day, times stay those of CLOCK_MONOTONIC. */
static void set_base(struct chrome *c)
{
	uint64_t offset_ns = c->t->realtime_offset_ns;

	if (!offset_ns)
		return;
	c->base_ns = (c->t->start_ns + offset_ns) / BASE_STEP_NS * BASE_STEP_NS;
	c->shift_ns = (int64_t)(offset_ns - c->base_ns);
}

/* The library by which the ranks communicate; NULL: none was seen. */
static const char *backend_of(const struct chrome *c)
{
	static const char *const ranges[] = {"nccl:", "gloo:", "mpi:", "ucc:"};
	static const char *const names[] = {"nccl", "gloo", "mpi", "ucc"};

	if (c->t->gpu.collectives.nr)
		return names[0];
	for (size_t i = 0; i < c->t->ops.nr; i++)
		for (size_t k = 0; k < sizeof(ranges) / sizeof(*ranges); k++)
			if (!strncmp(c->t->ops.items[i].name, ranges[k], strlen(ranges[k])))
				return names[k];
	return NULL;
}

static void distributed(struct chrome *c)
{
	const struct recording *rec = c->t->recording;
	const struct tl_process *shown =
		c->process == TL_NONE ? NULL : &c->t->processes.items[c->process];
	int32_t rank = 0, world_size = -1;
	const char *backend = NULL, *nccl = recording__meta(rec, "nccl_version");

	for (size_t i = 0; i < recording__processes(rec); i++) {
		const struct recording_process *p = recording__process_at(rec, i);

		if (p->rank < 0 || (shown && (p->pid != shown->pid || p->rank != shown->rank)))
			continue;
		rank = p->rank;
		world_size = p->world_size;
		backend = backend_of(c);
		break;
	}
	json__put_object(&c->json, "distributedInfo", &json_spaced);
	if (backend)
		json__put_word(&c->json, "backend", backend);
	json__put_i64(&c->json, "rank", rank);
	if (world_size > 0)
		json__put_i64(&c->json, "world_size", world_size);
	if (nccl && backend && !strcmp(backend, "nccl"))
		json__put_text(&c->json, "nccl_version", nccl);
	json__end(&c->json);
}

/* Whether the trace has this key already. */
static bool is_taken(const char *name)
{
	static const char *const taken[] = {
		"schemaVersion",   "deviceProperties",	   "distributedInfo",	  "record_shapes",
		"with_flops",	   "profile_memory",	   "host_name",		  "gpuprof",
		"displayTimeUnit", "baseTimeNanoseconds",  "traceEvents",	  "traceName",
		"cupti_version",   "cuda_runtime_version", "cuda_driver_version",
	};

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (!strcmp(taken[i], name))
			return true;
	return false;
}

/* The keys that add_metadata() of torch.profiler would add. */
static void user_metadata(struct chrome *c)
{
	const size_t prefix = strlen(RECORDING_USER_META);

	for (size_t i = 0; i < recording__metas(c->t->recording); i++) {
		const char *name, *value;

		recording__meta_at(c->t->recording, i, &name, &value);
		if (strncmp(name, RECORDING_USER_META, prefix) != 0 || is_taken(name + prefix))
			continue;
		json__key_text(&c->json, name + prefix);
		json__text(&c->json, value);
	}
}

static void own_metadata(struct chrome *c)
{
	json__put_object(&c->json, "gpuprof", &json_spaced);
	json__key(&c->json, "losses");
	metadata_losses(&c->json, c->t);
	json__key(&c->json, "overhead");
	metadata_overhead(&c->json, c->t);
	json__key(&c->json, "capture");
	metadata_capture(&c->json, c->t);
	if (c->t->gpu.any) {
		json__key(&c->json, "gpu");
		metadata_gpu(&c->json, c->t);
	}
	json__end(&c->json);
}

void chrome_header(struct chrome *c)
{
	static const struct json_style events = JSON_STYLE("\n  ", ",\n  ", ":", "\n  ");
	const char *host = recording__meta(c->t->recording, "host");

	set_base(c);
	json__object(&c->json, &json_document);
	json__put_u64(&c->json, "schemaVersion", 1);
	chrome_devices(c);
	chrome_versions(c);
	distributed(c);
	if (c->t->inputs.nr)
		json__put_u64(&c->json, "record_shapes", 1);
	if (recording__is_on(c->t->recording, "flops"))
		json__put_u64(&c->json, "with_flops", 1);
	if (c->t->memory.nr || recording__is_on(c->t->recording, "memory"))
		json__put_u64(&c->json, "profile_memory", 1);
	if (host)
		json__put_text(&c->json, "host_name", host);
	user_metadata(c);
	own_metadata(c);
	json__put_word(&c->json, "displayTimeUnit", "ms");
	json__put_u64(&c->json, "baseTimeNanoseconds", c->base_ns);
	json__put_array(&c->json, "traceEvents", &events);
}

static void thread_names(struct chrome *c, const struct tl_thread *th)
{
	int64_t pid = c->t->processes.items[th->process].row_pid;
	char name[64];

	if (*th->comm)
		(void)snprintf(name, sizeof(name), "thread %u (%s)", th->tid, th->comm);
	else
		(void)snprintf(name, sizeof(name), "thread %u", th->tid);
	chrome_meta_text(c, "thread_name", pid, th->tid, name);
	chrome_meta_number(c, "thread_sort_index", pid, th->tid, th->tid);
}

void chrome_names(struct chrome *c)
{
	for (size_t i = 0; i < c->t->processes.nr; i++) {
		const struct tl_process *p = &c->t->processes.items[i];
		char label[32] = "CPU";

		if (!chrome_shows(c, (uint32_t)i))
			continue;
		chrome_meta_text(c, "process_name", p->row_pid, 0, p->comm);
		if (p->rank >= 0)
			(void)snprintf(label, sizeof(label), "rank %d", p->rank);
		chrome_meta_text(c, "process_labels", p->row_pid, 0, label);
		chrome_meta_number(c, "process_sort_index", p->row_pid, 0, p->pid);
	}
	for (size_t i = 0; i < c->t->threads.nr; i++)
		if (chrome_shows_thread(c, (uint32_t)i))
			thread_names(c, &c->t->threads.items[i]);
}
