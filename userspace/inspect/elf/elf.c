/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Symbols, sections and build-id of an ELF file. The headers, the symbol tables and the code asked
 * for are read into memory of our own, never mapped: a target that cuts or rewrites the file while
 * we look can give us nonsense, but neither SIGBUS nor a string whose end has gone after it was
 * checked. Of a large library only the tables are read. Invariant: what `segments` and `sections`
 * hold lies inside the file, and no sum of theirs overflows.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/access/process_file.h"
#include "inspect/elf/elf_private.h"

#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#error "unknown machine"
#endif

/* More than any real file has; a hostile one must not cost more than seconds. */
#define SEGMENTS_MAX   256
#define SECTIONS_MAX   65536
#define SYMBOLS_MAX    8388608 /* of one table */
#define NAME_BYTES_MAX 16384
#define NOTES_BYTES    65536
#define CODE_BYTES_MAX 1048576	    /* of one elf_file__code() */
#define READ_BYTES_MAX (1ULL << 29) /* of one file in all */

int elf_file__read(const struct elf_file *f, uint64_t offset, void *buf, uint64_t bytes)
{
	ssize_t nr;

	if (offset > f->bytes || bytes > f->bytes - offset)
		return -ENOEXEC;
	nr = file_read_all_at(f->fd, offset, buf, bytes);
	if (nr < 0)
		return (int)nr;
	return (uint64_t)nr < bytes ? -ENOEXEC : 0;
}

/* NULL. */
static unsigned char *not_read(struct elf_file *f, int err)
{
	if (!f->err && !elf_error_stays(err))
		f->err = err;
	errno = -err;
	return NULL;
}

/* The range as malloc'd bytes with a zero after them; NULL with errno set. */
static unsigned char *read_range(struct elf_file *f, uint64_t offset, uint64_t bytes)
{
	CLEANUP(cleanup_free) unsigned char *data = NULL;
	int err;

	if (bytes > READ_BYTES_MAX - f->read_bytes)
		return not_read(f, -EFBIG);
	if (bytes > f->bytes)
		return not_read(f, -ENOEXEC);
	data = malloc(bytes + 1);
	err = data ? elf_file__read(f, offset, data, bytes) : -ENOMEM;
	if (err)
		return not_read(f, err);
	data[bytes] = '\0';
	f->read_bytes += bytes;
	return TAKE(data);
}

static int read_sections(struct elf_file *f, const Elf64_Ehdr *header, struct reason *why)
{
	CLEANUP(cleanup_free) Elf64_Shdr *first = NULL;
	uint64_t nr = header->e_shnum;

	f->section_names = header->e_shstrndx;
	if (!header->e_shoff)
		return 0;
	if (header->e_shentsize != sizeof(Elf64_Shdr))
		return reason_set(why, -ENOEXEC, "its section headers have an unknown size");
	first = (Elf64_Shdr *)read_range(f, header->e_shoff, sizeof(*first));
	if (!first)
		return reason_set(why, -errno, "its section headers cannot be read (cut short?)");
	if (!nr)
		nr = first->sh_size;
	if (f->section_names == SHN_XINDEX)
		f->section_names = first->sh_link;
	if (!nr || nr > SECTIONS_MAX)
		return reason_set(why, -ENOEXEC, "its number of sections is absurd");
	f->sections = (Elf64_Shdr *)read_range(f, header->e_shoff, nr * sizeof(*f->sections));
	if (!f->sections)
		return reason_set(why, -errno, "its section headers cannot be read (cut short?)");
	f->section_data = calloc(nr, sizeof(*f->section_data));
	if (!f->section_data)
		return reason_set(why, -ENOMEM, "out of memory");
	f->sections_nr = nr;
	return 0;
}

/* Cuts the segment to what the file holds; false if nothing sensible remains. */
static bool segment_fits(const struct elf_file *f, Elf64_Phdr *s)
{
	uint64_t end;

	if (s->p_type != PT_LOAD && s->p_type != PT_NOTE)
		return false;
	if (s->p_offset > f->bytes || s->p_filesz > s->p_memsz ||
	    __builtin_add_overflow(s->p_vaddr, s->p_memsz, &end))
		return false;
	if (s->p_filesz > f->bytes - s->p_offset)
		s->p_filesz = f->bytes - s->p_offset;
	return true;
}

