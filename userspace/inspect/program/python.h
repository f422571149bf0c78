/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Where the CPython of a process keeps its thread states, frames and code objects. From 3.13 on the
 * interpreter says so itself; for 3.8 to 3.12 there are tables, of the ordinary builds of those
 * versions on 64-bit machines. Either is believed only once it has led from the interpreter to
 * code objects that read like ones.
 */
#ifndef GP_INSPECT_PROGRAM_PYTHON_H
#define GP_INSPECT_PROGRAM_PYTHON_H

#include "inspect/process/process.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes from the beginning of a code object that hold all its fields. */
#define PYTHON_CODE_BYTES 256

struct target_python {
	pid_t pid;
	unsigned int minor;    /* of 3.minor */
	struct gp_python walk; /* for the kernel's programs */
	uint64_t code_type;    /* address of the type that every code object names */
	uint64_t code_dealloc; /* address of the function through which each one is freed */
	/* Within a code object. `name` is the qualified name where there is one. */
	uint16_t filename, name, firstlineno, linetable;
	/* Where a text's characters begin: of an ASCII one, and of others. */
	uint16_t ascii_bytes, compact_bytes;
};

/* Finds and checks all of it. 0; -ENOENT: no CPython in the process; -EAGAIN: there is one that has
 * not begun to run functions; -ENOTSUP: a build whose stacks cannot be walked; -EBADMSG: what was
 * found does not lead to stacks. Each with a reason. */
int target_python_find(const struct target_process *p, struct reason *why,
		       struct target_python *ret_python);

/* The tables alone: all that follows from the version, 3.8 to 3.12. False: there is none. */
bool target_python_table(unsigned int minor, struct target_python *ret_python);

/* A text object as UTF-8, cut to the buffer. 0, -EFAULT or -EBADMSG. */
int target_python_text(const struct target_python *py, uint64_t address, char *to, size_t bytes);

/* The checksum that the kernel's walk takes of a code object. */
uint32_t target_python_check(const struct target_python *py, const uint8_t code[PYTHON_CODE_BYTES]);

/* Whether an object that begins with these 8 bytes can be a living one. */
bool target_python_alive(const uint8_t *object);

/* Reads the code object at `address`: PYTHON_CODE_BYTES or as many as there are, zeros behind them.
 * 0, -EFAULT, or -EBADMSG if it is none or has been freed. */
int target_python_code(const struct target_python *py, uint64_t address,
		       uint8_t ret_code[PYTHON_CODE_BYTES]);

#endif /* GP_INSPECT_PROGRAM_PYTHON_H */
