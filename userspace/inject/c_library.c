/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds by code where locks are held: in the loader as a whole, in the allocator's object file
 * inside libc (its helpers have no names, so the gap before its first function belongs to it), in
 * other allocators as a whole, and in the functions that create threads, fork, exit or walk the
 * libraries.
 */
#include "inject/c_library.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/elf/elf.h"

#define HEADERS_MAX 64
#define PAGE	    4096u

/* Functions that hold locks, by exported name. The first list is one object file of libc, helpers
 * included. */
static const char *const allocator_names[] = {
	"malloc",	   "free",	     "calloc",
	"realloc",	   "memalign",	     "aligned_alloc",
	"posix_memalign",  "valloc",	     "pvalloc",
	"malloc_info",	   "malloc_trim",    "malloc_stats",
	"mallopt",	   "mallinfo",	     "mallinfo2",
	"__libc_memalign", "__libc_malloc",  "__libc_free",
	"__libc_calloc",   "__libc_realloc", "malloc_usable_size",
};

static const char *const single_names[] = {
	"reallocarray",
	"pthread_create",
	"pthread_exit",
	"pthread_atfork",
	"__register_atfork",
	"fork",
	"__libc_fork",
	"_Fork",
	"vfork",
	"__vfork",
	"posix_spawn",
	"posix_spawnp",
	"exit",
	"_exit",
	"quick_exit",
	"__cxa_atexit",
	"__cxa_finalize",
	"__cxa_thread_atexit_impl",
	"setenv",
	"unsetenv",
	"putenv",
	"clearenv",
	"dl_iterate_phdr",
	"dladdr",
	"dladdr1",
	"dlclose",
	"dlerror",
	"dlinfo",
	"dlmopen",
	"dlopen",
	"dlsym",
	"dlvsym",
	"__libc_dlopen_mode",
	"__libc_dlsym",
	"__libc_dlclose",
	"_dl_addr",
};

