/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the callers of a function by searching every byte of code, because the callers of interest
 * have no symbols. x86-64. The code is read piece by piece and not kept.
 */
#include "base/cleanup.h"
#include "inspect/elf/elf_private.h"

#include <errno.h>
#include <string.h>

#define PIECE_BYTES (1 << 20)
/* More than any library has; the segments of a hostile one may overlap. */
#define SEARCH_BYTES_MAX (1ULL << 30)
/* The longest instruction searched for: a call through a GOT slot. */
#define CALL_BYTES 6
/* A function has one PLT stub or two, each with at most three places to enter. */
#define PLACES_MAX 128

#define CALL_DIRECT 0xe8
#define GROUP_FF    0xff
#define FF_CALL	    0x15 /* through memory at an offset from the next instruction */
#define FF_JUMP	    0x25

/* Addresses that stand for the callee, or for one of several. */
struct places {
	uint64_t code[PLACES_MAX]; /* where it, or a stub that jumps to it, begins */
	size_t code_nr;
	uint64_t slot[PLACES_MAX]; /* GOT slots that hold its address */
	size_t slot_nr;
};

struct search {
	struct elf_file *file;
	struct places places;
	uint64_t left; /* how many bytes may still be searched */
	int (*fn)(const struct elf_call *call, void *arg);
	void *arg;
};

static void put(uint64_t *items, size_t *nr, uint64_t item)
{
	if (*nr < PLACES_MAX)
		items[(*nr)++] = item;
}

static bool has(const uint64_t *items, size_t nr, uint64_t item)
{
	for (size_t i = 0; i < nr; i++)
		if (items[i] == item)
			return true;
	return false;
}

/* Returns where an instruction's last four bytes point to. */
static uint64_t relative(const unsigned char *four, uint64_t next)
{
	int32_t offset;

	memcpy(&offset, four, sizeof(offset));
	return next + (uint64_t)(int64_t)offset;
}

/* Finds the slots that relocations fill with the address of a function that `is` accepts. */
static void find_slots(struct elf_file *f, const char *section,
		       bool (*is)(const char *name, const char *arg), const char *arg,
		       struct places *ret_places)
{
	const struct symbol_table *t = &f->tables[0];
	const unsigned char *data;
	uint64_t address;
	size_t bytes;

	if (elf_file__section(f, section, &data, &bytes, &address))
		return;
	for (size_t i = 0; i < bytes / sizeof(Elf64_Rela); i++) {
		Elf64_Rela r;
		Elf64_Sym y;

		memcpy(&r, data + i * sizeof(r), sizeof(r));
		if ((ELF64_R_TYPE(r.r_info) != R_X86_64_JUMP_SLOT &&
		     ELF64_R_TYPE(r.r_info) != R_X86_64_GLOB_DAT) ||
		    ELF64_R_SYM(r.r_info) >= t->nr)
			continue;
		memcpy(&y, t->symbols + ELF64_R_SYM(r.r_info) * sizeof(y), sizeof(y));
		if (y.st_name < t->names_bytes && is(t->names + y.st_name, arg))
			put(ret_places->slot, &ret_places->slot_nr, r.r_offset);
	}
}

/* A stub is a jump through the slot, perhaps behind endbr64, perhaps with a prefix. */
static void find_stubs(struct elf_file *f, const char *section, struct places *places)
{
	static const unsigned char endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const unsigned char *data;
	uint64_t address;
	size_t bytes;

	if (elf_file__section(f, section, &data, &bytes, &address))
		return;
	for (size_t i = 0; i + CALL_BYTES <= bytes; i++) {
		size_t begin = i;

		if (data[i] != GROUP_FF || data[i + 1] != FF_JUMP ||
		    !has(places->slot, places->slot_nr,
			 relative(data + i + 2, address + i + CALL_BYTES)))
			continue;
		put(places->code, &places->code_nr, address + i);
		if (begin && data[begin - 1] == 0xf2)
			put(places->code, &places->code_nr, address + --begin);
		if (begin >= sizeof(endbr) &&
		    !memcmp(data + begin - sizeof(endbr), endbr, sizeof(endbr)))
			put(places->code, &places->code_nr, address + begin - sizeof(endbr));
	}
}

bool elf_file__mentions(struct elf_file *f, const char *name)
{
	elf_read_tables(f);
	return f->tables[0].nr &&
	       memmem(f->tables[0].names, f->tables[0].names_bytes, name, strlen(name));
}

static void find_places(struct elf_file *f, bool (*is)(const char *name, const char *arg),
			const char *arg, struct places *ret_places)
{
	static const char *const relocations[] = {".rela.plt", ".rela.dyn"};
	static const char *const stubs[] = {".plt", ".plt.sec", ".plt.got"};

	elf_read_tables(f);
	for (size_t i = 0; i < sizeof(relocations) / sizeof(*relocations); i++)
		find_slots(f, relocations[i], is, arg, ret_places);
	for (size_t i = 0; ret_places->slot_nr && i < sizeof(stubs) / sizeof(*stubs); i++)
		find_stubs(f, stubs[i], ret_places);
}

static bool is_named(const char *name, const char *arg)
{
	return !strcmp(name, arg);
}

int elf_file__each_import(struct elf_file *f, bool (*is)(const char *name, const char *arg),
			  const char *is_arg, int (*fn)(uint64_t address, void *arg), void *arg)
{
	struct places places = {0};
	int err = 0;

	find_places(f, is, is_arg, &places);
	for (size_t i = 0; i < places.code_nr && !err; i++)
		err = fn(places.code[i], arg);
	return err;
}

