/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds calls of collectives. With NCCL only kernels count: its calls return before the work
 * begins. Other backends work on threads of their own, within a range that they name after
 * themselves. Operators c10d::... only queue the work, and count where nothing else shows it.
 */
#include "timeline/analysis/rank_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/model/sort.h"

static const struct kind {
	const char *begin; /* prefix of a name, in upper or lower case */
	const char *kind;
	bool joins_all, is_peer;
} kinds[] = {
	{"allreduce", "all_reduce", true, false},
	{"all_reduce", "all_reduce", true, false},
	{"allgather", "all_gather", true, false},
	{"all_gather", "all_gather", true, false},
	{"reducescatter", "reduce_scatter", true, false},
	{"reduce_scatter", "reduce_scatter", true, false},
	{"alltoall", "all_to_all", true, false},
	{"all_to_all", "all_to_all", true, false},
	{"barrier", "barrier", true, false},
	{"monitored_barrier", "barrier", true, false},
	{"broadcast", "broadcast", false, false},
	{"bcast", "broadcast", false, false},
	{"reduce", "reduce", false, false},
	{"gather", "gather", false, false},
	{"scatter", "scatter", false, false},
	{"sendrecv", "send", false, true},
	{"send", "send", false, true},
	{"recv", "recv", false, true},
};
static const struct kind other = {"", "other", false, false};

static const struct kind *kind_of(const char *name)
{
	while (*name == '_')
		name++;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncasecmp(name, kinds[i].begin, strlen(kinds[i].begin)))
			return &kinds[i];
	return &other;
}

/* Returns what follows the prefix; NULL if the name does not have it. */
static const char *behind(const char *name, const char *prefix)
{
	size_t nr = strlen(prefix);

	return strncmp(name, prefix, nr) ? NULL : name + nr;
}

static const char *range_kind(const char *name)
{
	static const char *const backends[] = {"gloo:", "mpi:", "ucc:"};
	const char *rest = NULL;

	for (size_t i = 0; i < sizeof(backends) / sizeof(*backends) && !rest; i++)
		rest = behind(name, backends[i]);
	return rest;
}

bool rank_calls_is_range(const char *name)
{
	return range_kind(name);
}

static const char *kernel_kind(const char *name)
{
	const char *rest = behind(name, "ncclDevKernel_");

	return rest ? rest : behind(name, "ncclKernel_");
}

bool rank_calls_is_kernel(const struct tl_gpu *work)
{
	return work->kind == TL_GPU_KERNEL && kernel_kind(work->name);
}

struct finding {
	const struct timeline *t;
	struct ranks *ranks;
	uint32_t *row_of;  /* process -> ranks.rows, TL_NONE: none */
	uint32_t *call_of; /* API call -> its call, TL_NONE: none */
};

static void finding__done(struct finding *f)
{
	free(f->row_of);
	free(f->call_of);
}

static struct rank_row *row_of(const struct finding *f, uint32_t process)
{
	uint32_t row = f->row_of[process];

	return row == TL_NONE ? NULL : &f->ranks->rows.items[row];
}

static int add_call(struct finding *f, const struct kind *kind, struct rank_call call)
{
	struct rank_row *row = row_of(f, call.process);

	if (!row)
		return 0;
	call.kind = kind->kind;
	call.joins_all = kind->joins_all;
	call.is_peer = kind->is_peer;
	call.collective = TL_NONE;
	row->calls_nr += !call.is_peer;
	row->peer_nr += call.is_peer;
	row->by_gpu |= call.by_gpu;
	return vec_push(&f->ranks->calls, call);
}

/* ---- NCCL ---- */

/* Finds the call of NCCL that launched the kernel, or TL_NONE. */
static uint32_t collective_of(const struct timeline *t, const struct tl_gpu *kernel)
{
	uint32_t api = kernel->api;

	while (api != TL_NONE && t->gpu.api.items[api].collective == TL_NONE)
		api = t->gpu.api.items[api].parent;
	return api;
}

/* A collective may take several kernels. */
static int add_kernel(struct finding *f, const struct tl_gpu *kernel)
{
	/* If the call is not known, the stream stands for the communicator: PyTorch gives each
	 * communicator its own. */
	struct rank_call call = {.start_ns = kernel->start_ns,
				 .end_ns = kernel->end_ns,
				 .channel = 1ULL << 63 | (uint64_t)kernel->device << 32 |
					    kernel->stream,
				 .process = kernel->process,
				 .thread = TL_NONE,
				 .by_gpu = true};
	const struct kind *kind = kind_of(kernel_kind(kernel->name));
	uint32_t api = collective_of(f->t, kernel);

	if (api != TL_NONE) {
		const struct tl_api *a = &f->t->gpu.api.items[api];
		const struct tl_collective *c = &f->t->gpu.collectives.items[a->collective];

		if (f->call_of[api] != TL_NONE) {
			struct rank_call *known = &f->ranks->calls.items[f->call_of[api]];

			if (kernel->end_ns > known->end_ns)
				known->end_ns = kernel->end_ns;
			return 0;
		}
		call.channel = c->communicator ? c->communicator : call.channel;
		call.elements = c->count;
		call.thread = a->thread;
		/* A call that ends a group launches what other calls asked for. */
		if (behind(a->name, "nccl") && kind_of(a->name + 4) != &other)
			kind = kind_of(a->name + 4);
		else
			call.elements = 0;
		f->call_of[api] = row_of(f, call.process) ? (uint32_t)f->ranks->calls.nr : TL_NONE;
	}
	return add_call(f, kind, call);
}

