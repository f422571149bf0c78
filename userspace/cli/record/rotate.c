/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Starts and deletes recordings. Bytes are counted before they are written, so the cap holds at
 * any moment. One recording gets only a part of the cap, so deleting the oldest never deletes
 * everything.
 */
#include "cli/record/rotate.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/record/record_args.h"
#include "common/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* One recording may take this part of the cap. */
#define SHARE 4

bool rotate_wanted(const struct rotate_options *o)
{
	return o->every_s > 0 || o->max_bytes;
}

int rotate_options_from(const struct record_args *args, struct rotate_options *ret_options)
{
	struct rotate_options o = {args->rotate_s, args->keep, args->max_bytes};

	*ret_options = o;
	if (!rotate_wanted(&o)) {
		if (o.keep)
			log_err("--keep says how many recordings to keep: give --rotate or "
				"--max-bytes too");
		return o.keep ? CLI_USAGE : CLI_DONE;
	}
	if (args->steps || args->schedule) {
		log_err("%s and %s exclude each other", args->steps ? "--steps" : "--schedule",
			o.every_s > 0 ? "--rotate" : "--max-bytes");
		return CLI_USAGE;
	}
	if (args->trace_path || args->memory_path) {
		log_err("%s is written from one recording; export those that are kept",
			args->trace_path ? "--trace" : "--memory-timeline");
		return CLI_USAGE;
	}
	return CLI_DONE;
}

void rotate__init(struct rotate *r, const struct rotate_options *options,
		  const struct file_folder *folder, char *(*path)(void *, unsigned int),
		  void *path_arg)
{
	*r = (struct rotate){.options = *options,
			     .folder = folder,
			     .path = path,
			     .path_arg = path_arg,
			     .begun_ns = clock_now_ns()};
}

void rotate__done(struct rotate *r)
{
	vec_done(&r->bytes);
}

static bool find_file(const struct rotate *r, const char *path, struct stat *ret_st)
{
	return !(r->folder ? fstatat(r->folder->fd, file_base_name(path), ret_st, 0)
			   : stat(path, ret_st));
}

static uint64_t file_bytes(const struct rotate *r, uint32_t nr)
{
	CLEANUP(cleanup_free) char *path = r->path(r->path_arg, nr);
	struct stat st;

	if (!path || !find_file(r, path, &st) || !S_ISREG(st.st_mode) || st.st_ino == r->replaced)
		return 0;
	return (uint64_t)st.st_size;
}

bool rotate__remove_oldest(struct rotate *r)
{
	CLEANUP(cleanup_free) char *path = NULL;

	if (r->oldest_nr == r->ended_nr || !r->bytes.nr)
		return false;
	if (!r->remove)
		path = r->path(r->path_arg, r->oldest_nr);
	if (r->remove)
		r->remove(r->path_arg, r->oldest_nr);
	else if (path && r->folder)
		(void)unlinkat(r->folder->fd, file_base_name(path), 0);
	r->ended_bytes -= r->bytes.items[0];
	memmove(r->bytes.items, r->bytes.items + 1, --r->bytes.nr * sizeof(*r->bytes.items));
	r->oldest_nr++;
	return true;
}

char *rotate_next_path(void *rotate, unsigned int nr)
{
	struct rotate *r = rotate;
	char *path = r->path(r->path_arg, nr);
	struct stat st;

	r->begun_nr = nr + 1;
	r->replaced = path && r->folder && find_file(r, path, &st) ? st.st_ino : 0;
	return path;
}

/* Counts the recordings in progress and those that ended since the last turn. */
static uint64_t open_bytes(const struct rotate *r)
{
	uint64_t bytes = 0;

	for (uint32_t nr = r->ended_nr; nr < r->begun_nr; nr++)
		bytes += file_bytes(r, nr);
	return bytes;
}

bool rotate_make_room(void *rotate, uint64_t bytes, int err)
{
	struct rotate *r = rotate;
	uint64_t open = r->options.max_bytes ? open_bytes(r) : 0;

	if (err)
		return rotate__remove_oldest(r);
	while (r->options.max_bytes &&
	       r->ended_bytes + r->held_bytes + open + bytes > r->options.max_bytes)
		if (!rotate__remove_oldest(r))
			return false;
	return true;
}

static void note_ended(struct rotate *r, const struct capture_status *s)
{
	while (r->ended_nr < s->recordings_nr) {
		uint64_t bytes = file_bytes(r, r->ended_nr);

		if (vec_push(&r->bytes, bytes))
			return;
		r->ended_bytes += bytes;
		r->ended_nr++;
	}
	while (r->options.keep && s->files_nr - r->oldest_nr > (uint64_t)r->options.keep)
		if (!rotate__remove_oldest(r))
			return;
}

static void report_full(struct rotate *r, bool full)
{
	if (full && !r->full_reported)
		log_warn("the disk is full: events are counted but not kept until there is room");
	r->full_reported = full;
}

void rotate__poll(struct rotate *r, struct capture *c)
{
	uint64_t now_ns = clock_now_ns(), age_ns = now_ns - r->begun_ns;
	struct capture_status s;
	bool due;

	capture__status(c, &s);
	note_ended(r, &s);
	due = r->options.every_s > 0 && (double)age_ns >= r->options.every_s * 1e9;
	due |= r->options.max_bytes && s.recording_bytes > r->options.max_bytes / SHARE;
	due |= s.unwritten && age_ns >= SECOND_NS;
	report_full(r, s.unwritten);
	if (due && s.unwritten)
		(void)rotate__remove_oldest(r);
	if (!due || capture__rotate(c, NULL))
		return;
	r->begun_ns = now_ns;
}

int rotate__end(const struct rotate *r, const struct capture_status *s, bool quiet)
{
	CLEANUP(cleanup_free) char *first = r->path(r->path_arg, r->oldest_nr);
	CLEANUP(cleanup_free) char *last = NULL;

	if (s->files_nr)
		last = r->path(r->path_arg, s->files_nr - 1);
	if (!quiet && last && s->files_nr - r->oldest_nr == 1)
		(void)fprintf(stderr, "1 recording kept: %s\n", last);
	else if (!quiet && first && last)
		(void)fprintf(stderr,
			      "%u recordings kept, %s to %s; 'gpuprof merge' makes one of them\n",
			      s->files_nr - r->oldest_nr, first, last);
	if (s->lost_nr)
		log_warn("%llu events were lost; each recording counts those of its time",
			 (unsigned long long)s->lost_nr);
	return s->lost_nr ? CLI_LOST : CLI_DONE;
}
