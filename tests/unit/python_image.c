/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Laying out the structures. The offsets are those of the ordinary builds, written down here once
 * more: what gpuprof uses must agree with them.
 */
#include "unit/python_image.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERP_WORDS 1024
#define STATE_WORDS  (GP_PYTHON_STATE_BYTES / 8)
#define CODE_WORDS   (PYTHON_CODE_BYTES / 8)
#define FRAME_WORDS  32
#define LINES_BYTES  80

#define UP_TO_310(bytes, instr)                                                                    \
	.walk = {.interp_threads = 8,                                                              \
		 .state_thread_id = 176,                                                           \
		 .state_frame = 24,                                                                \
		 .frame_at = 24,                                                                   \
		 .frame_bytes = (bytes),                                                           \
		 .frame_code = 8,                                                                  \
		 .frame_instr = (instr),                                                           \
		 .is_index = 1,                                                                    \
		 .frame_owner = GP_PYTHON_NO_FIELD},                                               \
	.filename = 104, .name = 112, .firstlineno = 40, .linetable = 120

#define SINCE_313(bytes, owner, start, next)                                                       \
	.walk = {.interp_next = (next),                                                            \
		 .interp_threads = 7344,                                                           \
		 .state_thread_id = 152,                                                           \
		 .state_frame = 72,                                                                \
		 .frame_bytes = (bytes),                                                           \
		 .frame_code = 0,                                                                  \
		 .frame_back = 8,                                                                  \
		 .frame_instr = 56,                                                                \
		 .frame_owner = (owner),                                                           \
		 .code_start = (start)},                                                           \
	.filename = 112, .name = 128, .firstlineno = 68, .linetable = 136

static const struct target_python layouts[] = {
	{.minor = 8, UP_TO_310(88, 80)},
	{.minor = 9, UP_TO_310(88, 80)},
	{.minor = 10, UP_TO_310(80, 72)},
	{.minor = 11,
	 .walk = {.interp_threads = 16,
		  .state_thread_id = 152,
		  .state_frame = 56,
		  .has_cframe = 1,
		  .cframe_frame = 8,
		  .frame_at = 32,
		  .frame_bytes = 40,
		  .frame_code = 0,
		  .frame_back = 16,
		  .frame_instr = 24,
		  .frame_owner = GP_PYTHON_NO_FIELD,
		  .code_start = 184},
	 .filename = 112,
	 .name = 128,
	 .firstlineno = 72,
	 .linetable = 136},
	{.minor = 12,
	 .walk = {.interp_threads = 72,
		  .state_thread_id = 136,
		  .state_frame = 56,
		  .has_cframe = 1,
		  .cframe_frame = 0,
		  .frame_bytes = 72,
		  .frame_code = 0,
		  .frame_back = 8,
		  .frame_instr = 56,
		  .frame_owner = 70,
		  .code_start = 192},
	 .filename = 112,
	 .name = 128,
	 .firstlineno = 68,
	 .linetable = 136},
	{.minor = 13, SINCE_313(80, 70, 200, 7264)},
	{.minor = 14, SINCE_313(88, 74, 208, 7272)},
};

uint64_t *image__word(uint64_t address)
{
	return (uint64_t *)(uintptr_t)address;
}

static uint64_t take(struct image *i, size_t words)
{
	uint64_t *at = i->words + i->used;

	i->used += words;
	if (i->used > IMAGE_WORDS)
		abort();
	memset(at, 0, words * sizeof(*at));
	return (uint64_t)(uintptr_t)at;
}

static void set(uint64_t object, size_t offset, uint64_t word)
{
	memcpy((char *)(uintptr_t)object + offset, &word, sizeof(word));
}

struct image *image__get(unsigned int minor)
{
	static struct image image;

	memset(&image, 0, sizeof(image));
	image.python = layouts[minor - IMAGE_FIRST_MINOR];
	image.python.pid = getpid();
	image.python.walk.interpreters = (uint64_t)(uintptr_t)&image.first_interp;
	image.python.walk.code_mask = minor >= 14 ? ~7ULL : ~0ULL;
	image.python.walk.code_check =
		(uint16_t)(image.python.linetable + 8 - GP_PYTHON_CHECK_BYTES);
	image.python.walk.code_filename = minor < 12 ? image.python.filename : 0;
	image.interp = image__interp(&image);
	image.state = image__state(&image, image.interp, (uint64_t)(uintptr_t)pthread_self());
	return &image;
}

uint64_t image__interp(struct image *i)
{
	uint64_t interp = take(i, INTERP_WORDS);

	set(interp, i->python.walk.interp_next, i->first_interp);
	i->first_interp = interp;
	return interp;
}

uint64_t image__state(struct image *i, uint64_t interp, uint64_t self)
{
	uint64_t state = take(i, STATE_WORDS), *list;

	list = image__word(interp + i->python.walk.interp_threads);
	set(state, 8, *list);
	set(state, 16, interp);
	if (*list)
		set(*list, 0, state);
	*list = state;
	set(state, i->python.walk.state_thread_id, self);
	/* The C frame that tells of the innermost frame. */
	if (i->python.walk.has_cframe)
		set(state, i->python.walk.state_frame, take(i, 4));
	return state;
}

uint64_t image__code(struct image *i, const char *file, uint32_t seed)
{
	uint64_t code = take(i, CODE_WORDS), lines = take(i, 4 + LINES_BYTES / 8);
	uint64_t text = take(i, 6 + (strlen(file) + 8) / 8);

	for (size_t at = 0; at < CODE_WORDS; at++)
		image__word(code)[at] = (seed * 0x9e3779b9ULL + at) * 0x100000001b3ULL;
	set(text, 16, strlen(file));
	memcpy((char *)(uintptr_t)text + 48, file, strlen(file));
	set(lines, 16, LINES_BYTES);
	memset((char *)(uintptr_t)lines + 32, (int)seed, LINES_BYTES);
	set(code, i->python.filename, text);
	set(code, i->python.linetable, lines);
	return code;
}

uint64_t image__frame(struct image *i, uint64_t code, int32_t lasti, uint64_t back)
{
	const struct gp_python *w = &i->python.walk;
	uint64_t frame = take(i, FRAME_WORDS), at = frame + w->frame_at;

	set(at, w->frame_code, i->python.minor >= 14 ? code | 1 : code);
	set(at, w->frame_instr,
	    w->is_index ? (uint32_t)lasti | 0xabcULL << 32
			: code + w->code_start + (uint64_t)(int64_t)lasti);
	set(at, w->frame_back, back);
	return frame;
}

uint64_t image__shim(struct image *i, uint64_t back)
{
	uint64_t frame = image__frame(i, 0x1234567, 0, back);

	((uint8_t *)(uintptr_t)frame)[i->python.walk.frame_owner] = 3;
	return frame;
}

void image__run(struct image *i, uint64_t state, uint64_t frame)
{
	const struct gp_python *w = &i->python.walk;

	if (w->has_cframe)
		set(*image__word(state + w->state_frame), w->cframe_frame, frame);
	else
		set(state, w->state_frame, frame);
}
