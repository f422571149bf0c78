/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * libdw does the unwinding; it reads memory and registers through us, from a thread that we
 * stopped, and the tables from the very files that are mapped. It never looks for debug files.
 */
#include "inject/unwind.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct unwinder {
	Dwfl *dwfl;
	bool attached;
	/* the thread at hand */
	const struct tracee *t;
	const struct user_regs_struct *r;
	uint64_t *addresses;
	int nr;
};

static int no_debuginfo(Dwfl_Module *m, void **data, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **debug_name)
{
	return -1;
}

static int no_elf(Dwfl_Module *m, void **data, const char *name, Dwarf_Addr base, char **file,
		  Elf **elf)
{
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct unwinder *u = arg;

	if (*thread_arg)
		return 0;
	*thread_arg = u;
	return u->t->tid;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret_word, void *arg)
{
	struct unwinder *u = arg;

	return !tracee_read(u->t, address, ret_word, sizeof(*ret_word));
}

static bool initial_registers(Dwfl_Thread *thread, void *arg)
{
	const struct user_regs_struct *r = ((struct unwinder *)arg)->r;
	/* In the order of DWARF's numbers for x86-64; the last one is the return address column. */
	Dwarf_Word words[17] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
				r->rbp, r->rsp, r->r8,	r->r9,	r->r10, r->r11,
				r->r12, r->r13, r->r14, r->r15, r->rip};

	return dwfl_thread_state_registers(thread, 0, 17, words);
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwinder *u = arg;
	bool activation;
	Dwarf_Addr pc;

	if (u->nr == UNWIND_FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &activation))
		return DWARF_CB_ABORT;
	u->addresses[u->nr++] = pc - (activation ? 0 : 1);
	return DWARF_CB_OK;
}

static int report_files(Dwfl *dwfl, const struct target_process *p)
{
	int fd;

	dwfl_report_begin(dwfl);
	for (size_t i = 0; i < p->libraries_nr; i++) {
		const struct target_library *l = &p->libraries[i];

		fd = open(l->open_path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		/* Takes the descriptor over where it succeeds. */
		if (!dwfl_report_elf(dwfl, l->path, l->open_path, fd, l->base, true))
			(void)close(fd);
	}
	return dwfl_report_end(dwfl, NULL, NULL) ? -EIO : 0;
}

struct unwinder *unwinder__new(const struct target_process *p)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = no_elf,
						 .find_debuginfo = no_debuginfo};
	struct unwinder *u = calloc(1, sizeof(*u));

	if (u)
		u->dwfl = dwfl_begin(&callbacks);
	if (u && u->dwfl && !report_files(u->dwfl, p))
		return u;
	unwinder__free(u);
	return NULL;
}

void unwinder__free(struct unwinder *u)
{
	if (u && u->dwfl)
		dwfl_end(u->dwfl);
	free(u);
}

int unwinder__frames(struct unwinder *u, const struct tracee *t, const struct user_regs_struct *r,
		     uint64_t ret_addresses[UNWIND_FRAMES_MAX], bool *ret_whole)
{
	static const Dwfl_Thread_Callbacks threads = {.next_thread = next_thread,
						      .memory_read = memory_read,
						      .set_initial_registers = initial_registers};

	u->t = t;
	u->r = r;
	u->addresses = ret_addresses;
	u->nr = 0;
	u->attached = u->attached || dwfl_attach_state(u->dwfl, NULL, t->pid, &threads, u);
	*ret_whole = u->attached && !dwfl_getthread_frames(u->dwfl, t->tid, take_frame, u);
	return u->nr;
}

static void cleanup_unwinder(struct unwinder **u)
{
	unwinder__free(*u);
}

int unwind_thread(const struct tracee *t, const struct target_process *p,
		  const struct user_regs_struct *r, uint64_t ret_addresses[UNWIND_FRAMES_MAX])
{
	CLEANUP(cleanup_unwinder) struct unwinder *u = unwinder__new(p);

	bool whole;
	int nr = u ? unwinder__frames(u, t, r, ret_addresses, &whole) : -ENOMEM;

	return nr < 0 || whole ? nr : -ENODATA;
}
