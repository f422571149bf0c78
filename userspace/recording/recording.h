/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes and reads the .gpuprof file: append-only, checksummed chunks. FORMAT.md beside this file
 * is the specification. A file cut at any byte is readable up to its last whole chunk.
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

/* Creates the file under its name at once, so that a killed capture is readable. 0 or -errno with a
 * reason. */
int recording_writer__new(const char *path, struct reason *why,
			  struct recording_writer **ret_writer);
/* The same under the last part of the path, in the folder (NULL: in the path's own). The file gets
 * its name, and replaces another of that name, only at recording_writer__place(). */
int recording_writer__new_in(const struct file_folder *folder, const char *path, struct reason *why,
			     struct recording_writer **ret_writer);
/* Gives the file its name if it does not have it yet; before or after finish. 0 or -errno. */
int recording_writer__place(struct recording_writer *w);
/* Frees the writer. A file that is not finished stays as a cut recording; one without a name is
 * gone. */
void recording_writer__free(struct recording_writer *w);

/* For CLEANUP. */
static inline void cleanup_writer(struct recording_writer **p)
{
	recording_writer__free(*p);
}

/*
 * Lets someone else decide about disk space. `fn` is called before `bytes` are written (`err` 0),
 * and again when that failed (`err` -ENOSPC or -EDQUOT), perhaps after it made room. True: (re)try.
 * False: the writer fails with -ENOSPC.
 */
struct recording_room {
	bool (*fn)(void *arg, uint64_t bytes, int err);
	void *arg;
};
void recording_writer__set_room(struct recording_writer *w, struct recording_room room);

/* The error that sticks, 0: none. */
int recording_writer__error(const struct recording_writer *w);

/* Prefix of the keys that the user made up. */
#define RECORDING_USER_META "user:"

/* Prefix of keys that say why a process with CUDA (its pid follows) has no GPU times. */
#define RECORDING_GPU_LACK "gpu_lack."

/* Sets one key of the capture's description ("mode", "host", "kernel", "torch", ...). The last
 * value of a key counts. */
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

/* Adds a name that events refer to. `overload` may be "". -EINVAL: the id is too large. */
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
	bool inlined; /* set by the reader: the compiler inlined it into the next outer frame, whose
			 module and address it has */
	uint32_t first_line; /* Python: of its function; 0: not known */
};

/* One source position of a native frame. Texts are never NULL. */
struct recording_line {
	const char *function; /* "": not known; in the last place: what the frame says */
	const char *file;     /* "": not known */
	uint32_t line;	      /* 0: not known */
};

/* The most places of one frame. */
#define RECORDING_FRAME_LINES 64

/* Adds a frame that stacks refer to. A Python frame loses its module, build_id and address.
 * -EINVAL: the id is too large. */
int recording_writer__frame(struct recording_writer *w, uint32_t id,
			    const struct recording_frame *frame);

/* Says that a native frame lies in the function that calls an operator, or in an autograd node's.
 * `name` is the id of its name, `scope` one of enum gp_op_scope. -EINVAL: an id is too large. */
int recording_writer__frame_op(struct recording_writer *w, uint32_t frame, uint32_t name,
			       uint32_t scope);

/* Sets the source positions of a native frame, innermost first: the inlined functions, then the
 * frame's own. -EINVAL: the id is too large, or there are none or too many. */
int recording_writer__frame_lines(struct recording_writer *w, uint32_t frame,
				  const struct recording_line *lines, size_t nr);

/* Adds a stack that events refer to: the ids of its frames, innermost first. `flags` are enum
 * gp_stack_flags. -EINVAL: the id or the number of frames is too large. */
int recording_writer__stack(struct recording_writer *w, uint32_t id, uint32_t flags,
			    const uint32_t *frames, size_t nr);

/* Adds one event of wire.h; events are written out in chunks. -EINVAL: it is shorter than its kind,
 * no multiple of 8 bytes, or of a kind that is never in a recording; the writer goes on without it.
 * A write error sticks: every later call returns it, and the file keeps its whole chunks. */
int recording_writer__event(struct recording_writer *w, const void *event, size_t bytes);
/* The same, with another process number in the event's head. */
int recording_writer__event_of(struct recording_writer *w, uint16_t process, const void *event,
			       size_t bytes);

