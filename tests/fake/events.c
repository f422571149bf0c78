/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * events FILE: prints the GPU events of a recording, one a line, then its losses.
 */
#include "recording/recording.h"

#include <inttypes.h>
#include <stdio.h>

static void print_head(const char *kind, const struct gp_ev_head *head, uint64_t start_ns)
{
	printf("%s\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\t%u", kind, start_ns, (uint64_t)head->time_ns,
	       head->process, head->tid, head->flags);
}

static void print_kernel(struct recording *r, const struct gp_ev_kernel *k)
{
	const char *overload;

	print_head("kernel", &k->head, k->start_ns);
	printf("\t%u\t%u\t%u,%u,%u\t%u,%u,%u\t%d\t%u\t%u\t%" PRIu64 "\t%s\t%u\n", k->correlation_id,
	       k->stream, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2],
	       k->dynamic_shared_bytes, k->registers, k->graph, (uint64_t)k->graph_node,
	       recording__name(r, k->name_id, &overload), k->device);
}

static void print_memory(const struct gp_ev_gpu_memory *m)
{
	print_head(m->is_set ? "set" : "copy", &m->head, m->start_ns);
	printf("\t%u\t%u\t%" PRIu64 "\t%u\t%u\t%" PRIu64 "\t%u\t%d\n", m->correlation_id, m->stream,
	       (uint64_t)m->bytes, m->copy_kind, m->graph, (uint64_t)m->graph_node, m->device,
	       (int)m->peer_device);
}

static void print_api(struct recording *r, const struct gp_ev_api *a, size_t bytes)
{
	const struct gp_ev_api_call *call = (const struct gp_ev_api_call *)a;
	const char *overload;

	print_head("call", &a->head, a->start_ns);
	printf("\t%u\t%u\t%s", a->correlation_id, a->cbid,
	       recording__name(r, a->name_id, &overload));
	if (bytes >= sizeof(*call))
		printf("\t%" PRIx64 "\t%" PRIu64 "\t%" PRIu64 "\t%u,%u,%u\t%u,%u,%u\t%u\t%d\t%s",
		       (uint64_t)a->instance, (uint64_t)a->stream, (uint64_t)a->bytes, a->grid[0],
		       a->grid[1], a->grid[2], a->block[0], a->block[1], a->block[2],
		       a->shared_bytes, (int)call->copy_kind,
		       call->kernel_name_id ? recording__name(r, call->kernel_name_id, &overload)
					    : "");
	printf("\n");
}

static void print_cuda_memory(struct recording *r, const struct gp_ev_cuda_memory *m)
{
	const char *overload;

	print_head("memory", &m->head, m->head.time_ns);
	printf("\t%" PRIx64 "\t%" PRIu64 "\t%u\t%s\n", (uint64_t)m->address, (uint64_t)m->bytes,
	       m->what, recording__name(r, m->name_id, &overload));
}

static void print_op(struct recording *r, const struct gp_ev_op *op)
{
	const char *overload;

	print_head("op", &op->head, op->start_ns);
	printf("\t%s\t%" PRIx64 "\n", recording__name(r, op->name_id, &overload),
	       (uint64_t)op->instance);
}

static int print_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	const struct gp_ev_sync *s = event;
	const struct gp_ev_clock *c = event;

	switch (head->kind) {
	case GP_EV_OP:
		print_op(arg, event);
		break;
	case GP_EV_KERNEL:
		print_kernel(arg, event);
		break;
	case GP_EV_GPU_MEMORY:
		print_memory(event);
		break;
	case GP_EV_API:
		print_api(arg, event, bytes);
		break;
	case GP_EV_CUDA_MEMORY:
		print_cuda_memory(arg, event);
		break;
	case GP_EV_SYNC:
		print_head("sync", head, s->start_ns);
		printf("\t%u\t%u\t%u\n", s->correlation_id, s->stream, s->what);
		break;
	case GP_EV_CLOCK:
		print_head("clock", head, head->time_ns);
		printf("\t%" PRIu64 "\t%" PRIu64 "\n", (uint64_t)c->gpu_ns, (uint64_t)c->width_ns);
		break;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct reason why = {""};
	struct recording *r;
	int err;

	if (argc != 2 || recording__open(argv[1], &why, &r)) {
		(void)fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	err = recording__each_event(r, print_event, r);
	for (size_t i = 0; i < recording__losses(r); i++) {
		uint64_t nr;
		const char *name = recording__loss_at(r, i, &nr);

		printf("loss\t%s\t%" PRIu64 "\n", name, nr);
	}
	recording__free(r);
	return err ? 1 : 0;
}
