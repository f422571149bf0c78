/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds where a process's CPython keeps its thread states, frames and code objects. Since 3.13 the
 * interpreter describes itself; for 3.8 to 3.12 there are tables for the ordinary builds on 64-bit
 * machines. Either is used only after it has led from the interpreter to code objects that look
 * valid.
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
	/* Where the characters of a text begin: in an ASCII text, and in others. */
	uint16_t ascii_bytes, compact_bytes;
};

/* Finds and checks everything. 0; -ENOENT: no CPython in the process; -EAGAIN: it has not begun to
 * run functions; -ENOTSUP: a build whose stacks cannot be walked; -EBADMSG: what was found does not
 * lead to stacks. Each with a reason. */
int target_python_find(const struct target_process *p, struct reason *why,
		       struct target_python *ret_python);

/* Fills in the table of a version, 3.8 to 3.12. False: there is none. */
bool target_python_table(unsigned int minor, struct target_python *ret_python);

/* Reads a text object as UTF-8, cut to the buffer. 0, -EFAULT or -EBADMSG. */
int target_python_text(const struct target_python *py, uint64_t address, char *to, size_t bytes);

/* Computes the checksum that the kernel's walk computes of a code object. */
uint32_t target_python_check(const struct target_python *py, const uint8_t code[PYTHON_CODE_BYTES]);

/* Whether an object that begins with these 8 bytes can be alive. */
bool target_python_alive(const uint8_t *object);

/* Reads the code object at `address`: up to PYTHON_CODE_BYTES, filled up with zeros. 0, -EFAULT, or
 * -EBADMSG if it is no code object or was freed. */
int target_python_code(const struct target_python *py, uint64_t address,
		       uint8_t ret_code[PYTHON_CODE_BYTES]);

#endif /* GP_INSPECT_PROGRAM_PYTHON_H */
