/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads the call frame information of an ELF file (.eh_frame) as rules that the kernel's walk can
 * follow (bpf/wire.h). libdw parses the records; the programs in them are evaluated here, for the
 * stack pointer, rbp and the return address only. The file is not trusted: no read leaves the
 * section, and the work is bounded by its size. Only for inspect/.
 */
#ifndef GP_INSPECT_UNWIND_CFI_H
#define GP_INSPECT_UNWIND_CFI_H

#include "base/vec.h"
#include "inspect/elf/elf.h"

#include <stdbool.h>
#include <stdint.h>

/* The rule of one register, or of the CFA, while a program runs. */
struct cfi_value {
	enum {
		CFI_SAME = 0,
		CFI_UNDEFINED,
		CFI_OFFSET,	/* lies at CFA + offset */
		CFI_EXPRESSION, /* lies where the expression says */
		CFI_REGISTER,	/* CFA only: register + offset */
		CFI_OTHER,	/* anything else */
	} how;
	uint32_t reg;
	int64_t offset;
	const uint8_t *expression;
	uint64_t expression_bytes;
};

struct cfi_state {
	struct cfi_value cfa, bp, ra;
};

/* What several FDEs share. */
struct cfi_cie {
	uint64_t at; /* in the section */
	uint64_t code_align;
	int64_t data_align;
	struct cfi_state initial;
	uint8_t encoding; /* of addresses */
	bool augmented;	  /* FDEs carry augmentation data */
	bool is_signal;	  /* frames were interrupted, not called from */
	bool good;	  /* understood */
};

/* One function: [start, start + bytes) in ELF addresses. */
struct cfi_fde {
	uint32_t start;
	uint32_t bytes;
	uint32_t cie;
	uint32_t program; /* in the section */
	uint32_t program_bytes;
};

struct cfi {
	const uint8_t *data; /* borrowed from the file */
	size_t bytes;
	uint64_t address;
	VEC(struct cfi_cie) cies; /* by `at` */
	VEC(struct cfi_fde) fdes; /* by start */
	uint64_t skipped_nr;	  /* records that were not understood */
};

/* Reads all records. 0; -ENOENT: the file has none; -E2BIG: more than any real file has, or all
 * addresses above 4 GiB; -ENOMEM. The caller calls cfi_done() in any case. */
int cfi_read(struct elf_file *f, struct cfi *ret_cfi);
void cfi_done(struct cfi *c);

/* Calls fn with each rule of the function and the address from which it holds, ascending; the last
 * one holds to its end. 0, or fn's first non-zero result. */
int cfi_rules(const struct cfi *c, const struct cfi_fde *fde,
	      int (*fn)(uint32_t address, uint64_t rule, void *arg), void *arg);

/* ---- cfi_program.c ---- */

/* Reads bytes from front to back. `bad` is set once they run out; all later reads give 0. */
struct cfi_cursor {
	const uint8_t *at, *end;
	bool bad;
};

/* Read the next number: of so many bytes (at most 8), or as DWARF's ULEB128. */
uint64_t cfi_get(struct cfi_cursor *c, unsigned int bytes);
uint64_t cfi_get_uleb(struct cfi_cursor *c);

/* Reads an address as .eh_frame encodes it (DW_EH_PE_*); `relative` permits one relative to its
 * place. False if the encoding is not supported. */
bool cfi_get_address(struct cfi_cursor *c, const struct cfi *cfi, uint8_t encoding, bool relative,
		     uint64_t *ret_address);

/* Runs the program of a CIE on its initial state. False if it is damaged. */
bool cfi_run_initial(const struct cfi *c, struct cfi_cie *cie, const uint8_t *program,
		     uint64_t bytes);

#endif /* GP_INSPECT_UNWIND_CFI_H */