static bool begins(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static bool is_loader(const char *name)
{
	return begins(name, "ld-linux") || begins(name, "ld-2.") || begins(name, "ld.so");
}

static bool is_c_library(const char *name)
{
	return begins(name, "libc.so.6") || begins(name, "libc-2.");
}

static bool is_pthread(const char *name)
{
	return begins(name, "libpthread.so.0") || begins(name, "libpthread-2.");
}

static bool is_dl(const char *name)
{
	return begins(name, "libdl.so.2") || begins(name, "libdl-2.");
}

static bool is_allocator(const char *name)
{
	static const char *const parts[] = {"malloc", "hoard", "scudo"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

static bool same_file(const struct mapping *m, const struct target_library *l)
{
	return m->inode && m->inode == l->inode && m->device == l->device;
}

/* Calls add for each executable mapping of one library. */
static int each_code(const struct memory_map *map, const struct target_library *l,
		     int (*add)(struct c_library *c, const struct mapping *m), struct c_library *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < map->maps.nr; i++)
		if (map->maps.items[i].executable && same_file(&map->maps.items[i], l))
			err = add(c, &map->maps.items[i]);
	return err;
}

static int add_unsafe(struct c_library *c, const struct mapping *m)
{
	return vec_push(&c->unsafe, ((struct range){m->start, m->end}));
}

static int add_own(struct c_library *c, const struct mapping *m)
{
	return vec_push(&c->own, ((struct range){m->start, m->end}));
}

struct functions {
	VEC(uint64_t) starts;	    /* starts of all functions, sorted */
	struct c_library *named_to; /* receives their ranges, may be NULL */
	uint64_t base;
};

static int collect_start(const struct elf_symbol *sym, void *arg)
{
	struct functions *f = arg;
	uint64_t start = f->base + sym->address;
	int err = vec_push(&f->starts, sym->address);

	if (err || !f->named_to || !sym->bytes)
		return err;
	return vec_push(&f->named_to->named, ((struct range){start, start + sym->bytes}));
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_range(const void *a, const void *b)
{
	return compare_u64(&((const struct range *)a)->start, &((const struct range *)b)->start);
}

/* Returns the first function start above `address`, or the last one below it; `otherwise` if there
 * is none. */
static uint64_t neighbour(const struct functions *f, uint64_t address, bool above,
			  uint64_t otherwise)
{
	uint64_t found = otherwise;

	for (size_t i = 0; i < f->starts.nr; i++) {
		if (above && f->starts.items[i] > address)
			return f->starts.items[i];
		if (!above && f->starts.items[i] < address)
			found = f->starts.items[i];
	}
	return found;
}

/* Adds the range of malloc's object file: from the end of the function before its first one to the
 * start of the one after its last. A name that was defined far away (a wrapper in another object)
 * would stretch the range over half of libc, so a name more than 64 KiB from malloc counts alone.
 */
static int add_allocator(struct c_library *c, struct elf_file *elf, uint64_t base,
			 const struct functions *f)
{
	uint64_t low = UINT64_MAX, high = 0, before;
	struct elf_symbol sym, malloc_symbol;

	if (elf_file__symbol(elf, "malloc", &malloc_symbol))
		return 0;
	for (size_t i = 0; i < sizeof(allocator_names) / sizeof(allocator_names[0]); i++) {
		uint64_t distance;

		if (elf_file__symbol(elf, allocator_names[i], &sym))
			continue;
		distance = sym.address > malloc_symbol.address
				   ? sym.address - malloc_symbol.address
				   : malloc_symbol.address - sym.address;
		if (distance > 65536) {
			int err = vec_push(&c->unsafe,
					   ((struct range){base + sym.address,
							   base + sym.address + sym.bytes + 1}));
			if (err)
				return err;
			continue;
		}
		low = sym.address < low ? sym.address : low;
		high = sym.address > high ? sym.address : high;
	}
	before = neighbour(f, low, false, low);
	return vec_push(&c->unsafe, ((struct range){base + before,
						    base + neighbour(f, high, true, high + PAGE)}));
}

static int add_singles(struct c_library *c, struct elf_file *elf, uint64_t base,
		       const struct functions *f)
{
	struct elf_symbol sym;
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(single_names) / sizeof(single_names[0]); i++) {
		if (elf_file__symbol(elf, single_names[i], &sym))
			continue;
		if (!sym.bytes)
			sym.bytes =
				neighbour(f, sym.address, true, sym.address + PAGE) - sym.address;
		err = vec_push(&c->unsafe, ((struct range){base + sym.address,
							   base + sym.address + sym.bytes}));
	}
	return err;
}

static void take_function(struct elf_file *elf, uint64_t base, const char *name, uint64_t *at)
{
	struct elf_symbol sym;

	if (!*at && !elf_file__symbol(elf, name, &sym))
		*at = base + sym.address;
}

static void take_functions(struct c_library *c, struct elf_file *elf, uint64_t base)
{
	struct elf_symbol sym;

	if (!elf_file__symbol(elf, "dlopen", &sym) && !c->dlopen_at) {
		take_function(elf, base, "dlopen", &c->dlopen_at);
		take_function(elf, base, "dlsym", &c->dlsym_at);
		take_function(elf, base, "dlclose", &c->dlclose_at);
		take_function(elf, base, "dlerror", &c->dlerror_at);
	}
}

/* Takes libc's internal functions: glibc before 2.34 keeps dlopen in libdl, which may not be
 * loaded. */
static void take_internal_functions(struct c_library *c, struct elf_file *elf, uint64_t base)
{
	c->dlopen_at = c->dlsym_at = c->dlclose_at = c->dlerror_at = 0;
	take_function(elf, base, "__libc_dlopen_mode", &c->dlopen_at);
	take_function(elf, base, "__libc_dlsym", &c->dlsym_at);
	take_function(elf, base, "__libc_dlclose", &c->dlclose_at);
	c->dlopen_flag = 0x80000000u; /* __RTLD_DLOPEN */
}

static void cleanup_functions(struct functions *f)
{
	vec_done(&f->starts);
}

/* Adds the code that signal handlers return to: mov $15, %rax; syscall. It has no exported name. */
static int add_signal_returns(struct c_library *c, struct elf_file *elf, uint64_t base)
{
	static const unsigned char code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	const unsigned char *text, *at;
	uint64_t address;
	size_t bytes;
	int err = 0;

	if (elf_file__section(elf, ".text", &text, &bytes, &address))
		return 0;
	for (at = text; !err; at++) {
		at = memmem(at, bytes - (size_t)(at - text), code, sizeof(code));
		if (!at)
			break;
		err = vec_push(&c->signal_returns, base + address + (uint64_t)(at - text));
	}
	return err;
}

static int read_functions(struct c_library *c, const struct target_library *l, bool is_library,
			  struct reason *why)
{
	CLEANUP(cleanup_elf) struct elf_file *elf = NULL;
	CLEANUP(cleanup_functions)
	struct functions f = {.named_to = is_library ? c : NULL, .base = l->base};
	int err = elf_file__open(l->open_path, why, &elf);

	if (err)
		return err;
	err = elf_file__each_symbol(elf, "", collect_start, &f);
	if (err)
		return reason_set(why, err, "cannot read the symbols of '%s'", l->path);
	if (f.starts.nr)
		qsort(f.starts.items, f.starts.nr, sizeof(f.starts.items[0]), compare_u64);
	if (is_library)
		take_functions(c, elf, l->base);
	if (is_library && !c->dlopen_at && is_c_library(file_base_name(l->path)))
		take_internal_functions(c, elf, l->base);
	err = add_allocator(c, elf, l->base, &f);
	if (!err)
		err = add_singles(c, elf, l->base, &f);
	if (!err)
		err = add_signal_returns(c, elf, l->base);
	return err ? reason_set(why, err, "out of memory") : 0;
}

/* Adds the unused end of the last page of a code mapping, behind what the program header covers.
 * The header is read from the process's memory: a false one can only hurt that process. */
static int add_place(struct c_library *c, const struct memory_map *map,
		     const struct target_library *l, const struct tracee *memory)
{
	const struct mapping *first = memory_map__find(map, l->start);
	Elf64_Phdr headers[HEADERS_MAX];
	Elf64_Ehdr e;

	if (!first || first->offset || tracee_read(memory, l->start, &e, sizeof(e)) ||
	    memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_phentsize != sizeof(headers[0]) ||
	    !e.e_phnum || e.e_phnum > HEADERS_MAX || e.e_phoff > PAGE ||
	    tracee_read(memory, l->start + e.e_phoff, headers, e.e_phnum * sizeof(headers[0])))
		return 0;
	for (size_t i = 0; i < e.e_phnum; i++) {
		uint64_t content_end;
		const struct mapping *m;

		if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_X) ||
		    headers[i].p_filesz != headers[i].p_memsz || !headers[i].p_filesz)
			continue;
		if (__builtin_add_overflow(l->base + headers[i].p_vaddr, headers[i].p_filesz,
					   &content_end))
			continue;
		m = memory_map__find(map, content_end - 1);
		if (!m || !m->executable || m->writable || !m->private || !same_file(m, l) ||
		    m->end - content_end >= PAGE)
			continue;
		content_end = (content_end + 15) & ~15ull;
		if (content_end < m->end)
			return vec_push(&c->places, ((struct range){content_end, m->end}));
	}
	return 0;
}

