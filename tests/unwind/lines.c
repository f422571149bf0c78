/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A library whose functions call back: the test knows each call by the words behind it. Only
 * entry() is known by name to a linker.
 */
typedef void callback(void);

void entry(callback *f);

static volatile int calls_nr;

static inline __attribute__((always_inline)) void innermost(callback *f)
{
	f(); /* in innermost */
	calls_nr++;
}

static inline __attribute__((always_inline)) void middle(callback *f)
{
	innermost(f); /* in middle */
	calls_nr++;
}

static __attribute__((noinline)) void hidden(callback *f)
{
	middle(f); /* in hidden */
	calls_nr++;
}

void entry(callback *f)
{
	hidden(f); /* in entry */
	calls_nr++;
}
