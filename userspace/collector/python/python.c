/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The same walk as bpf/python.bpf.h does in the kernel, with the same frames and checksums, but
 * done by the thread itself. All loops are bounded, and with checked reads no address can do harm.
 */
#include "collector/python/python.h"

#include "collector/python/python_read.h"
#include "collector/runtime/compat.h"
#include "collector/runtime/symbol.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Bounds: interpreters and thread states in a search; frames of a walk, Python's and others. */
#define SEARCH_MAX 4096
#define WALK_MAX   (2 * GP_STACK_FRAMES)

#define CHECK_WORDS (GP_PYTHON_CHECK_BYTES / 8)

/* The largest offsets of fields that modules are found by: no such object is smaller. */
#define LOCALS_MOST 360
#define CODE_MOST   128
#define DICT_MOST   24

/* ---- reading ---- */

bool python_checked_read(uint64_t address, void *to, size_t bytes)
{
	struct iovec local = {.iov_base = to, .iov_len = bytes};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
	int saved = errno;
	long nr = syscall(SYS_process_vm_readv, getpid(), &local, 1UL, &remote, 1UL, 0UL);

	errno = saved;
	return nr == (long)bytes;
}

bool python_can_check(void)
{
	uint64_t here = ADDRESS_END, copy = 0;

	return python_checked_read((uintptr_t)&here, &copy, sizeof(copy)) && copy == here;
}

/* ---- the interpreter ---- */

bool python_layout_is_sane(const struct gp_python *py)
{
	const size_t state_most = GP_PYTHON_STATE_BYTES - 8;
	size_t frame_most = (size_t)py->frame_bytes - 8;

	if (py->frame_bytes < 8 || py->frame_bytes > GP_PYTHON_FRAME_BYTES ||
	    py->frame_locals > LOCALS_MOST || py->code_name > CODE_MOST ||
	    py->code_file > CODE_MOST || py->code_locals_nr > CODE_MOST ||
	    py->text_bytes > CODE_MOST || py->dict_version > DICT_MOST)
		return false;
	return py->interpreters % 8 == 0 && py->interpreters >= ADDRESS_MIN &&
	       py->state_thread_id <= state_most && py->state_frame <= state_most &&
	       py->frame_code <= frame_most && py->frame_back <= frame_most &&
	       py->frame_instr <= frame_most &&
	       (py->frame_owner == GP_PYTHON_NO_FIELD || py->frame_owner < py->frame_bytes) &&
	       (!py->code_filename ||
		(py->code_filename >= py->code_check &&
		 py->code_filename <= py->code_check + GP_PYTHON_CHECK_BYTES - 8));
}

/* Keeps the library loaded that has the functions, while they are in use. There is no handle if
 * they lie in the program itself, which cannot be unloaded. */
