/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Symbols, sections and build-id of an ELF file, each read once. The file is not trusted: every
 * offset is checked and sizes are capped. Only 64-bit files of this machine are taken.
 */
#ifndef GP_INSPECT_ELF_ELF_H
#define GP_INSPECT_ELF_ELF_H

#include "base/digest.h"
#include "base/reason.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct elf_file;

/* A defined function symbol (STT_FUNC or STT_GNU_IFUNC). */
struct elf_symbol {
	const char *name;     /* mangled, without a version; valid until elf_file__free() */
	uint64_t address;     /* ELF virtual address */
	uint64_t file_offset; /* where the code lies in the file: what uprobes take. 0 for an
				 object that has no bytes in the file (.bss) */
	uint64_t bytes;	      /* 0: not known */
};

#define ELF_BUILD_ID_BYTES 20

/* Whether an error says what the file is: it will be the same next time. Any other (no descriptor
 * left, a disk that fails) may be over by then. */
static inline bool elf_error_stays(int err)
{
	return err == -ENOEXEC || err == -EFBIG;
}

/* Whether it says nothing of the file, be it there or not: there was no room in this process. */
static inline bool elf_error_is_ours(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/* Opens and checks the file. 0 or -errno with a reason. */
int elf_file__open(const char *path, struct reason *why, struct elf_file **ret_file);
void elf_file__free(struct elf_file *f);

/* Why something of it that was asked for could not be read and seems not to be there, though it may
 * be the next time: the first such error, 0: none. */
int elf_file__error(const struct elf_file *f);

/* `f` is a debug file of `of`, which must stay as long: it says where its symbols lie. */
void elf_file__set_code(struct elf_file *f, const struct elf_file *of);

/* For CLEANUP. */
static inline void cleanup_elf(struct elf_file **p)
{
	elf_file__free(*p);
}

/* What is not zero ends the calls, and is returned. */
typedef int (*elf_symbol_fn)(const struct elf_symbol *sym, void *arg);

/* Calls fn for each defined function symbol of .dynsym, and of .symtab if there is one, whose
 * mangled name begins with prefix ("" for all); each address and name once. */
int elf_file__each_symbol(struct elf_file *f, const char *prefix, elf_symbol_fn fn, void *arg);

/* The same for several beginnings at once, which are in the order of strcmp(), else -EINVAL: a
 * library of PyTorch has a million symbols. */
int elf_file__each_symbol_of(struct elf_file *f, const char *const *beginnings, size_t nr,
			     elf_symbol_fn fn, void *arg);

/* The same for data objects: each in .dynsym or .symtab of which the name begins with prefix, a
 * name in both tables twice. */
int elf_file__each_object(struct elf_file *f, const char *prefix, elf_symbol_fn fn, void *arg);

/* Looks one function or object up by its mangled name. 0 or -ENOENT. */
int elf_file__symbol(struct elf_file *f, const char *name, struct elf_symbol *ret_symbol);

/* The bytes at a file offset inside an executable segment: *ret_bytes up to max, borrowed, or NULL.
 */
const unsigned char *elf_file__code(struct elf_file *f, uint64_t file_offset, size_t max,
				    size_t *ret_bytes);

/* A call instruction. */
struct elf_call {
	uint64_t address;  /* ELF virtual address */
	uint64_t function; /* of the function around it, by the unwind table; 0: not known */
	uint64_t function_bytes;
};

/* Looks through all executable code for calls of `callee`, a function that the file defines or
 * imports: directly, through its PLT stub, or through its GOT slot. Bytes that look like such a
 * call and are none are told too: decode before you rely on them. Calls fn for each in order, stops
 * when fn returns non-zero and returns that; 0, or -errno if the code cannot be read. Reads the
 * whole code (some 0.1 s per 100 MB), but nothing where the callee's name does not occur. */
int elf_file__each_call(struct elf_file *f, const char *callee,
			int (*fn)(const struct elf_call *call, void *arg), void *arg);

/* Calls fn with each address, of PLT stubs, that code of this file calls to reach an imported
 * function which `is` knows by its mangled name. Stops when fn returns non-zero and returns that;
 * of very many the rest is left out. */
int elf_file__each_import(struct elf_file *f, bool (*is)(const char *name, const char *arg),
			  const char *is_arg, int (*fn)(uint64_t address, void *arg), void *arg);

/* Whether the name occurs among those of the dynamic symbols. */
bool elf_file__mentions(struct elf_file *f, const char *name);

/* Calls fn with the address of each function that a symbol table defines, whatever its name is;
 * some twice. Stops when fn returns non-zero and returns that. */
int elf_file__each_start(struct elf_file *f, int (*fn)(uint64_t address, void *arg), void *arg);

/* Whether a function of so many bytes begins at the file offset, as .eh_frame_hdr has it. */
bool elf_file__has_function(struct elf_file *f, uint64_t file_offset, uint64_t bytes);

/* Adds how the file is loaded: which of its bytes come to which address. */
void elf_file__digest_layout(const struct elf_file *f, struct digest *d);

/* Which file it is, and that nobody has written to it since: file system, inode, owner, size,
 * times. The bytes are not read: whoever owns the file can write to it without a trace, so this
 * says nothing of one owner's file to another. 0 or -errno. */
int elf_file__digest_identity(const struct elf_file *f, uint8_t ret_identity[DIGEST_BYTES]);

/* What fstat() says of the open file. 0 or -errno. */
int elf_file__stat(const struct elf_file *f, struct stat *ret_st);

/* File offset of a virtual address; false if it lies in no loaded segment. */
bool elf_file__offset_of(const struct elf_file *f, uint64_t address, uint64_t *ret_offset);

/* What was added to the virtual addresses of a file whose code at `map_offset` is mapped executable
 * at `map_start`; false if no executable segment lies there. */
bool elf_file__load_bias(const struct elf_file *f, uint64_t map_start, uint64_t map_offset,
			 uint64_t *ret_base);

/* Build-id as lower-case hex, or "" if the file has none; borrowed. */
const char *elf_file__build_id(const struct elf_file *f);

/* The section's content, borrowed: 0 or -ENOENT. */
int elf_file__section(struct elf_file *f, const char *name, const unsigned char **ret_data,
		      size_t *ret_bytes, uint64_t *ret_address);

#endif /* GP_INSPECT_ELF_ELF_H */
