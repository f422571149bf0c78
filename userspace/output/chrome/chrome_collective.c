/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Collectives in a Chrome trace, in the words of PyTorch's record_param_comms. Kineto writes name,
 * sizes, group size and type together or not at all, and so do we: without the number of ranks only
 * the call says what it was made with.
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

static void text_arg(struct chrome *c, const char *key, const char *text)
{
	buf__printf(&c->out, ",\"%s\":\"%s\"", key, text);
}

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
		text_arg(c, "Collective name", collectives[i].name);
		buf__printf(&c->out, ",\"In msg nelems\":%" PRIu64 ",\"Out msg nelems\":%" PRIu64,
			    collectives[i].scatters ? all : co->count,
			    collectives[i].gathers ? all : co->count);
		buf__printf(&c->out, ",\"Group size\":%" PRId32, co->ranks);
		text_arg(c, "dtype", datatype);
	}
}

void chrome_collective(struct chrome *c, const struct tl_api *api)
{
	const struct tl_collective *co = &c->t->gpu.collectives.items[api->collective];
	const char *datatype = datatype_of(co);

	if (co->communicator)
		buf__printf(&c->out, ",\"communicator\":\"0x%" PRIx64 "\"", co->communicator);
	if (co->ranks > 0)
		buf__printf(&c->out, ",\"ranks\":%" PRId32, co->ranks);
	if (!datatype)
		return;
	buf__printf(&c->out, ",\"count\":%" PRIu64, co->count);
	text_arg(c, "datatype", datatype);
	if (co->op >= 0 && co->op < (int32_t)(sizeof(reductions) / sizeof(*reductions)))
		text_arg(c, "reduction", reductions[co->op]);
	if (co->peer >= 0)
		buf__printf(&c->out, ",\"peer or root\":%" PRId32, co->peer);
	buf__printf(&c->out, ",\"stream handle\":\"0x%" PRIx64 "\"", co->stream);
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
