/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A Perfetto trace as a reader takes it, packet by packet: names are known before they are used,
 * slices nest, and no track goes back in time. What is not so fails the test that runs.
 */
#ifndef GP_UNIT_PERFETTO_READING_H
#define GP_UNIT_PERFETTO_READING_H

#include "base/hash.h"
#include "base/vec.h"
#include "perfetto.pb-c.h"
#include "timeline/model/timeline.h"

struct perfetto_slice {
	const char *name, *category;
	uint64_t track, start_ns, end_ns;
	size_t depth;
	const Perfetto__TrackEvent *event;
};

/* All of a trace, its slices in the order of their begins within each track. */
struct reading {
	Perfetto__Trace *trace;
	struct hash names[4]; /* iid -> index of its packet, by kind of interned text */
	struct hash tracks;   /* uuid -> packet of its descriptor */
	struct hash last_of;  /* uuid -> time of its last packet */
	VEC(struct perfetto_slice) slices;
	VEC(size_t) open;
	uint64_t flows_nr;
};

/* Writes the timeline's trace and reads it into *r, which is all zero. The owner calls
 * reading__done(). */
void reading__read(struct reading *r, const struct timeline *t);
void reading__done(struct reading *r);

/* The text that stands for this number: kind 0 is of categories, 1 of names, 2 of names of
 * arguments. */
const char *reading__name(const struct reading *r, int kind, uint64_t iid);

/* The n-th slice of this name, and the track of this number. */
const struct perfetto_slice *reading__slice(const struct reading *r, const char *name,
					    unsigned int nth);
const Perfetto__TrackDescriptor *reading__track(const struct reading *r, uint64_t uuid);

/* The text of an argument, "" if the slice has none of this name; valid until the next call. */
const char *reading__text_arg(const struct reading *r, const struct perfetto_slice *s,
			      const char *name);

/* The number of an argument, which must be there. */
uint64_t reading__number_arg(const struct reading *r, const Perfetto__TrackEvent *e,
			     const char *name);

#endif /* GP_UNIT_PERFETTO_READING_H */
