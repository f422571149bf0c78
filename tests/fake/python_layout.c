/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Prints what gpuprof finds out about the CPython of a process: struct gp_python as hexadecimal
 * bytes. For the test of the in-process walk on Pythons without PyTorch.
 */
#include "inspect/process/process.h"
#include "inspect/program/python.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	const unsigned char *bytes;
	struct target_python python;
	struct target_process *p;
	struct reason why = {0};

	if (argc != 2 || target_process__new(atoi(argv[1]), &why, &p) ||
	    target_python_find(p, &why, &python)) {
		(void)fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	bytes = (const unsigned char *)&python.walk;
	for (size_t i = 0; i < sizeof(python.walk); i++)
		printf("%02x", bytes[i]);
	printf("\n");
	target_process__free(p);
	return 0;
}
