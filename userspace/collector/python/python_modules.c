/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Two calls of one module are distinguished by what each call creates anew. Up to Python 3.13 that
 * is the dictionary of its keyword arguments, which has a version number that is never reused.
 * Later versions have no such number. There, the variables of the frames around a call do not
 * change while it goes on, so a changed variable means another call.
 */
#include "collector/python/python_modules.h"

#include "collector/python/python_read.h"
#include "collector/runtime/compat.h"

#include <string.h>

#define FRAMES_MAX 1024

enum code_kind { CODE_OTHER = 0, CODE_CALL = 1, CODE_INNER_CALL = 2 };
#define KIND_MASK 3ULL

/* ---- code ---- */

/* Copies the end of an ASCII text, at most `most` bytes. Returns how many; 0: it cannot be read.
 * Always a checked read, because each text is read only once. */
static size_t text_end(const struct gp_python *py, uint64_t text, char *to, size_t most)
{
	uint64_t bytes, nr;

	if (!python_checked_read(text + 16, &bytes, sizeof(bytes)) || bytes > 4096)
		return 0;
	nr = bytes < most ? bytes : most;
	return python_checked_read(text + py->text_bytes + bytes - nr, to, nr) ? nr : 0;
}

static bool ends_in(const char *text, size_t nr, const char *end)
{
	size_t end_nr = strlen(end);

	return nr >= end_nr && !memcmp(text + nr - end_nr, end, end_nr);
}

/* A qualified name begins with the class and a dot. */
static bool is_named(const char *text, size_t nr, const char *name)
{
	size_t name_nr = strlen(name);

	return ends_in(text, nr, name) && (nr == name_nr || text[nr - name_nr - 1] == '.');
}

/* Since PyTorch 2.1 _wrapped_call_impl calls _call_impl. */
static enum code_kind kind_of(const struct gp_python *py, uint64_t code, uint64_t name)
{
	char text[48];
	enum code_kind kind;
	uint64_t file;
	size_t nr = text_end(py, name, text, sizeof(text));

	if (is_named(text, nr, "_wrapped_call_impl"))
		kind = CODE_CALL;
	else if (is_named(text, nr, "_call_impl"))
		kind = CODE_INNER_CALL;
	else
		return CODE_OTHER;
	if (!python_checked_read(code + py->code_file, &file, sizeof(file)))
		return CODE_OTHER;
	nr = text_end(py, file, text, sizeof(text));
	return ends_in(text, nr, "/torch/nn/modules/module.py") ? kind : CODE_OTHER;
}

static inline bool find_kind(const struct gp_python *py, struct python_codes *codes, uint64_t code,
			     enum python_reads reads, enum code_kind *ret_kind)
{
	uint64_t name, key, known, *slot;

	if (!read_word(reads, code + py->code_name, &name))
		return false;
	key = gp_python_mix(gp_python_mix(0, code), name);
	slot = &codes->known[key & (PYTHON_CODES - 1)];
	key &= ~KIND_MASK;
	known = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if (__builtin_expect((known & ~KIND_MASK) != key, 0)) {
		known = key | kind_of(py, code, name);
		__atomic_store_n(slot, known, __ATOMIC_RELAXED);
	}
	*ret_kind = (enum code_kind)(known & KIND_MASK);
	return true;
}

/* ---- calls ---- */

/* Reads the variables: self, the positional and the keyword arguments. A variable that an inner
 * function uses lies in a cell; up to 3.10 cells are elsewhere, and it is 0. */
static bool read_variables(const struct gp_python *py, const struct python_codes *codes,
			   uint64_t frame, enum python_reads reads, uint64_t ret_variables[3])
{
	uint64_t copy[3], type;
	const void *at = read_target(reads, frame + py->frame_locals, sizeof(copy), copy);

	if (!at)
		return false;
	memcpy(ret_variables, at, sizeof(copy));
	for (int i = 0; i < 3; i++) {
		uint64_t *v = &ret_variables[i];

		*v &= ~PYTHON_TAG_BITS;
		if (*v && read_word(reads, *v + 8, &type) && type == codes->cell_type &&
		    !read_word(reads, *v + 16, v))
			return false;
	}
	return true;
}

/* Computes what distinguishes the call, as far as its own frame shows it. False: it cannot be
 * read. */
