/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * inspect/elf on this program and on libc, against what the running program itself knows; and on
 * thousands of damaged copies.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/vec.h"
#include "inspect/elf/elf.h"
#include "inspect/elf/symbols.h"
#include "unit/elf_exercise.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

/* Reads fail as those of a disk that does. */
static bool disk_fails;

ssize_t pread(int fd, void *buf, size_t bytes, off_t offset)
{
	if (disk_fails) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, buf, bytes, offset);
}

/* Looked for by the tests; external, so that its address is its symbol's. */
int gp_test_marker(int n);
int gp_test_marker(int n)
{
	return n * 3 + 1;
}

/* Static: in .symtab only. */
static __attribute__((noinline, used)) int gp_test_static_marker(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 7;
}

unsigned char gp_test_object[16] = "in the file";
unsigned char gp_test_zeros[4096];

struct found {
	VEC(struct elf_symbol) list;
};

static int keep(const struct elf_symbol *sym, void *arg)
{
	struct found *f = arg;

	return vec_push(&f->list, *sym);
}

static struct elf_file *open_file(const char *path)
{
	struct elf_file *f;
	struct reason why = {""};

	if (elf_file__open(path, &why, &f))
		fail_msg("%s", why.text);
	return f;
}

/* Path and note of the mapped libc, from the loader. */
struct libc {
	char path[256];
	char build_id[64];
};

static void read_note(const unsigned char *at, size_t bytes, char *ret_id)
{
	while (bytes >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *n = (const void *)at;
		size_t head = sizeof(*n) + ((n->n_namesz + 3) & ~3U);
		size_t all = head + ((n->n_descsz + 3) & ~3U);

		if (n->n_type == NT_GNU_BUILD_ID && !memcmp(at + sizeof(*n), "GNU", 4))
			for (size_t i = 0; i < n->n_descsz; i++)
				(void)snprintf(ret_id + 2 * i, 3, "%02x", at[head + i]);
		at += all;
		bytes -= all;
	}
}

static int find_libc(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct libc *c = arg;

	if (!strstr(info->dlpi_name, "/libc.so.6"))
		return 0;
	(void)snprintf(c->path, sizeof(c->path), "%s", info->dlpi_name);
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE && !c->build_id[0])
			read_note((const unsigned char *)info->dlpi_addr +
					  info->dlpi_phdr[i].p_vaddr,
				  info->dlpi_phdr[i].p_memsz, c->build_id);
	return 1;
}

static struct libc libc_of(void)
{
	struct libc c = {"", ""};

	assert_int_equal(dl_iterate_phdr(find_libc, &c), 1);
	return c;
}

static void finds_own_functions(void **state)
{
	struct elf_file *f = open_file("/proc/self/exe");
	struct elf_symbol sym;
	const unsigned char *code;
	uint64_t number;
	size_t bytes;

	assert_int_equal(elf_file__symbol(f, "gp_test_marker", &sym), 0);
	assert_string_equal(sym.name, "gp_test_marker");
	assert_true(sym.bytes > 0);
	code = elf_file__code(f, sym.file_offset, sym.bytes, &bytes);
	assert_non_null(code);
	assert_int_equal(bytes, sym.bytes);
	assert_memory_equal(code, (const void *)(uintptr_t)gp_test_marker, bytes);
	assert_true(elf_file__offset_of(f, sym.address, &number));
	assert_int_equal(number, sym.file_offset);
	assert_int_equal(elf_file__symbol(f, "gp_test_static_marker", &sym), 0);
	code = elf_file__code(f, sym.file_offset, sym.bytes, &bytes);
	assert_memory_equal(code, (const void *)(uintptr_t)gp_test_static_marker, bytes);
	assert_int_equal(elf_file__symbol(f, "gp_test_no_such_thing", &sym), -ENOENT);
	assert_int_equal(elf_file__symbol(f, "gp_test_marke", &sym), -ENOENT);
	elf_file__free(f);
}

static void finds_objects(void **state)
{
	struct elf_file *f = open_file("/proc/self/exe");
	struct elf_symbol sym;
	uint64_t offset;
	char bytes[16];

	assert_int_equal(elf_file__symbol(f, "gp_test_object", &sym), 0);
	assert_true(sym.file_offset > 0);
	CLEANUP(cleanup_fd) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), (off_t)sym.file_offset), sizeof(bytes));
	assert_memory_equal(bytes, gp_test_object, sizeof(bytes));
	assert_int_equal(elf_file__symbol(f, "gp_test_zeros", &sym), 0);
	assert_int_equal(sym.file_offset, 0);
	assert_false(elf_file__offset_of(f, sym.address, &offset));
	elf_file__free(f);
}

