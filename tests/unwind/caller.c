/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A library with one function, which calls back and stays on the stack meanwhile.
 */
void CALLS(void (*function)(void));

static volatile int calls_nr;

void CALLS(void (*function)(void))
{
	function();
	calls_nr++;
}
