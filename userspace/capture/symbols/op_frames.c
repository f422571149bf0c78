/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names as the probes have them: the schema texts of the file in which the function lies tell the
 * overload from the name.
 */
#include "capture/symbols/op_frames.h"

#include "common/clock.h"
#include "inspect/elf/elf.h"
#include "wire.h"

#include <errno.h>
#include <stdio.h>

void op_frames__done(struct op_frames *o)
{
	for (size_t i = 0; i < o->modules.nr; i++)
		op_names__done(&o->modules.items[i].names);
	vec_done(&o->modules);
}

void op_frames__poll(struct op_frames *o, const struct native_codes *codes)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->modules.nr; i++)
		if (native_codes__has(codes, o->modules.items[i].module))
			o->modules.items[kept++] = o->modules.items[i];
		else
			op_names__done(&o->modules.items[i].names);
	o->modules.nr = kept;
}

/* NULL: out of memory. */
static struct op_module *module_of(struct op_frames *o, const struct native_place *place)
{
	struct op_module fresh = {.module = place->module, .is_read = !place->open_path};

	for (size_t i = 0; i < o->modules.nr; i++)
		if (o->modules.items[i].module == place->module)
			return &o->modules.items[i];
	return vec_push(&o->modules, fresh) ? NULL : &o->modules.items[o->modules.nr - 1];
}

int op_frames__read(struct op_frames *o, struct native_place *place)
{
	struct op_module *m;
	const char *text;
	size_t bytes;
	int err;

	if (!o->names || !place->symbol || op_frame_parse(place->symbol, &text, &bytes))
		return 0;
	m = module_of(o, place);
	if (!m)
		return -ENOMEM;
	if (!m->is_read && clock_now_ns() >= m->again_ns) {
		err = op_names__read(&m->names, place->open_path);
		m->is_read = !err || elf_error_stays(err);
		m->again_ns = clock_now_ns() + SECOND_NS;
		if (err)
			op_names__done(&m->names);
		if (err == -ENOMEM)
			return err;
	}
	place->unread |= !m->is_read;
	return 0;
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
	const struct op_name *known;
	const struct op_module *m;
	const char *text;
	char name[320];
	size_t bytes;

	if (!o->names || !place->symbol || place->unread)
		return 0;
	if (!node_frame_parse(place->symbol, name, sizeof(name)))
		return set_op(o, s, frame, name, "", GP_SCOPE_BACKWARD);
	if (op_frame_parse(place->symbol, &text, &bytes))
		return 0;
	m = module_of(o, place);
	if (!m)
		return -ENOMEM;
	known = op_names__find(&m->names, text, bytes);
	(void)snprintf(name, sizeof(name), "aten::%.*s", (int)bytes, text);
	return set_op(o, s, frame, known && known->name ? known->name : name,
		      known && known->name ? known->overload : "", GP_SCOPE_FUNCTION);
}
