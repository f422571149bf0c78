/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "perfetto_reading.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/format/output.h"

static void read_interned(struct reading *r, const Perfetto__InternedData *d)
{
	for (size_t i = 0; i < d->n_event_categories; i++)
		assert_int_equal(hash__set(&r->names[0], d->event_categories[i]->iid,
					   (uintptr_t)d->event_categories[i]->name),
				 0);
	for (size_t i = 0; i < d->n_event_names; i++)
		assert_int_equal(hash__set(&r->names[1], d->event_names[i]->iid,
					   (uintptr_t)d->event_names[i]->name),
				 0);
	for (size_t i = 0; i < d->n_debug_annotation_names; i++)
		assert_int_equal(hash__set(&r->names[2], d->debug_annotation_names[i]->iid,
					   (uintptr_t)d->debug_annotation_names[i]->name),
				 0);
	for (size_t i = 0; i < d->n_debug_annotation_string_values; i++)
		assert_int_equal(hash__set(&r->names[3], d->debug_annotation_string_values[i]->iid,
					   (uintptr_t)d->debug_annotation_string_values[i]),
				 0);
}

const char *reading__name(const struct reading *r, int kind, uint64_t iid)
{
	const uint64_t *name = hash__find(&r->names[kind], iid);

	assert_non_null(name);
	return (const char *)(uintptr_t)*name;
}

static void begin(struct reading *r, uint64_t time_ns, const Perfetto__TrackEvent *e)
{
	const struct perfetto_slice s = {
		.name = reading__name(r, 1, e->name_iid),
		.category = reading__name(r, 0, e->category_iids[0]),
		.track = e->track_uuid,
		.start_ns = time_ns,
		.end_ns = UINT64_MAX,
		.depth = r->open.nr,
		.event = e,
	};

	/* The last that is open is of this track: packets come track by track. */
	if (r->open.nr)
		assert_int_equal(r->slices.items[r->open.items[r->open.nr - 1]].track, s.track);
	assert_int_equal(vec_push(&r->open, r->slices.nr), 0);
	assert_int_equal(vec_push(&r->slices, s), 0);
}

static void end(struct reading *r, uint64_t time_ns, const Perfetto__TrackEvent *e)
{
	struct perfetto_slice *s;

	assert_true(r->open.nr > 0);
	s = &r->slices.items[r->open.items[--r->open.nr]];
	assert_int_equal(s->track, e->track_uuid);
	assert_true(s->start_ns <= time_ns);
	s->end_ns = time_ns;
}

static void read_event(struct reading *r, const Perfetto__TracePacket *p)
{
	const Perfetto__TrackEvent *e = p->track_event;
	const uint64_t *last;

	assert_true(p->has_timestamp);
	assert_non_null(hash__find(&r->tracks, e->track_uuid));
	/* As they stand, packets of one track never go back in time: a reader that sorts them keeps
	 * their order. */
	last = hash__find(&r->last_of, e->track_uuid);
	assert_true(!last || *last <= p->timestamp);
	assert_int_equal(hash__set(&r->last_of, e->track_uuid, p->timestamp), 0);
	for (size_t i = 0; i < e->n_debug_annotations; i++) {
		(void)reading__name(r, 2, e->debug_annotations[i]->name_iid);
		if (e->debug_annotations[i]->has_string_value_iid)
			(void)reading__name(r, 3, e->debug_annotations[i]->string_value_iid);
	}
	r->flows_nr += e->n_flow_ids;
	if (e->type == 1)
		begin(r, p->timestamp, e);
	else if (e->type == 2)
		end(r, p->timestamp, e);
}

void reading__read(struct reading *r, const struct timeline *t)
{
	struct sink *s = NULL;
	const char *bytes;
	size_t nr;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_perfetto(s, t), 0);
	assert_int_equal(sink__finish(s), 0);
	bytes = sink__bytes(s, &nr);
	r->trace = perfetto__trace__unpack(NULL, nr, (const uint8_t *)bytes);
	assert_non_null(r->trace);
	for (size_t i = 0; i < r->trace->n_packet; i++) {
		const Perfetto__TracePacket *p = r->trace->packet[i];

		if (p->interned_data)
			read_interned(r, p->interned_data);
		if (p->track_descriptor)
			assert_int_equal(hash__set(&r->tracks, p->track_descriptor->uuid,
						   (uintptr_t)p->track_descriptor),
					 0);
		if (p->track_event)
			read_event(r, p);
	}
	assert_int_equal(r->open.nr, 0);
	sink__free(s);
}

void reading__done(struct reading *r)
{
	perfetto__trace__free_unpacked(r->trace, NULL);
	for (int i = 0; i < 4; i++)
		hash__done(&r->names[i]);
	hash__done(&r->tracks);
	hash__done(&r->last_of);
	vec_done(&r->slices);
	vec_done(&r->open);
}

const struct perfetto_slice *reading__slice(const struct reading *r, const char *name,
					    unsigned int nth)
{
	for (size_t i = 0; i < r->slices.nr; i++)
		if (!strcmp(r->slices.items[i].name, name) && !nth--)
			return &r->slices.items[i];
	fail_msg("no slice is called %s", name);
	return NULL;
}

const Perfetto__TrackDescriptor *reading__track(const struct reading *r, uint64_t uuid)
{
	const uint64_t *track = hash__find(&r->tracks, uuid);

	assert_non_null(track);
	return (const Perfetto__TrackDescriptor *)(uintptr_t)*track;
}

const char *reading__text_arg(const struct reading *r, const struct perfetto_slice *s,
			      const char *name)
{
	static char text[1024];

	for (size_t i = 0; i < s->event->n_debug_annotations; i++) {
		const Perfetto__DebugAnnotation *a = s->event->debug_annotations[i];
		const Perfetto__InternedText *value;

		if (strcmp(reading__name(r, 2, a->name_iid), name) != 0)
			continue;
		value = (const void *)reading__name(r, 3, a->string_value_iid);
		assert_true(value->str.len < sizeof(text));
		memcpy(text, value->str.data, value->str.len);
		text[value->str.len] = '\0';
		return text;
	}
	return "";
}

uint64_t reading__number_arg(const struct reading *r, const Perfetto__TrackEvent *e,
			     const char *name)
{
	for (size_t i = 0; i < e->n_debug_annotations; i++)
		if (!strcmp(reading__name(r, 2, e->debug_annotations[i]->name_iid), name))
			return e->debug_annotations[i]->uint_value;
	fail_msg("no argument is called %s", name);
	return 0;
}
