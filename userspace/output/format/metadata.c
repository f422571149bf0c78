/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See metadata.h. The cost is computed from figures that the capture left in the metadata.
 */
#include "output/format/metadata.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

void metadata_losses(struct json_writer *j, const struct timeline *t)
{
	json__object(j, &json_spaced);
	for (size_t i = 0; i < t->losses.nr; i++) {
		json__key_text(j, t->losses.items[i].name);
		json__u64(j, t->losses.items[i].count);
	}
	json__end(j);
}

void metadata_capture(struct json_writer *j, const struct timeline *t)
{
	const char *damage = recording__damage(t->recording);

	json__object(j, &json_spaced);
	for (size_t i = 0; i < recording__metas(t->recording); i++) {
		const char *name, *value;

		recording__meta_at(t->recording, i, &name, &value);
		if (damage && !strcmp(name, "damage"))
			continue;
		json__key_text(j, name);
		json__text(j, value);
	}
	if (damage)
		json__put_text(j, "damage", damage);
	json__end(j);
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

/* The time of a number of events that took so long each; NAN if there were any and the time of one
 * is not known. */
static double cost(const struct timeline *t, const char *number, const char *each)
{
	return number_of(t, number) == 0 ? 0 : number_of(t, number) * number_of(t, each);
}

/* Two callbacks for each op, one for an allocation or a free. Old recordings do not have them. */
static double callback_cost(const struct timeline *t)
{
	double ns = 0;

	/* Merged from recordings of which not all have it. */
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

/* Only recordings of samples have the first, and old ones lack the second. */
static double samples_ns(const struct timeline *t)
{
	double ns = number_of(t, "cost_samples_ns");
	double around_ns = number_of(t, "cost_samples_around_ns");

	return (isfinite(ns) ? ns : 0) + (isfinite(around_ns) ? around_ns : 0);
}

double metadata_inside_ns(const struct timeline *t)
{
	double gpu_ns = number_of(t, "cost_gpu_ns");

	/* An old recording. */
	if (!recording__meta(t->recording, "cost_cpu_ns"))
		return hits_and_callbacks_ns(t);
	return (isfinite(gpu_ns) ? gpu_ns : 0) + number_of(t, "cost_callbacks_ns") +
	       number_of(t, "cost_probes_ns") + number_of(t, "cost_collector_ns") + samples_ns(t);
}

/* The capture's cost as a share of the CPU time that the processes would have used without it:
 * inside them, and in all. */
static void cost_shares(struct json_writer *j, const struct timeline *t)
{
	double inside_ns = metadata_inside_ns(t);
	double plain_ns = number_of(t, "cost_cpu_ns") - inside_ns;

	if (!isfinite(plain_ns) || plain_ns <= 0)
		return;
	json__put_fixed(j, "share_of_cpu_inside", inside_ns / plain_ns, 6);
	if (isfinite(number_of(t, "cost_own_ns")))
		json__put_fixed(j, "share_of_cpu",
				(inside_ns + number_of(t, "cost_own_ns")) / plain_ns, 6);
}

static bool is_cost(const char *name)
{
	return !strncmp(name, "probe_", 6) || !strncmp(name, "callback_", 9) ||
	       !strncmp(name, "cost_", 5);
}

void metadata_overhead(struct json_writer *j, const struct timeline *t)
{
	double wall_ns = (double)(t->end_ns - t->start_ns - t->paused_ns);
	double cost_ns = hits_and_callbacks_ns(t);

	json__object(j, &json_spaced);
	for (size_t i = 0; i < recording__metas(t->recording); i++) {
		const char *name, *value;

		recording__meta_at(t->recording, i, &name, &value);
		if (!is_cost(name))
			continue;
		json__key_text(j, name);
		if (is_number(value))
			json__number_text(j, value);
		else
			json__text(j, value);
	}
	/* Where recordings were put together, the time between them would count too. */
	if (isfinite(cost_ns) && wall_ns > 0 && !recording__meta(t->recording, "gaps_ns"))
		json__put_fixed(j, "share_of_wall", cost_ns / wall_ns, 6);
	cost_shares(j, t);
	json__end(j);
}

/* ---- GPUs ---- */

/* Adds the keys that a device and a stream have alike. */
static void use(struct json_writer *j, const struct tl_gpu_use *u)
{
	json__put_duration(j, "busy_us", u->busy_ns);
	json__put_duration(j, "sum_us", u->sum_ns);
	json__put_duration(j, "idle_us", u->idle_ns);
	json__put_u64(j, "activities", u->nr);
	if (!u->queue_nr)
		return;
	json__put_duration(j, "queue_delay_mean_us", u->queue_sum_ns / u->queue_nr);
	json__put_duration(j, "queue_delay_max_us", u->queue_max_ns);
}

/* Of streams, or of devices, which have none. */
static void uses(struct json_writer *j, const struct timeline *t, const struct tl_gpu_use *u,
		 size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		json__object(j, &json_spaced);
		json__put_i64(j, "pid", t->processes.items[u[i].process].pid);
		json__put_u64(j, "device", u[i].device);
		if (u[i].stream != TL_NONE)
			json__put_u64(j, "stream", u[i].stream);
		use(j, &u[i]);
		json__end(j);
	}
	json__end(j);
}

static void clocks(struct json_writer *j, const struct timeline *t)
{
	json__put_u64(j, "clock_readings", t->gpu.clock_readings);
	if (t->gpu.launches_unseen_nr)
		json__put_u64(j, "launches_unseen", t->gpu.launches_unseen_nr);
	if (t->gpu.clock_readings) {
		json__put_duration(j, "clock_error_max_us", t->gpu.clock_error_ns);
		json__put_u64(j, "clock_steps", t->gpu.clock_steps);
	}
}

void metadata_gpu(struct json_writer *j, const struct timeline *t)
{
	uint64_t busy_ns = 0, sum_ns = 0;
	size_t calls = 0;

	for (size_t i = 0; i < t->gpu.devices.nr; i++) {
		busy_ns += t->gpu.devices.items[i].busy_ns;
		sum_ns += t->gpu.devices.items[i].sum_ns;
	}
	for (size_t i = 0; i < t->gpu.api.nr; i++)
		calls += !(t->gpu.api.items[i].flags & GP_API_OVERHEAD);
	json__object(j, &json_spaced);
	json__put_duration(j, "busy_us", busy_ns);
	json__put_duration(j, "sum_us", sum_ns);
	json__put_u64(j, "api_calls", calls);
	clocks(j, t);
	json__put_array(j, "devices", &json_spaced);
	uses(j, t, t->gpu.devices.items, t->gpu.devices.nr);
	json__put_array(j, "streams", &json_spaced);
	uses(j, t, t->gpu.streams.items, t->gpu.streams.nr);
	json__end(j);
}
