/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads CIEs and FDEs from .eh_frame. libdw finds each record and its fields, but leaves an FDE's
 * two addresses and its augmentation undecoded.
 */
#include "inspect/unwind/cfi.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <string.h>

#define CIES_MAX 65536
#define FDES_MAX (8U << 20)

void cfi_done(struct cfi *c)
{
	vec_done(&c->cies);
	vec_done(&c->fdes);
}

/* Reads the letters of a CIE's augmentation and their data. False: a letter is unknown. */
static bool read_augmentation(const struct cfi *c, const Dwarf_CIE *d, struct cfi_cie *cie)
{
	struct cfi_cursor at = {.at = d->augmentation_data,
				.end = d->augmentation_data + d->augmentation_data_size};
	const char *letter = d->augmentation;
	uint64_t ignored;

	if (!*letter)
		return true;
	if (*letter != 'z' || !d->augmentation_data)
		return false;
	cie->augmented = true;
	while (*++letter && !at.bad) {
		uint8_t encoding;

		switch (*letter) {
		case 'R':
			cie->encoding = (uint8_t)cfi_get(&at, 1);
			break;
		case 'L':
			(void)cfi_get(&at, 1);
			break;
		case 'P':
			encoding = (uint8_t)cfi_get(&at, 1) & (uint8_t)~DW_EH_PE_indirect;
			if (!cfi_get_address(&at, c, encoding, true, &ignored))
				return false;
			break;
		case 'S':
			cie->is_signal = true;
			break;
		default:
			return false;
		}
	}
	return !at.bad;
}

static int add_cie(struct cfi *c, uint64_t offset, const Dwarf_CIE *d)
{
	struct cfi_cie cie = {.at = offset,
			      .code_align = d->code_alignment_factor,
			      .data_align = d->data_alignment_factor};

	if (c->cies.nr >= CIES_MAX)
		return -E2BIG;
	cie.good =
		read_augmentation(c, d, &cie) && d->return_address_register == 16 &&
		d->initial_instructions_end >= d->initial_instructions &&
		cfi_run_initial(c, &cie, d->initial_instructions,
				(uint64_t)(d->initial_instructions_end - d->initial_instructions));
	c->skipped_nr += !cie.good;
	return vec_push(&c->cies, cie);
}

static const struct cfi_cie *find_cie(const struct cfi *c, uint64_t at)
{
	size_t low = 0, high = c->cies.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->cies.items[middle].at == at)
			return &c->cies.items[middle];
		if (c->cies.items[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int add_fde(struct cfi *c, const Dwarf_FDE *d)
{
	const struct cfi_cie *cie = find_cie(c, d->CIE_pointer);
	struct cfi_cursor at = {.at = d->start, .end = d->end};
	uint64_t start = 0, bytes = 0, extra;

	if (c->fdes.nr >= FDES_MAX)
		return -E2BIG;
	if (!cie || !cie->good || !cfi_get_address(&at, c, cie->encoding, true, &start) ||
	    !cfi_get_address(&at, c, cie->encoding, false, &bytes)) {
		c->skipped_nr++;
		return 0;
	}
	if (cie->augmented) {
		extra = cfi_get_uleb(&at);
		at.bad |= extra > (uint64_t)(at.end - at.at);
		at.at += at.bad ? 0 : extra;
	}
	/* Functions that the linker dropped have address 0. */
	if (!at.bad && (!start || !bytes))
		return 0;
	if (at.bad || start > UINT32_MAX || bytes > UINT32_MAX - start) {
		c->skipped_nr++;
		return 0;
	}
	struct cfi_fde fde = {.start = (uint32_t)start,
			      .bytes = (uint32_t)bytes,
			      .cie = (uint32_t)(cie - c->cies.items),
			      .program = (uint32_t)(at.at - c->data),
			      .program_bytes = (uint32_t)(at.end - at.at)};

	return vec_push(&c->fdes, fde);
}

static int compare_fdes(const void *a, const void *b)
{
	const struct cfi_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->program < y->program ? -1 : x->program > y->program;
}

/* CIEs may follow FDEs that refer to them, so they are all read first. */
static int read_records(struct cfi *c, Elf_Data *data, bool want_cies)
{
	static const unsigned char ident[EI_NIDENT] = {ELFMAG0,	   ELFMAG1,	ELFMAG2,   ELFMAG3,
						       ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
	Dwarf_Off at = 0, next;
	Dwarf_CFI_Entry entry;
	int got, err = 0;

	while (!err && (got = dwarf_next_cfi(ident, data, true, at, &next, &entry)) != 1) {
		if (next == (Dwarf_Off)-1 || next <= at) {
			c->skipped_nr += want_cies;
			break;
		}
		if (got < 0)
			c->skipped_nr += want_cies;
		else if (dwarf_cfi_cie_p(&entry) && want_cies)
			err = add_cie(c, at, &entry.cie);
		else if (!dwarf_cfi_cie_p(&entry) && !want_cies)
			err = add_fde(c, &entry.fde);
		at = next;
	}
	return err;
}

int cfi_read(struct elf_file *f, struct cfi *ret_cfi)
{
	struct cfi *c = ret_cfi;
	bool sorted = true;
	Elf_Data data;
	int err;

	*c = (struct cfi){0};
	err = elf_file__section(f, ".eh_frame", &c->data, &c->bytes, &c->address);
	if (err)
		return err;
	if (c->bytes > UINT32_MAX)
		return -E2BIG;
	data = (Elf_Data){.d_buf = (void *)c->data, .d_size = c->bytes, .d_type = ELF_T_BYTE};
	err = read_records(c, &data, true);
	err = err ? err : read_records(c, &data, false);
	if (err)
		return err;
	for (size_t i = 1; i < c->fdes.nr && sorted; i++)
		sorted = compare_fdes(&c->fdes.items[i - 1], &c->fdes.items[i]) <= 0;
	if (!sorted)
		qsort(c->fdes.items, c->fdes.nr, sizeof(*c->fdes.items), compare_fdes);
	return 0;
}
