/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds CPython's structures. The process runs on meanwhile, so a failed attempt is repeated; in
 * some thread, every frame down to the outermost must lead to the same kind of object.
 */
#include "inspect/program/python.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/access/memory.h"
#include "inspect/elf/elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOKS		 200
#define LOOK_PAUSE_NS	 2000000
#define INTERPRETERS_MAX 256
#define THREADS_MAX	 65536
#define DEPTH_MAX	 100000

/* Offsets in a type object, for every version: tp_name and tp_dealloc. */
#define TYPE_NAME    24
#define TYPE_DEALLOC 48

/* ---- tables ---- */

/* The fields of struct target_python that depend on the version, for builds without free threading.
 */
static const struct {
	unsigned int minor;
	uint16_t interpreters; /* in _PyRuntime */
	struct target_python python;
} tables[] = {
	{.minor = 8,
	 .interpreters = 32,
	 .python = {.walk = {.interp_threads = 8,
			     .state_thread_id = 176,
			     .state_frame = 24,
			     .frame_at = 24,
			     .frame_bytes = 88,
			     .frame_code = 8,
			     .frame_instr = 80,
			     .is_index = 1,
			     .frame_owner = GP_PYTHON_NO_FIELD,
			     .frame_locals = 360},
		    .filename = 104,
		    .name = 112,
		    .firstlineno = 40,
		    .linetable = 120,
		    .ascii_bytes = 48,
		    .compact_bytes = 72}},
	{.minor = 10,
	 .interpreters = 32,
	 .python = {.walk = {.interp_threads = 8,
			     .state_thread_id = 176,
			     .state_frame = 24,
			     .frame_at = 24,
			     .frame_bytes = 80,
			     .frame_code = 8,
			     .frame_instr = 72,
			     .is_index = 1,
			     .frame_owner = GP_PYTHON_NO_FIELD,
			     .frame_locals = 352},
		    .filename = 104,
		    .name = 112,
		    .firstlineno = 40,
		    .linetable = 120,
		    .ascii_bytes = 48,
		    .compact_bytes = 72}},
	{.minor = 11,
	 .interpreters = 40,
	 .python = {.walk = {.interp_threads = 16,
			     .state_thread_id = 152,
			     .state_frame = 56,
			     .has_cframe = 1,
			     .cframe_frame = 8,
			     .frame_at = 32,
			     .frame_bytes = 40,
			     .frame_code = 0,
			     .frame_back = 16,
			     .frame_instr = 24,
			     .frame_entry = 36,
			     .frame_owner = GP_PYTHON_NO_FIELD,
			     .code_start = 184,
			     .frame_locals = 72},
		    .filename = 112,
		    .name = 128,
		    .firstlineno = 72,
		    .linetable = 136,
		    .ascii_bytes = 48,
		    .compact_bytes = 72}},
	{.minor = 12,
	 .interpreters = 40,
	 .python = {.walk = {.interp_threads = 72,
			     .state_thread_id = 136,
			     .state_frame = 56,
			     .has_cframe = 1,
			     .cframe_frame = 0,
			     .frame_bytes = 72,
			     .frame_code = 0,
			     .frame_back = 8,
			     .frame_instr = 56,
			     .frame_owner = 70,
			     .code_start = 192,
			     .frame_locals = 72},
		    .filename = 112,
		    .name = 128,
		    .firstlineno = 68,
		    .linetable = 136,
		    .ascii_bytes = 40,
		    .compact_bytes = 56}},
};

static bool from_table(unsigned int minor, struct target_python *py, uint16_t *ret_interpreters)
{
	/* 3.9 has the same layout as 3.8. */
	unsigned int like = minor == 9 ? 8 : minor;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (tables[i].minor != like)
			continue;
		*py = tables[i].python;
		*ret_interpreters = tables[i].interpreters;
		return true;
	}
	return false;
}