static int read_segments(struct elf_file *f, const Elf64_Ehdr *header, struct reason *why)
{
	uint64_t nr = header->e_phnum;
	size_t kept = 0;

	if (nr == PN_XNUM && f->sections_nr)
		nr = f->sections[0].sh_info;
	if (!nr || nr > SEGMENTS_MAX || header->e_phentsize != sizeof(Elf64_Phdr))
		return reason_set(why, -ENOEXEC, "it has no program headers that make sense");
	f->segments = (Elf64_Phdr *)read_range(f, header->e_phoff, nr * sizeof(*f->segments));
	if (!f->segments)
		return reason_set(why, -errno, "its program headers cannot be read (cut short?)");
	for (size_t i = 0; i < nr; i++)
		if (segment_fits(f, &f->segments[i]))
			f->segments[kept++] = f->segments[i];
	f->segments_nr = kept;
	return 0;
}

static int read_header(struct elf_file *f, Elf64_Ehdr *ret_header, struct reason *why)
{
	CLEANUP(cleanup_free) Elf64_Ehdr *h = (Elf64_Ehdr *)read_range(f, 0, sizeof(*h));

	if (!h)
		return reason_set(why, -errno, "it is too short for an ELF file");
	if (memcmp(h->e_ident, ELFMAG, SELFMAG))
		return reason_set(why, -ENOEXEC, "it is not an ELF file");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    h->e_machine != NATIVE_MACHINE)
		return reason_set(why, -ENOEXEC,
				  "it is for another machine (only 64-bit code of "
				  "this one can be profiled)");
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return reason_set(why, -ENOEXEC, "it is neither an executable nor a library");
	*ret_header = *h;
	return 0;
}

static uint64_t padded(uint64_t bytes)
{
	return (bytes + 3) & ~3ULL;
}

/* Looks for the GNU build-id among `bytes` of notes. */
static bool find_build_id(struct elf_file *f, const unsigned char *notes, uint64_t bytes)
{
	uint64_t at = 0;

	while (bytes - at >= sizeof(Elf64_Nhdr)) {
		const unsigned char *name = notes + at + sizeof(Elf64_Nhdr);
		uint64_t name_bytes, desc_bytes;
		Elf64_Nhdr n;

		memcpy(&n, notes + at, sizeof(n));
		name_bytes = padded(n.n_namesz);
		desc_bytes = padded(n.n_descsz);
		at += sizeof(n);
		if (name_bytes > bytes - at || desc_bytes > bytes - at - name_bytes)
			return false;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(name, "GNU", 4) &&
		    n.n_descsz && n.n_descsz <= ELF_BUILD_ID_BYTES) {
			for (uint64_t i = 0; i < n.n_descsz; i++)
				(void)snprintf(f->build_id + 2 * i, 3, "%02x",
					       name[name_bytes + i]);
			return true;
		}
		at += name_bytes + desc_bytes;
	}
	return false;
}

static void read_build_id(struct elf_file *f)
{
	for (size_t i = 0; i < f->segments_nr; i++) {
		const Elf64_Phdr *s = &f->segments[i];
		CLEANUP(cleanup_free) unsigned char *notes = NULL;

		if (s->p_type != PT_NOTE || s->p_filesz > NOTES_BYTES)
			continue;
		notes = read_range(f, s->p_offset, s->p_filesz);
		if (notes && find_build_id(f, notes, s->p_filesz))
			return;
	}
}

static int open_file(const char *path, uint64_t *ret_bytes, struct reason *why)
{
	struct stat st;
	int fd = process_file_open(path, &st);

	if (fd == -ENOEXEC)
		return reason_set(why, fd, "cannot read '%s': it is not a regular file", path);
	if (fd < 0)
		return reason_set(why, fd, "cannot open '%s': %s", path, strerror(-fd));
	*ret_bytes = (uint64_t)st.st_size;
	return fd;
}