static int read_library(struct c_library *c, const struct memory_map *map,
			const struct target_library *l, const struct tracee *memory,
			struct reason *why)
{
	const char *name = file_base_name(l->path);
	bool own = is_c_library(name) || is_pthread(name) || is_dl(name);
	int err = 0;

	if (is_loader(name))
		err = each_code(map, l, add_unsafe, c);
	else if (own)
		err = read_functions(c, l, true, why);
	else if (is_allocator(name))
		err = each_code(map, l, add_unsafe, c);
	if (!err && (own || is_loader(name)))
		err = each_code(map, l, add_own, c);
	if (!err &&
	    (own || is_loader(name) || begins(name, "libm.so.6") || begins(name, "libm-2.")))
		err = add_place(c, map, l, memory);
	return err;
}

/* Sorts and merges ranges, for ranges_hold(). */
static void merge_ranges(struct range *ranges, size_t *nr)
{
	size_t kept = 0;

	if (!*nr)
		return;
	qsort(ranges, *nr, sizeof(ranges[0]), compare_range);
	for (size_t i = 1; i < *nr; i++) {
		if (ranges[i].start > ranges[kept].end)
			ranges[++kept] = ranges[i];
		else if (ranges[i].end > ranges[kept].end)
			ranges[kept].end = ranges[i].end;
	}
	*nr = kept + 1;
}

bool ranges_hold(const struct range *ranges, size_t nr, uint64_t address)
{
	size_t low = 0, high = nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (ranges[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low < nr && ranges[low].start <= address;
}

static bool is_exe(const struct target_process *p, const struct target_library *l)
{
	return p->exe && !strcmp(p->exe, l->path);
}

static int check_found(const struct target_process *p, const struct c_library *c,
		       struct reason *why)
{
	for (size_t i = 0; i < p->libraries_nr; i++)
		if (strstr(file_base_name(p->libraries[i].path), "musl"))
			return reason_set(why, -ENOSYS,
					  "process %d uses musl, only glibc is supported; use "
					  "--no-inject",
					  p->pid);
	if (!c->dlopen_at || !c->dlsym_at || !c->dlclose_at)
		return reason_set(why, -ENOSYS,
				  "process %d has no dlopen (statically linked?); use --no-inject",
				  p->pid);
	return 0;
}

int c_library__read(const struct target_process *p, const struct memory_map *map,
		    const struct tracee *memory, struct reason *why, struct c_library *ret_library)
{
	struct c_library *c = ret_library;
	int err = 0;

	for (size_t i = 0; !err && i < p->libraries_nr; i++) {
		const struct target_library *l = &p->libraries[i];

		err = read_library(c, map, l, memory, why);
		if (!err && is_exe(p, l)) {
			err = add_place(c, map, l, memory);
			/* An allocator linked into the executable is found by its functions' names.
			 */
			if (!err)
				err = read_functions(c, l, false, NULL) == -ENOMEM ? -ENOMEM : 0;
		}
	}
	if (err)
		return err;
	merge_ranges(c->unsafe.items, &c->unsafe.nr);
	merge_ranges(c->own.items, &c->own.nr);
	merge_ranges(c->named.items, &c->named.nr);
	return check_found(p, c, why);
}

void c_library__done(struct c_library *c)
{
	vec_done(&c->unsafe);
	vec_done(&c->own);
	vec_done(&c->named);
	vec_done(&c->places);
	vec_done(&c->signal_returns);
}
