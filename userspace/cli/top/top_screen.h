/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Draws `top` on the terminal.
 */
#ifndef GP_CLI_TOP_TOP_SCREEN_H
#define GP_CLI_TOP_TOP_SCREEN_H

#include "cli/top/top_model.h"

/* Shows the view until a key or a signal ends it. Logs errors. Returns an enum cli_status. */
int top_screen(struct top *top);

#endif /* GP_CLI_TOP_TOP_SCREEN_H */
