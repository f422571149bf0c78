/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Combines the parts' descriptions into the result's.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "recording/merge_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool merge_one_clock(const struct merge *m)
{
	for (size_t i = 0; i < m->parts.nr; i++)
		if (!*m->parts.items[i].boot_id ||
		    strcmp(m->parts.items[i].boot_id, m->parts.items[0].boot_id) != 0)
			return false;
	return true;
}

/* Writes a value that all parts share once, else each part's in turn. */
static int write_meta(struct merge *m, const char *key)
{
	CLEANUP(buf__done) struct buf all = {0};
	const char *last = NULL;

	for (size_t i = 0; i < m->parts.nr; i++) {
		const char *value = recording__meta(m->parts.items[i].rec, key);

		if (!value || (last && !strcmp(value, last)))
			continue;
		buf__str(&all, last ? ", " : "");
		buf__str(&all, value);
		last = value;
	}
	return buf__error(&all) ? -ENOMEM
				: recording_writer__meta(m->w, key, all.bytes ? all.bytes : "");
}

/* The result itself is whole, though a part of it is not. */
static int write_damage(struct merge *m)
{
	CLEANUP(buf__done) struct buf all = {0};

	for (size_t i = 0; i < m->parts.nr; i++) {
		const char *damage = recording__damage(m->parts.items[i].rec);

		if (damage)
			buf__printf(&all, "%spart %zu: %s", all.nr ? "; " : "", i + 1, damage);
	}
	if (buf__error(&all))
		return -ENOMEM;
	return all.nr ? recording_writer__meta(m->w, "damage", all.bytes) : 0;
}

static int write_clocks(struct merge *m)
{
	bool one = merge_one_clock(m);
	char number[24];
	int err;

	if (one || !m->clocks)
		return recording_writer__meta(m->w, "clocks", one ? "one" : "time of day");
	err = recording_writer__meta(m->w, "clocks", "collectives");
	(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)m->clocks->error_ns);
	err = err ? err : recording_writer__meta(m->w, "clock_error_ns", number);
	if (err || m->clocks->next_ns == UINT64_MAX)
		return err;
	(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)m->clocks->next_ns);
	return recording_writer__meta(m->w, "clock_next_ns", number);
}

/* How long no part was being recorded, including gaps in parts that are merged themselves. */
static int write_gaps(struct merge *m)
{
	uint64_t gaps_ns = 0, end_ns = m->parts.items[0].end_ns;
	char number[24];

	for (size_t i = 0; i < m->parts.nr; i++) {
		const struct part *p = &m->parts.items[i];
		const char *emitted = recording__meta(p->rec, "gaps_ns");

		gaps_ns += emitted ? strtoull(emitted, NULL, 10) : 0;
		gaps_ns += p->start_ns > end_ns ? p->start_ns - end_ns : 0;
		end_ns = p->end_ns > end_ns ? p->end_ns : end_ns;
	}
	if (!gaps_ns)
		return 0;
	(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)gaps_ns);
	return recording_writer__meta(m->w, "gaps_ns", number);
}

int merge_write_metas(struct merge *m)
{
	char nr[24];
	int err;

	for (size_t i = 0; i < m->parts.nr; i++) {
		const struct recording *rec = m->parts.items[i].rec;

		for (size_t j = 0; j < recording__metas(rec); j++) {
			const char *key, *value;

			recording__meta_at(rec, j, &key, &value);
			if (merge_is_cost(key) || !strcmp(key, "gaps_ns"))
				continue;
			err = write_meta(m, key);
			if (err)
				return err;
		}
	}
	(void)snprintf(nr, sizeof(nr), "%zu", m->parts.nr);
	err = recording_writer__meta(m->w, "merged", nr);
	err = err ? err : merge_write_costs(m);
	err = err ? err : write_gaps(m);
	err = err ? err : write_damage(m);
	return err ? err : write_clocks(m);
}

static int add_loss(struct merge *m, const char *text, uint64_t count)
{
	const char *name = intern__str(m->texts, text);
	uint64_t *known = name ? hash__find(&m->loss_of, (uintptr_t)name) : NULL;

	if (!name)
		return -ENOMEM;
	if (known) {
		m->losses.items[*known].count += count;
		return 0;
	}
	if (hash__set(&m->loss_of, (uintptr_t)name, m->losses.nr))
		return -ENOMEM;
	return vec_push(&m->losses, ((struct merged_loss){name, count}));
}

/* All recordings of a capture count the same functions without a probe. */
static uint64_t more_unprobed(struct numbers *n, uint64_t count)
{
	uint64_t more = count > n->unprobed_nr ? count - n->unprobed_nr : 0;

	n->unprobed_nr += more;
	return more;
}

int merge_write_losses(struct merge *m)
{
	for (size_t i = 0; i < m->parts.nr; i++) {
		const struct part *p = &m->parts.items[i];
		const struct recording *rec = p->rec;

		for (size_t j = 0; j < recording__losses(rec); j++) {
			uint64_t count;
			const char *name = recording__loss_at(rec, j, &count);
			int err;

			if (!strcmp(name, recording_loss_name(GP_LOSS_PROBE)))
				count = more_unprobed(p->numbers, count);
			err = add_loss(m, name, count);
			if (err)
				return err;
		}
	}
	if (m->dropped_nr && add_loss(m, recording_loss_name(GP_LOSS_RECORD), m->dropped_nr))
		return -ENOMEM;
	for (size_t i = 0; i < m->losses.nr; i++) {
		int err = recording_writer__loss(m->w, m->losses.items[i].name,
						 m->losses.items[i].count);

		if (err)
			return err;
	}
	return 0;
}
