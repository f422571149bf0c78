/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel's walk of Python stacks, compiled for the host, on a simulated process. The input says
 * how its interpreters, threads and frames lie in memory and how they are linked: rightly, in
 * circles, to garbage, to where nothing is; and what changes while the walk reads. Each walk must
 * come to its end and touch nothing but its own; where nothing changed meanwhile its result is that
 * of a plain walk: the same stack, or marked where that cannot tell either.
 */
#include "fuzz/fuzz_seed.h"
#include "fuzz/python_process.h"
#include "inspect/program/python.h"

#include <string.h>

#define WALKS 6

/* ---- the input ---- */

static const uint8_t *input;
static size_t input_bytes;

static uint32_t take(uint32_t below)
{
	uint32_t value = 0;

	for (int i = 0; i < 2 && input_bytes; i++, input_bytes--)
		value = value << 8 | *input++;
	return value % below;
}

/* ---- making the process ---- */

#define RUNTIME	   BASE
#define INTERPS	   (BASE + 1 * PAGE)
#define STATES	   (BASE + 2 * PAGE)
#define CODES	   (BASE + 4 * PAGE)
#define NAMES	   (BASE + 8 * PAGE)
#define LINES	   (BASE + 9 * PAGE)
#define DATA_STACK (BASE + 10 * PAGE)
#define C_STACK	   (BASE + 35 * PAGE) /* its upper end */
#define HEAP	   (BASE + 36 * PAGE)
#define END	   (BASE + PAGES * PAGE)
#define CODES_NR   63
#define FRAMES_MAX 400

/* Those of the tables, and one as later versions have them. */
static void choose_layout(void)
{
	static const unsigned int minors[] = {8, 10, 11, 12, 12};
	uint32_t which = take(5);
	struct target_python python;

	if (!target_python_table(minors[which], &python))
		abort();
	*layout = python.walk;
	if (which < 4)
		return;
	layout->has_cframe = 0;
	layout->code_mask = ~7ULL;
}

/* The thread's stack, outermost first, and where the next frame has room. */
static uint64_t frames[FRAMES_MAX], uses[FRAMES_MAX];
static uint32_t frames_nr;
static uint64_t data_top, c_top, heap_top, own_state;
static bool is_sound;

static void make_code(uint64_t code, uint32_t what)
{
	uint64_t index = (code - CODES) / 256, name = NAMES + index * 64;

	for (uint64_t at = 0; at < 240; at += 8)
		put_word(code + at, (uint64_t)what << 32 | at);
	if (!layout->code_filename)
		return;
	put_word(code + layout->code_filename, name);
	put_word(code + layout->code_check + GP_PYTHON_CHECK_BYTES - 8, LINES + index * 64);
	put_word(name + 16, 1 + what % 200);
	put_word(name + 48, what % 2 ? '<' : 'n');
	put_word(LINES + index * 64 + 16, what % 100);
}

static void set_innermost(void)
{
	uint64_t at = own_state + layout->state_frame;
	uint64_t frame = frames_nr ? frames[frames_nr - 1] : 0;

	if (layout->has_cframe) {
		put_word(at, C_STACK);
		at = C_STACK + layout->cframe_frame;
	}
	put_word(at, frame);
}

static void set_instr(uint32_t i)
{
	uint64_t lasti = take(400);

	if (!layout->is_index)
		lasti += uses[i] + layout->code_start;
	put_word(frames[i] + layout->frame_at + layout->frame_instr, lasti);
}

static uint64_t place_frame(bool *ret_is_entry)
{
	uint32_t kind = take(8), bytes = layout->frame_at + 88 + 8 * take(40);
	uint64_t at;

	*ret_is_entry = kind == 5 && layout->frame_owner != GP_PYTHON_NO_FIELD;
	if (kind == 5 && c_top - bytes > HEAP - 8 * PAGE)
		return c_top -= bytes;
	if (kind < 5 && data_top + bytes < C_STACK - 8 * PAGE) {
		at = data_top;
		data_top += bytes;
		return at;
	}
	at = heap_top;
	heap_top += bytes;
	return at;
}

