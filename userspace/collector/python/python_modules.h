/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The nn.Module calls that the calling thread is in: the frames of the function behind
 * Module.__call__ in torch/nn/modules/module.py, whose first local variable is the module. Its code
 * objects are recognized by name and file, which are read once for each code object.
 */
#ifndef GP_COLLECTOR_PYTHON_PYTHON_MODULES_H
#define GP_COLLECTOR_PYTHON_PYTHON_MODULES_H

#include "collector/python/python.h"

#include <stdbool.h>
#include <stdint.h>

/* One call that is open now. */
struct python_module {
	uint64_t frame;	 /* address of its frame */
	uint64_t object; /* address of the module */
	uint64_t type;	 /* address of the name of the module's type */
	/* Distinguishes two calls of one module: up to 3.13 always. From 3.14 on, calls in a row
	 * with equal arguments look like one if no variable of the frames around has changed. */
	uint64_t call;
};

struct python_modules {
	uint32_t nr;
	bool cut; /* calls are missing: too many of them, or too many frames */
	struct python_module calls[GP_MODULE_DEPTH]; /* innermost first */
};

#define PYTHON_CODES 1024 /* a power of two */

/* A cache of code objects' kinds. All zero at first, except for the types. */
struct python_codes {
	uint64_t dict_type;	      /* address of PyDict_Type */
	uint64_t cell_type;	      /* address of PyCell_Type */
	uint64_t known[PYTHON_CODES]; /* by hash: its upper bits and the code's kind */
};

/* Walks outwards from a frame. False: a frame could not be read. */
bool python_modules(const struct gp_python *py, struct python_codes *codes, uint64_t frame,
		    enum python_reads reads, struct python_modules *ret_modules);

/* Whether two walks found the same. */
bool python_modules_equal(const struct python_modules *a, const struct python_modules *b);

#endif /* GP_COLLECTOR_PYTHON_PYTHON_MODULES_H */
