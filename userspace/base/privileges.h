/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What this program may do, given away as soon as it is no longer needed. The kernel keeps this
 * thread by thread: what a thread has given away stays with those it starts. It is no wall between
 * the threads of one program, who share its memory; it is one less thing that a mistake can do.
 */
#ifndef GP_BASE_PRIVILEGES_H
#define GP_BASE_PRIVILEGES_H

#include "base/reason.h"

#include <stdint.h>

/* What attaching to processes takes, as bits 1 << CAP_*. */
uint64_t privileges_of_capture(void);

/* What reading recordings and writing what is made of them takes of a root whose files are a
 * user's: to create them in that user's folders, and to hand them over. */
uint64_t privileges_of_output(void);

/* Keeps those of `keep` that this thread has, gives the rest away for good (bounding set included),
 * and forbids that a program it starts gains any. 0 or -errno with a reason. */
int privileges_keep(uint64_t keep, struct reason *why);

#endif /* GP_BASE_PRIVILEGES_H */
