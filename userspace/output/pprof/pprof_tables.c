/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See pprof.h.
 */
#include "output/pprof/pprof.h"

#include "output/format/protobuf_encode.h"
#include "output/format/stack_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"

#include "profile.pb-c.h"

struct pprof_tables {
	const struct recording *recording;
	struct intern *intern;
	struct buf scratch;
	struct hash text_of; /* interned text -> its position */
	struct hash function_of;
	struct hash mapping_of;
	struct hash frame_of;	 /* frame id of the recording -> location */
	struct hash leaf_of;	 /* mapping and text -> location */
	struct hash location_of; /* what is in it, mixed -> location */
	VEC(char *) texts;
	VEC(Pprof__Function) functions;
	VEC(Pprof__Mapping) mappings;
	VEC(Pprof__Location) locations;
	VEC(Pprof__Line) lines; /* those of a location one after the other */
	VEC(size_t) lines_at;	/* of each location its first one */
	VEC(Pprof__Line) scratch_lines;
	int err;
};

int64_t pprof_tables__text(struct pprof_tables *p, const char *text)
{
	const char *kept;
	uint64_t *known;

	buf__clear(&p->scratch);
	buf__line(&p->scratch, text);
	kept = p->scratch.bytes ? intern__get(p->intern, p->scratch.bytes, p->scratch.nr)
				: intern__str(p->intern, "");
	if (!kept || buf__error(&p->scratch)) {
		p->err = -ENOMEM;
		return 0;
	}
	known = hash__find(&p->text_of, (uintptr_t)kept);
	if (known)
		return (int64_t)*known;
	/* protobuf-c wants texts that it could change, and does not. */
	if (hash__set(&p->text_of, (uintptr_t)kept, p->texts.nr) ||
	    vec_push(&p->texts, (char *)(uintptr_t)kept)) {
		p->err = -ENOMEM;
		return 0;
	}
	return (int64_t)p->texts.nr - 1;
}

/* What `key` stands for in `h`, or 0 after entering `next`. */
static uint64_t known_or_next(struct pprof_tables *p, struct hash *h, uint64_t key, uint64_t next)
{
	const uint64_t *known = hash__find(h, key);

	if (known)
		return *known;
	if (hash__set(h, key, next))
		p->err = -ENOMEM;
	return 0;
}

static uint64_t function_of(struct pprof_tables *p, int64_t name, int64_t file)
{
	Pprof__Function f = PPROF__FUNCTION__INIT;
	uint64_t key = (uint64_t)name << 32 | (uint32_t)file;
	uint64_t known = known_or_next(p, &p->function_of, key, p->functions.nr + 1);

	if (known)
		return known;
	f.id = p->functions.nr + 1;
	/* With no name of the system's own readers take it as it is: pprof would make "<module>" of
	 * Python nothing, as it does with the arguments of C++ templates. */
	f.name = name;
	f.filename = file;
	if (vec_push(&p->functions, f))
		p->err = -ENOMEM;
	return f.id;
}

static uint64_t mapping_of(struct pprof_tables *p, const char *file, const char *build_id)
{
	Pprof__Mapping m = PPROF__MAPPING__INIT;
	uint64_t known;

	m.filename = pprof_tables__text(p, file);
	m.build_id = pprof_tables__text(p, build_id);
	known = known_or_next(p, &p->mapping_of, (uint64_t)m.filename << 32 | (uint32_t)m.build_id,
			      p->mappings.nr + 1);
	if (known)
		return known;
	/* Addresses are those of the file; nobody else needs to look for names. */
	m.id = p->mappings.nr + 1;
	m.has_functions = m.has_filenames = m.has_line_numbers = true;
	if (vec_push(&p->mappings, m))
		p->err = -ENOMEM;
	return m.id;
}

