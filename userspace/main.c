/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Hands over to cli/. A signal that is to end us waits until it is known what that takes.
 */
#include "cli/core/cli.h"
#include "cli/core/signals.h"

int main(int argc, char **argv)
{
	signals_hold();
	return cli_main(argc, argv);
}