static int add_kernels(struct finding *f)
{
	const struct tl_gpus *gpu = &f->t->gpu;
	int err = 0;

	f->call_of = malloc((gpu->api.nr + 1) * sizeof(*f->call_of));
	if (!f->call_of)
		return -ENOMEM;
	for (size_t i = 0; i < gpu->api.nr; i++)
		f->call_of[i] = TL_NONE;
	for (size_t i = 0; i < gpu->work.nr && !err; i++)
		if (rank_calls_is_kernel(&gpu->work.items[i]))
			err = add_kernel(f, &gpu->work.items[i]);
	return err;
}

/* Counts calls of NCCL without a kernel; calls that begin or end groups have none. */
static void count_untimed_calls(struct finding *f)
{
	const struct tl_gpus *gpu = &f->t->gpu;

	for (size_t i = 0; i < gpu->api.nr; i++) {
		const struct tl_api *a = &gpu->api.items[i];
		struct rank_row *row = row_of(f, f->t->threads.items[a->thread].process);

		if (row && a->collective != TL_NONE && f->call_of[i] == TL_NONE &&
		    behind(a->name, "nccl") && kind_of(a->name + 4) != &other)
			row->untimed_nr++;
	}
}

/* ---- ranges ---- */

static int add_range(struct finding *f, const struct tl_op *op)
{
	const struct rank_call call = {
		.start_ns = op->start_ns,
		.end_ns = op->end_ns,
		.shapes = op->inputs == TL_NONE ? NULL : f->t->inputs.items[op->inputs].shapes,
		.process = f->t->threads.items[op->thread].process,
		.thread = op->thread,
	};

	return add_call(f, kind_of(range_kind(op->name)), call);
}

static int add_ranges(struct finding *f)
{
	int err = 0;

	for (size_t i = 0; i < f->t->ops.nr && !err; i++)
		if (range_kind(f->t->ops.items[i].name))
			err = add_range(f, &f->t->ops.items[i]);
	return err;
}

/* Falls back to operators where neither ranges nor kernels exist. */
static void count_untimed_ops(struct finding *f)
{
	for (size_t i = 0; i < f->t->ops.nr; i++) {
		const struct tl_op *op = &f->t->ops.items[i];
		struct rank_row *row = row_of(f, f->t->threads.items[op->thread].process);
		const char *rest = behind(op->name, "c10d::");

		if (row && rest && !row->calls_nr && !row->peer_nr && kind_of(rest) != &other)
			row->untimed_nr++;
	}
}

/* ---- order ---- */

struct rank_row *rank_calls_row(const struct ranks *ranks, uint32_t process)
{
	for (size_t i = 0; i < ranks->rows.nr; i++)
		if (ranks->rows.items[i].process == process)
			return &ranks->rows.items[i];
	return NULL;
}

/* Sorts by process, channel, start. */
static int sort_calls(struct ranks *ranks)
{
	size_t nr = ranks->calls.nr;
	CLEANUP(cleanup_free) struct sort_item *items = malloc((nr + 1) * sizeof(*items));
	CLEANUP(cleanup_free) struct rank_call *sorted = malloc((nr + 1) * sizeof(*sorted));
	int err = 0;

	if (!items || !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		items[i] = (struct sort_item){ranks->calls.items[i].start_ns, (uint32_t)i};
	for (int round = 0; round < 3 && !err; round++) {
		err = sort_items(items, nr);
		for (size_t i = 0; i < nr && round < 2; i++) {
			const struct rank_call *c = &ranks->calls.items[items[i].index];

			items[i].key = round ? c->process : c->channel;
		}
	}
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++)
		sorted[i] = ranks->calls.items[items[i].index];
	for (size_t i = 0; i < nr; i++)
		ranks->calls.items[i] = sorted[i];
	return 0;
}

int rank_calls_find(const struct timeline *t, struct ranks *ranks)
{
	CLEANUP(finding__done) struct finding f = {.t = t, .ranks = ranks};
	int err;

	f.row_of = malloc((t->processes.nr + 1) * sizeof(*f.row_of));
	if (!f.row_of)
		return -ENOMEM;
	for (size_t i = 0; i < t->processes.nr; i++)
		f.row_of[i] = TL_NONE;
	for (size_t i = 0; i < ranks->rows.nr; i++)
		f.row_of[ranks->rows.items[i].process] = (uint32_t)i;
	err = add_kernels(&f);
	err = err ? err : add_ranges(&f);
	if (err)
		return err;
	count_untimed_calls(&f);
	count_untimed_ops(&f);
	return sort_calls(ranks);
}