/* Sets a counter's current value; the last one counts. */
int recording_writer__loss(struct recording_writer *w, const char *name, uint64_t count);

/* Sets the capture's window in CLOCK_MONOTONIC, and CLOCK_REALTIME at its start. Written at the
 * start with end 0, and again at the end. */
int recording_writer__window(struct recording_writer *w, uint64_t start_ns, uint64_t end_ns,
			     uint64_t start_realtime_ns);

/* Writes everything buffered to the file. capture/ calls it about once a second. */
int recording_writer__flush(struct recording_writer *w);

/* Flushes and marks the recording as whole. */
int recording_writer__finish(struct recording_writer *w);

/* The bytes written so far. */
uint64_t recording_writer__bytes(const struct recording_writer *w);

/* ---- reading ---- */

struct recording;

/* Reads and checks the file. A damaged or cut one opens up to the first bad chunk:
 * recording__damage() says what is wrong. -EINVAL: not a recording; -ENOTSUP: from a newer
 * version. */
int recording__open(const char *path, struct reason *why, struct recording **ret_recording);
void recording__free(struct recording *r);

/* NULL if the recording is whole, else a text: "cut after 12 chunks, 3 bytes left over". */
const char *recording__damage(const struct recording *r);

/* The value of a key, or NULL. */
const char *recording__meta(const struct recording *r, const char *key);
/* Whether the feature that the key names was recorded: its value exists and is not "0". In a merged
 * recording: whether any part has it. */
bool recording__is_on(const struct recording *r, const char *key);
/* All keys: how many there are, and one of them with its value. Borrowed. */
size_t recording__metas(const struct recording *r);
void recording__meta_at(const struct recording *r, size_t i, const char **ret_key,
			const char **ret_value);

/* The processes, in the order of their first mention. Borrowed. */
size_t recording__processes(const struct recording *r);
const struct recording_process *recording__process_at(const struct recording *r, size_t i);

/* The name of an id: "?" and "" if it has none. */
const char *recording__name(const struct recording *r, uint32_t id, const char **ret_overload);

/* The frame of an id, its texts borrowed. An unknown id gives a Python frame "?" in the file
 * "?". */
struct recording_frame recording__frame(const struct recording *r, uint32_t id);

/* Finds the operator or autograd node that a frame belongs to. False: none. */
bool recording__frame_op(const struct recording *r, uint32_t id, uint32_t *ret_name,
			 uint32_t *ret_scope);

/* The source positions of a frame that has more than one, innermost first, borrowed. Else NULL and
 * 0. */
const struct recording_line *recording__frame_lines(const struct recording *r, uint32_t id,
						    size_t *ret_nr);

/* The frame ids of a stack, innermost first, borrowed, with their number and the stack's enum
 * gp_stack_flags (ret_flags may be NULL). Inlined functions have ids from RECORDING_STACK_IDS on.
 * NULL and 0 if the id is unknown. */
const uint32_t *recording__stack(const struct recording *r, uint32_t id, size_t *ret_nr,
				 uint32_t *ret_flags);

/* The writer's counters, then "unknown_events": those of kinds that this version does not know. */
size_t recording__losses(const struct recording *r);
const char *recording__loss_at(const struct recording *r, size_t i, uint64_t *ret_count);

/* The capture's window. Zeros where the recording was cut before they were known; the end is then
 * the time of the last event. */
void recording__window(const struct recording *r, uint64_t *ret_start_ns, uint64_t *ret_end_ns,
		       uint64_t *ret_start_realtime_ns);

/* Calls fn for every event in file order. Each is at least as long as its kind; events of later
 * versions may be longer. Unknown kinds are skipped and counted. Stops when fn returns non-zero,
 * and returns that. 0, or -errno if the file can no longer be read. */
int recording__each_event(struct recording *r,
			  int (*fn)(const void *event, size_t bytes, void *arg), void *arg);

/* The least bytes of an event of this kind, 0 for an unknown kind. */
size_t recording_event_bytes(uint8_t kind);

/* The counter's name in outputs: "ring_full", "depth", ... */
const char *recording_loss_name(enum gp_loss loss);

#endif /* GP_RECORDING_RECORDING_H */
