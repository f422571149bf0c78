/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which calls of nn.Modules the calling thread is in: the frames of torch/nn/modules/module.py's
 * function behind Module.__call__, whose first local variable is the module. Its code is known by
 * its name and file, which are looked at once for each code object.
 */
#ifndef GP_COLLECTOR_PYTHON_PYTHON_MODULES_H
#define GP_COLLECTOR_PYTHON_PYTHON_MODULES_H

#include "collector/python/python.h"

#include <stdbool.h>
#include <stdint.h>

/* One call, now open. */
struct python_module {
	uint64_t frame;	 /* address of its frame */
	uint64_t object; /* address of the module */
	uint64_t type;	 /* address of the name of the module's type */
	/* Differs between two calls, if anything does that is known to: up to 3.13 always. From
	 * 3.14 on calls of one module with equal arguments, one after the other, from frames none
	 * of whose variables has changed meanwhile, look like one. */
	uint64_t call;
};

struct python_modules {
	uint32_t nr;
	bool cut; /* there are more, or more frames than are looked at: those are missing */
	struct python_module calls[GP_MODULE_DEPTH]; /* innermost first */
};

#define PYTHON_CODES 1024 /* a power of two */

/* What is known of code objects. All zero at first, but for the types. */
struct python_codes {
	uint64_t dict_type;	      /* address of PyDict_Type */
	uint64_t cell_type;	      /* and of PyCell_Type */
	uint64_t known[PYTHON_CODES]; /* by hash: its upper bits and what the code is */
};

/* Walks from a frame outwards. False: something could not be read. */
bool python_modules(const struct gp_python *py, struct python_codes *codes, uint64_t frame,
		    enum python_reads reads, struct python_modules *ret_modules);

/* Whether two walks found the same. */
bool python_modules_equal(const struct python_modules *a, const struct python_modules *b);

#endif /* GP_COLLECTOR_PYTHON_PYTHON_MODULES_H */
