/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * All samples of a timeline as one tree of frames. Private to this room.
 */
#ifndef GP_OUTPUT_FLAME_FLAME_TREE_H
#define GP_OUTPUT_FLAME_FLAME_TREE_H

#include "base/buf.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"
#include "output/flame/stack_samples.h"

enum flame_kind {
	FLAME_PYTHON = 0,
	FLAME_NATIVE = 1,
	FLAME_KERNEL = 2, /* the operating system's */
	FLAME_OP = 3,
	FLAME_CALL = 4, /* of the CUDA API */
	FLAME_GPU = 5,	/* a kernel, copy or memset */
	FLAME_MARK = 6, /* no frame: a remark, a process or a device */
};

struct flame_frame {
	const char *text;
	enum flame_kind kind;
	uint32_t lines_nr;
	const char *where; /* of native code: "add.cpp:41, 43"; NULL: not known */
};

/* Node 0 is the root; a parent stands before its children. Sums stop at UINT64_MAX. */
struct flame_node {
	uint32_t parent;
	uint32_t frame;
	uint64_t own[STACK_METRIC_NR];
	uint64_t total[STACK_METRIC_NR]; /* its descendants' included */
};

struct flame_tree {
	VEC(struct flame_frame) frames;
	VEC(struct flame_node) nodes;
	uint64_t shortened_nr; /* samples whose stacks were cut for lack of room */
	/* After flame_tree__prune(). */
	uint64_t left_out_nr; /* nodes joined into one that says so */
	double left_out_share;
	/* private */
	const struct timeline *t;
	struct intern *texts;
	struct buf scratch;
	struct hash frame_of; /* kind and text -> frame */
	struct hash known_of; /* the recording's frame id -> frame */
	struct hash lines;    /* frame and line, that stand in its `where` */
	struct hash child_of; /* parent and frame -> node */
	bool by_process, by_device;
};

/* Builds the tree; `f` is all zero before. 0 or -ENOMEM; the caller calls flame_tree__done() in
 * either case. */
int flame_tree__init(struct flame_tree *f, const struct timeline *t);
void flame_tree__done(struct flame_tree *f);

/* Keeps the max_nr (at least 1) largest nodes, and joins the others with their siblings among them.
 * None of those has more than left_out_share of the total in any metric. 0 or -ENOMEM. */
int flame_tree__prune(struct flame_tree *f, size_t max_nr);

#endif /* GP_OUTPUT_FLAME_FLAME_TREE_H */
