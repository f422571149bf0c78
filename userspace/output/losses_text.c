/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The counters of what went missing, as a paragraph under the table: those above zero always, the
 * others by number or by name. The names are those of the JSON outputs. They come from a file that
 * anyone may have written, so nothing in them reaches a terminal but printable ASCII.
 */
#include "output/output.h"

#include <string.h>

#include "base/banned.h"

#define LINE_COLUMNS 100
#define INDENT	     "  "

bool output_loss_is_events(const char *name)
{
	return !strcmp(name, recording_loss_name(GP_LOSS_RING_FULL)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_COLLECTOR_FULL)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_COLLECTOR_LEFT)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_GPU_TIME)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_GPU_CLOCK)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_GPU_DROPPED)) ||
	       !strcmp(name, recording_loss_name(GP_LOSS_RECORD));
}

static size_t above_zero(const struct tl_loss *losses, size_t nr)
{
	size_t above = 0;

	for (size_t i = 0; i < nr; i++)
		above += losses[i].count != 0;
	return above;
}

static void add_title(struct buf *b, size_t above, size_t nr, bool zeros)
{
	if (!nr)
		buf__str(b, "losses: not counted in this recording");
	else if (above)
		buf__printf(b, "losses: %zu of %zu counters above zero; gpuprof(1) explains them",
			    above, nr);
	else if (zeros)
		buf__str(b, "losses: none");
	else
		buf__printf(b,
			    "losses: none (%zu counters are zero; 'gpuprof table REC --losses' "
			    "lists them)",
			    nr);
	buf__char(b, '\n');
}

static void add_name(struct buf *b, const struct tl_loss *loss)
{
	for (const char *p = loss->name ? loss->name : "?"; *p; p++)
		buf__char(b, *p >= 0x20 && *p < 0x7f ? *p : '?');
}

/* Puts a piece behind what is there, on a new line where the names would not fit otherwise. */
static void add_piece(struct buf *b, size_t *column, const struct buf *piece)
{
	if (*column && *column + 1 + piece->nr > LINE_COLUMNS) {
		buf__char(b, '\n');
		*column = 0;
	}
	buf__str(b, *column ? " " : INDENT);
	buf__add(b, piece->bytes, piece->nr);
	*column += piece->nr + (*column ? 1 : sizeof(INDENT) - 1);
	if (!b->err)
		b->err = buf__error(piece);
}

/* "  name: count, name: count", or of those that are zero "  zero: name, name". */
static void add_counters(struct buf *b, const struct tl_loss *losses, size_t losses_nr, bool zeros,
			 size_t nr)
{
	struct buf piece = {};
	size_t column = 0;

	if (zeros && nr)
		buf__str(&piece, "zero: ");
	for (size_t i = 0; i < losses_nr && nr; i++) {
		if (!losses[i].count != zeros)
			continue;
		add_name(&piece, &losses[i]);
		if (!zeros)
			buf__printf(&piece, ": %llu", (unsigned long long)losses[i].count);
		if (--nr)
			buf__char(&piece, ',');
		add_piece(b, &column, &piece);
		buf__clear(&piece);
	}
	if (column)
		buf__char(b, '\n');
	buf__done(&piece);
}

int output_losses_text(struct sink *s, const struct tl_loss *losses, size_t nr, bool zeros)
{
	size_t above = above_zero(losses, nr);
	struct buf b = {0};

	add_title(&b, above, nr, zeros);
	add_counters(&b, losses, nr, false, above);
	if (zeros)
		add_counters(&b, losses, nr, true, nr - above);
	return sink__write_buf(s, &b);
}
