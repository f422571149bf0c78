/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Combines what the parts cost the traced processes. Counts and times are added up. Means are
 * weighted, so that each mean times its count is the sum over the parts. Where a part lacks a
 * figure that it should have (because it was cut, say), the result does not have it either.
 */
#include "recording/merge_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum how {
	SUM,
	SUM_IF_REPORTED, /* a part without the key counts as 0 */
	MOST,		 /* a counter of the whole capture: its last value, summed over captures */
	MEAN,		 /* by the counts of `per` */
};

static const struct rule {
	const char *key;
	enum how how;
	const char *per[2];
	const char *with; /* reported only where this key, which stands above, is; or NULL */
} rules[] = {
	{"probe_hits", SUM, {NULL}, NULL},
	{"probe_hits_stepped", SUM, {NULL}, NULL},
	{"probe_trap_ns", MEAN, {"probe_hits"}, NULL},
	{"probe_trap_stepped_ns", MEAN, {"probe_hits_stepped"}, NULL},
	{"probe_program_runs", MOST, {NULL}, NULL},
	{"probe_program_ns", MEAN, {"probe_hits"}, NULL},
	{"probe_ns_per_hit", MEAN, {"probe_hits"}, NULL},
	{"sampler_ns", SUM_IF_REPORTED, {NULL}, NULL},
	{"callback_ops", SUM, {NULL}, NULL},
	{"callback_memory", SUM, {NULL}, NULL},
	{"callback_timed", MOST, {NULL}, NULL},
	{"callback_ns", MEAN, {"callback_ops", "callback_memory"}, NULL},
	{"callback_processes", MOST, {NULL}, NULL},
	{"cost_cpu_ns", SUM, {NULL}, NULL},
	{"cost_callbacks_ns", SUM, {NULL}, NULL},
	{"cost_gpu_ns", SUM_IF_REPORTED, {NULL}, NULL},
	{"cost_rest_ns", SUM_IF_REPORTED, {NULL}, NULL},
	{"cost_probes_ns", SUM, {NULL}, NULL},
	{"cost_collector_ns", SUM, {NULL}, NULL},
	{"cost_samples_ns", SUM_IF_REPORTED, {NULL}, NULL},
	{"cost_samples_around_ns", SUM_IF_REPORTED, {NULL}, NULL},
	{"cost_own_ns", SUM, {NULL}, NULL},
	{"cost_setup_ns", SUM, {NULL}, NULL},
	{"cost_stops_ns", SUM, {NULL}, NULL},
	{"cost_op_ns", MEAN, {"callback_ops"}, NULL},
	/* The error of a mean of independent values is smaller; this one is never too small. */
	{"cost_op_error_ns", MEAN, {"callback_ops"}, "cost_op_ns"},
	{"cost_op_windows", MOST, {NULL}, "cost_op_ns"},
};

#define RULES_NR (sizeof(rules) / sizeof(*rules))

bool merge_is_cost(const char *key)
{
	for (size_t i = 0; i < RULES_NR; i++)
		if (!strcmp(rules[i].key, key))
			return true;
	return false;
}

/* NAN: the part does not report it. */
static double emitted_number(const struct part *p, const char *key)
{
	const char *text = recording__meta(p->rec, key);
	size_t nr = text ? strlen(text) : 0;

	if (!nr || nr > 18 || strspn(text, "0123456789") < nr)
		return NAN;
	return (double)strtoull(text, NULL, 10);
}

/* A cut part is unknown altogether: even a missing key does not mean 0. */
static bool has_end(const struct part *p)
{
	return isfinite(emitted_number(p, "probe_hits"));
}

static bool is_emitted(const struct merge *m, const char *key)
{
	for (size_t i = 0; i < m->parts.nr; i++)
		if (isfinite(emitted_number(&m->parts.items[i], key)))
			return true;
	return false;
}

static double sum_of(const struct merge *m, const struct rule *r)
{
	double sum = 0;

	for (size_t i = 0; i < m->parts.nr; i++) {
		double n = emitted_number(&m->parts.items[i], r->key);

		if (isfinite(n))
			sum += n;
		else if (r->how == SUM || !has_end(&m->parts.items[i]))
			return NAN;
	}
	return sum;
}

static bool is_same_capture(const struct part *a, const struct part *b)
{
	const char *of_a = recording__meta(a->rec, "capture_id");
	const char *of_b = recording__meta(b->rec, "capture_id");

	return a == b || (of_a && of_b && !strcmp(of_a, of_b));
}

static bool is_first_of_capture(const struct merge *m, size_t part)
{
	for (size_t i = 0; i < part; i++)
		if (is_same_capture(&m->parts.items[i], &m->parts.items[part]))
			return false;
	return true;
}

/* Whether the part was merged from several captures, one of which is another part's too. */
static bool has_half_of_capture(const struct merge *m, size_t part)
{
	const char *ids = recording__meta(m->parts.items[part].rec, "capture_id");

	for (size_t i = 0; ids && i < m->parts.nr; i++) {
		const char *id = recording__meta(m->parts.items[i].rec, "capture_id");

		if (id && *id && strcmp(id, ids) != 0 && strstr(ids, id))
			return true;
	}
	return false;
}

/* fmax() ignores NAN. */
static double most_of(const struct merge *m, const struct rule *r)
{
	double sum = 0;

	for (size_t i = 0; i < m->parts.nr; i++) {
		double most = NAN;

		if (has_half_of_capture(m, i))
			return NAN;
		if (!is_first_of_capture(m, i))
			continue;
		for (size_t k = i; k < m->parts.nr; k++)
			if (is_same_capture(&m->parts.items[k], &m->parts.items[i]))
				most = fmax(most, emitted_number(&m->parts.items[k], r->key));
		sum += most;
	}
	return sum;
}

static double count_of(const struct part *p, const struct rule *r)
{
	double count = 0;

	for (size_t i = 0; i < 2 && r->per[i]; i++) {
		double n = emitted_number(p, r->per[i]);

		/* An operator has two callbacks. */
		if (isfinite(n))
			count += strcmp(r->per[i], "callback_ops") ? n : 2 * n;
	}
	return count;
}

/* Falls back to the plain mean where nothing was counted. */
static double mean_of(const struct merge *m, const struct rule *r)
{
	double count = 0, sum = 0, plain = 0;
	size_t nr = 0;

	for (size_t i = 0; i < m->parts.nr; i++) {
		const struct part *p = &m->parts.items[i];
		double n = emitted_number(p, r->key), of = count_of(p, r);

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

static double result_of(const struct merge *m, const struct rule *r)
{
	double n = r->how == MEAN ? mean_of(m, r) : r->how == MOST ? most_of(m, r) : sum_of(m, r);

	for (size_t i = 0; r->with && i < RULES_NR; i++)
		if (!strcmp(rules[i].key, r->with) && !isfinite(result_of(m, &rules[i])))
			return NAN;
	return n;
}

int merge_write_costs(struct merge *m)
{
	for (size_t i = 0; i < RULES_NR; i++) {
		double n = is_emitted(m, rules[i].key) ? result_of(m, &rules[i]) : NAN;
		char text[32];
		int err;

		if (!isfinite(n) || n >= 1e18)
			continue;
		(void)snprintf(text, sizeof(text), "%.0f", n);
		err = recording_writer__meta(m->w, rules[i].key, text);
		if (err)
			return err;
	}
	return 0;
}