static void hold_library(struct python_api *p)
{
	Dl_info info;
	void *function;

	memcpy(&function, &p->thread_state, sizeof(function));
	if (dladdr(function, &info) && info.dli_fname)
		p->library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

const char *python_api__bind(struct python_api *p, const struct gp_python *layout)
{
	*p = (struct python_api){.layout = *layout};
	if (!python_layout_is_sane(&p->layout))
		return "stacks: gpuprof sent no usable layout for this Python";
	/* Py_IsFinalizing is public since 3.13. */
	if (!symbol_find(RTLD_DEFAULT, "PyGILState_GetThisThreadState", &p->thread_state) ||
	    !(symbol_find(RTLD_DEFAULT, "Py_IsFinalizing", &p->is_finalizing) ||
	      symbol_find(RTLD_DEFAULT, "_Py_IsFinalizing", &p->is_finalizing)))
		return "stacks: this Python does not export what they need";
	if (!python_can_check())
		return "stacks: process_vm_readv is not allowed in this process";
	hold_library(p);
	return NULL;
}

void python_api__release(struct python_api *p)
{
	if (p->library)
		(void)dlclose(p->library);
	p->library = NULL;
}

bool python_state_is_good(const struct gp_python *py, uint64_t state, uint64_t self)
{
	uint64_t links[3], id, neighbour; /* before, after, interpreter */

	if (!python_checked_read(state, links, sizeof(links)) ||
	    !python_checked_read(state + py->state_thread_id, &id, sizeof(id)) || id != self)
		return false;
	return python_checked_read(links[0] ? links[0] + 8 : links[2] + py->interp_threads,
				   &neighbour, sizeof(neighbour)) &&
	       neighbour == state;
}

/* The number of this thread's thread states; 0 if a list cannot be read to its end. */
static __attribute__((noinline)) uint32_t count_states(const struct gp_python *py, uint64_t interp,
						       uint64_t self)
{
	uint64_t state, id;
	uint32_t found_nr = 0, seen_nr = 0;

	for (; interp; seen_nr++) {
		if (!python_checked_read(interp + py->interp_threads, &state, sizeof(state)) ||
		    !python_checked_read(interp + py->interp_next, &interp, sizeof(interp)))
			return 0;
		for (; state; seen_nr++) {
			if (seen_nr > SEARCH_MAX ||
			    !python_checked_read(state + py->state_thread_id, &id, sizeof(id)) ||
			    !python_checked_read(state + 8, &state, sizeof(state)))
				return 0;
			found_nr += id == self;
		}
		if (seen_nr > SEARCH_MAX)
			return 0;
	}
	return found_nr;
}

uint64_t python_only_interpreter(const struct gp_python *py, uint64_t state)
{
	uint64_t first, mine, next;

	if (!read_word(PYTHON_PLAIN, py->interpreters, &first) ||
	    !read_word(PYTHON_PLAIN, state + 16, &mine) || first != mine ||
	    !read_word(PYTHON_PLAIN, mine + py->interp_next, &next) || next)
		return 0;
	return mine;
}

bool python_state_is_only(const struct gp_python *py, uint64_t state, uint64_t self)
{
	uint64_t first;

	if (__builtin_expect(python_only_interpreter(py, state) != 0, 1))
		return true;
	return read_word(PYTHON_PLAIN, py->interpreters, &first) &&
	       count_states(py, first, self) == 1;
}

bool python_first_frame(const struct gp_python *py, uint64_t state, enum python_reads reads,
			uint64_t *ret_frame)
{
	uint64_t frame;

	if (!read_word(reads, state + py->state_frame, &frame))
		return false;
	if (py->has_cframe && !read_word(reads, frame + py->cframe_frame, &frame))
		return false;
	*ret_frame = frame;
	return true;
}

/* ---- code ---- */

/* Reads `bytes` but at most `most`, and fills up with zeros; all zeros if they cannot be read. */
static void read_some(enum python_reads reads, uint64_t address, uint64_t bytes, void *to,
		      size_t most)
{
	const void *at;

	memset(to, 0, most);
	if (bytes > most)
		bytes = most;
	at = read_target(reads, address, bytes, to);
	if (at && at != to)
		memcpy(to, at, bytes);
}

/* Adds what distinguishes code that was compiled at run time: struct gp_python_made. */
static __attribute__((noinline)) uint64_t check_made(enum python_reads reads, uint64_t hash,
						     uint64_t name, uint64_t lines)
{
	struct gp_python_made made;
	uint64_t bytes;

	if (!read_word(reads, name + 16, &bytes))
		return hash;
	read_some(reads, name + 48, bytes, made.name, sizeof(made.name));
	hash = gp_python_mix_words(hash, made.name, (int)(sizeof(made.name) / 8));
	if (!read_word(reads, lines + 16, &bytes))
		return hash;
	read_some(reads, lines + 32, bytes, made.lines, sizeof(made.lines));
	return gp_python_mix_words(hash, made.lines, (int)(sizeof(made.lines) / 8));
}

static inline __attribute__((always_inline)) bool
check_of(enum python_reads reads, const struct gp_python *py, uint64_t code, uint32_t *ret_check)
{
	__u64 copy[CHECK_WORDS], head[5];
	const __u64 *words = read_target(reads, code + py->code_check, sizeof(copy), copy), *made;
	uint64_t hash, name;

	if (!words)
		return false;
	hash = gp_python_mix_words(0, words, CHECK_WORDS);
	if (py->code_filename) {
		name = field(words, (size_t)(py->code_filename - py->code_check));
		/* The string's length, hash, state, a pointer and its first characters. */
		made = read_target(reads, name + 16, sizeof(head), head);
		if (made && made[0] && (uint8_t)made[4] == '<')
			hash = check_made(reads, hash, name, words[CHECK_WORDS - 1]);
	}
	*ret_check = (uint32_t)(hash >> 32);
	return true;
}

/* ---- frames ---- */

static inline __attribute__((always_inline)) bool
add(const struct gp_python *py, const void *frame, enum python_reads reads, struct python_stack *s)
{
	uint64_t code = field(frame, py->frame_code) & py->code_mask;
	uint64_t instr = field(frame, py->frame_instr);
	struct gp_stack_frame *to = &s->frames[s->nr];

	if (!check_of(reads, py, code, &to->check))
		return false;
	to->code = code;
	to->lasti = (int32_t)(py->is_index ? instr : instr - code - py->code_start);
	s->hash = gp_python_mix(gp_python_mix(s->hash, code),
				(uint64_t)to->check << 32 | (uint32_t)to->lasti);
	s->nr++;
	return true;
}

static inline __attribute__((always_inline)) bool
walk(const struct gp_python *py, uint64_t frame, enum python_reads reads, struct python_stack *s)
{
	uint64_t copy[GP_PYTHON_FRAME_BYTES / 8];
	const unsigned char *at;

	s->hash = 0;
	s->nr = 0;
	s->flags = 0;
	for (int i = 0; frame; i++) {
		if (s->nr == GP_STACK_FRAMES) {
			s->flags = GP_STACK_TRUNCATED;
			break;
		}
		if (i == WALK_MAX) {
			s->flags = GP_STACK_INCOMPLETE;
			break;
		}
		at = read_target(reads, frame + py->frame_at, py->frame_bytes, copy);
		if (!at || (is_function(py, at) && !add(py, at, reads, s))) {
			s->flags = GP_STACK_INCOMPLETE;
			return false;
		}
		frame = field(at, py->frame_back);
	}
	return true;
}

/* Two copies of the walk, each compiled for one way of reading. */
bool python_walk(const struct gp_python *py, uint64_t frame, enum python_reads reads,
		 struct python_stack *ret_stack)
{
	bool whole = reads == PYTHON_CHECKED ? walk(py, frame, PYTHON_CHECKED, ret_stack)
					     : walk(py, frame, PYTHON_PLAIN, ret_stack);

	ret_stack->hash =
		gp_python_mix(ret_stack->hash, (uint64_t)ret_stack->nr << 32 | ret_stack->flags);
	return whole;
}