/* Fills in what follows from the rest. */
static void complete(struct target_python *py)
{
	py->walk.code_mask = py->minor >= 14 ? ~7ULL : ~0ULL;
	py->walk.code_check = (uint16_t)(py->linetable + 8 - GP_PYTHON_CHECK_BYTES);
	py->walk.code_filename = py->minor < 12 ? py->filename : 0;
	py->walk.has_window = py->minor >= 11;
	py->walk.code_file = py->filename;
	py->walk.code_name = py->name;
	/* Since 3.11 right after the first line number; before, two numbers are in between. */
	py->walk.code_locals_nr =
		(uint16_t)(py->minor >= 11 ? py->firstlineno + 4 : py->firstlineno - 12);
	py->walk.text_bytes = py->ascii_bytes;
	py->walk.dict_version = py->minor <= 13 ? 24 : 0;
}

bool target_python_table(unsigned int minor, struct target_python *ret_python)
{
	uint16_t interpreters;

	if (!from_table(minor, ret_python, &interpreters))
		return false;
	ret_python->minor = minor;
	complete(ret_python);
	return true;
}

/* ---- what the interpreter says about itself ---- */

/* Words of _Py_DebugOffsets that are at the same place in every version that has it, and the first
 * word of each group, from which the others are counted. */
enum {
	WORD_VERSION = 1,
	WORD_FREE_THREADED = 2,
	WORD_INTERPRETERS = 5,
	WORD_NEXT = 8,
	WORD_THREADS = 9,
	WORDS = 64,
};

struct groups {
	unsigned int thread, frame, code;
};

/* Takes a field that must fit; otherwise clears *ok. */
static uint16_t field(const uint64_t *words, unsigned int at, uint64_t most, bool *ok)
{
	if (words[at] > most)
		*ok = false;
	return (uint16_t)words[at];
}

static bool from_words(const uint64_t *w, struct target_python *py, uint16_t *ret_interpreters)
{
	unsigned int minor = w[WORD_VERSION] >> 16 & 0xff;
	const struct groups g =
		minor == 13 ? (struct groups){19, 28, 34} : (struct groups){22, 31, 39};
	const uint64_t state_most = GP_PYTHON_STATE_BYTES - 8;
	const uint64_t code_most = PYTHON_CODE_BYTES - 8;
	bool ok = w[g.thread + 1] == 0 && w[g.thread + 2] == 8 && w[g.thread + 3] == 16;

	*py = (struct target_python){.ascii_bytes = 40, .compact_bytes = 56};
	*ret_interpreters = field(w, WORD_INTERPRETERS, 65535, &ok);
	py->walk.interp_next = field(w, WORD_NEXT, 65535, &ok);
	py->walk.interp_threads = field(w, WORD_THREADS, 65535, &ok);
	py->walk.state_frame = field(w, g.thread + 4, state_most, &ok);
	py->walk.state_thread_id = field(w, g.thread + 5, state_most, &ok);
	py->walk.frame_bytes = field(w, g.frame, GP_PYTHON_FRAME_BYTES, &ok);
	py->walk.frame_back = field(w, g.frame + 1, w[g.frame] - 8, &ok);
	py->walk.frame_code = field(w, g.frame + 2, w[g.frame] - 8, &ok);
	py->walk.frame_instr = field(w, g.frame + 3, w[g.frame] - 8, &ok);
	py->walk.frame_locals = field(w, g.frame + 4, 65528, &ok);
	py->walk.frame_owner = field(w, g.frame + 5, w[g.frame] - 1, &ok);
	py->filename = field(w, g.code + 1, code_most, &ok);
	py->name = field(w, g.code + 3, code_most, &ok);
	py->linetable = field(w, g.code + 4, code_most, &ok);
	py->firstlineno = field(w, g.code + 5, code_most, &ok);
	py->walk.code_start = field(w, g.code + 9, code_most, &ok);
	return ok && w[g.frame] >= 8 && py->linetable >= GP_PYTHON_CHECK_BYTES - 8;
}

/* ---- the interpreter in the process ---- */

struct runtime {
	uint64_t address; /* of _PyRuntime */
	unsigned int minor;
};

