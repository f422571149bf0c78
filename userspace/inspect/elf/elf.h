/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads symbols, sections and the build-id of an ELF file, each once. The file is not trusted:
 * every offset is checked and all sizes are bounded. Only 64-bit files of this machine's
 * architecture are accepted.
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
	uint64_t file_offset; /* where the code lies in the file, as uprobes need it; 0 for an
				 object without bytes in the file (.bss) */
	uint64_t bytes;	      /* 0: not known */
};

#define ELF_BUILD_ID_BYTES 20

/* Whether an error is a property of the file and will recur. Any other (no descriptor left, a
 * failing disk) may be gone next time. */
static inline bool elf_error_stays(int err)
{
	return err == -ENOEXEC || err == -EFBIG;
}

/* Whether an error says nothing about the file: this process had no room for it. */
static inline bool elf_error_is_ours(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/* Opens and checks the file. 0 or -errno with a reason. */
int elf_file__open(const char *path, struct reason *why, struct elf_file **ret_file);
void elf_file__free(struct elf_file *f);

/* Returns the first error that made a part of the file look absent although it may be readable next
 * time; 0: none. */
int elf_file__error(const struct elf_file *f);

/* Declares `f` the debug file of `of`, which must live as long and says where the symbols lie. */
void elf_file__set_code(struct elf_file *f, const struct elf_file *of);

/* For CLEANUP. */
static inline void cleanup_elf(struct elf_file **p)
{
	elf_file__free(*p);
}

/* A non-zero result ends the calls and is returned. */
typedef int (*elf_symbol_fn)(const struct elf_symbol *sym, void *arg);

/* Calls fn for each function symbol that .dynsym, or .symtab if there is one, defines and whose
 * mangled name begins with prefix ("" for all); each pair of address and name once. */
int elf_file__each_symbol(struct elf_file *f, const char *prefix, elf_symbol_fn fn, void *arg);

/* Does the same for several prefixes at once, because a library of PyTorch has a million symbols.
 * They must be in strcmp() order, else -EINVAL. */
int elf_file__each_symbol_of(struct elf_file *f, const char *const *beginnings, size_t nr,
			     elf_symbol_fn fn, void *arg);

/* Does the same for data objects; a name in both tables is passed twice. */
int elf_file__each_object(struct elf_file *f, const char *prefix, elf_symbol_fn fn, void *arg);

/* Finds one function or object by its mangled name. 0 or -ENOENT. */
int elf_file__symbol(struct elf_file *f, const char *name, struct elf_symbol *ret_symbol);

/* Returns the bytes at a file offset in an executable segment: *ret_bytes, up to max, borrowed; or
 * NULL. */
const unsigned char *elf_file__code(struct elf_file *f, uint64_t file_offset, size_t max,
				    size_t *ret_bytes);

/* A call instruction. */
struct elf_call {
	uint64_t address;  /* ELF virtual address */
	uint64_t function; /* the function around it, by the unwind table; 0: unknown */
	uint64_t function_bytes;
};

/* Searches all executable code for calls of `callee`, a function that the file defines or imports:
 * direct calls, and calls through its PLT stub or GOT slot. Also reports bytes that only look like
 * such a call: decode them first. Calls fn in order of address, stops when fn returns non-zero and
 * returns that; 0, or -errno if the code cannot be read. Reads all code (some 0.1 s per 100 MB), or
 * nothing if the callee's name does not occur. */
int elf_file__each_call(struct elf_file *f, const char *callee,
			int (*fn)(const struct elf_call *call, void *arg), void *arg);

/* Calls fn with the address of each PLT stub through which this file calls an imported function
 * whose mangled name `is` accepts. Stops when fn returns non-zero and returns that. The number is
 * bounded. */
int elf_file__each_import(struct elf_file *f, bool (*is)(const char *name, const char *arg),
			  const char *is_arg, int (*fn)(uint64_t address, void *arg), void *arg);

/* Whether the name occurs among the dynamic symbols. */
bool elf_file__mentions(struct elf_file *f, const char *name);

/* Calls fn with the address of each function in a symbol table, whatever its name; some twice.
 * Stops when fn returns non-zero and returns that. */
int elf_file__each_start(struct elf_file *f, int (*fn)(uint64_t address, void *arg), void *arg);

/* Whether .eh_frame_hdr has a function of this size at the file offset. */
bool elf_file__has_function(struct elf_file *f, uint64_t file_offset, uint64_t bytes);

/* Adds how the file is loaded: which of its bytes go to which address. */
void elf_file__digest_layout(const struct elf_file *f, struct digest *d);

/* Digests the identity of the file and its last change: file system, inode, owner, size, times; not
 * the bytes. The owner can write to the file without a trace, so this proves nothing about one
 * owner's file to another user. 0 or -errno. */
int elf_file__digest_identity(const struct elf_file *f, uint8_t ret_identity[DIGEST_BYTES]);

/* Returns fstat() of the open file. 0 or -errno. */
int elf_file__stat(const struct elf_file *f, struct stat *ret_st);

/* Converts a virtual address to a file offset; false if no loaded segment contains it. */
bool elf_file__offset_of(const struct elf_file *f, uint64_t address, uint64_t *ret_offset);

/* Computes the load bias of a file whose code at `map_offset` is mapped executable at `map_start`;
 * false if no executable segment lies there. */
bool elf_file__load_bias(const struct elf_file *f, uint64_t map_start, uint64_t map_offset,
			 uint64_t *ret_base);

/* Returns the build-id in lower-case hex, borrowed; "" if the file has none. */
const char *elf_file__build_id(const struct elf_file *f);

/* Returns the section's content, borrowed. 0 or -ENOENT. */
int elf_file__section(struct elf_file *f, const char *name, const unsigned char **ret_data,
		      size_t *ret_bytes, uint64_t *ret_address);

#endif /* GP_INSPECT_ELF_ELF_H */
