/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * JSON objects about a capture: its losses, its description, its cost.
 */
#include "output/format/metadata.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "output/format/columns.h"

static void key(struct buf *out, bool *first, const char *name)
{
	if (!*first)
		buf__str(out, ", ");
	*first = false;
	buf__json(out, name);
	buf__str(out, ": ");
}

void describe_losses(struct buf *out, const struct timeline *t)
{
	bool first = true;

	buf__char(out, '{');
	for (size_t i = 0; i < t->losses.nr; i++) {
		key(out, &first, t->losses.items[i].name);
		buf__u64(out, t->losses.items[i].count);
	}
	buf__char(out, '}');
}

void describe_capture(struct buf *out, const struct timeline *t)
{
	const char *damage = recording__damage(t->recording);
	bool first = true;

	buf__char(out, '{');
	for (size_t i = 0; i < recording__metas(t->recording); i++) {
		const char *name, *value;

		recording__meta_at(t->recording, i, &name, &value);
		if (damage && !strcmp(name, "damage"))
			continue;
		key(out, &first, name);
		buf__json(out, value);
	}
	if (damage) {
		key(out, &first, "damage");
		buf__json(out, damage);
	}
	buf__char(out, '}');
}

/* A plain decimal number that JSON takes as it is. */
static bool is_number(const char *text)
{
	const char *at = text;

	if (!isdigit((unsigned char)*at) || strlen(text) > 30)
		return false;
	if (*at == '0' && isdigit((unsigned char)at[1]))
		return false;
	while (isdigit((unsigned char)*at))
		at++;
	if (*at == '.' && isdigit((unsigned char)at[1]))
		for (at++; isdigit((unsigned char)*at);)
			at++;
	return !*at;
}

static double number_of(const struct timeline *t, const char *name)
{
	const char *text = recording__meta(t->recording, name);

	return text && is_number(text) ? strtod(text, NULL) : NAN;
}

/* So many of something that took so long each; NAN if there were any and their time is not known.
 */
static double cost(const struct timeline *t, const char *number, const char *each)
{
	return number_of(t, number) == 0 ? 0 : number_of(t, number) * number_of(t, each);
}

/* An op's two callbacks, an allocation's or free's one. Recordings of old do not know them. */
static double callback_cost(const struct timeline *t)
{
	double ns = 0;

	/* Of parts of which not all tell it. */
	if (recording__meta(t->recording, "merged") &&
	    !recording__meta(t->recording, "callback_ops"))
		return NAN;
	if (recording__meta(t->recording, "callback_ops"))
		ns = 2 * cost(t, "callback_ops", "callback_ns");
	if (recording__meta(t->recording, "callback_memory"))
		ns += cost(t, "callback_memory", "callback_ns");
	return ns;
}

static double hits_and_callbacks_ns(const struct timeline *t)
{
	return cost(t, "probe_hits", "probe_ns_per_hit") + callback_cost(t);
}

/* Only recordings of samples tell the one, and not those of old the other. */
static double samples_ns(const struct timeline *t)
{
	double ns = number_of(t, "cost_samples_ns");
	double around_ns = number_of(t, "cost_samples_around_ns");

	return (isfinite(ns) ? ns : 0) + (isfinite(around_ns) ? around_ns : 0);
}

double describe_inside_ns(const struct timeline *t)
{
	double gpu_ns = number_of(t, "cost_gpu_ns");

	/* Recordings of old. */
	if (!recording__meta(t->recording, "cost_cpu_ns"))
		return hits_and_callbacks_ns(t);
	return (isfinite(gpu_ns) ? gpu_ns : 0) + number_of(t, "cost_callbacks_ns") +
	       number_of(t, "cost_probes_ns") + number_of(t, "cost_collector_ns") + samples_ns(t);
}

/* Of the CPU time that the targets would have used without us: what we cost in them, and in all. */
static void cost_shares(struct buf *out, const struct timeline *t, bool *first)
{
	double inside_ns = describe_inside_ns(t);
	double plain_ns = number_of(t, "cost_cpu_ns") - inside_ns;

	if (!isfinite(plain_ns) || plain_ns <= 0)
		return;
	key(out, first, "share_of_cpu_inside");
	buf__printf(out, "%.6f", inside_ns / plain_ns);
	if (!isfinite(number_of(t, "cost_own_ns")))
		return;
	key(out, first, "share_of_cpu");
	buf__printf(out, "%.6f", (inside_ns + number_of(t, "cost_own_ns")) / plain_ns);
}

