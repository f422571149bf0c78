/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A process with the beginning of a CPython that gpuprof does not walk: "free-threaded" and "3.15"
 * as _Py_DebugOffsets says it, "3.7" by Py_Version.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t _PyRuntime[64] = {1};
uint64_t Py_Version = 1;

int main(int argc, char **argv)
{
	const char *is = argc > 1 ? argv[1] : "";

	if (!strcmp(is, "3.7")) {
		Py_Version = 0x03070ff0;
	} else {
		memcpy(_PyRuntime, "xdebugpy", 8);
		_PyRuntime[1] = !strcmp(is, "3.15") ? 0x030f00f0 : 0x030e00f0;
		_PyRuntime[2] = !strcmp(is, "free-threaded");
	}
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}
