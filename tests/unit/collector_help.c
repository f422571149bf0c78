/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Both ends of a collector's ring in one process, for the unit tests.
 */
#include "unit/collector_help.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t help_loss(const struct ring_reader *r, enum gp_loss what)
{
	uint64_t losses[GP_LOSS_NR] = {0};

	ring_reader__losses(r, losses);
	return losses[what];
}

struct gp_ev_op help_op(uint32_t nr)
{
	uint64_t now = clock_now_ns();

	return (struct gp_ev_op){
		.head = {.kind = GP_EV_OP,
			 .flags = GP_OP_CALLBACK,
			 .tid = (uint32_t)syscall(SYS_gettid),
			 .time_ns = now},
		.start_ns = now,
		.instance = HELP_PREFIX | 1ULL << 32 | nr,
		.sequence_nr = -1,
	};
}

int seen_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	struct seen *seen = arg;

	if (head->kind == GP_EV_OP && bytes == sizeof(struct gp_ev_op)) {
		seen->ops_nr++;
		seen->last_op = *(const struct gp_ev_op *)event;
	}
	if (head->kind == GP_EV_NAME && bytes >= sizeof(struct gp_ev_name)) {
		const struct gp_ev_name *name = event;

		seen->names_nr++;
		seen->last_name_id = name->name_id;
		(void)snprintf(seen->last_name, sizeof(seen->last_name), "%s",
			       (const char *)(name + 1));
	}
	return seen->stop_after > 0 && --seen->stop_after == 0 ? 77 : 0;
}
