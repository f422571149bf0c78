/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The entry point: hands over to cli/. Signals that end the program are held back until it is known
 * how to end it.
 */
#include "cli/core/cli.h"
#include "cli/core/signals.h"

int main(int argc, char **argv)
{
	signals_hold();
	return cli_main(argc, argv);
}