static void each_symbol_once(void **state)
{
	struct elf_file *f = open_file("/proc/self/exe");
	struct found all = {0}, some = {0};
	struct hash seen = {0};
	size_t expected = 0;

	assert_int_equal(elf_file__each_symbol(f, "", keep, &all), 0);
	assert_int_equal(elf_file__each_symbol(f, "gp_test_", keep, &some), 0);
	assert_true(all.list.nr > some.list.nr);
	for (size_t i = 0; i < all.list.nr; i++) {
		const struct elf_symbol *s = &all.list.items[i];
		uint64_t key = hash_bytes(s->name, strlen(s->name)) + hash_mix(s->address);

		assert_null(hash__find(&seen, key));
		assert_int_equal(hash__set(&seen, key, 1), 0);
		assert_null(strchr(s->name, '@'));
		expected += !strncmp(s->name, "gp_test_", 8);
	}
	/* The two markers; the objects are no functions. */
	assert_int_equal(some.list.nr, expected);
	assert_int_equal(some.list.nr, 2);
	hash__done(&seen);
	vec_done(&all.list);
	vec_done(&some.list);
	elf_file__free(f);
}

static Elf64_Shdr *section_of_type(char *data, uint32_t type)
{
	const Elf64_Ehdr *h = (const void *)data;
	Elf64_Shdr *sections = (void *)(data + h->e_shoff);

	for (size_t i = 0; i < h->e_shnum; i++)
		if (sections[i].sh_type == type)
			return &sections[i];
	fail_msg("no section of type %u", type);
	return NULL;
}

/* A file whose two tables hold the same symbols tells each once. */
static void both_tables_are_one(void **state)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("elf", MFD_CLOEXEC);
	struct found once = {0}, twice = {0};
	struct elf_file *f = open_file("/proc/self/exe");
	Elf64_Shdr *dynamic, *full;
	char *data, path[64];
	size_t bytes;

	assert_int_equal(file_read("/proc/self/exe", 1 << 28, &data, &bytes), 0);
	dynamic = section_of_type(data, SHT_DYNSYM);
	full = section_of_type(data, SHT_SYMTAB);
	dynamic->sh_offset = full->sh_offset;
	dynamic->sh_size = full->sh_size;
	dynamic->sh_link = full->sh_link;
	assert_int_equal(file_write_all(fd, data, bytes), 0);
	free(data);
	assert_int_equal(elf_file__each_symbol(f, "gp_test_", keep, &once), 0);
	elf_file__free(f);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	f = open_file(path);
	assert_int_equal(elf_file__each_symbol(f, "gp_test_", keep, &twice), 0);
	assert_int_equal(once.list.nr, 2);
	assert_int_equal(twice.list.nr, 2);
	elf_file__free(f);
	vec_done(&once.list);
	vec_done(&twice.list);
}

static int stop_at_third(const struct elf_symbol *sym, void *arg)
{
	int *nr = arg;

	return ++*nr == 3 ? 77 : 0;
}

static void stops_when_reported(void **state)
{
	struct libc c = libc_of();
	struct elf_file *f = open_file(c.path);
	int nr = 0;

	assert_int_equal(elf_file__each_symbol(f, "", stop_at_third, &nr), 77);
	assert_int_equal(nr, 3);
	elf_file__free(f);
}

static void reads_libc(void **state)
{
	struct libc c = libc_of();
	struct elf_file *f = open_file(c.path);
	const unsigned char *data;
	struct elf_symbol sym;
	uint64_t address;
	size_t bytes;

	assert_true(c.build_id[0] != '\0');
	assert_string_equal(elf_file__build_id(f), c.build_id);
	/* An ifunc, and a name with two versions. */
	assert_int_equal(elf_file__symbol(f, "memcpy", &sym), 0);
	assert_int_equal(elf_file__symbol(f, "getpid", &sym), 0);
	assert_int_equal(elf_file__section(f, ".text", &data, &bytes, &address), 0);
	assert_true(sym.address >= address && sym.address < address + bytes);
	assert_int_equal(elf_file__section(f, ".bss", &data, &bytes, &address), -ENOENT);
	assert_int_equal(elf_file__section(f, ".nothing", &data, &bytes, &address), -ENOENT);
	elf_file__free(f);
}

static void code_is_bounded(void **state)
{
	struct elf_file *f = open_file("/proc/self/exe");
	const unsigned char *a, *b;
	struct elf_symbol sym;
	size_t bytes;

	assert_int_equal(elf_file__symbol(f, "gp_test_marker", &sym), 0);
	a = elf_file__code(f, sym.file_offset, 1, &bytes);
	assert_int_equal(bytes, 1);
	b = elf_file__code(f, sym.file_offset, 3, &bytes);
	assert_int_equal(bytes, 3);
	assert_int_equal(a[0], b[0]); /* the first is still there */
	assert_null(elf_file__code(f, sym.file_offset, 0, &bytes));
	assert_null(elf_file__code(f, UINT64_MAX, 16, &bytes));
	/* The header is in no executable segment, the objects' data neither. */
	assert_int_equal(elf_file__symbol(f, "gp_test_object", &sym), 0);
	assert_null(elf_file__code(f, sym.file_offset, 16, &bytes));
	elf_file__free(f);
}

