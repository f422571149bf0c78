/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Demangling by libiberty, which hands its text over piece by piece. A few bytes of a mangled name
 * can stand for gigabytes (each back reference may double what is before it), and the names come
 * from the target: so the text has a limit, and where it is reached the demangler is left by
 * longjmp(). It holds nothing then: with a callback it keeps all it needs on the stack (but for one
 * identifier of a Rust name that is not ASCII, which is lost: less than the name's four-fold). That
 * is why it is libiberty and not the C++ library's __cxa_demangle(), the same code without a limit.
 * It also links statically, so that gpuprof needs no C++ library.
 */
#include "base/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/banned.h"

#define NAME_BYTES_MAX 4096
#define TEXT_BYTES_MAX 16384

struct text {
	struct buf *out;
	size_t begin;
	jmp_buf too_long;
};

static void add(const char *piece, size_t bytes, void *arg)
{
	struct text *text = arg;

	if (bytes > TEXT_BYTES_MAX - (text->out->nr - text->begin))
		longjmp(text->too_long, 1);
	buf__add(text->out, piece, bytes);
}

static void take_back(struct buf *out, size_t begin)
{
	if (out->nr == begin)
		return;
	out->nr = begin;
	out->bytes[begin] = '\0';
}

/* Rust's older names are C++'s with a hash behind them, so Rust comes first. */
static bool demangle_any(const char *name, struct text *text)
{
	/* The demangler's own limit of recursion refuses names of more than 1024 bytes; functions
	 * have longer ones. It recurses at most once a byte. */
	int options = DMGL_PARAMS | DMGL_TYPES | DMGL_NO_RECURSE_LIMIT;

	return rust_demangle_callback(name, DMGL_PARAMS, add, text) ||
	       (name[1] == 'Z' && cplus_demangle_v3_callback(name, options, add, text));
}

bool demangle(struct buf *out, const char *name)
{
	struct text text = {.out = out, .begin = out->nr};

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') ||
	    strnlen(name, NAME_BYTES_MAX + 1) > NAME_BYTES_MAX)
		return false;
	if (setjmp(text.too_long) || !demangle_any(name, &text)) {
		take_back(out, text.begin);
		return false;
	}
	return true;
}

void demangle_or_keep(struct buf *out, const char *name)
{
	if (!demangle(out, name))
		buf__str(out, name);
}
