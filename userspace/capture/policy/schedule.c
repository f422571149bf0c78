/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The schedule as a function of the step's number.
 */
#include "capture/policy/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 1000000000L

static int bad(struct reason *why, const char *text, size_t nr)
{
	return reason_set(why, -EINVAL,
			  "'%.*s' is no part of a schedule: it takes wait, warmup, active, repeat, "
			  "skip_first and skip_first_wait, each with =NUMBER, with commas between",
			  (int)nr, text);
}

static int parse_part(const char *text, size_t nr, struct schedule *s, uint32_t *first_wait)
{
	const struct {
		const char *name;
		uint32_t *value;
	} parts[] = {
		{"wait", &s->wait},
		{"warmup", &s->warmup},
		{"active", &s->active},
		{"repeat", &s->repeat},
		{"skip_first", &s->skip_first},
		{"skip_first_wait", first_wait},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t name_nr = strlen(parts[i].name);
		char *end;
		long n;

		if (nr < name_nr + 2 || strncmp(text, parts[i].name, name_nr) ||
		    text[name_nr] != '=' || text[name_nr + 1] < '0' || text[name_nr + 1] > '9')
			continue;
		n = strtol(text + name_nr + 1, &end, 10);
		if (end != text + nr || n > NUMBER_MAX)
			return -EINVAL;
		*parts[i].value = (uint32_t)n;
		return 0;
	}
	return -EINVAL;
}

int schedule_parse(const char *text, struct reason *why, struct schedule *ret_schedule)
{
	struct schedule s = {0};
	uint32_t first_wait = 0;

	for (const char *at = text;; at++) {
		size_t nr = strcspn(at, ",");

		if (parse_part(at, nr, &s, &first_wait))
			return bad(why, at, nr);
		at += nr;
		if (!*at)
			break;
	}
	if (!s.active)
		return reason_set(why, -EINVAL, "a schedule needs active=N with N of at least 1");
	s.skip_first_wait = first_wait != 0;
	*ret_schedule = s;
	return 0;
}

/* Steps since the first cycle began. */
static uint64_t in_cycles(const struct schedule *s, uint64_t step)
{
	step -= s->skip_first;
	return s->skip_first_wait ? step + s->wait : step;
}

static uint64_t cycle_length(const struct schedule *s)
{
	return (uint64_t)s->wait + s->warmup + s->active;
}

bool schedule_is_over(const struct schedule *s, uint64_t step)
{
	return s->repeat && step >= s->skip_first &&
	       in_cycles(s, step) / cycle_length(s) >= s->repeat;
}

enum schedule_action schedule_action(const struct schedule *s, uint64_t step)
{
	uint64_t at;

	if (step < s->skip_first || schedule_is_over(s, step))
		return SCHEDULE_NONE;
	at = in_cycles(s, step) % cycle_length(s);
	if (at < s->wait)
		return SCHEDULE_NONE;
	if (at < (uint64_t)s->wait + s->warmup)
		return SCHEDULE_WARMUP;
	return at < cycle_length(s) - 1 ? SCHEDULE_RECORD : SCHEDULE_RECORD_AND_SAVE;
}
