/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses the user's pairs "KEY=VALUE[,KEY=VALUE...]" of --metadata and `gpuprof ctl metadata`.
 */
#ifndef GP_CLI_VIEW_METADATA_H
#define GP_CLI_VIEW_METADATA_H

#include "base/reason.h"

#include <stdbool.h>

struct capture;

/* What a text must be for metadata_is_sane(). */
#define METADATA_RULE "KEY=VALUE[,KEY=VALUE...], in UTF-8 without control characters"

/* Whether it is such a text: each part has a key. */
bool metadata_is_sane(const char *text);

/* Writes each into the capture's recording. NULL: nothing. 0 or -errno with a reason. */
int metadata_add(struct capture *c, const char *text, struct reason *why);

#endif /* GP_CLI_VIEW_METADATA_H */