/* Finds the minor version in a name: "libpython3.9.so.1.0", "python3.10": 9, 10; else 0. */
static unsigned int minor_of_name(const char *name)
{
	const char *at = strstr(name, "python3.");
	unsigned long minor = at ? strtoul(at + strlen("python3."), NULL, 10) : 0;

	return minor < 100 ? (unsigned int)minor : 0;
}

/* Searches one file for the runtime. */
static bool runtime_in(const struct target_process *p, const struct target_library *l,
		       struct runtime *ret_runtime)
{
	struct elf_symbol runtime, version;
	struct elf_file *f;
	uint64_t n = 0;
	bool found;

	if (elf_file__open(l->open_path, NULL, &f))
		return false;
	found = !elf_file__symbol(f, "_PyRuntime", &runtime);
	if (found) {
		ret_runtime->address = l->base + runtime.address;
		ret_runtime->minor = minor_of_name(file_base_name(l->path));
		if (!elf_file__symbol(f, "Py_Version", &version) &&
		    !target_memory_read(p->pid, l->base + version.address, &n, sizeof(n)) &&
		    n >> 24 == 3)
			ret_runtime->minor = n >> 16 & 0xff;
	}
	elf_file__free(f);
	return found;
}

static bool find_runtime(const struct target_process *p, struct runtime *ret_runtime)
{
	const struct target_library *shared = target_process__library(p, "libpython3");

	if (shared && runtime_in(p, shared, ret_runtime))
		return true;
	for (size_t i = 0; i < p->libraries_nr; i++)
		if (!strcmp(p->libraries[i].path, p->exe) &&
		    runtime_in(p, &p->libraries[i], ret_runtime))
			return true;
	return false;
}

static int find_offsets(const struct target_process *p, const struct runtime *rt,
			struct reason *why, struct target_python *py)
{
	uint64_t words[WORDS];
	uint16_t interpreters;

	if (target_memory_read(p->pid, rt->address, words, sizeof(words)))
		return reason_set(why, -EAGAIN, "Python's state in %d cannot be read", (int)p->pid);
	if (!memcmp(words, "xdebugpy", 8)) {
		unsigned int version = (unsigned int)(words[WORD_VERSION] >> 16);

		if (words[WORD_FREE_THREADED])
			return reason_set(why, -ENOTSUP,
					  "the Python in %d is free-threaded: its "
					  "stacks cannot be walked",
					  (int)p->pid);
		if ((version != 0x30d && version != 0x30e) || !from_words(words, py, &interpreters))
			return reason_set(why, -ENOTSUP,
					  "stacks of Python %u.%u in %d cannot be walked: known "
					  "are 3.8 to 3.14",
					  version >> 8, version & 0xff, (int)p->pid);
		py->minor = version & 0xff;
	} else {
		if (!from_table(rt->minor, py, &interpreters))
			return reason_set(why, -ENOTSUP,
					  "stacks of Python 3.%u in %d cannot be walked: known "
					  "are 3.8 to 3.14",
					  rt->minor, (int)p->pid);
		py->minor = rt->minor;
	}
	py->pid = p->pid;
	py->walk.interpreters = rt->address + interpreters;
	complete(py);
	return 0;
}

/* ---- objects ---- */

/* Reads up to `most` of `bytes` and fills up with zeros; all zeros if they cannot be read. */
static void read_some(const struct target_python *py, uint64_t address, uint64_t bytes, void *to,
		      size_t most)
{
	memset(to, 0, most);
	if (bytes > most)
		bytes = most;
	if (target_memory_read(py->pid, address, to, bytes))
		memset(to, 0, most);
}

