/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads lines with libdw. The units themselves show which one an address belongs to (not all
 * compilers write an index); a unit's functions are listed at its first address. Trees are walked
 * here, to a bounded depth: a file can make them as deep as it likes. Units whose contents lie in
 * other files are left out, so no name in the file is opened.
 */
#include "inspect/elf/lines.h"

#include "base/vec.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Limit for all sections with debug information, unpacked, and for the line programs, a byte of
 * which can become some 70 in memory. */
#define SECTIONS_BYTES_MAX (512ULL << 20)
#define LINE_BYTES_MAX	   (32ULL << 20)
#define UNITS_MAX	   (1U << 18)
#define RANGES_MAX	   (1U << 22)
/* The most entries examined in all. */
#define ENTRIES_MAX (1U << 25)
#define SCOPES_MAX  16
#define BLOCKS_MAX  256
#define CHAIN_MAX   16
#define TEXT_MAX    4096
#define LOOK_BACK   8

struct range {
	uint64_t low, high;
	uint64_t of; /* a unit: its index; a function: its entry */
};

struct unit {
	Dwarf_Off entry;
	bool listed;
	VEC(struct range) functions;
};

struct lines {
	Elf *elf;
	Dwarf *dwarf;
	VEC(struct unit) units;
	VEC(struct range) ranges; /* of units */
	uint64_t entries_nr;
	bool opened;
	int error; /* of opening */
};

static int by_low(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->of < y->of ? -1 : x->of > y->of;
}

/* Finds the last range that begins at or before the address and contains it. NULL: none. */
static const struct range *find_range(const struct range *items, size_t nr, uint64_t address)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (items[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < LOOK_BACK && i < low; i++)
		if (address < items[low - 1 - i].high)
			return &items[low - 1 - i];
	return NULL;
}

/* ---- opening ---- */

static uint64_t unpacked_bytes(Elf_Scn *section, const GElf_Shdr *header)
{
	GElf_Chdr packed;

	if (header->sh_type == SHT_NOBITS)
		return 0;
	if (!(header->sh_flags & SHF_COMPRESSED))
		return header->sh_size;
	return gelf_getchdr(section, &packed) ? packed.ch_size : UINT64_MAX;
}

/* Returns 0 if the file has lines and can be opened safely. */
static int check_sections(Elf *elf)
{
	uint64_t all = 0, info = 0, line = 0;
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return -ENOENT;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;
		uint64_t bytes;

		if (!gelf_getshdr(section, &header))
			return -EBADMSG;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || (strncmp(name, ".debug_", 7) && strncmp(name, ".zdebug", 7)))
			continue;
		/* Packed in the old way, which states the size nowhere else. */
		bytes = name[1] == 'z' ? UINT64_MAX : unpacked_bytes(section, &header);
		if (bytes > SECTIONS_BYTES_MAX || bytes > SECTIONS_BYTES_MAX - all)
			return -EFBIG;
		all += bytes;
		info += strcmp(name, ".debug_info") ? 0 : bytes;
		line += strcmp(name, ".debug_line") ? 0 : bytes;
	}
	if (!info || !line)
		return -ENOENT;
	return line > LINE_BYTES_MAX ? -EFBIG : 0;
}

/* Adds the ranges of an entry, as ranges of `of`. */
#define add_ranges(to, entry, of_)                                                                 \
	({                                                                                         \
		struct range one_ = {.of = (of_)};                                                 \
		ptrdiff_t at_ = 0;                                                                 \
		Dwarf_Addr base_;                                                                  \
		int add_err_ = 0;                                                                  \
		while (!add_err_ && (to)->nr < RANGES_MAX &&                                       \
		       (at_ = dwarf_ranges(entry, at_, &base_, &one_.low, &one_.high)) > 0)        \
			if (one_.low < one_.high)                                                  \
				add_err_ = vec_push(to, one_);                                     \
		add_err_;                                                                          \
	})

#define sort_ranges(v)                                                                             \
	({                                                                                         \
		if ((v)->nr)                                                                       \
			qsort((v)->items, (v)->nr, sizeof(*(v)->items), by_low);                   \
	})

