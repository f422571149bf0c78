/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The counters of what went missing, as a paragraph under the table: those above zero always, first
 * those of events that are not in the recording, then those of what is less exact; the others by
 * number or by name. The names are those of the JSON outputs. They come from a file that anyone may
 * have written.
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

/* What a counter tells of. */
enum reported { REPORTED_NOTHING, REPORTED_EVENTS, REPORTED_PRECISION };

static enum reported reported_by(const struct tl_loss *loss)
{
	if (!loss->count)
		return REPORTED_NOTHING;
	return output_loss_is_events(loss->name) ? REPORTED_EVENTS : REPORTED_PRECISION;
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

static void add_above_zero(struct lines *l, const struct tl_loss *losses, size_t nr, size_t zero_nr)
{
	bool events = count_of(losses, nr, REPORTED_EVENTS);

	add_piece(l, events ? "losses: EVENTS ARE MISSING:" : "losses: no event is missing.");
	add_counters(l, losses, nr, REPORTED_EVENTS);
	if (count_of(losses, nr, REPORTED_PRECISION))
		add_piece(l, "Less exact:");
	add_counters(l, losses, nr, REPORTED_PRECISION);
	buf__printf(&l->piece, "(%zu of %zu counters; see gpuprof(1))", nr - zero_nr, nr);
	end_piece(l);
	end_line(l);
}

static void add_none(struct lines *l, size_t nr, bool zeros)
{
	if (!nr)
		buf__str(&l->piece, "losses: not counted in this recording");
	else if (zeros)
		buf__str(&l->piece, "losses: none");
	else
		buf__printf(&l->piece,
			    "losses: none (%zu counters are zero; 'gpuprof table REC --losses' "
			    "lists them)",
			    nr);
	end_piece(l);
	end_line(l);
}

int output_losses_text(struct sink *s, const struct tl_loss *losses, size_t nr, bool zeros)
{
	size_t zero_nr = count_of(losses, nr, REPORTED_NOTHING);
	struct lines l = {0};

	if (zero_nr < nr)
		add_above_zero(&l, losses, nr, zero_nr);
	else
		add_none(&l, nr, zeros);
	if (zeros && zero_nr) {
		add_piece(&l, INDENT "zero:");
		add_counters(&l, losses, nr, REPORTED_NOTHING);
		end_line(&l);
	}
	buf__done(&l.piece);
	return sink__write_buf(s, &l.text);
}
