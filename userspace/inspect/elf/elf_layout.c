/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Digests what of an ELF file decides its plan: how it is loaded and where its functions begin; and
 * the file's identity.
 */
#include "inspect/elf/elf_private.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

void elf_file__digest_layout(const struct elf_file *f, struct digest *d)
{
	digest__add_number(d, f->segments_nr);
	for (size_t i = 0; i < f->segments_nr; i++) {
		const Elf64_Phdr *s = &f->segments[i];

		digest__add_number(d, (uint64_t)s->p_type << 32 | s->p_flags);
		digest__add_number(d, s->p_offset);
		digest__add_number(d, s->p_vaddr);
		digest__add_number(d, s->p_filesz);
		digest__add_number(d, s->p_memsz);
	}
}

int elf_file__stat(const struct elf_file *f, struct stat *ret_st)
{
	return fstat(f->fd, ret_st) ? -errno : 0;
}

int elf_file__digest_identity(const struct elf_file *f, uint8_t ret_identity[DIGEST_BYTES])
{
	struct statfs fs;
	struct stat st;
	struct digest d;

	if (fstat(f->fd, &st) || fstatfs(f->fd, &fs))
		return -errno;
	digest__init(&d);
	digest__add(&d, &fs.f_fsid, sizeof(fs.f_fsid));
	digest__add_number(&d, (uint64_t)fs.f_type);
	digest__add_number(&d, st.st_dev);
	digest__add_number(&d, st.st_ino);
	digest__add_number(&d, st.st_uid);
	digest__add_number(&d, (uint64_t)st.st_size);
	digest__add_number(&d, (uint64_t)st.st_mtim.tv_sec);
	digest__add_number(&d, (uint64_t)st.st_mtim.tv_nsec);
	digest__add_number(&d, (uint64_t)st.st_ctim.tv_sec);
	digest__add_number(&d, (uint64_t)st.st_ctim.tv_nsec);
	digest__end(&d, ret_identity);
	return 0;
}

static bool is_code(const struct elf_file *f, uint64_t address)
{
	for (size_t i = 0; i < f->segments_nr; i++) {
		const Elf64_Phdr *s = &f->segments[i];

		if (s->p_type == PT_LOAD && address >= s->p_vaddr &&
		    address - s->p_vaddr < s->p_memsz)
			return s->p_flags & PF_X && address - s->p_vaddr < s->p_filesz;
	}
	return false;
}

int elf_file__each_start(struct elf_file *f, int (*fn)(uint64_t address, void *arg), void *arg)
{
	int err = 0;

	elf_read_tables(f);
	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < f->tables[t].nr && !err; i++) {
			Elf64_Sym y;
			unsigned int type;

			memcpy(&y, f->tables[t].symbols + i * sizeof(y), sizeof(y));
			type = ELF64_ST_TYPE(y.st_info);
			if ((type == STT_FUNC || type == STT_GNU_IFUNC) &&
			    y.st_shndx != SHN_UNDEF && y.st_shndx != SHN_ABS &&
			    y.st_shndx != SHN_COMMON && is_code(f, y.st_value))
				err = fn(y.st_value, arg);
		}
	return err;
}