int elf_file__open(const char *path, struct reason *why, struct elf_file **ret_file)
{
	CLEANUP(cleanup_elf) struct elf_file *f = calloc(1, sizeof(*f));
	struct reason inner = {""};
	Elf64_Ehdr header = {0};
	int err;

	if (!f)
		return reason_set(why, -ENOMEM, "out of memory");
	f->fd = open_file(path, &f->bytes, why);
	if (f->fd < 0)
		return f->fd;
	err = read_header(f, &header, &inner);
	if (!err)
		err = read_sections(f, &header, &inner);
	if (!err)
		err = read_segments(f, &header, &inner);
	if (err)
		return reason_set(why, err, "cannot use '%s': %.200s", path, inner.text);
	read_build_id(f);
	*ret_file = TAKE(f);
	return 0;
}

int elf_file__error(const struct elf_file *f)
{
	return f->err;
}

void elf_file__set_code(struct elf_file *f, const struct elf_file *of)
{
	f->code = of;
}

void elf_file__free(struct elf_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->sections_nr; i++)
		free(f->section_data[i]);
	for (size_t i = 0; i < f->codes.nr; i++)
		free(f->codes.items[i].bytes);
	vec_done(&f->codes);
	hash__done(&f->code_at);
	free(f->section_data);
	free(f->sections);
	free(f->segments);
	if (f->fd >= 0)
		(void)close(f->fd);
	free(f);
}

/* The content of section i, read at first use. NULL if it has none or cannot be read. */
static unsigned char *section_content(struct elf_file *f, size_t i)
{
	const Elf64_Shdr *s = &f->sections[i];

	if (s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL || (s->sh_flags & SHF_COMPRESSED))
		return NULL;
	if (!f->section_data[i])
		f->section_data[i] = read_range(f, s->sh_offset, s->sh_size);
	return f->section_data[i];
}

/* Names in .symtab may carry "@VERSION" or "@@VERSION": cut there. */
static void cut_versions(char *names, size_t bytes)
{
	char *at = memchr(names, '@', bytes);

	while (at) {
		*at = '\0';
		at = memchr(at, '@', bytes - (size_t)(at - names));
	}
}

static void read_table(struct elf_file *f, uint32_t type, struct symbol_table *t)
{
	for (size_t i = 0; i < f->sections_nr; i++) {
		const Elf64_Shdr *s = &f->sections[i];
		size_t names_bytes;
		char *names;

		if (s->sh_type != type || s->sh_link >= f->sections_nr ||
		    f->sections[s->sh_link].sh_type != SHT_STRTAB)
			continue;
		t->symbols = section_content(f, i);
		names = (char *)section_content(f, s->sh_link);
		if (!t->symbols || !names)
			return;
		names_bytes = f->sections[s->sh_link].sh_size;
		if (type == SHT_SYMTAB)
			cut_versions(names, names_bytes);
		while (names_bytes && names[names_bytes - 1])
			names_bytes--;
		t->names = names;
		t->names_bytes = names_bytes;
		t->nr = s->sh_size / sizeof(Elf64_Sym);
		if (t->nr > SYMBOLS_MAX)
			t->nr = SYMBOLS_MAX;
		return;
	}
}

void elf_read_tables(struct elf_file *f)
{
	if (f->tables_ready)
		return;
	f->tables_ready = true;
	read_table(f, SHT_DYNSYM, &f->tables[0]);
	read_table(f, SHT_SYMTAB, &f->tables[1]);
}

static const Elf64_Phdr *segment_of(const struct elf_file *f, uint64_t address)
{
	for (size_t i = 0; i < f->segments_nr; i++) {
		const Elf64_Phdr *s = &f->segments[i];

		if (s->p_type == PT_LOAD && address >= s->p_vaddr &&
		    address - s->p_vaddr < s->p_memsz)
			return s;
	}
	return NULL;
}

