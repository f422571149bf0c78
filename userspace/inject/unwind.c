/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Unwinds with libdw. It reads memory and registers through us, from a thread that we stopped, and
 * unwind tables from the very files that are mapped; it never looks for debug files. What it needs
 * of a file is read into our memory (ELF_C_READ), never mapped: the process may truncate or rewrite
 * the file meanwhile.
 */
#include "inject/unwind.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "inspect/access/process_file.h"

/* libdw's data with each file. */
struct file {
	struct unwinder *unwinder;
	const struct target_library *library;
};

struct unwinder {
	Dwfl *dwfl;
	struct file *files; /* one for each library */
	VEC(int) fds;	    /* of the files in use */
	bool attached;
	/* the thread that is being unwound */
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

/* Opens the very file that is mapped. A descriptor or -errno. */
static int open_library(struct unwinder *u, const struct target_library *l)
{
	struct stat st;
	CLEANUP(cleanup_fd) int fd = process_file_open(l->open_path, &st);
	int err;

	if (fd < 0)
		return fd;
	if (st.st_ino != l->inode)
		return -ESTALE;
	err = vec_push(&u->fds, fd);
	return err ? err : take_fd(&fd);
}

/* libdw gets no descriptor: to be able to close one, it would read the whole file. */
static int find_elf(Dwfl_Module *m, void **data, const char *name, Dwarf_Addr base, char **file,
		    Elf **ret_elf)
{
	const struct file *f = *data;
	int fd = f ? open_library(f->unwinder, f->library) : -ENOENT;

	if (fd >= 0)
		*ret_elf = elf_begin(fd, ELF_C_READ, NULL);
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

static int report_library(struct unwinder *u, const struct target_library *l, struct file *f)
{
	Dwfl_Module *m = dwfl_report_module(u->dwfl, l->path, l->start, l->end);
	void **data;

	*f = (struct file){.unwinder = u, .library = l};
	if (!m || !dwfl_module_info(m, &data, NULL, NULL, NULL, NULL, NULL, NULL))
		return -ENOMEM;
	*data = f;
	return 0;
}

static int report_libraries(struct unwinder *u, const struct target_process *p)
{
	int err = 0;

	u->files = calloc(p->libraries_nr + 1, sizeof(*u->files));
	if (!u->files || elf_version(EV_CURRENT) == EV_NONE)
		return -ENOMEM;
	dwfl_report_begin(u->dwfl);
	for (size_t i = 0; !err && i < p->libraries_nr; i++)
		err = report_library(u, &p->libraries[i], &u->files[i]);
	return dwfl_report_end(u->dwfl, NULL, NULL) ? -EIO : err;
}

struct unwinder *unwinder__new(const struct target_process *p)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = find_elf,
						 .find_debuginfo = no_debuginfo};
	struct unwinder *u = calloc(1, sizeof(*u));

	if (u)
		u->dwfl = dwfl_begin(&callbacks);
	if (u && u->dwfl && !report_libraries(u, p))
		return u;
	unwinder__free(u);
	return NULL;
}

void unwinder__free(struct unwinder *u)
{
	if (!u)
		return;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	for (size_t i = 0; i < u->fds.nr; i++)
		(void)close(u->fds.items[i]);
	vec_done(&u->fds);
	free(u->files);
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

int unwinder__all_frames(struct unwinder *u, const struct tracee *t,
			 const struct user_regs_struct *r,
			 uint64_t ret_addresses[UNWIND_FRAMES_MAX])
{
	bool whole;
	int nr = unwinder__frames(u, t, r, ret_addresses, &whole);

	return whole ? nr : -ENODATA;
}
