/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds everything through the dynamic section, as the loader does. Every address is validated
 * before it is read: it must lie within the segments that the library's program headers list.
 */
#include "collector/runtime/plt_slots.h"

#include "collector/runtime/compat.h"
#include "collector/runtime/libraries.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAPS_BYTES 4096

struct tables {
	const ElfW(Sym) * symbols;
	const char *names;
	const ElfW(Rela) * calls;
	size_t names_bytes, calls_bytes;
	uintptr_t kind; /* DT_REL or DT_RELA: the kind of entries in `calls` */
};

struct search {
	uintptr_t base;
	struct slot *slots;
	int nr;
	bool found;
};

/* Whether all bytes lie in one loaded segment with these rights. */
static bool is_loaded(const struct dl_phdr_info *info, uintptr_t address, size_t bytes,
		      uint32_t rights)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = address - (info->dlpi_addr + p->p_vaddr);

		if (p->p_type == PT_LOAD && (p->p_flags & rights) == rights && at < p->p_memsz &&
		    bytes <= p->p_memsz - at)
			return true;
	}
	return false;
}

/* The loader has relocated most offsets in the section to addresses. */
static uintptr_t address_of(const struct dl_phdr_info *info, const ElfW(Dyn) * d)
{
	uintptr_t value = d->d_un.d_ptr;

	return value < info->dlpi_addr ? value + info->dlpi_addr : value;
}

static void take_entry(const struct dl_phdr_info *info, const ElfW(Dyn) * d, struct tables *t)
{
	switch (d->d_tag) {
	case DT_SYMTAB:
		t->symbols = (const ElfW(Sym) *)address_of(info, d);
		break;
	case DT_STRTAB:
		t->names = (const char *)address_of(info, d);
		break;
	case DT_JMPREL:
		t->calls = (const ElfW(Rela) *)address_of(info, d);
		break;
	case DT_STRSZ:
		t->names_bytes = d->d_un.d_val;
		break;
	case DT_PLTRELSZ:
		t->calls_bytes = d->d_un.d_val;
		break;
	case DT_PLTREL:
		t->kind = d->d_un.d_val;
		break;
	default:
		break;
	}
}

static bool find_tables(const struct dl_phdr_info *info, struct tables *t)
{
	*t = (struct tables){0};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const ElfW(Dyn) *d = (const ElfW(Dyn) *)(info->dlpi_addr + p->p_vaddr);

		if (p->p_type != PT_DYNAMIC || !is_loaded(info, (uintptr_t)d, p->p_memsz, PF_R))
			continue;
		for (size_t k = 0; k < p->p_memsz / sizeof(*d) && d[k].d_tag != DT_NULL; k++)
			take_entry(info, &d[k], t);
	}
	return t->kind == DT_RELA && t->symbols && t->names_bytes && t->calls_bytes &&
	       is_loaded(info, (uintptr_t)t->names, t->names_bytes, PF_R) &&
	       is_loaded(info, (uintptr_t)t->calls, t->calls_bytes, PF_R);
}

static bool has_name(const struct dl_phdr_info *info, const struct tables *t, uint32_t symbol,
		     const char *name)
{
	const ElfW(Sym) *s = t->symbols + symbol;
	size_t bytes = strlen(name) + 1;

	return is_loaded(info, (uintptr_t)s, sizeof(*s), PF_R) && s->st_name < t->names_bytes &&
	       bytes <= t->names_bytes - s->st_name && !memcmp(t->names + s->st_name, name, bytes);
}

/* The word that calls of this function go through; NULL: there is none or more than one. */
static uintptr_t *find_word(const struct dl_phdr_info *info, const struct tables *t,
			    const char *name)
{
	uintptr_t *word = NULL;

	for (size_t i = 0; i < t->calls_bytes / sizeof(*t->calls); i++) {
		const ElfW(Rela) *r = &t->calls[i];
		uintptr_t at = info->dlpi_addr + r->r_offset;

		if (ELF64_R_TYPE(r->r_info) != R_X86_64_JUMP_SLOT ||
		    !has_name(info, t, (uint32_t)ELF64_R_SYM(r->r_info), name))
			continue;
		if (word || at % sizeof(*word) || !is_loaded(info, at, sizeof(*word), PF_R | PF_W))
			return NULL;
		word = (uintptr_t *)at;
	}
	return word;
}

static int search_library(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct search *s = arg;
	struct tables t;

	if (info->dlpi_addr != s->base)
		return 0;
	s->found = find_tables(info, &t);
	for (int i = 0; i < s->nr && s->found; i++) {
		s->slots[i].word = find_word(info, &t, s->slots[i].name);
		s->found = s->slots[i].word && *s->slots[i].word == s->slots[i].function;
	}
	return 1;
}

/* ---- protection ---- */

/* A line of /proc/self/maps, byte for byte: "start-end rwxp ...". */
struct maps_line {
	uintptr_t start, end;
	unsigned int field; /* the current one. 0: start, 1: end, 2: rights, 3: the rest */
	int protection;
};

static void take_right(struct maps_line *l, char c)
{
	l->protection |= c == 'r' ? PROT_READ : c == 'w' ? PROT_WRITE : c == 'x' ? PROT_EXEC : 0;
}

/* Takes one byte. True: all fields of the line are known now. */
static bool take_byte(struct maps_line *l, char c)
{
	uintptr_t *number = l->field ? &l->end : &l->start;

	if (c == '\n') {
		*l = (struct maps_line){0};
	} else if (c == '-' && !l->field) {
		l->field = 1;
	} else if (c == ' ' && l->field && l->field < 3) {
		l->field++;
		return l->field == 3;
	} else if (l->field == 2) {
		take_right(l, c);
	} else if (l->field < 2) {
		*number = *number << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return false;
}

/* The protection of the page at `address`, as mprotect() takes it; below 0: not known. */
static int protection_at(uintptr_t address)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), protection = -1;
	struct maps_line line = {0};
	char text[MAPS_BYTES];
	ssize_t nr = fd < 0 ? 0 : read(fd, text, sizeof(text));

	while (nr > 0 && protection < 0) {
		for (ssize_t i = 0; i < nr && protection < 0; i++)
			if (take_byte(&line, text[i]) && address >= line.start &&
			    address < line.end)
				protection = line.protection;
		nr = read(fd, text, sizeof(text));
	}
	if (fd >= 0)
		(void)close(fd);
	return protection;
}

bool slots_find(uintptr_t base, struct slot *slots, int nr)
{
	struct search s = {.base = base, .slots = slots, .nr = nr};

	(void)libraries__each(search_library, &s);
	for (int i = 0; i < nr && s.found; i++) {
		slots[i].protection = protection_at((uintptr_t)slots[i].word);
		s.found = slots[i].protection >= 0;
	}
	return s.found;
}

bool slot_set(const struct slot *s, uintptr_t from, uintptr_t to)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)((uintptr_t)s->word & ~(page_bytes - 1));
	bool done;

	/* Needed even for a page that was writable: it may have been protected meanwhile. */
	if (mprotect(page, page_bytes, s->protection | PROT_WRITE))
		return false;
	done = __atomic_compare_exchange_n(s->word, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
	if (!(s->protection & PROT_WRITE))
		(void)mprotect(page, page_bytes, s->protection);
	return done;
}
