/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Hands over to cli/.
 */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}
