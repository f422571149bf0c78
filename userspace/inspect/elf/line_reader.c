/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Runs libdw in a child: a copy of this process that keeps two descriptors, the file and a pipe,
 * and may only make the system calls that reading and answering need. It ends by itself when its
 * CPU time is used up.
 */
#include "inspect/elf/line_reader.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "common/clock.h"
#include "inspect/elf/elf_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_BYTES_MAX (256U << 20)
#define TEXT_BYTES_MAX	 4096
#define MEMORY_BYTES_MAX (4ULL << 30)

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#else
#define MACHINE AUDIT_ARCH_AARCH64
#endif

/* One for each address that was looked up, in order; `nr` places follow. */
struct answer {
	int32_t nr; /* or -errno */
};

/* Two texts follow, each with its zero; 0 bytes: NULL. */
struct answer_place {
	uint32_t line;
	uint32_t function_bytes;
	uint32_t file_bytes;
};

bool line_reader_can(struct elf_file *f)
{
	const unsigned char *names;
	uint64_t address;
	bool info = false, line = false;
	size_t bytes;

	if (elf_file__section(f, ".shstrtab", &names, &bytes, &address))
		return false;
	for (size_t i = 0; i < f->sections_nr; i++) {
		const Elf64_Shdr *s = &f->sections[i];

		/* elf.c puts a zero behind the names. */
		if (s->sh_type == SHT_NOBITS || s->sh_name >= bytes)
			continue;
		info = info || !strcmp((const char *)names + s->sh_name, ".debug_info");
		line = line || !strcmp((const char *)names + s->sh_name, ".debug_line");
	}
	return info && line;
}

/* ---- the child ---- */

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1),                                    \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Forbids all system calls that reach out of the process. */
static bool confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(read),
		ALLOW(pread64),
		ALLOW(write),
		ALLOW(lseek),
		ALLOW(fstat),
		ALLOW(newfstatat),
		ALLOW(close),
		ALLOW(brk),
		ALLOW(mmap),
		ALLOW(munmap),
		ALLOW(mremap),
		ALLOW(mprotect),
		ALLOW(madvise),
		ALLOW(futex),
		ALLOW(clock_gettime),
		ALLOW(getrandom),
		ALLOW(rt_sigreturn),
		ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(*filter), .filter = filter};

	/* A sanitizer does more than that. */
	if (SANITIZED)
		return true;
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void set_limits(uint64_t budget_ns)
{
	rlim_t seconds = budget_ns / SECOND_NS + 2;
	const struct rlimit cpu = {seconds, seconds}, none = {0, 0};
	const struct rlimit memory = {MEMORY_BYTES_MAX, MEMORY_BYTES_MAX};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setrlimit(RLIMIT_CPU, &cpu);
	(void)setrlimit(RLIMIT_CORE, &none);
	if (!SANITIZED)
		(void)setrlimit(RLIMIT_AS, &memory);
}

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint32_t text_bytes(const char *text)
{
	return text ? (uint32_t)strlen(text) + 1 : 0;
}

static bool send(int fd, const void *bytes, size_t nr)
{
	return !nr || !file_write_all(fd, bytes, nr);
}

static bool answer(int fd, const struct line_place *places, int nr)
{
	struct answer a = {nr};
	bool ok = send(fd, &a, sizeof(a));

	for (int i = 0; i < nr && ok; i++) {
		const struct line_place *p = &places[i];
		struct answer_place to = {p->line, text_bytes(p->function), text_bytes(p->file)};

		ok = send(fd, &to, sizeof(to)) && send(fd, p->function, to.function_bytes) &&
		     send(fd, p->file, to.file_bytes);
	}
	return ok;
}

