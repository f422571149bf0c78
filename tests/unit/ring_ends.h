/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Both ends of a ring of the test's own. In a header: the writing end is linked into few tests.
 */
#ifndef GP_UNIT_RING_ENDS_H
#define GP_UNIT_RING_ENDS_H

#include "collector/runtime/ring_writer.h"
#include "unit/collector_help.h"

#include <string.h>
#include <unistd.h>

/* Opens both ends. Anything but 0 fails the set-up of a test. */
static inline int ring_ends_open(struct ring_writer *w, struct ring_reader **r, uint32_t data_bytes)
{
	struct reason why;

	return ring_writer__open(w, data_bytes) ||
	       ring_reader__open(getpid(), HELP_PROCESS, &why, r);
}

static inline void ring_ends_close(struct ring_writer *w, struct ring_reader *r)
{
	ring_reader__free(r);
	ring_writer__close(w);
}

struct ends {
	struct ring_writer w;
	struct ring_reader *r;
	struct seen seen;
};

static inline int ends_open(struct ends *e, uint32_t data_bytes)
{
	memset(e, 0, sizeof(*e));
	return ring_ends_open(&e->w, &e->r, data_bytes);
}

static inline void ends_close(struct ends *e)
{
	ring_ends_close(&e->w, e->r);
}

static inline int ends_drain(struct ends *e)
{
	return ring_reader__drain(e->r, seen_event, &e->seen);
}

static inline bool ends_write_op(struct ends *e, uint32_t nr)
{
	struct gp_ev_op op = help_op(nr);

	return ring_writer__write(&e->w, &op, sizeof(op));
}

#endif /* GP_UNIT_RING_ENDS_H */