static void push_frame(void)
{
	uint64_t at, code = CODES + 256ULL * take(CODES_NR);
	uint8_t owner = 0;
	bool is_entry;

	if (frames_nr == FRAMES_MAX || heap_top + 512 > END)
		return;
	at = place_frame(&is_entry);
	frames[frames_nr] = at;
	uses[frames_nr++] = code;
	put_word(at + layout->frame_at + layout->frame_code, code | (~layout->code_mask & 1));
	put_word(at + layout->frame_at + layout->frame_back,
		 frames_nr > 1 ? frames[frames_nr - 2] : 0);
	set_instr(frames_nr - 1);
	owner = is_entry ? 3 : (uint8_t)take(3);
	if (layout->frame_owner != GP_PYTHON_NO_FIELD)
		put(at + layout->frame_at + layout->frame_owner, &owner, 1);
}

static void make_states(uint64_t interp, uint32_t first, uint32_t nr)
{
	put_word(interp + layout->interp_threads, nr ? STATES + 256ULL * first : 0);
	for (uint32_t i = first; i < first + nr; i++) {
		uint64_t at = STATES + 256ULL * i;

		put_word(at, i > first ? at - 256 : 0);
		put_word(at + 8, i + 1 < first + nr ? at + 256 : 0);
		put_word(at + 16, interp);
		put_word(at + layout->state_thread_id, SELF + 4096 * (1 + i));
	}
}

static void make_process(void)
{
	uint32_t interps = 1 + take(3), states = 1 + take(8), depth;

	memset(memory, 0, sizeof(memory));
	memset(is_mapped, 1, sizeof(is_mapped));
	choose_layout();
	layout->interpreters = RUNTIME;
	layout->generation = take(2);
	layout->sees_catches = layout->is_known = 1;
	put_word(RUNTIME, INTERPS);
	for (uint32_t i = 0; i < interps; i++) {
		put_word(INTERPS + 512ULL * i + layout->interp_next,
			 i + 1 < interps ? INTERPS + 512ULL * (i + 1) : 0);
		make_states(INTERPS + 512ULL * i, i * states, states);
	}
	own_state = STATES + 256ULL * take(interps * states);
	put_word(own_state + layout->state_thread_id, SELF);
	for (uint32_t i = 0; i < CODES_NR; i++)
		make_code(CODES + 256ULL * i, i % 7);
	frames_nr = 0;
	data_top = DATA_STACK + 8 * take(512);
	c_top = C_STACK - 64;
	heap_top = HEAP;
	for (depth = take(FRAMES_MAX); depth && input_bytes; depth--)
		push_frame();
	set_innermost();
}

/* What no interpreter does. */
static void spoil(void)
{
	uint32_t nr = take(6) < 3 ? 0 : 1 + take(4);

	is_sound = !nr;
	for (; nr; nr--) {
		uint64_t where = BASE + 8ULL * take((uint32_t)(sizeof(memory) / 8));
		uint32_t i = take(FRAMES_MAX);

		if (take(2) && i < frames_nr)
			where = frames[i] + layout->frame_at + layout->frame_back;
		switch (take(4)) {
		case 0:
			is_mapped[take(PAGES)] = false;
			break;
		case 1:
			put_word(where, BASE + 8ULL * take((uint32_t)(sizeof(memory) / 8)));
			break;
		case 2:
			put_word(where, frames_nr ? frames[take(frames_nr)] : 1);
			break;
		default:
			put_word(where, take(3) ? take(65536) : ~0ULL - take(256));
		}
	}
}

/* ---- walking it ---- */

#define IDS_MAX 64

static struct {
	struct plain plain;
	bool is_reported;
} reported[IDS_MAX];

static struct thread_state *state;