static bool identify(const struct gp_python *py, const struct python_codes *codes,
		     const uint64_t variables[3], enum python_reads reads, uint64_t *ret_call)
{
	uint64_t call = gp_python_mix(gp_python_mix(0, variables[0]), variables[2]);
	uint64_t type, version = 0;

	*ret_call = call;
	/* Hooks may replace the positional arguments during the call. */
	if (!py->dict_version)
		*ret_call = gp_python_mix(call, variables[1]);
	else if (read_word(reads, variables[2] + 8, &type) && type == codes->dict_type &&
		 !read_word(reads, variables[2] + py->dict_version, &version))
		return false;
	*ret_call = gp_python_mix(*ret_call, version);
	return true;
}

/* Reads the call of a frame; its object is 0 if the frame does not hold it. False: it cannot be
 * read. */
static bool read_call(const struct gp_python *py, const struct python_codes *codes, uint64_t frame,
		      enum python_reads reads, struct python_module *ret_call)
{
	uint64_t variables[3], type;

	*ret_call = (struct python_module){.frame = frame};
	if (!read_variables(py, codes, frame, reads, variables))
		return false;
	if (!variables[0])
		return true;
	ret_call->object = variables[0];
	return read_word(reads, variables[0] + 8, &type) &&
	       read_word(reads, type + 24, &ret_call->type) &&
	       ret_call->type - ADDRESS_MIN < ADDRESS_END - ADDRESS_MIN &&
	       identify(py, codes, variables, reads, &ret_call->call);
}

/* ---- the walk ---- */

/* Whether `call` is the frame of Module.__call__ right around its own inner function: those two
 * are one call. */
static bool is_around(const struct python_module *inner, const struct python_module *call,
		      enum code_kind inner_kind)
{
	return inner_kind == CODE_INNER_CALL && inner->object == call->object;
}

struct walk {
	const struct gp_python *py;
	struct python_codes *codes;
	struct python_modules *found;
	enum code_kind last_kind; /* that of the last call found */
};

static inline __attribute__((always_inline)) bool take_frame(struct walk *w, uint64_t frame,
							     uint64_t code, enum python_reads reads)
{
	struct python_modules *m = w->found;
	enum code_kind kind;
	struct python_module call;

	if (!find_kind(w->py, w->codes, code, reads, &kind))
		return false;
	if (!w->py->dict_version && m->nr &&
	    !python_add_variables(w->py, frame, code, reads, &m->calls[m->nr - 1].call))
		return false;
	if (__builtin_expect(kind == CODE_OTHER, 1))
		return true;
	if (!read_call(w->py, w->codes, frame, reads, &call))
		return false;
	if (!call.object)
		return true;
	if (kind == CODE_CALL && m->nr && is_around(&m->calls[m->nr - 1], &call, w->last_kind))
		m->nr--;
	if (m->nr == GP_MODULE_DEPTH) {
		m->cut = true;
		return true;
	}
	m->calls[m->nr++] = call;
	w->last_kind = kind;
	return true;
}

static inline __attribute__((always_inline)) bool walk(struct walk *w, uint64_t frame,
						       enum python_reads reads)
{
	const struct gp_python *py = w->py;
	uint64_t copy[GP_PYTHON_FRAME_BYTES / 8];
	const unsigned char *at;

	for (int i = 0; frame; i++) {
		if (i == FRAMES_MAX) {
			w->found->cut = true;
			return true;
		}
		at = read_target(reads, frame + py->frame_at, py->frame_bytes, copy);
		if (!at ||
		    (is_function(py, at) &&
		     !take_frame(w, frame, field(at, py->frame_code) & py->code_mask, reads)))
			return false;
		frame = field(at, py->frame_back);
	}
	return true;
}

bool python_modules(const struct gp_python *py, struct python_codes *codes, uint64_t frame,
		    enum python_reads reads, struct python_modules *ret_modules)
{
	struct walk w = {.py = py, .codes = codes, .found = ret_modules};

	ret_modules->nr = 0;
	ret_modules->cut = false;
	return reads == PYTHON_CHECKED ? walk(&w, frame, PYTHON_CHECKED)
				       : walk(&w, frame, PYTHON_PLAIN);
}

bool python_modules_equal(const struct python_modules *a, const struct python_modules *b)
{
	return a->nr == b->nr && a->cut == b->cut &&
	       !memcmp(a->calls, b->calls, a->nr * sizeof(a->calls[0]));
}