static int list_units(struct lines *l)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	Dwarf_Die entry;
	uint8_t type;
	int err = 0;

	while (!err && l->units.nr < UNITS_MAX &&
	       !dwarf_get_units(l->dwarf, cu, &cu, &version, &type, &entry, NULL)) {
		struct unit unit = {.entry = dwarf_dieoffset(&entry)};

		if (type != DW_UT_compile)
			continue;
		err = add_ranges(&l->ranges, &entry, l->units.nr);
		err = err ? err : vec_push(&l->units, unit);
	}
	sort_ranges(&l->ranges);
	return err;
}

int lines__new(int fd, struct lines **ret_lines)
{
	struct lines *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	(void)elf_version(EV_CURRENT);
	/* Never mapped: see elf.c. */
	l->elf = elf_begin(fd, ELF_C_READ, NULL);
	err = l->elf ? check_sections(l->elf) : -EBADMSG;
	if (err) {
		lines__free(l);
		return err;
	}
	*ret_lines = l;
	return 0;
}

/* Reads all sections. */
static int open_units(struct lines *l)
{
	if (l->opened)
		return l->error;
	l->opened = true;
	l->dwarf = dwarf_begin_elf(l->elf, DWARF_C_READ, NULL);
	l->error = l->dwarf ? list_units(l) : -EBADMSG;
	return l->error;
}

void lines__free(struct lines *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->units.nr; i++)
		vec_done(&l->units.items[i].functions);
	vec_done(&l->units);
	vec_done(&l->ranges);
	(void)dwarf_end(l->dwarf);
	(void)elf_end(l->elf);
	free(l);
}

/* ---- functions ---- */

static bool holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_enumeration_type;
}

/* Goes to the next child of an entry, from `parent` itself to the first one. False: there is none,
 * or too many were examined. */
static bool next_entry(struct lines *l, Dwarf_Die *parent, Dwarf_Die *entry, bool *first)
{
	Dwarf_Die now = *entry;
	bool was_first = *first;

	*first = false;
	if (++l->entries_nr > ENTRIES_MAX)
		return false;
	return !(was_first ? dwarf_child(parent, entry) : dwarf_siblingof(&now, entry));
}

static int list_functions(struct lines *l, struct unit *unit, Dwarf_Die *parent, int depth)
{
	Dwarf_Die entry = {0};
	bool first = true;
	int err = 0;

	while (!err && next_entry(l, parent, &entry, &first)) {
		int tag = dwarf_tag(&entry);

		if (tag == DW_TAG_subprogram)
			err = add_ranges(&unit->functions, &entry, dwarf_dieoffset(&entry));
		else if (holds_functions(tag) && depth < SCOPES_MAX)
			err = list_functions(l, unit, &entry, depth + 1);
	}
	return err;
}

/* Returns 1 with the entry of the function that contains the address, 0: none, or -ENOMEM. */
static int find_function(struct lines *l, struct unit *unit, Dwarf_Die *unit_entry,
			 uint64_t address, Dwarf_Die *ret_entry)
{
	const struct range *range;
	int err;

	if (!unit->listed) {
		unit->listed = true;
		err = list_functions(l, unit, unit_entry, 0);
		if (err)
			return err;
		sort_ranges(&unit->functions);
	}
	range = find_range(unit->functions.items, unit->functions.nr, address);
	return range && dwarf_offdie(l->dwarf, range->of, ret_entry);
}

static bool is_block(int tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt;
}

/* Goes from a block to the one inside it that contains the address. */
static bool step_inside(struct lines *l, Dwarf_Die *block, uint64_t address)
{
	Dwarf_Die entry = {0};
	bool first = true;

	while (next_entry(l, block, &entry, &first)) {
		if (!is_block(dwarf_tag(&entry)) || dwarf_haspc(&entry, address) <= 0)
			continue;
		*block = entry;
		return true;
	}
	return false;
}

/* Lists the nested functions at the address; chain[0] is the outermost. Returns how many, or
 * -E2BIG. */
