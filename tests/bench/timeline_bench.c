/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Time from a recording to its table and its Chrome trace:
 *
 *     timeline_bench RECORDING        an own one
 *     timeline_bench --make N FILE    writes one with N ops and N/4 memory events first
 *
 * Prints one line a step, in milliseconds since the start: of the clock, and of the processor. Not
 * a test: nothing depends on the figures.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output/format/output.h"
#include "recording/recording.h"
#include "timeline/analysis/table.h"

#define OPS_PER_STEP 8
#define INSTANCE(n)  (1ULL << 32 | (n))

static double now_ms(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void step(const char *what, double start_ms, double start_cpu_ms)
{
	(void)printf("%-9s %8.1f %8.1f\n", what, now_ms(CLOCK_MONOTONIC) - start_ms,
		     now_ms(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ms);
}

static int one_memory(struct recording_writer *w, uint64_t time_ns, uint64_t n, uint64_t open)
{
	struct gp_ev_memory m = {
		.head = {.kind = GP_EV_MEMORY, .tid = 100, .time_ns = time_ns},
		.instance = open,
		.address = 4096 + n % 512 * 64,
		.bytes = n / 512 % 2 ? 0 : 1024,
		.device_index = -1,
	};

	m.head.flags = m.bytes ? 0 : GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN;
	return recording_writer__event(w, &m, sizeof(m));
}

/* A step is one op around seven, each emitted when it ends. */
static int make(const char *path, uint64_t nr)
{
	struct recording_process p = {.pid = 1, .rank = -1, .comm = "bench", .cmdline = ""};
	struct recording_writer *w;
	struct reason why;
	char name[32];
	int err = recording_writer__new(path, &why, &w);

	if (err)
		return err;
	err = recording_writer__process(w, &p);
	for (uint32_t i = 0; i < 200 && !err; i++) {
		(void)snprintf(name, sizeof(name), "aten::op_%u", i);
		err = recording_writer__name(w, i, name, "");
	}
	err = err ?: recording_writer__window(w, 1000, nr * 1000 + 2000, 1700000000000000000ULL);
	for (uint64_t i = 1; i <= nr && !err; i++) {
		bool outer = i % OPS_PER_STEP == 0;
		uint64_t step = (i - 1) / OPS_PER_STEP * OPS_PER_STEP + 1;
		struct gp_ev_op op = {
			.head = {.kind = GP_EV_OP, .tid = 100, .time_ns = 1000 + i * 1000 + 900},
			.start_ns = outer ? 1000 + step * 1000 - 1 : 1000 + i * 1000,
			.instance = outer ? INSTANCE(step) : INSTANCE(i + 1),
			.parent = outer ? 0 : INSTANCE(step),
			.sequence_nr = -1,
			.name_id = (uint32_t)(i * 7 % 200),
		};

		err = recording_writer__event(w, &op, sizeof(op));
		if (!err && i % 4 == 0)
			err = one_memory(w, op.head.time_ns, i / 4, op.instance);
	}
	err = err ?: recording_writer__finish(w);
	recording_writer__free(w);
	return err;
}

static int show(const char *path)
{
	struct output_table_options text = {.limit = 10};
	struct table_options options = {.sort = "self_cpu_time_total"};
	struct recording *rec;
	struct timeline *t;
	struct table *table;
	struct sink *s;
	struct reason why = {.text = "out of memory"};
	double from = now_ms(CLOCK_MONOTONIC), cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int err;

	err = recording__open(path, &why, &rec);
	step("open", from, cpu);
	err = err ?: timeline__new(rec, &why, &t);
	step("timeline", from, cpu);
	err = err ?: table__new(t, &options, &why, &table);
	err = err ?: sink__new_fd(null, &s);
	err = err ?: output_table_text(s, table, &text);
	step("table", from, cpu);
	err = err ?: output_chrome(s, t, "bench");
	err = err ?: sink__finish(s);
	step("trace", from, cpu);
	if (err) {
		(void)fprintf(stderr, "timeline_bench: %s\n", why.text);
		return err;
	}
	(void)printf("%zu ops, %zu memory events\n", t->ops.nr, t->memory.nr);
	sink__free(s);
	table__free(table);
	timeline__free(t);
	recording__free(rec);
	(void)close(null);
	return 0;
}

int main(int argc, char **argv)
{
	const char *path = argv[argc - 1];

	if (argc == 4 && !strcmp(argv[1], "--make") && make(path, strtoull(argv[2], NULL, 10)))
		return 1;
	if (argc != 2 && argc != 4)
		return 2;
	return show(path) ? 1 : 0;
}