uint32_t target_python_check(const struct target_python *py, const uint8_t code[PYTHON_CODE_BYTES])
{
	struct gp_python_made made = {0};
	__u64 words[GP_PYTHON_CHECK_BYTES / 8], hash;
	uint64_t name, lines;

	memcpy(words, code + py->walk.code_check, sizeof(words));
	memcpy(&name, code + py->filename, sizeof(name));
	memcpy(&lines, code + py->linetable, sizeof(lines));
	hash = gp_python_mix_words(0, words, GP_PYTHON_CHECK_BYTES / 8);
	if (!py->walk.code_filename || target_memory_read(py->pid, name + 16, &made, 40) ||
	    !made.name_bytes || (uint8_t)made.name[0] != '<')
		return (uint32_t)(hash >> 32);
	read_some(py, name + 48, made.name_bytes, made.name, sizeof(made.name));
	hash = gp_python_mix_words(hash, made.name, (int)(sizeof(made.name) / 8));
	if (target_memory_read(py->pid, lines + 16, &made.lines_bytes, 8))
		return (uint32_t)(hash >> 32);
	read_some(py, lines + 32, made.lines_bytes, made.lines, sizeof(made.lines));
	hash = gp_python_mix_words(hash, made.lines, (int)(sizeof(made.lines) / 8));
	return (uint32_t)(hash >> 32);
}

/* A freed object has a reference count of zero, or its allocator's data in that place, which no
 * living object can have; a large one's type is overwritten too. */
bool target_python_alive(const uint8_t *object)
{
	uint64_t references;

	memcpy(&references, object, sizeof(references));
	/* Above the lower half 3.14 has an overflow counter and then flags. */
	return (uint32_t)references && !(references >> 32 & 0xffff);
}

int target_python_code(const struct target_python *py, uint64_t address,
		       uint8_t ret_code[PYTHON_CODE_BYTES])
{
	/* What follows the line table is not needed, and may not exist. */
	size_t bytes = py->linetable + 8UL;
	uint64_t type;

	memset(ret_code, 0, PYTHON_CODE_BYTES);
	if (target_memory_read(py->pid, address, ret_code, bytes))
		return -EFAULT;
	memcpy(&type, ret_code + 8, sizeof(type));
	if (py->code_type && type != py->code_type)
		return -EBADMSG;
	return target_python_alive(ret_code) ? 0 : -EBADMSG;
}

/* Appends a character as UTF-8. False if there is no room. */
static bool put_utf8(char *to, size_t room, size_t *at, uint32_t c)
{
	unsigned char out[4];
	size_t nr = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || !c) {
		c = 0xfffd;
		nr = 3;
	}
	if (*at + nr >= room)
		return false;
	for (size_t i = nr; i-- > 1; c >>= 6)
		out[i] = (unsigned char)(0x80 | (c & 0x3f));
	out[0] = (unsigned char)(nr == 1 ? c : (0xf00 >> nr & 0xff) | c);
	memcpy(to + *at, out, nr);
	*at += nr;
	return true;
}

int target_python_text(const struct target_python *py, uint64_t address, char *to, size_t bytes)
{
	CLEANUP(cleanup_free) uint8_t *data = NULL;
	uint8_t head[40];
	uint64_t length;
	uint32_t state, kind;
	size_t at = 0;

	if (target_memory_read(py->pid, address, head, sizeof(head)))
		return -EFAULT;
	memcpy(&length, head + 16, sizeof(length));
	memcpy(&state, head + 32, sizeof(state));
	kind = state >> 2 & 7;
	/* Neither compact nor of a known width: not a text that code objects use. */
	if (!(state & 32) || !(kind == 1 || kind == 2 || kind == 4) || length >> 40)
		return -EBADMSG;
	if (length > bytes)
		length = bytes;
	data = malloc(length * kind + 1);
	if (!data)
		return -ENOMEM;
	if (target_memory_read(py->pid,
			       address + (state & 64 ? py->ascii_bytes : py->compact_bytes), data,
			       length * kind))
		return -EFAULT;
	for (size_t i = 0; i < length; i++) {
		uint32_t c = 0;

		memcpy(&c, data + i * kind, kind);
		if (!put_utf8(to, bytes, &at, c))
			break;
	}
	to[at] = '\0';
	return 0;
}

/* ---- whether it is true ---- */

static uint64_t word_at(const struct target_python *py, uint64_t address, bool *ok)
{
	uint64_t word = 0;

	if (target_memory_read(py->pid, address, &word, sizeof(word)))
		*ok = false;
	return word;
}