/* Its lines are p->scratch_lines. */
static uint64_t add_location(struct pprof_tables *p, uint64_t mapping, uint64_t address)
{
	Pprof__Location l = PPROF__LOCATION__INIT;

	l.id = p->locations.nr + 1;
	l.mapping_id = mapping;
	l.address = address;
	l.n_line = p->scratch_lines.nr;
	if (vec_push(&p->locations, l) || vec_push(&p->lines_at, p->lines.nr))
		p->err = -ENOMEM;
	for (size_t i = 0; i < l.n_line && !p->err; i++)
		p->err = vec_push(&p->lines, p->scratch_lines.items[i]);
	return l.id;
}

static bool has_lines(const struct pprof_tables *p, uint64_t location)
{
	const Pprof__Line *lines = p->lines.items + p->lines_at.items[location - 1];

	if (p->locations.items[location - 1].n_line != p->scratch_lines.nr)
		return false;
	for (size_t i = 0; i < p->scratch_lines.nr; i++)
		if (lines[i].function_id != p->scratch_lines.items[i].function_id ||
		    lines[i].line != p->scratch_lines.items[i].line)
			return false;
	return true;
}

/* That of another recording, perhaps; its lines are p->scratch_lines. */
static uint64_t location_of(struct pprof_tables *p, uint64_t mapping, uint64_t address)
{
	uint64_t key = hash_mix(address ^ mapping << 40);
	const uint64_t *at;

	for (size_t i = 0; i < p->scratch_lines.nr; i++)
		key = hash_mix(key ^ p->scratch_lines.items[i].function_id << 32 ^
			       (uint64_t)p->scratch_lines.items[i].line);
	for (; (at = hash__find(&p->location_of, key)); key++) {
		const Pprof__Location *l = &p->locations.items[*at - 1];

		if (l->mapping_id == mapping && l->address == address && has_lines(p, *at))
			return l->id;
	}
	if (p->err || hash__set(&p->location_of, key, p->locations.nr + 1)) {
		p->err = -ENOMEM;
		return 0;
	}
	return add_location(p, mapping, address);
}

static void add_line(struct pprof_tables *p, const char *function, const char *file,
		     uint32_t number)
{
	Pprof__Line line = PPROF__LINE__INIT;

	line.function_id =
		function_of(p, pprof_tables__text(p, function), pprof_tables__text(p, file));
	line.line = number;
	if (vec_push(&p->scratch_lines, line))
		p->err = -ENOMEM;
}

/* The frame's own is the last of its lines; those before it were put into it by the compiler. */
static void set_lines(struct pprof_tables *p, uint32_t frame, const struct recording_frame *f)
{
	struct buf name = {0};
	size_t nr;
	const struct recording_line *lines = recording__frame_lines(p->recording, frame, &nr);

	p->scratch_lines.nr = 0;
	for (size_t i = 0; i + 1 < nr; i++)
		add_line(p, lines[i].function, lines[i].file, lines[i].line);
	stack_text_function(&name, f);
	add_line(p, name.bytes ? name.bytes : "", f->file, f->line);
	if (buf__error(&name))
		p->err = -ENOMEM;
	buf__done(&name);
}

/* The range of a module is what was seen of it. */
static void widen(struct pprof_tables *p, uint64_t mapping, uint64_t address)
{
	Pprof__Mapping *m = mapping && !p->err ? &p->mappings.items[mapping - 1] : NULL;

	if (m && address >= m->memory_limit)
		m->memory_limit = address + 1 ? address + 1 : address;
}

static const char *mapping_name(const struct recording_frame *f)
{
	/* As pprof knows it from perf. */
	if (f->kind == RECORDING_FRAME_KERNEL && !strcmp(f->module, "[kernel]"))
		return "[kernel.kallsyms]";
	return *f->module ? f->module : "[unknown]";
}

