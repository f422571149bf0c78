/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Everything that events refer to by number: names, inputs of operators, stacks, kernels. One set
 * of tables serves all recordings of a capture.
 */
#ifndef GP_CAPTURE_SYMBOLS_SYMBOL_TABLES_H
#define GP_CAPTURE_SYMBOLS_SYMBOL_TABLES_H

#include "capture/core/options.h"
#include "capture/symbols/file_users.h"
#include "capture/symbols/inputs.h"
#include "capture/symbols/kernels.h"
#include "capture/symbols/names.h"
#include "capture/symbols/native_stacks.h"
#include "capture/symbols/stacks.h"

struct symbol_tables {
	struct names names;
	struct inputs_ids inputs;
	struct stacks stacks;
	struct native_stacks native_stacks;
	struct kernels kernels;
	uint32_t thread_stacks_nr; /* that python_threads_write() has read */
};

/* `t` is all zero and does not move afterwards. `segments`: the recordings that are open, borrowed.
 * 0 or -ENOMEM; symbol_tables__done() either way. */
int symbol_tables__init(struct symbol_tables *t, const struct segments *segments,
			const struct capture_options *options);
void symbol_tables__done(struct symbol_tables *t);

/* A recording begins: lets go of what nobody uses any more. 0 or -errno. */
int symbol_tables__poll(struct symbol_tables *t, const struct file_users *users,
			const struct capture_options *options);

/* Nothing more comes from this source: forgets its ids, not what they stood for. */
void symbol_tables__forget(struct symbol_tables *t, uint32_t source);

#endif /* GP_CAPTURE_SYMBOLS_SYMBOL_TABLES_H */
