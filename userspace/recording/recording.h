/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The .gpuprof file: append-only, checksummed chunks. FORMAT.md beside this file is the
 * specification. A file cut at any byte is readable up to its last whole chunk.
 */
#ifndef GP_RECORDING_RECORDING_H
#define GP_RECORDING_RECORDING_H

#include "base/place.h"
#include "base/reason.h"
#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- writing ---- */

struct recording_writer;

/* Creates the file: it is there from the first moment, so a killed capture is readable. 0 or -errno
 * with a reason. */
int recording_writer__new(const char *path, struct reason *why,
			  struct recording_writer **ret_writer);
/* The same under the last name of the path in the folder (NULL: in that of the path), but the file
 * has its name, and takes the place of another, at recording_writer__place() only. */
int recording_writer__new_in(const struct file_folder *folder, const char *path, struct reason *why,
			     struct recording_writer **ret_writer);
/* Gives the file its name, if it has not got it; before finish or after. 0 or -errno. */
int recording_writer__place(struct recording_writer *w);
/* Without finish: the file stays as a cut recording. Without its name: it goes. */
void recording_writer__free(struct recording_writer *w);

/* For CLEANUP. */
static inline void cleanup_writer(struct recording_writer **p)
{
	recording_writer__free(*p);
}

/*
 * Who else has a say in what is written. `fn` is asked before so many bytes are (`err` 0), and
 * again where that failed (`err` -ENOSPC, -EDQUOT): true to (re)try, after room was made perhaps;
 * false: the writer has an error then, -ENOSPC.
 */
struct recording_room {
	bool (*fn)(void *arg, uint64_t bytes, int err);
	void *arg;
};
void recording_writer__set_room(struct recording_writer *w, struct recording_room room);

/* The error that sticks, 0: none. */
int recording_writer__error(const struct recording_writer *w);

/* What the keys of the user's own words begin with. */
#define RECORDING_USER_META "user:"

/* Of a process (its pid follows) with CUDA: why there are no GPU times of it. */
#define RECORDING_GPU_LACK "gpu_lack."

/* One key of the capture's description ("mode", "host", "kernel", "torch", ...). The last value of
 * a key counts. */
int recording_writer__meta(struct recording_writer *w, const char *key, const char *value);

struct recording_process {
	uint32_t index; /* what events call it */
	int32_t pid;
	int32_t rank;	    /* -1: none */
	int32_t world_size; /* -1: none */
	uint64_t start_boot_ns;
	const char *comm;
	const char *cmdline;
};
int recording_writer__process(struct recording_writer *w, const struct recording_process *p);

/* Ids of names are below this. */
#define RECORDING_NAME_IDS (1U << 24)

/* A name that events refer to. overload may be "". -EINVAL: the id is too large. */
int recording_writer__name(struct recording_writer *w, uint32_t id, const char *name,
			   const char *overload);

/* Ids of frames and of stacks are below this; a stack has at most so many frames. */
#define RECORDING_STACK_IDS    (1U << 24)
#define RECORDING_STACK_FRAMES 4096

enum recording_frame_kind {
	RECORDING_FRAME_PYTHON = 0,
	RECORDING_FRAME_NATIVE = 1,
	RECORDING_FRAME_KERNEL = 2,
};

/* One place in a program. Texts are never NULL. */
struct recording_frame {
	const char *file;     /* its source; "": not known */
	const char *function; /* "": not known */
	const char *module;   /* native: the file that holds the code, as the process sees it */
	const char *build_id; /* of the module, as hexadecimal digits; "": none */
	uint64_t address;     /* native: in the module's own numbering (an ELF file's) */
	uint32_t line;	      /* 0: not known */
	enum recording_frame_kind kind;
	bool inlined; /* the reader's: the compiler put it into the next outer frame, whose module
			 and address it has */
	uint32_t first_line; /* Python: of its function; 0: not known */
};

/* One of the places that a native frame is in. Texts are never NULL. */
struct recording_line {
	const char *function; /* "": not known; of the last place: what the frame says */
	const char *file;     /* "": not known */
	uint32_t line;	      /* 0: not known */
};

/* Places of one frame, at most. */
#define RECORDING_FRAME_LINES 64

/* A frame that stacks refer to. Of a Python frame neither module, build_id nor address is kept.
 * -EINVAL: the id is too large. */
int recording_writer__frame(struct recording_writer *w, uint32_t id,
			    const struct recording_frame *frame);

/* Says that a native frame lies in the function that calls an operator, or an autograd node's:
 * `name` is its id, `scope` enum gp_op_scope. -EINVAL: an id is too large. */
int recording_writer__frame_op(struct recording_writer *w, uint32_t frame, uint32_t name,
			       uint32_t scope);

/* Where a native frame is in its source: innermost first, functions that the compiler put into the
 * next one, then the frame's own. -EINVAL: the id is too large, or there are none or too many. */
