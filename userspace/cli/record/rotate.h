/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Rotates recordings: decides when the next one begins and which old ones are deleted.
 */
#ifndef GP_CLI_RECORD_ROTATE_H
#define GP_CLI_RECORD_ROTATE_H

#include "base/vec.h"
#include "capture/capture.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rotate_options {
	double every_s;	    /* 0: not by time */
	long keep;	    /* the most recordings, with the one in progress; 0: no limit */
	uint64_t max_bytes; /* of all together, at any time; 0: any */
};

struct record_args;

/* Reads its options from the command line, if there are any. Logs what is wrong with them. Returns
 * CLI_DONE or CLI_USAGE. */
int rotate_options_from(const struct record_args *args, struct rotate_options *ret_options);

/* Whether the options ask for rotation. */
bool rotate_wanted(const struct rotate_options *o);

struct rotate {
	struct rotate_options options;
	const struct file_folder *folder; /* that they lie in; NULL: in that of each path */
	char *(*path)(void *arg, unsigned int nr);  /* of a recording, to be freed */
	void (*remove)(void *arg, unsigned int nr); /* NULL: as a file */
	void *path_arg;
	uint64_t begun_ns;    /* when the recording in progress did */
	uint32_t oldest_nr;   /* those before it are gone */
	uint32_t ended_nr;    /* so many have ended */
	uint32_t begun_nr;    /* and so many have a file */
	VEC(uint64_t) bytes;  /* of those, from the oldest on */
	uint64_t ended_bytes; /* of these together */
	uint64_t held_bytes;  /* of others that cannot go yet, but count */
	bool full_reported;
	ino_t replaced; /* the file that the last one begun is to replace, and is not ours; 0: none
			 */
};

/* `folder`, `path` and its argument are borrowed. */
void rotate__init(struct rotate *r, const struct rotate_options *options,
		  const struct file_folder *folder, char *(*path)(void *, unsigned int),
		  void *path_arg);
void rotate__done(struct rotate *r);

/* Begins the next recording when it is due, and deletes old ones. To be called often. */
void rotate__poll(struct rotate *r, struct capture *c);

/* Deletes the oldest ended recording. False: there is none. */
bool rotate__remove_oldest(struct rotate *r);

/* Says which recordings are kept, after the capture. Returns an enum cli_status: CLI_LOST if
 * events were lost. */
int rotate__end(const struct rotate *r, const struct capture_status *s, bool quiet);

/* For capture_options.recording_path; `rotate` is a struct rotate. */
char *rotate_next_path(void *rotate, unsigned int nr);

/* For struct recording_room; `rotate` is a struct rotate. */
bool rotate_make_room(void *rotate, uint64_t bytes, int err);

#endif /* GP_CLI_RECORD_ROTATE_H */
