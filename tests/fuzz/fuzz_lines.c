/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Fuzzes what is read of a file's symbols and of what is packed into it, with what grows out of a
 * library with debug information, and what is taken for an answer of the process that reads lines.
 * What libdw does with such a file is that process's affair.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "fuzz/fuzz_seed.h"
#include "inspect/elf/line_reader.h"
#include "inspect/elf/symbols.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ADDRESSES 256

static unsigned int sum;

/* It lies beside this program. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const uint32_t answer[] = {2, 7, 4, 4, 0x616161, 0x626262, 8, 0, 0, -1U};
	CLEANUP(cleanup_free) char *text = NULL;
	char path[4096];
	ssize_t nr = readlink("/proc/self/exe", path, sizeof(path) - 16);
	size_t bytes;

	if (nr < 0)
		abort();
	path[nr] = '\0';
	memcpy(strrchr(path, '/'), "/lines.so", sizeof("/lines.so"));
	if (file_read(path, 1 << 20, &text, &bytes))
		abort();
	fuzz_seed(*argc, *argv, "library", text, bytes);
	fuzz_seed(*argc, *argv, "answer", answer, sizeof(answer));
	return 0;
}

static void read_text(const char *text)
{
	for (; text && *text; text++)
		sum = sum * 31 + (unsigned char)*text;
}

static int take(size_t i, const struct line_place *places, size_t nr, void *arg)
{
	if (!nr || nr > LINES_PLACES_MAX)
		abort();
	for (size_t k = 0; k < nr; k++) {
		read_text(places[k].function);
		read_text(places[k].file);
		sum += places[k].line;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("lines", MFD_CLOEXEC);
	struct symbols *symbols;
	struct elf_file *f;
	char path[64];
	size_t asked;

	(void)line_reader_parse(data, bytes, ADDRESSES, take, NULL, &asked);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || file_write_all(fd, data, bytes))
		abort();
	if (elf_file__open(path, NULL, &f) || symbols__new(f, "/nowhere/lines.so", &symbols))
		return 0;
	for (uint64_t i = 0; i < ADDRESSES; i++)
		read_text(symbols__name(symbols, 0x1000 + i));
	sum += symbols__lines_file(symbols) != NULL;
	symbols__free(symbols);
	return 0;
}