int recording_writer__frame_lines(struct recording_writer *w, uint32_t frame,
				  const struct recording_line *lines, size_t nr);

/* A stack that events refer to: ids of its frames, innermost first. `flags` are enum
 * gp_stack_flags. -EINVAL: the id or the number of frames is too large. */
int recording_writer__stack(struct recording_writer *w, uint32_t id, uint32_t flags,
			    const uint32_t *frames, size_t nr);

/* Adds one event of wire.h; written out in chunks. -EINVAL: shorter than its kind is, no multiple
 * of 8 bytes, or of a kind that is never in a recording; it goes on without it. A write error
 * sticks: every later call returns it, and the file keeps its whole chunks. */
int recording_writer__event(struct recording_writer *w, const void *event, size_t bytes);
/* The same, with another number of the process in its head. */
int recording_writer__event_of(struct recording_writer *w, uint16_t process, const void *event,
			       size_t bytes);

/* What a counter stands at now; the last value counts. */
int recording_writer__loss(struct recording_writer *w, const char *name, uint64_t count);

/* The capture's window, CLOCK_MONOTONIC, and CLOCK_REALTIME at its beginning. Written at the start
 * with end 0 and again at the end. */
int recording_writer__window(struct recording_writer *w, uint64_t start_ns, uint64_t end_ns,
			     uint64_t start_realtime_ns);

/* Writes what is buffered to the file (called about once a second by capture/). */
int recording_writer__flush(struct recording_writer *w);

/* Flushes and marks the recording as whole. */
int recording_writer__finish(struct recording_writer *w);

/* Bytes written so far. */
uint64_t recording_writer__bytes(const struct recording_writer *w);

/* ---- reading ---- */

struct recording;

/* Reads and checks the file. A damaged or cut one opens as far as it is good: recording__damage()
 * says what is wrong. -EINVAL: no recording at all; -ENOTSUP: of a newer version. */
int recording__open(const char *path, struct reason *why, struct recording **ret_recording);
void recording__free(struct recording *r);

/* NULL if whole; else words: "cut after 12 chunks, 3 bytes left over". */
const char *recording__damage(const struct recording *r);

/* Value of a key, or NULL. And all of them. */
const char *recording__meta(const struct recording *r, const char *key);
/* Whether what the key names was recorded: it has a value, and that is not "0". Of a merged
 * recording: in one of its parts. */
bool recording__is_on(const struct recording *r, const char *key);
size_t recording__metas(const struct recording *r);
void recording__meta_at(const struct recording *r, size_t i, const char **ret_key,
			const char **ret_value);

/* The processes, in the order in which they were first told of. Borrowed. */
size_t recording__processes(const struct recording *r);
const struct recording_process *recording__process_at(const struct recording *r, size_t i);

/* Name of an id: "?" and "" if it has none. */
const char *recording__name(const struct recording *r, uint32_t id, const char **ret_overload);

/* The frame of an id, its texts borrowed: a Python one of "?" in "?" if there is none. */
struct recording_frame recording__frame(const struct recording *r, uint32_t id);

/* Which operator, or autograd node, a frame is one of; false: none. */
bool recording__frame_op(const struct recording *r, uint32_t id, uint32_t *ret_name,
			 uint32_t *ret_scope);

/* The places of a frame that has more than one, innermost first, borrowed; NULL and 0 if it has
 * not. */
const struct recording_line *recording__frame_lines(const struct recording *r, uint32_t id,
						    size_t *ret_nr);

/* Frame ids of a stack, innermost first, borrowed (inlined functions have ids from
 * RECORDING_STACK_IDS on), with their number and its enum gp_stack_flags
 * (ret_flags may be NULL). NULL and 0 if there is none of this id. */
const uint32_t *recording__stack(const struct recording *r, uint32_t id, size_t *ret_nr,
				 uint32_t *ret_flags);

/* What the writer counted, then "unknown_events": those of kinds this version does not know. */
size_t recording__losses(const struct recording *r);
const char *recording__loss_at(const struct recording *r, size_t i, uint64_t *ret_count);

/* 0s where the recording was cut before they were known; the end is then the last event's time. */
void recording__window(const struct recording *r, uint64_t *ret_start_ns, uint64_t *ret_end_ns,
		       uint64_t *ret_start_realtime_ns);

/* Every event in file order: fn gets each with its length already checked against its kind (longer
 * ones of later versions are passed with their full length, unknown kinds are skipped and counted).
 * Ends when fn returns non-zero and returns that; 0, or -errno if the file cannot be read any more.
 */
int recording__each_event(struct recording *r,
			  int (*fn)(const void *event, size_t bytes, void *arg), void *arg);

/* Bytes an event of this kind has at least, 0 for an unknown kind. */
size_t recording_event_bytes(uint8_t kind);

/* The counter's name in outputs: "ring_full", "depth", ... */
const char *recording_loss_name(enum gp_loss loss);

#endif /* GP_RECORDING_RECORDING_H */
