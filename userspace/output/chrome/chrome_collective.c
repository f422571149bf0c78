/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Collectives in a Chrome trace, under the names of PyTorch's record_param_comms. Kineto writes
 * name, sizes, group size and type together or not at all, and so do we. Where the number of ranks
 * is not known, only the call to NCCL shows its arguments.
 */
#include "output/chrome/chrome.h"

#include <inttypes.h>

#include "base/banned.h"

/* ncclDataType_t, ncclRedOp_t. */
static const char *const datatypes[] = {"Char",	  "Byte",     "Int",	       "UInt32",
					"Long",	  "UInt64",   "Half",	       "Float",
					"Double", "BFloat16", "Float8_e4m3fn", "Float8_e5m2"};
static const char *const reductions[] = {"sum", "product", "max", "min", "avg"};

static const struct {
	const char *call, *name;
	bool gathers, scatters; /* the output, or the input, is as large as all ranks' together */
} collectives[] = {
	{"ncclAllReduce", "allreduce", false, false},
	{"ncclReduceScatter", "_reduce_scatter_base", false, true},
	{"ncclReduce", "reduce", false, false},
	{"ncclBroadcast", "broadcast", false, false},
	{"ncclBcast", "broadcast", false, false},
	{"ncclSend", "send", false, false},
	{"ncclRecv", "recv", false, false},
	{"ncclAllGather", "_allgather_base", true, false},
	{"ncclAlltoAll", "all_to_all", true, true},
};

static const char *datatype_of(const struct tl_collective *co)
{
	if (co->datatype < 0 || co->datatype >= (int32_t)(sizeof(datatypes) / sizeof(*datatypes)))
		return NULL;
	return datatypes[co->datatype];
}

/* The five that stand together. */
static void kineto_args(struct chrome *c, const struct tl_api *api)
{
	const struct tl_collective *co = &c->t->gpu.collectives.items[api->collective];
	const char *datatype = datatype_of(co);
	uint64_t all;

	for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++) {
		if (strcmp(api->name, collectives[i].call) || co->ranks <= 0 || !datatype ||
		    __builtin_mul_overflow(co->count, (uint64_t)co->ranks, &all))
			continue;
		json__put_word(&c->json, "Collective name", collectives[i].name);
		json__put_u64(&c->json, "In msg nelems", collectives[i].scatters ? all : co->count);
		json__put_u64(&c->json, "Out msg nelems", collectives[i].gathers ? all : co->count);
		json__put_i64(&c->json, "Group size", co->ranks);
		json__put_word(&c->json, "dtype", datatype);
	}
}

static void handle_arg(struct chrome *c, const char *name, uint64_t handle)
{
	json__key(&c->json, name);
	json__printf(&c->json, "0x%" PRIx64, handle);
}

void chrome_collective(struct chrome *c, const struct tl_api *api)
{
	const struct tl_collective *co = &c->t->gpu.collectives.items[api->collective];
	const char *datatype = datatype_of(co);

	if (co->communicator)
		handle_arg(c, "communicator", co->communicator);
	if (co->ranks > 0)
		json__put_i64(&c->json, "ranks", co->ranks);
	if (!datatype)
		return;
	json__put_u64(&c->json, "count", co->count);
	json__put_word(&c->json, "datatype", datatype);
	if (co->op >= 0 && co->op < (int32_t)(sizeof(reductions) / sizeof(*reductions)))
		json__put_word(&c->json, "reduction", reductions[co->op]);
	if (co->peer >= 0)
		json__put_i64(&c->json, "peer or root", co->peer);
	handle_arg(c, "stream handle", co->stream);
	kineto_args(c, api);
}

void chrome_collective_kernel(struct chrome *c, const struct tl_gpu *kernel)
{
	uint32_t api = kernel->api;

	while (api != TL_NONE && c->t->gpu.api.items[api].collective == TL_NONE)
		api = c->t->gpu.api.items[api].parent;
	if (api != TL_NONE)
		kineto_args(c, &c->t->gpu.api.items[api]);
}
