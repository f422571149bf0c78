/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The printed table on a terminal: as wide as that, and short.
 */
#ifndef GP_CLI_VIEW_TERMINAL_FIT_H
#define GP_CLI_VIEW_TERMINAL_FIT_H

#include "cli/view/loaded_recording.h"
#include "output/format/output.h"

/* Where stdout is a terminal: makes the table fit its width unless `wide` was asked for, limits it
 * to 20 rows unless a limit was given, and has it end with what is left out. Elsewhere *text stays
 * as it is. */
void terminal_fit(const struct show_options *o, struct output_table_options *text);

#endif /* GP_CLI_VIEW_TERMINAL_FIT_H */
