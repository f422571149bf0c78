/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A small recording with every kind of content, for the tests of the file format: some events in
 * two chunks, values that count up, so that any wrong byte shows.
 */
#ifndef GP_TESTS_SAMPLE_H
#define GP_TESTS_SAMPLE_H

#include "recording/recording.h"

#include <stddef.h>
#include <stdint.h>

/* Event `i` of the sample: its bytes (at most SAMPLE_EVENT_MAX) into `event`; returns how many. */
#define SAMPLE_EVENT_MAX 256
#define SAMPLE_EVENTS	 40
size_t sample_event(size_t i, void *event);

/* Writes it all, without finish. Events [0, 20) are flushed before the others. */
void sample_fill(struct recording_writer *w);

/* Makes the file, finished. */
void sample_write(const char *path);

/* Fails the test if an event differs from the sample's; returns how many there were. The events of
 * a cut file are the first ones of the sample. */
size_t sample_check_events(struct recording *r);

/* A directory of the test's own, for `name` in it. Both are static memory; taken away at exit. */
const char *sample_path(const char *name);

/* Reads and writes files whole, or fails the test. */
uint8_t *sample_read_file(const char *path, size_t *ret_bytes);
void sample_write_file(const char *path, const void *data, size_t bytes);

#endif /* GP_TESTS_SAMPLE_H */