static bool is_code(struct target_python *py, uint64_t address)
{
	uint8_t code[PYTHON_CODE_BYTES];
	uint64_t filename, name, type;
	char text[256];
	int32_t line;
	bool ok = true;

	if (target_python_code(py, address, code))
		return false;
	memcpy(&filename, code + py->filename, sizeof(filename));
	memcpy(&name, code + py->name, sizeof(name));
	memcpy(&line, code + py->firstlineno, sizeof(line));
	memcpy(&type, code + 8, sizeof(type));
	if (line < 0 || target_python_text(py, filename, text, sizeof(text)) || !text[0] ||
	    target_python_text(py, name, text, sizeof(text)) || !text[0])
		return false;
	if (!py->code_type) {
		uint64_t type_name = word_at(py, type + TYPE_NAME, &ok);
		uint64_t dealloc = word_at(py, type + TYPE_DEALLOC, &ok);

		if (!ok || target_memory_read(py->pid, type_name, text, 5) ||
		    memcmp(text, "code", 5))
			return false;
		py->code_type = type;
		py->code_dealloc = dealloc;
	}
	return true;
}

/* Counts the functions that the frames from this one on belong to; -1 if one is not a frame. */
static long count_frames(struct target_python *py, uint64_t frame)
{
	uint8_t chunk[GP_PYTHON_FRAME_BYTES] = {0};
	uint64_t code, back;
	long nr = 0;

	for (long i = 0; frame; i++, frame = back) {
		const struct gp_python *w = &py->walk;

		if (i == DEPTH_MAX ||
		    target_memory_read(py->pid, frame + w->frame_at, chunk, w->frame_bytes))
			return -1;
		memcpy(&code, chunk + w->frame_code, sizeof(code));
		memcpy(&back, chunk + w->frame_back, sizeof(back));
		if (w->frame_owner != GP_PYTHON_NO_FIELD &&
		    chunk[w->frame_owner] >= GP_PYTHON_OWNER_INTERPRETER)
			continue;
		if (!is_code(py, code & w->code_mask))
			return -1;
		nr++;
	}
	return nr;
}

/* Tries all threads once: -1 nothing readable, 0 no thread runs a function, else the number of
 * frames that lead to code, in the thread with most of them. */
static long try_threads(struct target_python *py)
{
	const struct gp_python *w = &py->walk;
	bool ok = true;
	uint64_t interp = word_at(py, w->interpreters, &ok);
	long best = 0;

	for (int i = 0; ok && interp && i < INTERPRETERS_MAX; i++) {
		uint64_t state = word_at(py, interp + w->interp_threads, &ok);

		for (int k = 0; ok && state && k < THREADS_MAX; k++) {
			uint64_t frame = word_at(py, state + w->state_frame, &ok);
			long nr;

			if (ok && w->has_cframe)
				frame = word_at(py, frame + w->cframe_frame, &ok);
			nr = ok ? count_frames(py, frame) : -1;
			if (nr > best)
				best = nr;
			state = word_at(py, state + 8, &ok);
		}
		interp = word_at(py, interp + w->interp_next, &ok);
	}
	return ok || best ? best : -1;
}

int target_python_find(const struct target_process *p, struct reason *why,
		       struct target_python *ret_python)
{
	const struct timespec pause = {.tv_nsec = LOOK_PAUSE_NS};
	struct target_python py;
	struct runtime rt = {0};
	bool ok = true;
	int err;

	if (!find_runtime(p, &rt))
		return reason_set(why, -ENOENT, "there is no CPython in %d", (int)p->pid);
	err = find_offsets(p, &rt, why, &py);
	if (err)
		return err;
	if (!word_at(&py, py.walk.interpreters, &ok) || !ok)
		return reason_set(why, -EAGAIN, "the Python in %d has not started", (int)p->pid);
	for (int i = 0; i < LOOKS; i++) {
		if (try_threads(&py) > 0) {
			*ret_python = py;
			return 0;
		}
		(void)nanosleep(&pause, NULL);
	}
	return reason_set(why, -EBADMSG,
			  "no stack can be found in the Python 3.%u of %d: it may be an unusual "
			  "build, or no thread runs Python",
			  py.minor, (int)p->pid);
}
