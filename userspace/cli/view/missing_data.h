/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Warns about data that was asked for and is not in the recording: why, and what to do about it.
 */
#ifndef GP_CLI_VIEW_MISSING_DATA_H
#define GP_CLI_VIEW_MISSING_DATA_H

#include "cli/view/loaded_recording.h"

/* Warns where a table with so many rows has no operators of those that were to be recorded. */
void missing_data_warn_of_operators(const struct loaded_recording *s, size_t rows_nr);

/* Warns if the recording lacks what the rows are grouped by. Returns whether it warned. */
bool missing_data_warn_of_groups(const struct loaded_recording *s, const struct show_options *o);

/* Warns if no row has the value to sort by. */
void missing_data_warn_of_sort(const struct loaded_recording *s, const struct table *table,
			       const char *key);

/* Warns of processes of this part that have no GPU times though they have CUDA. */
void missing_data_warn_of_gpus(const struct loaded_recording *s, const struct tl_part *part);

/* Whether the recording has a process of this part. Logs an error where it has none. */
bool missing_data_has_part(const struct loaded_recording *s, const struct tl_part *part);

/* Whether the recording has stacks, and could have something of the metric (NULL: the default, in
 * any). Logs an error where it does not. */
bool missing_data_has_stacks_of(const struct loaded_recording *s, const char *metric);

#endif /* GP_CLI_VIEW_MISSING_DATA_H */
