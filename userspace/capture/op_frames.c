/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names as the probes have them: the schema texts of the file in which the function lies tell the
 * overload from the name.
 */
#include "capture/op_frames.h"

#include "wire.h"

#include <errno.h>
#include <stdio.h>

void op_frames__done(struct op_frames *o)
{
	for (size_t i = 0; i < o->modules.nr; i++)
		op_names__done(&o->modules.items[i].names);
	vec_done(&o->modules);
}

/* NULL: out of memory. A file that cannot be read has no names. */
static const struct op_names *names_of(struct op_frames *o, const struct native_place *place)
{
	struct op_module fresh = {.module = place->module};

	for (size_t i = 0; i < o->modules.nr; i++)
		if (o->modules.items[i].module == place->module)
			return &o->modules.items[i].names;
	if (place->open_path && op_names__read(&fresh.names, place->open_path) == -ENOMEM) {
		op_names__done(&fresh.names);
		return NULL;
	}
	if (vec_push(&o->modules, fresh)) {
		op_names__done(&fresh.names);
		return NULL;
	}
	return &o->modules.items[o->modules.nr - 1].names;
}

static int set_op(struct op_frames *o, struct stacks *s, uint32_t frame, const char *name,
		  const char *overload, uint32_t scope)
{
	int64_t id = names__number(o->names, name, overload);

	if (id < 0)
		return id == -ENOSPC ? 0 : (int)id;
	stacks__set_op(s, frame, (uint32_t)id, scope);
	return 0;
}

int op_frames__note(struct op_frames *o, struct stacks *s, uint32_t frame,
		    const struct native_place *place)
{
	const struct op_names *names;
	const struct op_name *known;
	const char *text;
	char name[320];
	size_t bytes;

	if (!o->names || !place->symbol)
		return 0;
	if (!node_frame_parse(place->symbol, name, sizeof(name)))
		return set_op(o, s, frame, name, "", GP_SCOPE_BACKWARD);
	if (op_frame_parse(place->symbol, &text, &bytes))
		return 0;
	names = names_of(o, place);
	if (!names)
		return -ENOMEM;
	known = op_names__find(names, text, bytes);
	(void)snprintf(name, sizeof(name), "aten::%.*s", (int)bytes, text);
	return set_op(o, s, frame, known && known->name ? known->name : name,
		      known && known->name ? known->overload : "", GP_SCOPE_FUNCTION);
}
