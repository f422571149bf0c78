/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Flame graphs as one page without dependencies. Its data is one JSON object:
 *
 *   schema        "gpuprof-flame-1"
 *   start_unix_us when the capture began; duration_us: how long it was
 *   metric        the one to show first
 *   metrics       [{name, unit ("ns", "bytes", "count")}], those that were captured
 *   kinds         what a frame can be
 *   frames        [text, position in kinds]; some frames of native code have a third item, the
 *                 lines they were on: "add.cpp:41, 43"
 *   parents       of each node, by position; the first is the root, which has none (-1)
 *   frame_of      frame of each node
 *   own           for each metric, each node's own value, its children's not included
 *   left_out      nodes that were joined into "[smaller ones]"
 *   left_out_share
 *                 none of them had more than this share of the total in any metric
 *   shortened     samples whose stacks are not shown whole, because there were too many nodes
 *   losses, capture
 */
#include "output/format/output.h"
#include "output/format/output_format.h"

#include "base/banned.h"
#include "base/json_writer.h"
#include "output/flame/flame_tree.h"
#include "output/format/metadata.h"

#include <errno.h>

/* As many as a browser lays out without a noticeable delay. */
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
	struct json_writer json; /* writes to `out` */
	int err;
};

/* A row a line, the first of them behind the bracket. */
static const struct json_style rows_style = JSON_STYLE("", ",\n", ":", "");

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
	struct json_writer *j = &f->json;

	if (!stack_metric_captured(f->t, first))
		first = STACK_CPU;
	json__put_word(j, "metric", stack_metric_name(first));
	json__put_array(j, "metrics", &json_tight);
	for (int i = 0; i < STACK_METRIC_NR; i++) {
		if (!stack_metric_captured(f->t, i))
			continue;
		json__object(j, &json_tight);
		json__put_word(j, "name", stack_metric_name(i));
		json__put_word(j, "unit", unit_of(i));
		json__end(j);
	}
	json__end(j);
}

static void add_frames(struct flame *f)
{
	static const char *const kinds[] = {"python", "native", "kernel", "op",
					    "call",   "gpu",	"mark"};
	struct json_writer *j = &f->json;

	json__put_array(j, "kinds", &json_tight);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		json__word(j, kinds[i]);
	json__end(j);
	json__put_array(j, "frames", &rows_style);
	for (size_t i = 0; i < f->tree.frames.nr; i++) {
		json__array(j, &json_tight);
		json__text(j, f->tree.frames.items[i].text);
		json__i64(j, f->tree.frames.items[i].kind);
		if (f->tree.frames.items[i].where)
			json__text(j, f->tree.frames.items[i].where);
		json__end(j);
		flush(f, BLOCK_BYTES);
	}
	json__end(j);
}

static void add_nodes(struct flame *f)
{
	json__put_array(&f->json, "parents", &json_tight);
	for (size_t i = 0; i < f->tree.nodes.nr; i++) {
		json__i64(&f->json, i ? (int64_t)f->tree.nodes.items[i].parent : -1);
		flush(f, BLOCK_BYTES);
	}
	json__end(&f->json);
	json__put_array(&f->json, "frame_of", &json_tight);
	for (size_t i = 0; i < f->tree.nodes.nr; i++) {
		json__u64(&f->json, f->tree.nodes.items[i].frame);
		flush(f, BLOCK_BYTES);
	}
	json__end(&f->json);
}

static void add_values(struct flame *f, enum stack_metric metric)
{
	json__array(&f->json, &json_tight);
	for (size_t i = 0; i < f->tree.nodes.nr; i++) {
		json__u64(&f->json, f->tree.nodes.items[i].own[metric]);
		flush(f, BLOCK_BYTES);
	}
	json__end(&f->json);
}

static void add_all_values(struct flame *f)
{
	json__put_array(&f->json, "own", &rows_style);
	for (int i = 0; i < STACK_METRIC_NR; i++)
		if (stack_metric_captured(f->t, i))
			add_values(f, i);
	json__end(&f->json);
}

static void add_data(struct flame *f, enum stack_metric first)
{
	const struct timeline *t = f->t;
	struct json_writer *j = &f->json;

	json__init(j, &f->out);
	json__object(j, &rows_style);
	json__put_word(j, "schema", "gpuprof-flame-1");
	json__put_us(j, "start_unix_us", (int64_t)(t->start_ns + t->realtime_offset_ns));
	json__put_us(j, "duration_us", (int64_t)(t->end_ns - t->start_ns));
	add_metrics(f, first);
	add_frames(f);
	add_nodes(f);
	add_all_values(f);
	json__put_u64(j, "left_out", f->tree.left_out_nr);
	json__key(j, "left_out_share");
	json__rounded(j, f->tree.left_out_share);
	json__put_u64(j, "shortened", f->tree.shortened_nr);
	json__key(j, "losses");
	metadata_losses(j, t);
	json__key(j, "capture");
	metadata_capture(j, t);
	json__end(j);
	buf__char(&f->out, '\n');
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

int output_format_flamegraph(struct sink *s, const struct timeline *t,
			     const struct output_request *request)
{
	return output_flamegraph(s, t, request->metric);
}
