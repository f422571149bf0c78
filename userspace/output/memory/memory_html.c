/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The memory timeline as one page without dependencies. page/ is built into two halves of HTML; the
 * data goes between them, into a <script> element that holds JSON and never runs. The profiled
 * program chose the names in the data, so buf__page_json() escapes them.
 */
#include "output/memory/memory_json.h"

#include "base/banned.h"
#include "output/format/output_format.h"

/* A screen has a few thousand columns; zooming in by a factor of several still shows each bump. */
#define POINTS_MAX 20000
#define OPS_MAX	   250

static const unsigned char page_head[] = {
#include "memory_head.inc"
};

static const unsigned char page_tail[] = {
#include "memory_tail.inc"
};

int output_memory_html(struct sink *s, const struct timeline *t)
{
	const struct memory_json_options options = {
		.max_points = POINTS_MAX, .max_ops = OPS_MAX, .html_embed_json = true};
	int err = sink__write(s, page_head, sizeof(page_head));

	if (!err)
		err = memory_json_write(s, t, &options);
	if (!err)
		err = sink__write(s, page_tail, sizeof(page_tail));
	return err;
}

int output_format_memory(struct sink *s, const struct timeline *t,
			 const struct output_request *request)
{
	if (output_path_ends(request->path, ".html"))
		return output_memory_html(s, t);
	return output_memory_json(s, t);
}
