/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Flame graphs as one page that needs nothing else. Its data is one JSON object:
 *
 *   schema        "gpuprof-flame-1"
 *   start_unix_us when the capture began; duration_us: how long it was
 *   metric        the one to show first
 *   metrics       [{name, unit ("ns", "bytes", "count")}], those that were captured
 *   kinds         what a frame can be; frames: [text, position in kinds], and behind them, of some
 *                 of native code, on which lines it was: "add.cpp:41, 43"
 *   parents       of each node, by position; the first is the root, which has none (-1)
 *   frame_of      frame of each node
 *   own           for each metric, each node's own value, its children's not included
 *   left_out      nodes that were joined into "[smaller ones]"; left_out_share: each of them was
 *                 no more than this share of the total in any metric
 *   shortened     samples whose stacks are not shown whole, because there were too many
 *   losses, capture
 */
#include "output/format/output.h"

#include "base/banned.h"
#include "output/flame/flame_tree.h"
#include "output/format/metadata.h"

#include <errno.h>

/* As many as a browser lays out at once without a wait that people notice. */
#define NODES_SHOWN 50000

#define BLOCK_BYTES (1 << 20)

static const unsigned char page_head[] = {
#include "flame_head.inc"
};

static const unsigned char page_tail[] = {
#include "flame_tail.inc"
};

struct flame {
	struct sink *sink;
	const struct timeline *t;
	struct flame_tree tree;
	struct buf out, escaped;
	int err;
};

static void flush(struct flame *f, size_t least)
{
	if (f->err || f->out.nr < least)
		return;
	buf__clear(&f->escaped);
	buf__page_json(&f->escaped, &f->out);
	f->err = buf__error(&f->out);
	f->err = f->err ? f->err : buf__error(&f->escaped);
	f->err = f->err ? f->err : sink__write(f->sink, f->escaped.bytes, f->escaped.nr);
	buf__clear(&f->out);
}

static const char *unit_of(enum stack_metric metric)
{
	if (metric <= STACK_CUDA || metric == STACK_OFF)
		return "ns";
	return metric <= STACK_ALLOCATIONS || metric == STACK_SAMPLES ? "count" : "bytes";
}

static void add_metrics(struct flame *f, enum stack_metric first)
{
	const char *separator = "";

	if (!stack_metric_captured(f->t, first))
		first = STACK_CPU;
	buf__printf(&f->out, "\"metric\":\"%s\",\n\"metrics\":[", stack_metric_name(first));
	for (int i = 0; i < STACK_METRIC_NR; i++) {
		if (!stack_metric_captured(f->t, i))
			continue;
		buf__printf(&f->out, "%s{\"name\":\"%s\",\"unit\":\"%s\"}", separator,
			    stack_metric_name(i), unit_of(i));
		separator = ",";
	}
	buf__str(&f->out, "],\n");
}

static void add_frames(struct flame *f)
{
	buf__str(&f->out, "\"kinds\":[\"python\",\"native\",\"kernel\",\"op\",\"call\",\"gpu\","
			  "\"mark\"],\n\"frames\":[");
	for (size_t i = 0; i < f->tree.frames.nr; i++) {
		buf__str(&f->out, i ? ",\n[" : "[");
		buf__json(&f->out, f->tree.frames.items[i].text);
		buf__printf(&f->out, ",%d", f->tree.frames.items[i].kind);
		if (f->tree.frames.items[i].where) {
			buf__char(&f->out, ',');
			buf__json(&f->out, f->tree.frames.items[i].where);
		}
		buf__char(&f->out, ']');
		flush(f, BLOCK_BYTES);
	}
	buf__str(&f->out, "],\n");
}

static void add_nodes(struct flame *f)
{
	buf__str(&f->out, "\"parents\":[");
	for (size_t i = 0; i < f->tree.nodes.nr; i++) {
		buf__str(&f->out, i ? "," : "");
		buf__i64(&f->out, i ? (int64_t)f->tree.nodes.items[i].parent : -1);
		flush(f, BLOCK_BYTES);
	}
	buf__str(&f->out, "],\n\"frame_of\":[");
	for (size_t i = 0; i < f->tree.nodes.nr; i++) {
		buf__str(&f->out, i ? "," : "");
		buf__u64(&f->out, f->tree.nodes.items[i].frame);
		flush(f, BLOCK_BYTES);
	}
	buf__str(&f->out, "],\n\"own\":[");
}

static void add_values(struct flame *f, enum stack_metric metric)
{
	buf__char(&f->out, '[');
	for (size_t i = 0; i < f->tree.nodes.nr; i++) {
		buf__str(&f->out, i ? "," : "");
		buf__u64(&f->out, f->tree.nodes.items[i].own[metric]);
		flush(f, BLOCK_BYTES);
	}
	buf__char(&f->out, ']');
}

static void add_all_values(struct flame *f)
{
	const char *separator = "";

	for (int i = 0; i < STACK_METRIC_NR; i++) {
		if (!stack_metric_captured(f->t, i))
			continue;
		buf__str(&f->out, separator);
		add_values(f, i);
		separator = ",\n";
	}
	buf__str(&f->out, "],\n");
}

static void add_data(struct flame *f, enum stack_metric first)
{
	const struct timeline *t = f->t;

	buf__str(&f->out, "{\"schema\":\"gpuprof-flame-1\",\n\"start_unix_us\":");
	buf__us(&f->out, (int64_t)(t->start_ns + t->realtime_offset_ns));
	buf__str(&f->out, ",\n\"duration_us\":");
	buf__us(&f->out, (int64_t)(t->end_ns - t->start_ns));
	buf__str(&f->out, ",\n");
	add_metrics(f, first);
	add_frames(f);
	add_nodes(f);
	add_all_values(f);
	buf__printf(&f->out, "\"left_out\":%llu,\n\"left_out_share\":%g,\n\"shortened\":%llu,\n",
		    (unsigned long long)f->tree.left_out_nr, f->tree.left_out_share,
		    (unsigned long long)f->tree.shortened_nr);
	buf__str(&f->out, "\"losses\":");
	describe_losses(&f->out, t);
	buf__str(&f->out, ",\n\"capture\":");
	describe_capture(&f->out, t);
	buf__str(&f->out, "}\n");
	flush(f, 1);
}

static int write_page(struct flame *f, enum stack_metric first)
{
	int err = flame_tree__init(&f->tree, f->t);

	err = err ? err : flame_tree__prune(&f->tree, NODES_SHOWN);
	err = err ? err : sink__write(f->sink, page_head, sizeof(page_head));
	if (err)
		return err;
	add_data(f, first);
	return f->err ? f->err : sink__write(f->sink, page_tail, sizeof(page_tail));
}

int output_flamegraph(struct sink *s, const struct timeline *t, const char *metric)
{
	struct flame f = {.sink = s, .t = t};
	int err = stack_metric_of(metric);

	if (err < 0)
		return -EINVAL;
	err = write_page(&f, (enum stack_metric)err);
	flame_tree__done(&f.tree);
	buf__done(&f.out);
	buf__done(&f.escaped);
	return err;
}