static void __attribute__((noreturn))
be_reader(int file, int pipe, const uint64_t *addresses, size_t nr, uint64_t budget_ns)
{
	int file_above = fcntl(file, F_DUPFD, 3), pipe_above = fcntl(pipe, F_DUPFD, 3);
	struct line_place places[LINES_PLACES_MAX];
	struct lines *lines;
	uint64_t start;

	set_limits(budget_ns);
	if (dup2(pipe_above, 0) || dup2(file_above, 1) != 1 ||
	    syscall(SYS_close_range, 2U, ~0U, 0U) || !confine() || lines__new(1, &lines))
		_exit(1);
	start = cpu_ns();
	for (size_t i = 0; i < nr && (!i || cpu_ns() - start < budget_ns); i++)
		if (!answer(0, places, lines__find(lines, addresses[i], places)))
			_exit(1);
	_exit(0);
}

/* ---- the parent ---- */

struct answers {
	const unsigned char *at;
	size_t left;
};

static bool take(struct answers *a, void *to, size_t bytes)
{
	if (bytes > a->left)
		return false;
	memcpy(to, a->at, bytes);
	a->at += bytes;
	a->left -= bytes;
	return true;
}

static bool take_text(struct answers *a, uint32_t bytes, const char **ret_text)
{
	if (bytes > a->left || bytes > TEXT_BYTES_MAX || (bytes && a->at[bytes - 1]))
		return false;
	*ret_text = bytes ? (const char *)a->at : NULL;
	a->at += bytes;
	a->left -= bytes;
	return true;
}

static bool take_places(struct answers *a, struct line_place *places, int nr)
{
	for (int i = 0; i < nr; i++) {
		struct answer_place p;

		if (!take(a, &p, sizeof(p)) ||
		    !take_text(a, p.function_bytes, &places[i].function) ||
		    !take_text(a, p.file_bytes, &places[i].file))
			return false;
		places[i].line = p.line;
	}
	return true;
}

int line_reader_parse(const unsigned char *bytes, size_t bytes_nr, size_t nr, line_reader_fn *fn,
		      void *arg, size_t *ret_asked)
{
	struct answers a = {bytes, bytes_nr};
	int err = 0;

	*ret_asked = 0;
	for (size_t i = 0; i < nr && a.left && !err; i++) {
		struct line_place places[LINES_PLACES_MAX];
		struct answer one;

		if (!take(&a, &one, sizeof(one)) || one.nr > LINES_PLACES_MAX ||
		    !take_places(&a, places, one.nr))
			return -EBADMSG;
		*ret_asked += one.nr >= 0;
		if (one.nr > 0)
			err = fn(i, places, (size_t)one.nr, arg);
	}
	return err;
}

/* Reads everything. 0 or -errno. */
static int read_all(int fd, struct buf *to)
{
	CLEANUP(cleanup_free) unsigned char *block = malloc(1 << 16);

	while (block) {
		ssize_t nr = file_read_all(fd, block, 1 << 16);

		if (nr <= 0)
			return nr ? (int)nr : buf__error(to);
		if ((size_t)nr > ANSWER_BYTES_MAX - to->nr)
			return -EFBIG;
		buf__add(to, block, (size_t)nr);
	}
	return -ENOMEM;
}

int line_reader_ask(const struct elf_file *f, const uint64_t *addresses, size_t nr,
		    uint64_t budget_ns, line_reader_fn *fn, void *arg, size_t *ret_asked)
{
	CLEANUP(buf__done) struct buf answers = {0};
	int ends[2], err;
	pid_t child;

	*ret_asked = 0;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (!child)
		be_reader(f->fd, ends[1], addresses, nr, budget_ns);
	err = child < 0 ? -errno : 0;
	(void)close(ends[1]);
	err = err ? err : read_all(ends[0], &answers);
	(void)close(ends[0]);
	if (child > 0) {
		if (err)
			(void)kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	/* A child that died may have left its last answer unfinished; the earlier ones count. */
	err = err ? err
		  : line_reader_parse((const unsigned char *)answers.bytes, answers.nr, nr, fn, arg,
				      ret_asked);
	return err == -EBADMSG ? 0 : err;
}
