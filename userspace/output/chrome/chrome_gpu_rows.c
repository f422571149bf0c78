/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The rows of GPUs in a Chrome trace, and their names. A device of a process is a pid, a stream is
 * a tid. Work that overlaps on a stream lies in lanes: lane n is on tid stream + n * 1000000.
 */
#include "output/chrome/chrome.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

#define OVERHEAD_INDEX 0x100000A
#define SORT_INDEX_0   5000000
#define DEVICES_OF_ONE 1024
#define LANE_TIDS      1000000

/* No process's pid in a trace (struct tl_process.row_pid) is one of these: pids are below the
 * first, and the steps are the same. */
#define PID_FIRST 5000000
#define PID_STEP  10000000

static uint64_t device_key(uint32_t process, uint32_t device)
{
	return (uint64_t)process << 32 | device;
}

int64_t chrome_gpu_stream(uint32_t stream)
{
	return stream == TL_NONE ? -1 : (int64_t)stream;
}

int64_t chrome_gpu_tid(const struct tl_gpu *g)
{
	return chrome_gpu_stream(g->stream) + (int64_t)g->lane * LANE_TIDS;
}

uint64_t chrome_gpu_pid(const struct chrome *c, uint32_t process, uint32_t device)
{
	const uint64_t *pid = hash__find(&c->gpu_rows.pid_of, device_key(process, device));

	return pid ? *pid : device;
}

/* What names are written for; `err` sticks. */
struct named {
	struct hash rows;
	uint32_t user; /* the process whose device was the last that is new, TL_NONE: none */
	int err;
};

static bool is_new(struct hash *seen, uint64_t key, int *err)
{
	if (*err || hash__find(seen, key))
		return false;
	*err = hash__set(seen, key, 1);
	return !*err;
}

static void place_device(struct chrome *c, struct named *n, uint32_t process, uint32_t device)
{
	struct chrome_gpu_rows *rows = &c->gpu_rows;
	uint64_t key = device_key(process, device), users = 0;
	const uint64_t *known;

	if (n->err || hash__find(&rows->pid_of, key))
		return;
	known = hash__find(&rows->users_of, device);
	users = known ? *known : 0;
	n->err = hash__set(&rows->pid_of, key,
			   users ? PID_FIRST + users * PID_STEP + device : device);
	n->err = n->err ? n->err : hash__set(&rows->users_of, device, users + 1);
	rows->of_several |= n->user != TL_NONE && n->user != process;
	n->user = process;
}

/* Devices of the first user, then of the second, all before what stands last. */
static uint64_t sort_index(uint64_t pid, uint32_t device)
{
	uint64_t users = pid == device ? 0 : (pid - device) / PID_STEP;
	uint64_t index = SORT_INDEX_0 + users * DEVICES_OF_ONE + device;

	return index < OVERHEAD_INDEX ? index : OVERHEAD_INDEX - 1;
}

static void device_names(struct chrome *c, uint32_t process, uint32_t device)
{
	const struct tl_process *p = &c->t->processes.items[process];
	int64_t pid = (int64_t)chrome_gpu_pid(c, process, device);
	char label[64];

	if (!c->gpu_rows.of_several)
		(void)snprintf(label, sizeof(label), "GPU %" PRIu32, device);
	else if (p->rank >= 0)
		(void)snprintf(label, sizeof(label), "GPU %" PRIu32 " of rank %d", device, p->rank);
	else
		(void)snprintf(label, sizeof(label), "GPU %" PRIu32 " of process %" PRId64, device,
			       p->row_pid);
	chrome_meta_text(c, "process_name", pid, 0, p->comm);
	chrome_meta_text(c, "process_labels", pid, 0, label);
	chrome_meta_number(c, "process_sort_index", pid, 0,
			   (int64_t)sort_index((uint64_t)pid, device));
}

/* `what`: for the rows that are not the stream's own. */
static void row_names(struct chrome *c, int64_t pid, uint32_t device, uint32_t stream, int64_t tid,
		      const char *what)
{
	char name[64];

	if (stream == TL_NONE)
		(void)snprintf(name, sizeof(name), "Device %" PRIu32 " (sync)", device);
	else if (!what)
		(void)snprintf(name, sizeof(name), "stream %" PRIu32 " ", stream);
	else
		(void)snprintf(name, sizeof(name), "stream %" PRIu32 " (%s)", stream, what);
	chrome_meta_text(c, "thread_name", pid, tid, name);
	chrome_meta_number(c, "thread_sort_index", pid, tid, tid);
}

static void name_row(struct chrome *c, struct named *n, uint32_t process, uint32_t device,
		     uint32_t stream, int64_t tid, const char *what)
{
	uint64_t pid = chrome_gpu_pid(c, process, device);

	/* No tid is so small. */
	if (is_new(&n->rows, hash_mix(pid) ^ (uint64_t)INT64_MIN, &n->err))
		device_names(c, process, device);
	if (is_new(&n->rows, hash_mix(pid) ^ (uint64_t)tid, &n->err))
		row_names(c, (int64_t)pid, device, stream, tid, what);
}

static void overhead_names(struct chrome *c)
{
	bool any = false;

	for (size_t i = 0; i < c->t->gpu.overhead.nr; i++)
		any |= chrome_shows(c, c->t->gpu.overhead.items[i].process);
	if (!any)
		return;
	chrome_meta_text(c, "process_name", CHROME_OVERHEAD_PID, 0, "Overhead");
	chrome_meta_number(c, "process_sort_index", CHROME_OVERHEAD_PID, 0, OVERHEAD_INDEX);
}

static void find_rows(struct chrome *c, struct named *n)
{
	const struct tl_gpus *gpu = &c->t->gpu;

	for (size_t i = 0; i < gpu->work.nr && !n->err; i++)
		if (gpu->work.items[i].lane != TL_NONE &&
		    chrome_shows(c, gpu->work.items[i].process))
			place_device(c, n, gpu->work.items[i].process, gpu->work.items[i].device);
	for (size_t i = 0; i < gpu->events.nr && !n->err; i++)
		if (chrome_shows(c, gpu->events.items[i].process))
			place_device(c, n, gpu->events.items[i].process,
				     gpu->events.items[i].device);
}

int chrome_gpu_names(struct chrome *c)
{
	const struct tl_gpus *gpu = &c->t->gpu;
	struct named n = {.user = TL_NONE};

	find_rows(c, &n);
	for (size_t i = 0; i < gpu->work.nr && !n.err; i++) {
		const struct tl_gpu *g = &gpu->work.items[i];
		const char *what = tl_gpu_is_work(g) ? "overlap" : "sync";

		if (g->lane != TL_NONE && chrome_shows(c, g->process))
			name_row(c, &n, g->process, g->device, g->stream, chrome_gpu_tid(g),
				 g->lane ? what : NULL);
	}
	for (size_t i = 0; i < gpu->events.nr && !n.err; i++) {
		const struct tl_cuda_event *e = &gpu->events.items[i];

		if (chrome_shows(c, e->process))
			name_row(c, &n, e->process, e->device, e->stream, e->stream, NULL);
	}
	overhead_names(c);
	hash__done(&n.rows);
	return n.err;
}

void chrome_gpu_done(struct chrome *c)
{
	hash__done(&c->gpu_rows.pid_of);
	hash__done(&c->gpu_rows.users_of);
}
