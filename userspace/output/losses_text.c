/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The counters of what went missing, as a paragraph under the table: every one of them, zeros too.
 * The names are those of the JSON outputs. They come from a file that anyone may have written, so
 * nothing in them reaches a terminal but printable ASCII.
 */
#include "output/output.h"

#include "base/banned.h"

#define LINE_COLUMNS 100
#define INDENT	     "  "

static uint64_t counters_above_zero(const struct timeline *t)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < t->losses.nr; i++)
		nr += t->losses.items[i].count != 0;
	return nr;
}

static void add_title(struct buf *b, const struct timeline *t)
{
	uint64_t above = counters_above_zero(t);

	if (!t->losses.nr) {
		buf__str(b, "losses: not counted in this recording\n");
		return;
	}
	buf__str(b, "losses: ");
	if (!above)
		buf__str(b, "none");
	else
		buf__printf(b, "%llu of %zu counters above zero; gpuprof(1) explains them",
			    (unsigned long long)above, t->losses.nr);
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
static void add_counters(struct buf *b, const struct timeline *t, bool zeros, uint64_t nr)
{
	struct buf piece = {};
	size_t column = 0;

	if (zeros && nr)
		buf__str(&piece, "zero: ");
	for (size_t i = 0; i < t->losses.nr && nr; i++) {
		const struct tl_loss *loss = &t->losses.items[i];

		if (!loss->count != zeros)
			continue;
		add_name(&piece, loss);
		if (!zeros)
			buf__printf(&piece, ": %llu", (unsigned long long)loss->count);
		if (--nr)
			buf__char(&piece, ',');
		add_piece(b, &column, &piece);
		buf__clear(&piece);
	}
	if (column)
		buf__char(b, '\n');
	buf__done(&piece);
}

int output_losses_text(struct sink *s, const struct timeline *t)
{
	struct buf b = {};
	int err;

	add_title(&b, t);
	add_counters(&b, t, false, counters_above_zero(t));
	add_counters(&b, t, true, t->losses.nr - counters_above_zero(t));
	err = buf__error(&b);
	if (!err)
		err = sink__write(s, b.bytes, b.nr);
	buf__done(&b);
	return err;
}
