/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes the totals in Prometheus' text format, version 0.0.4. All samples of a family stand
 * together.
 */
#include "daemon/totals.h"

#include "base/cleanup.h"

#include <string.h>

#include "base/banned.h"

void metrics_family(struct buf *out, const char *name, const char *type, const char *help)
{
	buf__printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_count(struct buf *out, const char *name, const char *label, const char *value,
		   uint64_t count)
{
	buf__str(out, name);
	if (label) {
		buf__printf(out, "{%s=\"", label);
		buf__label(out, value);
		buf__str(out, "\"}");
	}
	buf__char(out, ' ');
	buf__u64(out, count);
	buf__char(out, '\n');
}

static void add_seconds(struct buf *out, uint64_t ns)
{
	buf__printf(out, "%llu.%09llu", (unsigned long long)(ns / 1000000000ULL),
		    (unsigned long long)(ns % 1000000000ULL));
}

void metrics_seconds(struct buf *out, const char *name, uint64_t ns)
{
	buf__printf(out, "%s ", name);
	add_seconds(out, ns);
	buf__char(out, '\n');
}

/* NAME{pid="",process="" and, where there is one, LABEL="VALUE" */
static void begin(struct buf *out, const char *name, const struct total_process *p,
		  const char *label, const char *value)
{
	buf__printf(out, "%s{pid=\"%d\",process=\"", name, (int)p->pid);
	buf__label(out, p->comm);
	buf__char(out, '"');
	if (label) {
		buf__printf(out, ",%s=\"", label);
		buf__label(out, value);
		buf__char(out, '"');
	}
	buf__str(out, "} ");
}

/* ---- families of processes ---- */

enum unit { COUNT, NANOSECONDS, SIGNED };

static void add_number(struct buf *out, enum unit unit, uint64_t n)
{
	if (unit == NANOSECONDS)
		add_seconds(out, n);
	else if (unit == SIGNED)
		buf__i64(out, (int64_t)n);
	else
		buf__u64(out, n);
	buf__char(out, '\n');
}

struct op_family {
	const char *name, *help;
	size_t offset; /* in struct total_op */
	enum unit unit;
	enum { OF_ALL, OF_TRACES, OF_SAMPLES } of;
};

#define OP(field) offsetof(struct total_op, field)

/* Of samples within a budget. */
#define OF_WINDOWS ": estimated where CUPTI was asked in windows of time alone."

static const struct op_family op_families[] = {
	{"gpuprof_op_cpu_seconds_total",
	 "CPU time of an operator itself, without those that it called.", OP(cpu_ns), NANOSECONDS,
	 OF_TRACES},
	{"gpuprof_op_calls_total", "Calls of an operator.", OP(calls), COUNT, OF_TRACES},
	{"gpuprof_op_cpu_estimated_seconds_total",
	 "CPU time of an operator itself, without those that it called: an estimate, from "
	 "gpuprof_op_samples_total.",
	 OP(estimated_ns), NANOSECONDS, OF_SAMPLES},
	{"gpuprof_op_off_cpu_estimated_seconds_total",
	 "Time for which threads in an operator, or waiting for what it says, were on no CPU: an "
	 "estimate, from samples.",
	 OP(off_ns), NANOSECONDS, OF_SAMPLES},
	{"gpuprof_op_samples_total", "Samples of threads on a CPU that were in an operator.",
	 OP(samples_nr), COUNT, OF_SAMPLES},
	{"gpuprof_op_gpu_seconds_total",
	 "Time of the GPU work that an operator itself launched" OF_WINDOWS, OP(cuda_ns),
	 NANOSECONDS, OF_ALL},
};

static uint64_t field(const void *object, size_t offset)
{
	uint64_t n;

	memcpy(&n, (const char *)object + offset, sizeof(n));
	return n;
}

static void add_op_family(const struct totals *t, struct buf *out, const struct op_family *f)
{
	metrics_family(out, f->name, "counter", f->help);
	for (size_t i = 0; i < t->processes.nr; i++) {
		const struct total_process *p = t->processes.items[i];

		for (size_t k = 0; k < p->ops.nr; k++) {
			begin(out, f->name, p, "op", p->ops.items[k].name);
			add_number(out, f->unit, field(&p->ops.items[k], f->offset));
		}
		begin(out, f->name, p, "op", TOTALS_OTHER);
		add_number(out, f->unit, field(&p->other, f->offset));
	}
}

struct device_family {
	const char *name, *type, *help;
	size_t offset, shown; /* in struct total_device; shown: of a bool */
	enum unit unit;
};

#define DEVICE(field) offsetof(struct total_device, field)

static const struct device_family device_families[] = {
	{"gpuprof_memory_allocations_total", "counter", "Allocations.", DEVICE(allocations_nr),
	 DEVICE(has_memory), COUNT},
	{"gpuprof_memory_allocated_bytes_total", "counter", "Bytes allocated, freed since or not.",
	 DEVICE(allocated_bytes), DEVICE(has_memory), COUNT},
	{"gpuprof_memory_held_bytes", "gauge",
	 "Bytes allocated less bytes freed since gpuprof began to watch.", DEVICE(held_bytes),
	 DEVICE(has_memory), SIGNED},
	{"gpuprof_memory_refused_total", "counter", "Requests for memory that were refused.",
	 DEVICE(refused_nr), DEVICE(has_memory), COUNT},
	{"gpuprof_allocator_allocated_bytes", "gauge",
	 "Bytes that the allocator of PyTorch says are in use.", DEVICE(allocator_bytes),
	 DEVICE(has_allocator), COUNT},
	{"gpuprof_allocator_reserved_bytes", "gauge",
	 "Bytes that the allocator of PyTorch says it has reserved.", DEVICE(reserved_bytes),
	 DEVICE(has_allocator), COUNT},
	{"gpuprof_gpu_kernels_total", "counter", "Kernels that a GPU ran" OF_WINDOWS,
	 DEVICE(kernels_nr), DEVICE(has_work), COUNT},
	{"gpuprof_gpu_operations_total", "counter",
	 "Kernels, copies and memsets of a GPU" OF_WINDOWS, DEVICE(work_nr), DEVICE(has_work),
	 COUNT},
	{"gpuprof_gpu_busy_seconds_total", "counter",
	 "Time in which a GPU ran at least one kernel, copy or memset of the process" OF_WINDOWS,
	 DEVICE(busy_ns), DEVICE(has_work), NANOSECONDS},
};

static void add_device_family(const struct totals *t, struct buf *out,
			      const struct device_family *f)
{
	metrics_family(out, f->name, f->type, f->help);
	for (size_t i = 0; i < t->processes.nr; i++) {
		const struct total_process *p = t->processes.items[i];

		for (size_t k = 0; k < p->devices.nr; k++) {
			const struct total_device *d = &p->devices.items[k];

			if (!*((const bool *)((const char *)d + f->shown)))
				continue;
			begin(out, f->name, p, "device", d->name);
			add_number(out, f->unit, field(d, f->offset));
		}
	}
}

static void add_bound(struct buf *text, uint64_t ns)
{
	buf__clear(text);
	if (ns == UINT64_MAX)
		buf__str(text, "+Inf");
	else
		buf__printf(text, "%g", (double)ns / 1e9);
}

static void add_steps(const struct totals *t, struct buf *out)
{
	static const char name[] = "gpuprof_step_duration_seconds";
	CLEANUP(buf__done) struct buf bound = {0};

	metrics_family(out, name, "histogram",
		       "Steps of a program, found without changes to it, and how long they took.");
	for (size_t i = 0; i < t->processes.nr; i++) {
		const struct total_process *p = t->processes.items[i];

		for (size_t k = 0; k < TOTALS_BUCKETS; k++) {
			add_bound(&bound, totals_bounds_ns[k]);
			begin(out, "gpuprof_step_duration_seconds_bucket", p, "le",
			      bound.bytes ? bound.bytes : "");
			add_number(out, COUNT, p->buckets[k]);
		}
		begin(out, "gpuprof_step_duration_seconds_sum", p, NULL, NULL);
		add_number(out, NANOSECONDS, p->steps_ns);
		begin(out, "gpuprof_step_duration_seconds_count", p, NULL, NULL);
		add_number(out, COUNT, p->steps_nr);
	}
}

/* ---- all ---- */

void totals__text(const struct totals *t, struct buf *out)
{
	for (size_t i = 0; i < sizeof(op_families) / sizeof(*op_families); i++)
		if (op_families[i].of != (t->sampled ? OF_TRACES : OF_SAMPLES))
			add_op_family(t, out, &op_families[i]);
	for (size_t i = 0; i < sizeof(device_families) / sizeof(*device_families); i++)
		add_device_family(t, out, &device_families[i]);
	if (!t->sampled)
		add_steps(t, out);
	metrics_family(out, "gpuprof_losses_total", "counter",
		       "Events that are missing, or less exact than they look, by missing.");
	for (size_t i = 0; i < t->losses.nr; i++)
		metrics_count(out, "gpuprof_losses_total", "loss", t->losses.items[i].name,
			      t->losses.items[i].nr);
	metrics_family(out, "gpuprof_recordings_total", "counter",
		       "Recordings that are in the "
		       "metrics.");
	metrics_count(out, "gpuprof_recordings_total", NULL, NULL, t->recordings_nr);
	metrics_family(out, "gpuprof_events_total", "counter", "Events in these recordings.");
	metrics_count(out, "gpuprof_events_total", NULL, NULL, t->events_nr);
	metrics_family(out, "gpuprof_recorded_seconds_total", "counter",
		       "Time that these recordings cover.");
	metrics_seconds(out, "gpuprof_recorded_seconds_total", t->recorded_ns);
	metrics_family(
		out, "gpuprof_gpu_unseen_seconds_total", "counter",
		"Time of these recordings in which processes used CUDA and the budget allowed "
		"for no look at GPUs: in no metric of GPUs.");
	metrics_seconds(out, "gpuprof_gpu_unseen_seconds_total", t->gpu_unseen_ns);
	metrics_family(out, "gpuprof_series_dropped_total", "counter",
		       "Processes, devices and losses beyond what may have series, each time they "
		       "were seen.");
	metrics_count(out, "gpuprof_series_dropped_total", NULL, NULL, t->dropped_nr);
}