/* The name of symbol i of the table, its type in `types` (bits) and defined here, else NULL. */
static const char *name_of(const struct symbol_table *t, size_t i, uint32_t types, Elf64_Sym *ret_y)
{
	memcpy(ret_y, t->symbols + i * sizeof(*ret_y), sizeof(*ret_y));
	if (!(types & 1U << ELF64_ST_TYPE(ret_y->st_info)) || ret_y->st_shndx == SHN_UNDEF ||
	    ret_y->st_shndx == SHN_ABS || ret_y->st_shndx == SHN_COMMON ||
	    ret_y->st_name >= t->names_bytes || !t->names[ret_y->st_name])
		return NULL;
	return t->names + ret_y->st_name;
}

/* The symbol as the caller sees it; false if it lies outside the loaded segments. */
static bool get_symbol(const struct elf_file *f, const char *name, const Elf64_Sym *y,
		       struct elf_symbol *ret_symbol)
{
	const Elf64_Phdr *s = segment_of(f->code ? f->code : f, y->st_value);
	uint64_t into;

	if (!s)
		return false;
	into = y->st_value - s->p_vaddr;
	if (ELF64_ST_TYPE(y->st_info) != STT_OBJECT &&
	    (!(s->p_flags & PF_X) || into >= s->p_filesz))
		return false;
	*ret_symbol =
		(struct elf_symbol){.name = name,
				    .address = y->st_value,
				    .file_offset = into < s->p_filesz ? s->p_offset + into : 0,
				    .bytes = y->st_size};
	return true;
}

#define FUNCTION_TYPES (1U << STT_FUNC | 1U << STT_GNU_IFUNC)

/* Whether (address, name) is new; remembers it. 1, 0 or -ENOMEM. */
static int first_seen(struct hash *seen, const struct elf_symbol *sym)
{
	uint64_t key = hash_bytes(sym->name, strlen(sym->name)) ^ hash_mix(sym->address + 1);
	int err;

	if (hash__find(seen, key))
		return 0;
	err = hash__set(seen, key, 1);
	return err ? err : 1;
}

/* Which of the beginnings, in the order of strcmp(), is that of the name; `nr` if none. Looks at no
 * more of a name than fits. */
static size_t beginning_of(const char *name, const char *const *beginnings, size_t nr)
{
	size_t from = 0, to = nr;

	for (size_t at = 0; from < to; at++) {
		if (!beginnings[from][at])
			return from;
		while (from < to && beginnings[from][at] != name[at])
			from++;
		while (from < to && beginnings[to - 1][at] != name[at])
			to--;
	}
	return nr;
}

/* Calls fn for each symbol of these types; those of `seen` but once. */
static int each(struct elf_file *f, const char *const *beginnings, size_t nr, uint32_t types,
		struct hash *seen, elf_symbol_fn fn, void *arg)
{
	elf_read_tables(f);
	for (size_t t = 0; t < 2; t++) {
		for (size_t i = 0; i < f->tables[t].nr; i++) {
			struct elf_symbol sym;
			Elf64_Sym y;
			const char *name = name_of(&f->tables[t], i, types, &y);
			int err = 1;

			if (!name || beginning_of(name, beginnings, nr) == nr ||
			    !get_symbol(f, name, &y, &sym) ||
			    strnlen(name, NAME_BYTES_MAX) == NAME_BYTES_MAX)
				continue;
			if (seen)
				err = first_seen(seen, &sym);
			if (err > 0)
				err = fn(&sym, arg);
			if (err)
				return err;
		}
	}
	return 0;
}

int elf_file__each_symbol_of(struct elf_file *f, const char *const *beginnings, size_t nr,
			     elf_symbol_fn fn, void *arg)
{
	CLEANUP(hash__done) struct hash seen = {0};

	for (size_t i = 1; i < nr; i++)
		if (strcmp(beginnings[i - 1], beginnings[i]) >= 0)
			return -EINVAL;
	return each(f, beginnings, nr, FUNCTION_TYPES, &seen, fn, arg);
}

int elf_file__each_symbol(struct elf_file *f, const char *prefix, elf_symbol_fn fn, void *arg)
{
	return elf_file__each_symbol_of(f, &prefix, 1, fn, arg);
}

int elf_file__each_object(struct elf_file *f, const char *prefix, elf_symbol_fn fn, void *arg)
{
	return each(f, &prefix, 1, 1U << STT_OBJECT, NULL, fn, arg);
}