/* What was told under the id is what a plain walk finds now. */
static void compare(uint32_t id, uint64_t incomplete)
{
	struct plain plain;

	plain_walk(&plain);
	if (is_sound && incomplete != (plain.flags != 0))
		abort();
	if (!id || incomplete)
		return;
	/* A state that is known already is found though the way to it through others has been
	 * spoilt since. */
	if (!is_sound && plain.is_lost)
		return;
	if (id >= IDS_MAX || !reported[id].is_reported || plain.flags ||
	    plain.nr != reported[id].plain.nr ||
	    memcmp(plain.codes, reported[id].plain.codes, plain.nr * sizeof(plain.codes[0])) ||
	    memcmp(plain.lasti, reported[id].plain.lasti, plain.nr * sizeof(plain.lasti[0])))
		abort();
}

static void note_reported(void)
{
	struct plain *p = &reported[last_id].plain;

	if (!last_id || last_id >= IDS_MAX)
		return;
	memset(p, 0, sizeof(*p));
	p->nr = last_nr;
	p->flags = last_flags;
	for (uint32_t i = 0; i < last_nr; i++) {
		p->codes[i] = last_frames[i].code;
		p->lasti[i] = last_frames[i].lasti;
	}
	reported[last_id].is_reported = true;
	last_id = 0;
}

static void walk(void)
{
	uint64_t before = counts->losses[GP_LOSS_STACK_INCOMPLETE];
	uint32_t id;

	has_changed = false;
	reads = 0;
	id = python_stack(state, NULL, 1);
	note_reported();
	if (!has_changed) {
		compare(id, counts->losses[GP_LOSS_STACK_INCOMPLETE] - before);
		return;
	}
	/* No op can have begun under what has changed since. */
	state->depth = 0;
	state->next_op++;
}

/* A code that no frame uses is freed, and another one made in its place. */
static void replace_code(void)
{
	uint64_t code = CODES + 256ULL * take(CODES_NR);

	for (uint32_t i = 0; i < frames_nr; i++)
		if (uses[i] == code)
			return;
	make_code(code, take(65536));
	if (layout->generation)
		layout->generation++;
}

/* What the thread does between two events. An op that is open keeps its frame as it is. */
static void go_on(void)
{
	switch (take(5)) {
	case 0:
		state->depth = 0;
		for (uint32_t nr = take(20); nr && frames_nr; nr--)
			if (frames[--frames_nr] >= DATA_STACK && frames[frames_nr] < data_top)
				data_top = frames[frames_nr];
		break;
	case 1:
		push_frame();
		break;
	case 2:
		state->depth = 0;
		if (frames_nr)
			set_instr(frames_nr - 1);
		break;
	case 3:
		replace_code();
		break;
	default:
		if (state->depth < GP_OP_DEPTH)
			state->frames[state->depth++].op = ++state->next_op;
	}
	set_innermost();
}

static void begin(void)
{
	thread = calloc(1, sizeof(*thread));
	windows = calloc(1, sizeof(*windows));
	layout = calloc(1, sizeof(*layout));
	counts = calloc(1, sizeof(*counts));
	state = calloc(1, sizeof(*state));
	if (!thread || !windows || !layout || !counts || !state)
		abort();
	memset(reported, 0, sizeof(reported));
	memset(quick, 0, sizeof(quick));
	stacks_here = gp_stacks_nr = last_id = 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint8_t seed[4096];

	for (uint32_t kind = 0; kind < 8; kind++) {
		char name[16];

		for (size_t i = 0; i < sizeof(seed); i++)
			seed[i] = (uint8_t)((i * i * (kind + 3)) >> (kind / 2));
		(void)snprintf(name, sizeof(name), "python%u", kind);
		fuzz_seed(*argc, *argv, name, seed, sizeof(seed));
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	input = data;
	input_bytes = bytes;
	begin();
	make_process();
	spoil();
	change_at = take(3) ? ~0ULL : take(64);
	change_where = BASE + 8ULL * take((uint32_t)(sizeof(memory) / 8));
	change_to = take(2) && frames_nr ? frames[take(frames_nr)] : take(65536);
	ring_is_full = !take(16);
	for (int i = 0; i < WALKS; i++) {
		walk();
		/* What was spoilt meanwhile is so for good. */
		is_sound = is_sound && !has_changed;
		change_at = ~0ULL;
		go_on();
	}
	free(thread);
	free(windows);
	free(layout);
	free(counts);
	free(state);
	return 0;
}
