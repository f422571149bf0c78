/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Prints one interval of `top` for scripts.
 */
#ifndef GP_CLI_TOP_TOP_PRINT_H
#define GP_CLI_TOP_TOP_PRINT_H

#include "cli/top/top_model.h"

/* Print the last interval to stdout: the chosen view as text, all views as JSON. 0 or -errno. */
int top_print_text(const struct top *top);
int top_print_json(const struct top *top);

#endif /* GP_CLI_TOP_TOP_PRINT_H */
