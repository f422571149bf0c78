/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Says in one line how complete a recording is: which events are missing, and what is less exact
 * than it looks. With all counters asked for it also names those that are harmless or zero. The
 * names are those of the JSON outputs. They come from a file that anyone may have written.
 */
#include "output/format/output.h"

#include <string.h>

#include "base/banned.h"

#define LINE_COLUMNS 100
#define INDENT	     "  "

bool output_loss_is_events(const char *name)
{
	return !strcmp(name, recording_loss_name(GP_LOSS_RING_FULL)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_DEPTH)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_COLLECTOR_FULL)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_COLLECTOR_LEFT)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_GPU_TIME)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_GPU_CLOCK)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_GPU_DROPPED)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_RECORD));
}

bool output_losses_have_events(const struct tl_loss *losses, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (losses[i].count && output_loss_is_events(losses[i].name))
			return true;
	return false;
}

/* What a counter says about the recording. */
enum reported { REPORTED_NOTHING, REPORTED_EVENTS, REPORTED_PRECISION, REPORTED_EDGE };

/* What began before the capture or went on after it is at the edge of any recording. */
static bool is_edge(const char *name)
{
	return !strcmp(name, recording_loss_name(GP_LOSS_OPEN_AT_START)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_OPEN_AT_END));
}

static enum reported reported_by(const struct tl_loss *loss)
{
	if (!loss->count)
		return REPORTED_NOTHING;
	if (output_loss_is_events(loss->name))
		return REPORTED_EVENTS;
	return is_edge(loss->name) ? REPORTED_EDGE : REPORTED_PRECISION;
}

static size_t count_of(const struct tl_loss *losses, size_t nr, enum reported reported)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++)
		n += reported_by(&losses[i]) == reported;
	return n;
}

/* Text in lines that break between pieces only. */
struct lines {
	struct buf text, piece;
	size_t column;
};

static void end_piece(struct lines *l)
{
	bool fits = l->column + 1 + l->piece.nr <= LINE_COLUMNS;

	if (l->column)
		buf__str(&l->text, fits ? " " : "\n" INDENT);
	l->column = l->piece.nr + (fits ? l->column + (l->column > 0) : sizeof(INDENT) - 1);
	buf__add(&l->text, l->piece.bytes, l->piece.nr);
	if (!l->text.err)
		l->text.err = buf__error(&l->piece);
	buf__clear(&l->piece);
}

static void add_piece(struct lines *l, const char *text)
{
	buf__str(&l->piece, text);
	end_piece(l);
}

static void end_line(struct lines *l)
{
	buf__char(&l->text, '\n');
	l->column = 0;
}

/* "name: count, name: count.", without counts where they are zero. */
static void add_counters(struct lines *l, const struct tl_loss *losses, size_t nr,
			 enum reported reported)
{
	size_t left = count_of(losses, nr, reported);

	for (size_t i = 0; i < nr; i++) {
		if (reported_by(&losses[i]) != reported)
			continue;
		buf__line(&l->piece, losses[i].name ? losses[i].name : "?");
		if (reported != REPORTED_NOTHING)
			buf__printf(&l->piece, ": %llu", (unsigned long long)losses[i].count);
		buf__char(&l->piece, --left ? ',' : '.');
		end_piece(l);
	}
}

/* The title and the counters, if there are any. */
static void add_group(struct lines *l, const char *title, const struct tl_loss *losses, size_t nr,
		      enum reported reported)
{
	if (!count_of(losses, nr, reported))
		return;
	add_piece(l, title);
	add_counters(l, losses, nr, reported);
}

static void add_completeness(struct lines *l, const struct tl_loss *losses, size_t nr)
{
	bool events = count_of(losses, nr, REPORTED_EVENTS);

	if (!nr)
		add_piece(l, "completeness: unknown, this recording has no counters of losses");
	else if (!events && !count_of(losses, nr, REPORTED_PRECISION))
		add_piece(l, "complete: no event is missing");
	else if (!events)
		add_piece(l, "complete: no event is missing.");
	add_group(l, "incomplete: EVENTS ARE MISSING:", losses, nr, REPORTED_EVENTS);
	add_group(l, "Less exact:", losses, nr, REPORTED_PRECISION);
	if (events || count_of(losses, nr, REPORTED_PRECISION))
		add_piece(l, "(see gpuprof-losses(7))");
	end_line(l);
}

int output_losses_text(struct sink *s, const struct tl_loss *losses, size_t nr, bool every)
{
	struct lines l = {0};

	add_completeness(&l, losses, nr);
	if (every && count_of(losses, nr, REPORTED_EDGE)) {
		add_group(&l, INDENT "at the edges:", losses, nr, REPORTED_EDGE);
		end_line(&l);
	}
	if (every && count_of(losses, nr, REPORTED_NOTHING)) {
		add_group(&l, INDENT "zero:", losses, nr, REPORTED_NOTHING);
		end_line(&l);
	}
	buf__done(&l.piece);
	return sink__write_buf(s, &l.text);
}
