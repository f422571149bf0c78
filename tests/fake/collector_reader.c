/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * collector_reader PID FILE: reads the collector's ring of a process as a capture does, for the
 * tests. Says "active" or "failed WHY" once the collector has answered. A line on standard input
 * ends it ("die": without telling the collector to quit); then it says "done N". FILE gets one
 * event a line.
 */
#include "capture/collector/ring_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S	 120
#define PAUSE_MS 5
#define NAMES	 65536

static char *names[NAMES];

static int on_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_name *name = event;
	const struct gp_ev_op *op = event;

	if (name->head.kind == GP_EV_NAME) {
		free(names[name->name_id]);
		names[name->name_id] = strdup((const char *)(name + 1));
		return 0;
	}
	(void)fprintf(arg,
		      "op\t%s\t%u\t%" PRIu64 "\t%" PRIu64 "\t%" PRIx64 "\t%" PRIx64 "\t%" PRId64
		      "\t%" PRIu64 "\t%u\t%u\t%u\n",
		      op->name_id ? names[op->name_id] : "?", op->head.tid, (uint64_t)op->start_ns,
		      (uint64_t)op->head.time_ns, (uint64_t)op->instance, (uint64_t)op->parent,
		      (int64_t)op->sequence_nr, (uint64_t)op->forward_thread, op->scope,
		      op->head.flags, op->thread_number);
	return 0;
}

static void drain(struct ring_reader *r, FILE *out)
{
	int nr = ring_reader__drain(r, on_event, out);

	if (nr < 0) {
		printf("broken %d\n", nr);
		exit(1);
	}
}

/* Drains until `mask` of the features has an answer, or the collector is inert. */
static void wait_for(struct ring_reader *r, FILE *out, uint32_t mask, uint32_t wanted, bool inert)
{
	time_t end = time(NULL) + LIMIT_S;
	struct collector_status s;

	do {
		drain(r, out);
		ring_reader__status(r, &s);
		if (inert ? s.state == GP_COLLECTOR_INERT
			  : ((s.active | s.failed) & mask) == wanted)
			return;
		(void)poll(NULL, 0, PAUSE_MS);
	} while (time(NULL) < end);
	printf("no answer from the collector: active %u failed %u\n", s.active, s.failed);
	exit(1);
}

static void until_reported(struct ring_reader *r, FILE *out)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[16] = "";

	while (!poll(&in, 1, PAUSE_MS))
		drain(r, out);
	if (read(STDIN_FILENO, line, sizeof(line) - 1) > 0 && !strncmp(line, "die", 3))
		_exit(0);
}

int main(int argc, char **argv)
{
	uint64_t losses[GP_LOSS_NR] = {0};
	struct collector_status s;
	struct ring_reader *r;
	uint32_t wanted = GP_FEATURE_OPS | GP_FEATURE_CUPTI;
	struct reason why;
	FILE *out;

	if (argc == 4 && !strcmp(argv[3], "alone"))
		wanted |= GP_FEATURE_OPS_ALONE;
	else if (argc != 3)
		return 2;
	out = fopen(argv[2], "we");
	if (!out || ring_reader__open(atoi(argv[1]), 1, &why, &r)) {
		printf("failed %s\n", out ? why.text : strerror(errno));
		return 1;
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	ring_reader__want(r, wanted);
	wait_for(r, out, wanted, wanted, false);
	ring_reader__status(r, &s);
	printf("%s %s\n", s.active & GP_FEATURE_OPS ? "active" : "failed", s.message);
	until_reported(r, out);
	ring_reader__want(r, 0);
	wait_for(r, out, ~0U, 0, false);
	ring_reader__quit(r);
	wait_for(r, out, 0, 0, true);
	drain(r, out);
	ring_reader__losses(r, losses);
	for (int i = 0; i < GP_LOSS_NR; i++)
		(void)fprintf(out, "loss\t%d\t%" PRIu64 "\n", i, losses[i]);
	(void)fclose(out);
	ring_reader__free(r);
	printf("done\n");
	return 0;
}
