/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The data of the memory timeline, for the .json file and inside the page.
 */
#ifndef GP_OUTPUT_MEMORY_MEMORY_JSON_H
#define GP_OUTPUT_MEMORY_MEMORY_JSON_H

#include "output/format/output.h"

struct memory_json_options {
	size_t max_points; /* of each device, 0: all */
	size_t max_ops;	   /* rows of each list of ops, 0: all */
	/* Writes each '<' as \u003c, so that no name can end the <script> element around it. */
	bool html_embed_json;
};

/* Writes the object described in memory_json.c. 0 or -errno. */
int memory_json_write(struct sink *s, const struct timeline *t,
		      const struct memory_json_options *options);

#endif /* GP_OUTPUT_MEMORY_MEMORY_JSON_H */