static int find_chain(struct lines *l, uint64_t address, Dwarf_Die chain[LINES_PLACES_MAX])
{
	Dwarf_Die block = chain[0];
	int nr = 1;

	for (int depth = 0; step_inside(l, &block, address); depth++) {
		if (depth == BLOCKS_MAX)
			return -E2BIG;
		if (dwarf_tag(&block) != DW_TAG_inlined_subroutine)
			continue;
		if (nr == LINES_PLACES_MAX)
			return -E2BIG;
		chain[nr++] = block;
	}
	return l->entries_nr > ENTRIES_MAX ? -E2BIG : nr;
}

/* ---- texts ---- */

static const char *valid_text(const char *text)
{
	return text && *text && strnlen(text, TEXT_MAX) < TEXT_MAX ? text : NULL;
}

/* Returns a text of the entry, or of the entries that it refers to. */
static const char *text_of(const Dwarf_Die *entry, unsigned int name)
{
	Dwarf_Die now = *entry, next;

	for (int i = 0; i < CHAIN_MAX; i++) {
		Dwarf_Attribute a;

		if (dwarf_attr(&now, name, &a))
			return valid_text(dwarf_formstring(&a));
		if (!dwarf_attr(&now, DW_AT_abstract_origin, &a) &&
		    !dwarf_attr(&now, DW_AT_specification, &a))
			return NULL;
		if (!dwarf_formref_die(&a, &next))
			return NULL;
		now = next;
	}
	return NULL;
}

static const char *name_of(const Dwarf_Die *entry)
{
	const char *name = text_of(entry, DW_AT_linkage_name);

	name = name ? name : text_of(entry, DW_AT_MIPS_linkage_name);
	return name ? name : text_of(entry, DW_AT_name);
}

static uint32_t number_of(Dwarf_Die *entry, unsigned int name)
{
	Dwarf_Attribute a;
	Dwarf_Word value;

	if (!dwarf_attr(entry, name, &a) || dwarf_formudata(&a, &value) || value > INT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* Sets the place where an inlined function was called. */
static void set_call(Dwarf_Die *unit_entry, Dwarf_Die *inlined, struct line_place *place)
{
	uint32_t number = number_of(inlined, DW_AT_call_file);
	Dwarf_Files *files;
	size_t nr;

	place->line = number_of(inlined, DW_AT_call_line);
	if (!dwarf_getsrcfiles(unit_entry, &files, &nr) && number < nr)
		place->file = valid_text(dwarf_filesrc(files, number, NULL, NULL));
}

static void set_line(Dwarf_Die *unit_entry, uint64_t address, struct line_place *place)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit_entry, address);
	int number;

	if (!line || dwarf_lineno(line, &number) || number < 0)
		return;
	place->line = (uint32_t)number;
	place->file = valid_text(dwarf_linesrc(line, NULL, NULL));
}

int lines__find(struct lines *l, uint64_t address, struct line_place places[LINES_PLACES_MAX])
{
	Dwarf_Die chain[LINES_PLACES_MAX], unit_entry;
	const struct range *range;
	struct unit *unit;
	int nr, found = open_units(l);

	if (found)
		return found;
	range = find_range(l->ranges.items, l->ranges.nr, address);
	unit = range ? &l->units.items[range->of] : NULL;
	if (!unit || !dwarf_offdie(l->dwarf, unit->entry, &unit_entry))
		return 0;
	found = find_function(l, unit, &unit_entry, address, &chain[0]);
	nr = found > 0 ? find_chain(l, address, chain) : found;
	if (nr < 0)
		return nr;
	memset(places, 0, sizeof(*places) * LINES_PLACES_MAX);
	set_line(&unit_entry, address, &places[0]);
	for (int i = 0; i < nr; i++) {
		places[i].function = name_of(&chain[nr - 1 - i]);
		if (i)
			set_call(&unit_entry, &chain[nr - i], &places[i]);
	}
	if (nr)
		return nr;
	return places[0].line ? 1 : 0;
}