uint64_t pprof_tables__frame(struct pprof_tables *p, uint32_t frame)
{
	const uint64_t *known = hash__find(&p->frame_of, frame);
	struct recording_frame f = recording__frame(p->recording, frame);
	bool python = f.kind == RECORDING_FRAME_PYTHON;
	uint64_t mapping, location;

	if (known)
		return *known;
	mapping = python ? PPROF_PYTHON : mapping_of(p, mapping_name(&f), f.build_id);
	widen(p, mapping, f.address);
	set_lines(p, frame, &f);
	location = location_of(p, mapping, f.address);
	if (hash__set(&p->frame_of, frame, location))
		p->err = -ENOMEM;
	return location;
}

uint64_t pprof_tables__leaf(struct pprof_tables *p, enum pprof_mapping mapping, const char *name)
{
	int64_t text = pprof_tables__text(p, name);
	uint64_t known = known_or_next(p, &p->leaf_of, (uint64_t)mapping << 32 | (uint32_t)text,
				       p->locations.nr + 1);

	if (known)
		return known;
	p->scratch_lines.nr = 0;
	add_line(p, name, "", 0);
	return add_location(p, mapping, 0);
}

void pprof_tables__begin(struct pprof_tables *p, const struct recording *rec)
{
	p->recording = rec;
	hash__done(&p->frame_of);
}

struct pprof_tables *pprof_tables__new(void)
{
	struct pprof_tables *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->intern = intern__new();
	if (!p->intern) {
		free(p);
		return NULL;
	}
	(void)pprof_tables__text(p, "");
	(void)mapping_of(p, "[python]", "");
	(void)mapping_of(p, "[operators]", "");
	(void)mapping_of(p, "[gpu]", "");
	return p;
}

int pprof_tables__error(const struct pprof_tables *p)
{
	return p->err;
}

void pprof_tables__free(struct pprof_tables *p)
{
	if (!p)
		return;
	intern__free(p->intern);
	buf__done(&p->scratch);
	hash__done(&p->text_of);
	hash__done(&p->function_of);
	hash__done(&p->mapping_of);
	hash__done(&p->frame_of);
	hash__done(&p->leaf_of);
	hash__done(&p->location_of);
	vec_done(&p->texts);
	vec_done(&p->functions);
	vec_done(&p->mappings);
	vec_done(&p->locations);
	vec_done(&p->lines);
	vec_done(&p->lines_at);
	vec_done(&p->scratch_lines);
	free(p);
}

/* An array of pointers to the items of a vector, as protobuf-c wants it; NULL: out of memory. */
#define pointers_to(vec)                                                                           \
	({                                                                                         \
		__typeof__((vec)->items) *to_ = malloc(((vec)->nr + 1) * sizeof(*to_));            \
		for (size_t i_ = 0; to_ && i_ < (vec)->nr; i_++)                                   \
			to_[i_] = &(vec)->items[i_];                                               \
		to_;                                                                               \
	})

int pprof_tables__pack(struct pprof_tables *p, struct buf *out)
{
	Pprof__Profile profile = PPROF__PROFILE__INIT;
	Pprof__Line **lines = pointers_to(&p->lines);
	int err = lines ? p->err : -ENOMEM;

	profile.function = pointers_to(&p->functions);
	profile.mapping = pointers_to(&p->mappings);
	profile.location = pointers_to(&p->locations);
	if (!err && (!profile.function || !profile.mapping || !profile.location))
		err = -ENOMEM;
	for (size_t i = 0; i < p->locations.nr && !err; i++) {
		p->locations.items[i].line = &lines[p->lines_at.items[i]];
	}
	profile.n_function = p->functions.nr;
	profile.n_mapping = p->mappings.nr;
	profile.n_location = p->locations.nr;
	profile.string_table = p->texts.items;
	profile.n_string_table = p->texts.nr;
	if (!err)
		protobuf_encode(&profile, out);
	free(profile.function);
	free(profile.mapping);
	free(profile.location);
	free(lines);
	return err ? err : buf__error(out);
}
