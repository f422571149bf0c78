/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * becomes ORDERS ANSWERS COMMAND...: a static program, so there is no loader to probe. It writes
 * "here PID" to the one file descriptor, and becomes the command once it reads a line from the
 * other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char byte = 0;

	if (argc < 4)
		return 2;
	if (dprintf(atoi(argv[2]), "here %d\n", (int)getpid()) < 0)
		return 1;
	while (byte != '\n')
		if (read(atoi(argv[1]), &byte, 1) != 1)
			return 1;
	execvp(argv[3], argv + 3);
	return 127;
}