void describe_overhead(struct buf *out, const struct timeline *t)
{
	double wall_ns = (double)(t->end_ns - t->start_ns - t->paused_ns);
	double cost_ns = hits_and_callbacks_ns(t);
	bool first = true;

	buf__char(out, '{');
	for (size_t i = 0; i < recording__metas(t->recording); i++) {
		const char *name, *value;

		recording__meta_at(t->recording, i, &name, &value);
		if (strncmp(name, "probe_", 6) != 0 && strncmp(name, "callback_", 9) != 0 &&
		    strncmp(name, "cost_", 5) != 0)
			continue;
		key(out, &first, name);
		if (is_number(value))
			buf__str(out, value);
		else
			buf__json(out, value);
	}
	/* Of recordings with time between them it would be of that time, too. */
	if (isfinite(cost_ns) && wall_ns > 0 && !recording__meta(t->recording, "gaps_ns")) {
		key(out, &first, "share_of_wall");
		buf__printf(out, "%.6f", cost_ns / wall_ns);
	}
	cost_shares(out, t, &first);
	buf__char(out, '}');
}

/* ---- GPUs ---- */

static void time_of(struct buf *out, const char *name, uint64_t ns)
{
	buf__printf(out, "\"%s\": ", name);
	buf__us(out, ns > INT64_MAX ? INT64_MAX : (int64_t)ns);
}

static void more(struct buf *out, const char *name, uint64_t ns)
{
	columns_us(out, COLUMNS_JSON, name, ns);
}

/* What a device and a stream have alike. */
static void use(struct buf *out, const struct tl_gpu_use *u)
{
	time_of(out, "busy_us", u->busy_ns);
	more(out, "sum_us", u->sum_ns);
	more(out, "idle_us", u->idle_ns);
	buf__str(out, ", \"activities\": ");
	buf__u64(out, u->nr);
	if (!u->queue_nr)
		return;
	more(out, "queue_delay_mean_us", u->queue_sum_ns / u->queue_nr);
	more(out, "queue_delay_max_us", u->queue_max_ns);
}

/* Of a stream if it is one, else of a device. */
static void one_use(struct buf *out, const struct timeline *t, const struct tl_gpu_use *u)
{
	buf__printf(out, "{\"pid\": %d, \"device\": %u, ", t->processes.items[u->process].pid,
		    u->device);
	if (u->stream != TL_NONE)
		buf__printf(out, "\"stream\": %u, ", u->stream);
	use(out, u);
	buf__char(out, '}');
}

void describe_gpu(struct buf *out, const struct timeline *t)
{
	uint64_t busy_ns = 0, sum_ns = 0;
	size_t calls = 0;

	for (size_t i = 0; i < t->gpu.devices.nr; i++) {
		busy_ns += t->gpu.devices.items[i].busy_ns;
		sum_ns += t->gpu.devices.items[i].sum_ns;
	}
	buf__char(out, '{');
	time_of(out, "busy_us", busy_ns);
	more(out, "sum_us", sum_ns);
	for (size_t i = 0; i < t->gpu.api.nr; i++)
		calls += !(t->gpu.api.items[i].flags & GP_API_OVERHEAD);
	buf__printf(out, ", \"api_calls\": %zu, \"clock_readings\": ", calls);
	buf__u64(out, t->gpu.clock_readings);
	if (t->gpu.launches_unseen_nr) {
		buf__str(out, ", \"launches_unseen\": ");
		buf__u64(out, t->gpu.launches_unseen_nr);
	}
	if (t->gpu.clock_readings) {
		more(out, "clock_error_max_us", t->gpu.clock_error_ns);
		buf__str(out, ", \"clock_steps\": ");
		buf__u64(out, t->gpu.clock_steps);
	}
	buf__str(out, ", \"devices\": [");
	for (size_t i = 0; i < t->gpu.devices.nr; i++) {
		buf__str(out, i ? ", " : "");
		one_use(out, t, &t->gpu.devices.items[i]);
	}
	buf__str(out, "], \"streams\": [");
	for (size_t i = 0; i < t->gpu.streams.nr; i++) {
		buf__str(out, i ? ", " : "");
		one_use(out, t, &t->gpu.streams.items[i]);
	}
	buf__str(out, "]}");
}
