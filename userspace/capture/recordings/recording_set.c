/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Recordings one after another, without what they say: opened, begun, ended, flushed.
 */
#include "capture/recordings/recording_set.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "common/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int recording_set__write_number(struct segment *s, const char *key, uint64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return recording_writer__meta(s->writer, key, text);
}

int recording_set__note_error(struct recording_set *r, struct segment *s, int err)
{
	if (!err)
		return 0;
	if (s && r->options->outlive_disk && recording_writer__error(s->writer)) {
		if (!s->broken)
			log_warn("a recording cannot be written any more: %s; it goes on with the "
				 "next one",
				 strerror(-err));
		s->broken = true;
		return 0;
	}
	capture_run__fail(r->run, err);
	return err;
}

int recording_set__put(struct recording_set *r, const void *event, size_t bytes)
{
	struct segment *to = r->segments.current;

	if (!to || to->broken)
		return 0;
	return recording_set__note_error(r, to, recording_writer__event(to->writer, event, bytes));
}

static char *next_path(const struct recording_set *r)
{
	const struct capture_options *o = r->options;

	return o->recording_path ? o->recording_path(o->recording_arg, r->begun_nr)
				 : strdup(o->output_path);
}

int recording_set__open(struct recording_set *r, struct reason *why)
{
	CLEANUP(cleanup_free) char *path = next_path(r);
	struct segment *s;
	int err;

	if (!path)
		return reason_set(why, -ENOMEM, "out of memory");
	err = segment__new(r->options->folder, path, why, &s);
	if (err)
		return err;
	recording_writer__set_room(s->writer, r->options->room);
	err = r->hooks.describe ? r->hooks.describe(r->hooks.arg, s) : 0;
	if (!err && r->keeps && !capture_is_by_steps(r->options))
		err = recording_writer__place(s->writer);
	if (err) {
		segment__free(s);
		return reason_set(why, err, "cannot write '%s': %s", path, strerror(-err));
	}
	r->begun_nr++;
	r->segments.current = s;
	return 0;
}

int recording_set__begin(struct recording_set *r, uint64_t start_ns)
{
	struct segment *s = r->segments.current;
	uint64_t ago_ns = clock_now_ns() - start_ns;

	s->start_ns = start_ns;
	s->start_realtime_ns = clock_ns(CLOCK_REALTIME) - ago_ns;
	return recording_writer__window(s->writer, s->start_ns, 0, s->start_realtime_ns);
}

int recording_set__end(struct recording_set *r, struct segment **segment)
{
	const struct recording_hooks *hooks = &r->hooks;
	struct segment *s = *segment;
	int err = 0;

	if (!s->broken && hooks->finish)
		err = recording_set__note_error(r, s, hooks->finish(hooks->arg, s));
	if (r->keeps)
		err = err ?: recording_set__note_error(r, s, recording_writer__place(s->writer));
	/* What a broken one could not say, the next one does. */
	if (!s->broken && hooks->finished)
		hooks->finished(hooks->arg);
	r->ended_bytes += recording_writer__bytes(s->writer);
	r->ended_nr++;
	segment__free(s);
	*segment = NULL;
	return err;
}

int recording_set__flush(struct recording_set *r)
{
	struct segments *open = &r->segments;
	struct segment *s = open->draining ? open->draining : open->current;
	int err;

	if (!s || s->broken)
		return 0;
	err = r->hooks.write_losses ? r->hooks.write_losses(r->hooks.arg, s) : 0;
	err = err ? err : recording_writer__flush(s->writer);
	if (!err && s != open->current && open->current && !open->current->broken) {
		s = open->current;
		err = recording_writer__flush(s->writer);
	}
	return recording_set__note_error(r, s, err);
}

int recording_set__keep(struct recording_set *r)
{
	struct segment *now = r->segments.current;
	int err =
		now && !capture_is_by_steps(r->options) ? recording_writer__place(now->writer) : 0;

	r->keeps = !err;
	return err;
}

static uint64_t bytes_of(const struct segment *s)
{
	return s ? recording_writer__bytes(s->writer) : 0;
}

uint64_t recording_set__bytes(const struct recording_set *r, uint64_t *ret_current)
{
	*ret_current = bytes_of(r->segments.current);
	return r->ended_bytes + *ret_current + bytes_of(r->segments.draining);
}

void recording_set__done(struct recording_set *r)
{
	segment__free(TAKE(r->segments.current));
	segment__free(TAKE(r->segments.draining));
}
