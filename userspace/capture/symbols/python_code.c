/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Code objects by address. Each is read between two readings of its checksum: one that changed
 * meanwhile is dropped.
 */
#include "capture/symbols/python_code.h"

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"
#include "inspect/access/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CODES_MAX	 (1U << 20)
#define TABLE_BYTES_MAX	 (1U << 20)  /* of one line table */
#define TABLES_BYTES_MAX (64U << 20) /* of all */
#define TEXT_BYTES	 1024

struct code {
	uint32_t check;
	int32_t first_line;
	const char *file;
	const char *function;
	uint8_t *table;
	size_t table_bytes;
};

struct python_codes {
	struct target_python python;
	struct intern *texts;
	struct hash code_of;  /* address -> index of the one that was there last */
	struct hash frame_of; /* see python_codes__frames() */
	VEC(struct code) codes;
	size_t tables_bytes;
};

struct python_codes *python_codes__new(const struct target_python *python)
{
	struct python_codes *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->python = *python;
	c->texts = intern__new();
	if (!c->texts) {
		free(c);
		return NULL;
	}
	return c;
}

void python_codes__free(struct python_codes *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->codes.nr; i++)
		free(c->codes.items[i].table);
	vec_done(&c->codes);
	hash__done(&c->code_of);
	hash__done(&c->frame_of);
	intern__free(c->texts);
	free(c);
}

const struct target_python *python_codes__python(const struct python_codes *c)
{
	return &c->python;
}

struct hash *python_codes__frames(struct python_codes *c)
{
	return &c->frame_of;
}

static int read_text(struct python_codes *c, const uint8_t *code, uint16_t at,
		     const char **ret_text)
{
	char text[TEXT_BYTES];
	uint64_t address;

	memcpy(&address, code + at, sizeof(address));
	if (target_python_text(&c->python, address, text, sizeof(text)))
		return -ENOENT;
	*ret_text = intern__str(c->texts, text);
	return *ret_text ? 0 : -ENOMEM;
}

/* The bytes object of the line table: references, type, its length, a hash, then the bytes. It goes
 * before its code object does, and its place may be another one's by then. */
static int read_table(struct python_codes *c, const uint8_t *code, struct code *to)
{
	CLEANUP(cleanup_free) uint8_t *table = NULL;
	uint64_t address, bytes, head[3], after[3];

	memcpy(&address, code + c->python.linetable, sizeof(address));
	if (target_memory_read(c->python.pid, address, head, sizeof(head)) ||
	    !target_python_alive((const uint8_t *)head) || head[2] > TABLE_BYTES_MAX)
		return -ENOENT;
	bytes = head[2];
	if (bytes > TABLES_BYTES_MAX - c->tables_bytes)
		return -ENOSPC;
	table = malloc(bytes + 1);
	if (!table)
		return -ENOMEM;
	if (target_memory_read(c->python.pid, address + 32, table, bytes) ||
	    target_memory_read(c->python.pid, address, after, sizeof(after)) ||
	    !target_python_alive((const uint8_t *)after) || memcmp(head + 1, after + 1, 16))
		return -ENOENT;
	to->table = TAKE(table);
	to->table_bytes = bytes;
	return 0;
}

/* Whether what is taken from a code object is the same in both: one that is just being made has
 * the one before's checksum until the end. */
static bool is_same(const struct target_python *py, const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a + py->linetable, b + py->linetable, 8) &&
	       !memcmp(a + py->filename, b + py->filename, 8) &&
	       !memcmp(a + py->name, b + py->name, 8) &&
	       !memcmp(a + py->firstlineno, b + py->firstlineno, 4);
}

static int read_code(struct python_codes *c, const struct gp_stack_frame *frame, struct code *to)
{
	uint8_t code[PYTHON_CODE_BYTES], again[PYTHON_CODE_BYTES];
	int err;

	if (target_python_code(&c->python, frame->code, code) ||
	    target_python_check(&c->python, code) != frame->check)
		return -ENOENT;
	to->check = frame->check;
	memcpy(&to->first_line, code + c->python.firstlineno, sizeof(to->first_line));
	err = read_text(c, code, c->python.filename, &to->file);
	err = err ? err : read_text(c, code, c->python.name, &to->function);
	err = err ? err : read_table(c, code, to);
	if (err)
		return err;
	if (target_python_code(&c->python, frame->code, again) ||
	    target_python_check(&c->python, again) != frame->check ||
	    !is_same(&c->python, code, again)) {
		free(TAKE(to->table));
		return -ENOENT;
	}
	return 0;
}

static int find_code(struct python_codes *c, const struct gp_stack_frame *frame, uint32_t *ret_code)
{
	const uint64_t *known = hash__find(&c->code_of, frame->code);
	struct code code = {0};
	int err;

	if (known && c->codes.items[*known].check == frame->check) {
		*ret_code = (uint32_t)*known;
		return 0;
	}
	if (c->codes.nr >= CODES_MAX)
		return -ENOSPC;
	err = read_code(c, frame, &code);
	if (err)
		return err;
	c->tables_bytes += code.table_bytes;
	if (vec_push(&c->codes, code)) {
		free(code.table);
		return -ENOMEM;
	}
	*ret_code = (uint32_t)c->codes.nr - 1;
	return hash__set(&c->code_of, frame->code, *ret_code);
}

int python_codes__place(struct python_codes *c, const struct gp_stack_frame *frame,
			struct python_place *ret_place)
{
	const struct code *code;
	uint32_t index;
	int err = find_code(c, frame, &index);

	if (err)
		return err;
	code = &c->codes.items[index];
	*ret_place = (struct python_place){
		.code = index,
		.file = code->file,
		.function = code->function,
		.first_line = code->first_line > 0 ? (uint32_t)code->first_line : 0,
		.line = python_line(c->python.minor, code->table, code->table_bytes,
				    code->first_line, frame->lasti),
	};
	return 0;
}