/* ---- the function around an address, by .eh_frame_hdr ---- */

/* version 1; pointers are 4 bytes, the table's from the section's beginning */
static const unsigned char table_head[] = {0x01, 0x1b, 0x03, 0x3b};

#define TABLE_AT 12

struct table_row {
	int32_t begin, fde; /* from the section's beginning */
};

/* An unwind entry: where its function begins and how long it is. */
struct fde {
	uint32_t bytes, cie;
	int32_t begin; /* from this field */
	uint32_t function_bytes;
};

static struct table_row row_at(const unsigned char *data, size_t i)
{
	struct table_row row;

	memcpy(&row, data + TABLE_AT + i * sizeof(row), sizeof(row));
	return row;
}

static void find_function(struct elf_file *f, struct elf_call *call)
{
	const unsigned char *data;
	uint64_t address, offset, begin, fde_at;
	size_t bytes, low = 0, high;
	struct table_row row;
	struct fde fde;

	if (elf_file__section(f, ".eh_frame_hdr", &data, &bytes, &address) || bytes < TABLE_AT ||
	    memcmp(data, table_head, sizeof(table_head)) != 0)
		return;
	high = (bytes - TABLE_AT) / sizeof(row);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address + (uint64_t)(int64_t)row_at(data, middle).begin <= call->address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return;
	row = row_at(data, low - 1);
	begin = address + (uint64_t)(int64_t)row.begin;
	fde_at = address + (uint64_t)(int64_t)row.fde;
	if (!elf_file__offset_of(f, fde_at, &offset) ||
	    elf_file__read(f, offset, &fde, sizeof(fde)) ||
	    fde_at + offsetof(struct fde, begin) + (uint64_t)(int64_t)fde.begin != begin ||
	    call->address - begin >= fde.function_bytes)
		return;
	call->function = begin;
	call->function_bytes = fde.function_bytes;
}

bool elf_file__has_function(struct elf_file *f, uint64_t file_offset, uint64_t bytes)
{
	for (size_t i = 0; i < f->segments_nr; i++) {
		const Elf64_Phdr *s = &f->segments[i];
		struct elf_call call = {0};

		if (s->p_type != PT_LOAD || !(s->p_flags & PF_X) || file_offset < s->p_offset ||
		    file_offset - s->p_offset >= s->p_filesz)
			continue;
		call.address = s->p_vaddr + (file_offset - s->p_offset);
		find_function(f, &call);
		return call.function == call.address && call.function_bytes == bytes;
	}
	return false;
}

/* ---- looking ---- */

static bool is_call(const struct places *p, const unsigned char *at, uint64_t address)
{
	if (*at == CALL_DIRECT)
		return has(p->code, p->code_nr, relative(at + 1, address + CALL_BYTES - 1));
	return *at == GROUP_FF && at[1] == FF_CALL &&
	       has(p->slot, p->slot_nr, relative(at + 2, address + CALL_BYTES));
}

/* Searches the instructions that begin in the first nr bytes; CALL_BYTES more can be read. */
static int search_piece(struct search *s, const unsigned char *piece, size_t nr, uint64_t address)
{
	for (size_t i = 0; i < nr; i++) {
		struct elf_call call = {.address = address + i};
		int err;

		if ((piece[i] != CALL_DIRECT && piece[i] != GROUP_FF) ||
		    !is_call(&s->places, piece + i, address + i))
			continue;
		find_function(s->file, &call);
		err = s->fn(&call, s->arg);
		if (err)
			return err;
	}
	return 0;
}

static int search_segment(struct search *s, const Elf64_Phdr *segment, unsigned char *piece)
{
	int err = 0;

	for (uint64_t at = 0; at < segment->p_filesz && !err && s->left; at += PIECE_BYTES) {
		uint64_t left = segment->p_filesz - at;
		uint64_t nr = left < PIECE_BYTES ? left : PIECE_BYTES;
		uint64_t more = left < PIECE_BYTES + CALL_BYTES ? left : PIECE_BYTES + CALL_BYTES;

		s->left -= nr < s->left ? nr : s->left;
		memset(piece + more, 0, PIECE_BYTES + CALL_BYTES - more);
		err = elf_file__read(s->file, segment->p_offset + at, piece, more);
		err = err ?: search_piece(s, piece, nr, segment->p_vaddr + at);
	}
	return err;
}

int elf_file__each_call(struct elf_file *f, const char *callee,
			int (*fn)(const struct elf_call *call, void *arg), void *arg)
{
	CLEANUP(cleanup_free) unsigned char *piece = NULL;
	struct search s = {.file = f, .left = SEARCH_BYTES_MAX, .fn = fn, .arg = arg};
	struct elf_symbol own;
	int err = 0;

	if (!elf_file__symbol(f, callee, &own))
		put(s.places.code, &s.places.code_nr, own.address);
	if (elf_file__mentions(f, callee))
		find_places(f, is_named, callee, &s.places);
	if (!s.places.code_nr && !s.places.slot_nr)
		return 0;
	piece = malloc(PIECE_BYTES + CALL_BYTES);
	if (!piece)
		return -ENOMEM;
	for (size_t i = 0; i < f->segments_nr && !err; i++)
		if (f->segments[i].p_type == PT_LOAD && f->segments[i].p_flags & PF_X)
			err = search_segment(&s, &f->segments[i], piece);
	return err;
}
