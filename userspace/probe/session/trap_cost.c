/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A child runs loops of calls and reports how long each took, with and without probes. It shares
 * only a socket with us and dies with us.
 */
#include "probe/session/trap_cost.h"

#include "common/clock.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 3

/* Two functions to probe: the first instruction of one is emulated, that of the other
 * single-stepped. */
__asm__(".pushsection .text\n"
	".type gp_trap_emulated, @function\n"
	"gp_trap_emulated: push %rbp\n"
	"pop %rbp\n"
	"ret\n"
	".size gp_trap_emulated, . - gp_trap_emulated\n"
	".type gp_trap_stepped, @function\n"
	"gp_trap_stepped: mov %rsp, %rax\n"
	"ret\n"
	".size gp_trap_stepped, . - gp_trap_stepped\n"
	".popsection\n");
extern void gp_trap_emulated(void) __attribute__((visibility("hidden")));
extern void gp_trap_stepped(void) __attribute__((visibility("hidden")));

typedef void (*trap_fn)(void);

static const trap_fn functions[] = {gp_trap_emulated, gp_trap_stepped};
#define KINDS (sizeof(functions) / sizeof(functions[0]))

/* Calls per round. Single-stepped ones are expensive. */
static const uint64_t calls[KINDS] = {400, 60};

/* Answers each byte, a kind, with the time of one round of calls. */
static void child_main(int fd, pid_t parent)
{
	unsigned char kind;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent && read(fd, &kind, 1) == 1 && kind < KINDS) {
		uint64_t ns = clock_now_ns();

		for (uint64_t i = 0; i < calls[kind]; i++)
			functions[kind]();
		ns = clock_now_ns() - ns;
		if (write(fd, &ns, sizeof(ns)) != (ssize_t)sizeof(ns))
			break;
	}
	_exit(0);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the median of some rounds, or 0 if the child does not answer. */
static uint64_t ask(int fd, unsigned char kind)
{
	uint64_t ns[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		if (write(fd, &kind, 1) != 1 ||
		    read(fd, &ns[i], sizeof(ns[i])) != (ssize_t)sizeof(ns[i]))
			return 0;
	qsort(ns, ROUNDS, sizeof(ns[0]), compare);
	return ns[ROUNDS / 2];
}

struct place {
	uintptr_t address;
	uint64_t offset; /* in our own file; 0: not found */
};

static int find_offset(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct place *p = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t into = p->address - (info->dlpi_addr + h->p_vaddr);

		if (h->p_type == PT_LOAD && into < h->p_filesz)
			p->offset = h->p_offset + into;
	}
	/* The first entry is the program itself. */
	return 1;
}

static int attach(struct link_set *links, enum link_method method, int program_fd, pid_t pid)
{
	struct link_site sites[KINDS] = {0};
	int nr;

	for (size_t i = 0; i < KINDS; i++) {
		struct place p = {.address = (uintptr_t)functions[i]};

		(void)dl_iterate_phdr(find_offset, &p);
		if (!p.offset)
			return -ENOENT;
		sites[i].offset = p.offset;
	}
	nr = link_attach(links, method, program_fd, pid, "/proc/self/exe", sites, KINDS);
	return nr < 0 ? nr : nr < (int)KINDS ? -ENOENT : 0;
}

static uint64_t per_call(uint64_t before_ns, uint64_t after_ns, size_t kind)
{
	return before_ns && after_ns > before_ns ? (after_ns - before_ns) / calls[kind] : 0;
}

static void measure(struct link_set *links, enum link_method method, int program_fd, pid_t pid,
		    int fd, struct trap_cost *ret_cost)
{
	uint64_t before[KINDS];

	for (size_t i = 0; i < KINDS; i++)
		before[i] = ask(fd, (unsigned char)i);
	if (attach(links, method, program_fd, pid))
		return;
	ret_cost->ns = per_call(before[0], ask(fd, 0), 0);
	ret_cost->stepped_ns = per_call(before[1], ask(fd, 1), 1);
}

void trap_cost__measure(struct link_set *links, enum link_method method, int program_fd,
			struct trap_cost *ret_cost)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	*ret_cost = (struct trap_cost){0};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return;
	pid = fork();
	if (!pid) {
		(void)close(fds[0]);
		child_main(fds[1], parent);
	}
	(void)close(fds[1]);
	if (pid > 0)
		measure(links, method, program_fd, pid, fds[0], ret_cost);
	(void)close(fds[0]);
	if (pid > 0)
		(void)kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