int elf_file__symbol(struct elf_file *f, const char *name, struct elf_symbol *ret_symbol)
{
	elf_read_tables(f);
	for (size_t t = 0; t < 2; t++) {
		for (size_t i = 0; i < f->tables[t].nr; i++) {
			Elf64_Sym y;
			const char *found =
				name_of(&f->tables[t], i, FUNCTION_TYPES | 1U << STT_OBJECT, &y);

			if (found && !strcmp(found, name) && get_symbol(f, found, &y, ret_symbol))
				return 0;
		}
	}
	return -ENOENT;
}

/* How many bytes from this offset on lie in one executable segment. */
static uint64_t code_bytes_at(const struct elf_file *f, uint64_t offset)
{
	for (size_t i = 0; i < f->segments_nr; i++) {
		const Elf64_Phdr *s = &f->segments[i];

		if (s->p_type == PT_LOAD && (s->p_flags & PF_X) && offset >= s->p_offset &&
		    offset - s->p_offset < s->p_filesz)
			return s->p_filesz - (offset - s->p_offset);
	}
	return 0;
}

const unsigned char *elf_file__code(struct elf_file *f, uint64_t file_offset, size_t max,
				    size_t *ret_bytes)
{
	uint64_t nr = code_bytes_at(f, file_offset);
	uint64_t *known = hash__find(&f->code_at, file_offset);
	struct code code = {.file_offset = file_offset};

	if (nr > max)
		nr = max;
	if (nr > CODE_BYTES_MAX)
		nr = CODE_BYTES_MAX;
	if (!nr)
		return NULL;
	if (known && f->codes.items[*known].nr >= nr) {
		*ret_bytes = nr;
		return f->codes.items[*known].bytes;
	}
	if (vec_reserve(&f->codes, 1))
		return NULL;
	code.bytes = read_range(f, file_offset, nr);
	if (!code.bytes)
		return NULL;
	code.nr = nr;
	f->codes.items[f->codes.nr++] = code;
	/* Without an entry it is only read again. */
	(void)hash__set(&f->code_at, file_offset, f->codes.nr - 1);
	*ret_bytes = nr;
	return code.bytes;
}

bool elf_file__offset_of(const struct elf_file *f, uint64_t address, uint64_t *ret_offset)
{
	const Elf64_Phdr *s = segment_of(f, address);

	if (!s || address - s->p_vaddr >= s->p_filesz)
		return false;
	*ret_offset = s->p_offset + (address - s->p_vaddr);
	return true;
}

bool elf_file__load_bias(const struct elf_file *f, uint64_t map_start, uint64_t map_offset,
			 uint64_t *ret_base)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < f->segments_nr; i++) {
		const Elf64_Phdr *s = &f->segments[i];
		uint64_t into = s->p_offset % page; /* the loader maps whole pages */

		if (s->p_type != PT_LOAD || !(s->p_flags & PF_X) ||
		    map_offset < s->p_offset - into ||
		    map_offset - (s->p_offset - into) >= s->p_filesz + into)
			continue;
		*ret_base = map_start - (s->p_vaddr - into + (map_offset - (s->p_offset - into)));
		return true;
	}
	return false;
}

const char *elf_file__build_id(const struct elf_file *f)
{
	return f->build_id;
}

int elf_file__section(struct elf_file *f, const char *name, const unsigned char **ret_data,
		      size_t *ret_bytes, uint64_t *ret_address)
{
	const char *names;
	size_t names_bytes;

	if (f->section_names >= f->sections_nr)
		return -ENOENT;
	names = (const char *)section_content(f, f->section_names);
	names_bytes = f->sections[f->section_names].sh_size;
	for (size_t i = 0; names && i < f->sections_nr; i++) {
		const Elf64_Shdr *s = &f->sections[i];
		const unsigned char *data;

		/* read_range() put a zero after the names. */
		if (s->sh_name >= names_bytes || strcmp(names + s->sh_name, name))
			continue;
		data = section_content(f, i);
		if (!data)
			continue;
		*ret_data = data;
		*ret_bytes = s->sh_size;
		*ret_address = s->sh_addr;
		return 0;
	}
	return -ENOENT;
}
