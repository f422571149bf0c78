/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Golden files of tests/golden, and the event list there. With --update a test writes what it got
 * over its golden file, for the review to look at.
 */
#ifndef GP_UNIT_GOLDEN_H
#define GP_UNIT_GOLDEN_H

#include "events.h"
#include "outputs.h"

/* Call first in main(); looks for --update. */
void golden_init(int argc, char **argv);

/* The file's text; the caller frees. Fails the test if it is not there. */
char *golden_read(const char *name);

/* Fails the test unless the file holds exactly these bytes. */
void golden_check(const char *name, const char *text, size_t bytes);

/* The same of all that went into a memory sink, which it finishes and frees. */
void golden_check_sink(const char *name, struct sink *s);

/* Puts the events of a file made by make_table.py into `e`. */
void golden_events(struct events *e, const char *name);

#endif /* GP_UNIT_GOLDEN_H */