static void refuses_what_is_no_elf_file(void **state)
{
	struct elf_file *f = NULL;
	struct reason why = {""};
	char path[] = "/tmp/gpuprof-test-XXXXXX";
	char fifo[64];

	assert_int_equal(elf_file__open("/no/such/file", &why, &f), -ENOENT);
	assert_non_null(strstr(why.text, "/no/such/file"));
	assert_int_equal(elf_file__open("/dev/null", &why, &f), -ENOEXEC);
	assert_int_equal(elf_file__open("/etc/passwd", &why, &f), -ENOEXEC);
	assert_int_equal(elf_file__open("/", &why, &f), -ENOEXEC);
	assert_int_equal(elf_file__open("/proc/self/maps", &why, &f), -ENOEXEC);
	assert_non_null(mkdtemp(path));
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(elf_file__open(fifo, &why, &f), -ENOEXEC);
	assert_int_equal(unlink(fifo), 0);
	assert_int_equal(rmdir(path), 0);
	assert_null(f);
}

/* A program of Debian's, some tens of KiB: small enough for thousands of copies. */
static char *small_program(size_t *ret_bytes)
{
	char *text;

	assert_int_equal(file_read("/bin/true", 1 << 20, &text, ret_bytes), 0);
	return text;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* Where damage does something: headers, and what the section headers say holds tables. */
static size_t pick_offset(const char *data, size_t bytes, uint64_t *random)
{
	const Elf64_Ehdr *h = (const void *)data;
	uint64_t shape = next_random(random) % 4;
	size_t at;

	if (shape == 0)
		at = next_random(random) % sizeof(*h);
	else if (shape == 1)
		at = h->e_phoff + next_random(random) % (h->e_phnum * sizeof(Elf64_Phdr));
	else if (shape == 2)
		at = h->e_shoff + next_random(random) % (h->e_shnum * sizeof(Elf64_Shdr));
	else
		at = next_random(random) % bytes;
	return at < bytes ? at : bytes - 1;
}

static void survives_damage(void **state)
{
	static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
	uint64_t random = 1;
	size_t bytes, taken = 0;
	char *good = small_program(&bytes);
	char *bad = malloc(bytes);

	assert_non_null(bad);
	assert_int_equal(elf_exercise(good, bytes), 1);
	for (int i = 0; i < 1000; i++) {
		size_t hits = 1 + next_random(&random) % 6;

		memcpy(bad, good, bytes);
		for (size_t k = 0; k < hits; k++)
			bad[pick_offset(good, bytes, &random)] =
				(char)(next_random(&random) % 2
					       ? values[next_random(&random) % sizeof(values)]
					       : next_random(&random));
		taken += (size_t)elf_exercise(bad, bytes);
	}
	/* Both ways are walked. */
	assert_true(taken > 0 && taken < 1000);
	free(bad);
	free(good);
}

static void survives_cuts(void **state)
{
	size_t bytes;
	char *good = small_program(&bytes);

	for (size_t i = 0; i < 300; i++)
		(void)elf_exercise(good, i < 150 ? i : bytes * i / 300);
	free(good);
}

/* A file that becomes shorter while it is open: what was not read yet is absent. */
static void survives_a_file_that_shrinks(void **state)
{
	size_t bytes, nr;
	char *good = small_program(&bytes);
	CLEANUP(cleanup_fd) int fd = memfd_create("elf", MFD_CLOEXEC);
	struct found all = {0};
	struct elf_file *f;
	const unsigned char *data;
	uint64_t address;
	char path[64];

	assert_int_equal(file_write_all(fd, good, bytes), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	f = open_file(path);
	assert_int_equal(ftruncate(fd, 64), 0);
	assert_int_equal(elf_file__each_symbol(f, "", keep, &all), 0);
	assert_int_equal(all.list.nr, 0);
	assert_int_equal(elf_file__section(f, ".text", &data, &nr, &address), -ENOENT);
	elf_file__free(f);
	vec_done(&all.list);
	free(good);
}

static void emits_what_fails_from_what_is_not_there(void **state)
{
	struct elf_file *f = open_file("/proc/self/exe");
	struct symbols *symbols;
	struct elf_symbol found;

	assert_int_equal(elf_file__symbol(f, "gp_test_nowhere", &found), -ENOENT);
	assert_int_equal(elf_file__error(f), 0);
	elf_file__free(f);
	f = open_file("/proc/self/exe");
	disk_fails = true;
	assert_int_equal(elf_file__symbol(f, "gp_test_marker", &found), -ENOENT);
	assert_int_equal(elf_file__error(f), -EIO);
	elf_file__free(f);
	disk_fails = false;
	f = open_file("/proc/self/exe");
	disk_fails = true;
	assert_int_equal(symbols__new(f, NULL, &symbols), -EIO);
	disk_fails = false;
	assert_false(elf_error_stays(-EIO));
	assert_true(elf_error_stays(-ENOEXEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_own_functions),
		cmocka_unit_test(finds_objects),
		cmocka_unit_test(each_symbol_once),
		cmocka_unit_test(both_tables_are_one),
		cmocka_unit_test(stops_when_reported),
		cmocka_unit_test(reads_libc),
		cmocka_unit_test(code_is_bounded),
		cmocka_unit_test(refuses_what_is_no_elf_file),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(survives_cuts),
		cmocka_unit_test(survives_a_file_that_shrinks),
		cmocka_unit_test(emits_what_fails_from_what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
