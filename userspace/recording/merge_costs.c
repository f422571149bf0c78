/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the parts have cost their targets, as the result says it of all: counts and times are added
 * up, means are weighted such that each one times its count is the sum over the parts. What a part
 * should have told and did not, as one that was cut, is not known of the result either.
 */
#include "recording/merge_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum how {
	SUM,
	SUM_IF_TOLD, /* whoever does not tell it has none */
	MOST, /* what a capture counts from recording to recording: its last, of all summed */
	MEAN, /* by the counts of `per` */
};

static const struct rule {
	const char *key;
	enum how how;
	const char *per[2];
} rules[] = {
	{"probe_hits", SUM, {NULL}},
	{"probe_hits_stepped", SUM, {NULL}},
	{"probe_trap_ns", MEAN, {"probe_hits"}},
	{"probe_trap_stepped_ns", MEAN, {"probe_hits_stepped"}},
	{"probe_program_runs", MOST, {NULL}},
	{"probe_program_ns", MEAN, {"probe_hits"}},
	{"probe_ns_per_hit", MEAN, {"probe_hits"}},
	{"sampler_ns", SUM_IF_TOLD, {NULL}},
	{"callback_ops", SUM, {NULL}},
	{"callback_memory", SUM, {NULL}},
	{"callback_timed", MOST, {NULL}},
	{"callback_ns", MEAN, {"callback_ops", "callback_memory"}},
	{"callback_processes", MOST, {NULL}},
	{"cost_cpu_ns", SUM, {NULL}},
	{"cost_callbacks_ns", SUM, {NULL}},
	{"cost_gpu_ns", SUM_IF_TOLD, {NULL}},
	{"cost_rest_ns", SUM_IF_TOLD, {NULL}},
	{"cost_probes_ns", SUM, {NULL}},
	{"cost_collector_ns", SUM, {NULL}},
	{"cost_samples_ns", SUM_IF_TOLD, {NULL}},
	{"cost_samples_around_ns", SUM_IF_TOLD, {NULL}},
	{"cost_own_ns", SUM, {NULL}},
	{"cost_setup_ns", SUM, {NULL}},
	{"cost_stops_ns", SUM, {NULL}},
	{"cost_op_ns", MEAN, {"callback_ops"}},
	/* Of independent errors the mean's is smaller: this one is never too small. */
	{"cost_op_error_ns", MEAN, {"callback_ops"}},
	{"cost_op_windows", MOST, {NULL}},
};

#define RULES_NR (sizeof(rules) / sizeof(*rules))

bool merge_is_cost(const char *key)
{
	for (size_t i = 0; i < RULES_NR; i++)
		if (!strcmp(rules[i].key, key))
			return true;
	return false;
}

/* NAN: the part does not tell it. */
static double number_of(const struct part *p, const char *key)
{
	const char *text = recording__meta(p->rec, key);
	double n;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return NAN;
	n = strtod(text, &end);
	return *end || !isfinite(n) ? NAN : n;
}

static bool is_told(const struct merge *m, const char *key)
{
	for (size_t i = 0; i < m->parts.nr; i++)
		if (isfinite(number_of(&m->parts.items[i], key)))
			return true;
	return false;
}

static double sum_of(const struct merge *m, const struct rule *r)
{
	double sum = 0;

	for (size_t i = 0; i < m->parts.nr; i++) {
		double n = number_of(&m->parts.items[i], r->key);

		if (isfinite(n))
			sum += n;
		else if (r->how == SUM)
			return NAN;
	}
	return sum;
}

/* Parts of one capture share what they count by. */
static bool is_first_of_capture(const struct merge *m, size_t part)
{
	for (size_t i = 0; i < part; i++)
		if (m->parts.items[i].numbers == m->parts.items[part].numbers)
			return false;
	return true;
}

/* fmax() passes over what is not told. */
static double most_of(const struct merge *m, const struct rule *r)
{
	double sum = 0;

	for (size_t i = 0; i < m->parts.nr; i++) {
		double most = 0;

		if (!is_first_of_capture(m, i))
			continue;
		for (size_t k = i; k < m->parts.nr; k++)
			if (m->parts.items[k].numbers == m->parts.items[i].numbers)
				most = fmax(most, number_of(&m->parts.items[k], r->key));
		sum += most;
	}
	return sum;
}

static double count_of(const struct part *p, const struct rule *r)
{
	double count = 0;

	for (size_t i = 0; i < 2 && r->per[i]; i++) {
		double n = number_of(p, r->per[i]);

		/* An operator has two callbacks. */
		if (isfinite(n))
			count += strcmp(r->per[i], "callback_ops") ? n : 2 * n;
	}
	return count;
}

/* The plain mean where nothing was counted. */
static double mean_of(const struct merge *m, const struct rule *r)
{
	double count = 0, sum = 0, plain = 0;
	size_t nr = 0;

	for (size_t i = 0; i < m->parts.nr; i++) {
		const struct part *p = &m->parts.items[i];
		double n = number_of(p, r->key), of = count_of(p, r);

		if (!isfinite(n) && of > 0)
			return NAN;
		if (!isfinite(n))
			continue;
		count += of;
		sum += of * n;
		plain += n;
		nr++;
	}
	return count > 0 ? sum / count : plain / (double)nr;
}

int merge_write_costs(struct merge *m)
{
	for (size_t i = 0; i < RULES_NR; i++) {
		const struct rule *r = &rules[i];
		char text[32];
		double n;
		int err;

		if (!is_told(m, r->key))
			continue;
		n = r->how == MEAN ? mean_of(m, r) : r->how == MOST ? most_of(m, r) : sum_of(m, r);
		if (!isfinite(n) || n >= 1e18)
			continue;
		(void)snprintf(text, sizeof(text), "%.0f", n);
		err = recording_writer__meta(m->w, r->key, text);
		if (err)
			return err;
	}
	return 0;
}
