/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Processes for the injection tests. Each mode does one thing that injection could disturb, checks
 * itself all the time, and ends when its standard input does:
 *
 *     inject_target MODE [N]
 *
 * Prints "ready", then what the mode says, then "end errors=E work=W signals=S"; W depends on how
 * long it ran, and E must be 0. SIGUSR1 and SIGRTMIN only count, with SA_RESTART off.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RED_ZONE_WORDS 15

static volatile sig_atomic_t signals_nr;
static unsigned long work_nr, errors_nr;

static void on_signal(int sig)
{
	signals_nr++;
}

/* The mode is under way: all its threads are there. */
static void ready(void)
{
	printf("ready\n");
}

/* Once the parent closes our input. */
static int ended(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	__atomic_add_fetch(&errors_nr, 1, __ATOMIC_RELAXED);
	fprintf(stderr, "wrong: %s errno=%d\n", what, errno);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Blocks in read() and answers each line. */
static void mode_read(long n)
{
	char line[256];
	ssize_t bytes;

	ready();
	for (;;) {
		bytes = read(0, line, sizeof(line) - 1);
		expect(bytes >= 0, "read");
		if (bytes <= 0)
			return;
		line[bytes] = '\0';
		work_nr++;
		printf("got %s", line);
	}
}

/* The same behind epoll_wait(), which the kernel does not restart by itself. N = 1 takes EINTR as
 * programs do: a stop and a continuation of the process would bring it, too. */
static void mode_epoll(long n)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC), ret;
	char line[256];
	ssize_t bytes;

	ready();
	expect(!epoll_ctl(fd, EPOLL_CTL_ADD, 0, &e), "epoll_ctl");
	for (;;) {
		while ((ret = epoll_wait(fd, &e, 1, -1)) < 0 && n && errno == EINTR)
			;
		expect(ret == 1, "epoll_wait");
		bytes = read(0, line, sizeof(line) - 1);
		if (bytes <= 0)
			return;
		line[bytes] = '\0';
		work_nr++;
		printf("got %s", line);
	}
}

static void mode_select(long n)
{
	struct timeval limit;
	fd_set set;

	ready();
	do {
		limit = (struct timeval){.tv_sec = 1000};
		FD_ZERO(&set);
		FD_SET(0, &set);
		work_nr++;
	} while (select(1, &set, NULL, NULL, &limit) != 1 && (expect(0, "select"), 1));
}

static int futex_word;

static void *futex_waker(void *arg)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
	__atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0);
	return NULL;
}

/* Waits on a futex, without a limit or (N = 1) with one so far away that it must not be met. */
static void mode_futex(long n)
{
	struct timespec limit = {.tv_sec = 100000};
	pthread_t thread;
	long ret = 0;

	expect(!pthread_create(&thread, NULL, futex_waker, NULL), "pthread_create");
	ready();
	while (!__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST)) {
		ret = syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, n ? &limit : NULL, NULL, 0);
		expect(!ret || errno == EAGAIN, "futex");
		work_nr++;
	}
	(void)pthread_join(thread, NULL);
	/* Woken up or not yet asleep: once. */
	expect(work_nr <= 1, "futex woke up without cause");
}

/* Sleeps of N ms; none may end early, nor fail. */
static void mode_sleep(long n)
{
	struct timespec length = {.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000};
	uint64_t began;

	ready();
	while (!ended()) {
		began = now_ns();
		expect(!nanosleep(&length, NULL), "nanosleep");
		expect(now_ns() - began >= (uint64_t)n * 1000000u, "nanosleep was short");
		work_nr++;
	}
}

/* pause() until N signals have come, and says so after each. */
static void mode_pause(long n)
{
	ready();
	while (signals_nr < n) {
		int before = signals_nr;

		expect(pause() == -1 && errno == EINTR, "pause");
		expect(signals_nr > before, "pause ended without a signal");
		printf("signals %d\n", (int)signals_nr);
	}
}

/* The same without the race: the signal only comes in sigsuspend(). */
static void mode_suspend(long n)
{
	sigset_t blocked, open;

	ready();
	(void)sigemptyset(&blocked);
	(void)sigaddset(&blocked, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &blocked, &open);
	(void)sigdelset(&open, SIGUSR1);
	while (signals_nr < n) {
		int before = signals_nr;

		expect(sigsuspend(&open) == -1 && errno == EINTR, "sigsuspend");
		expect(signals_nr > before, "sigsuspend ended without a signal");
		printf("signals %d\n", (int)signals_nr);
	}
	(void)sigprocmask(SIG_SETMASK, NULL, &open);
	expect(sigismember(&open, SIGUSR1), "the mask changed");
}

/* The allocator without pause. */
static void mode_malloc(long n)
{
	unsigned char *held[64] = {0};
	size_t sizes[64] = {0};
	uint64_t x = 88172645463325252u;

	ready();
	while (work_nr & 1023 || !ended()) {
		size_t i;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		i = x % 64;
		if (held[i]) {
			expect(held[i][0] == (unsigned char)i, "heap");
			expect(held[i][sizes[i] - 1] == (unsigned char)i, "heap");
			free(held[i]);
		}
		sizes[i] = 1 + (x >> 8) % (x & 0x70000 ? 2000 : 200000);
		held[i] = malloc(sizes[i]);
		held[i][0] = held[i][sizes[i] - 1] = (unsigned char)i;
		work_nr++;
	}
}

/* The loader without pause, but for some work of our own. */
static void mode_dlopen(long n)
{
	ready();
#ifndef NO_LOADER /* a static executable has none */
	while (!ended()) {
		void *h = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);

		expect(h && dlsym(h, "ns_get16"), "dlopen");
		expect(h && !dlclose(h), "dlclose");
		work_nr++;
		for (volatile int i = 0; i < 20000; i++)
			;
	}
#endif
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static long whose, threads_nr;
static int over;

/* Threads that hand a turn around, allocating on the way. */
static void *poll_thread(void *arg)
{
	long own = (long)(intptr_t)arg;
	char *p;

	(void)pthread_mutex_lock(&lock);
	while (!over) {
		while (whose != own && !over)
			(void)pthread_cond_wait(&turn, &lock);
		if (over)
			break;
		p = malloc((size_t)(100 + own * 17));
		p[0] = 1;
		free(p);
		work_nr++;
		whose = (own + 1) % threads_nr;
		(void)pthread_cond_broadcast(&turn);
	}
	(void)pthread_mutex_unlock(&lock);
	return NULL;
}

static void mode_threads(long n)
{
	pthread_t threads[256];
	char c;

	threads_nr = n > 0 && n < 256 ? n : 4;
	for (long i = 0; i < threads_nr; i++)
		expect(!pthread_create(&threads[i], NULL, poll_thread, (void *)(intptr_t)i),
		       "pthread_create");
	ready();
	while (read(0, &c, 1) > 0)
		;
	(void)pthread_mutex_lock(&lock);
	over = 1;
	(void)pthread_cond_broadcast(&turn);
	(void)pthread_mutex_unlock(&lock);
	for (long i = 0; i < threads_nr; i++)
		(void)pthread_join(threads[i], NULL);
}

struct registers {
	uint64_t general[13]; /* rax rbx rdx rsi rdi rbp r8-r14 */
	uint64_t red_zone[RED_ZONE_WORDS];
	uint64_t flags;
	uint32_t mxcsr, padding;
	unsigned char vector[16][32];
	long double x87[8];
};

/*
 * Loads every register from `in`, spins, stores them all to `out`. Direction flag, carry and a
 * rounding mode are set meanwhile, and the red zone is in use.
 */
__attribute__((naked, noinline)) static void
hold_registers(const struct registers *in, struct registers *out, long avx, long spins)
{
	__asm__("push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
		"sub $8, %rsp\n push %rsi\n push %rdx\n"
		/* For who unwinds the stack meanwhile. */
		".cfi_adjust_cfa_offset 72\n"
		"mov %rdi, %r15\n"
		"ldmxcsr 232(%r15)\n"
		"lea 240(%r15), %rax\n"
		"test %rdx, %rdx\n jz 1f\n"
		".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
		"vmovdqu 32*\\n(%rax), %ymm\\n\n .endr\n jmp 2f\n1:\n"
		".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
		"movdqu 32*\\n(%rax), %xmm\\n\n .endr\n2:\n"
		".irp n, 7,6,5,4,3,2,1,0\n fldt 752+16*\\n(%r15)\n .endr\n"
		".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14\n"
		"mov 104+8*\\n(%r15), %rax\n mov %rax, -120+8*\\n(%rsp)\n .endr\n"
		"std\n stc\n"
		"mov 0(%r15), %rax\n mov 8(%r15), %rbx\n mov 16(%r15), %rdx\n"
		"mov 24(%r15), %rsi\n mov 32(%r15), %rdi\n mov 40(%r15), %rbp\n"
		"mov 48(%r15), %r8\n mov 56(%r15), %r9\n mov 64(%r15), %r10\n"
		"mov 72(%r15), %r11\n mov 80(%r15), %r12\n mov 88(%r15), %r13\n"
		"mov 96(%r15), %r14\n"
		"3: dec %rcx\n jnz 3b\n"
		"mov 8(%rsp), %r15\n"
		"mov %rax, 0(%r15)\n mov %rbx, 8(%r15)\n mov %rdx, 16(%r15)\n"
		"mov %rsi, 24(%r15)\n mov %rdi, 32(%r15)\n mov %rbp, 40(%r15)\n"
		"mov %r8, 48(%r15)\n mov %r9, 56(%r15)\n mov %r10, 64(%r15)\n"
		"mov %r11, 72(%r15)\n mov %r12, 80(%r15)\n mov %r13, 88(%r15)\n"
		"mov %r14, 96(%r15)\n"
		".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14\n"
		"mov -120+8*\\n(%rsp), %rax\n mov %rax, 104+8*\\n(%r15)\n .endr\n"
		"pushfq\n pop %rax\n cld\n mov %rax, 224(%r15)\n"
		"stmxcsr 232(%r15)\n"
		".irp n, 0,1,2,3,4,5,6,7\n fstpt 752+16*\\n(%r15)\n .endr\n"
		"pop %rdx\n"
		"lea 240(%r15), %rax\n"
		"test %rdx, %rdx\n jz 4f\n"
		".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
		"vmovdqu %ymm\\n, 32*\\n(%rax)\n .endr\n vzeroupper\n jmp 5f\n4:\n"
		".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
		"movdqu %xmm\\n, 32*\\n(%rax)\n .endr\n5:\n"
		"pushq $0x1f80\n ldmxcsr (%rsp)\n add $8, %rsp\n"
		"add $16, %rsp\n"
		"pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");
}

static void check_layout(void)
{
	_Static_assert(offsetof(struct registers, red_zone) == 104, "layout");
	_Static_assert(offsetof(struct registers, flags) == 224, "layout");
	_Static_assert(offsetof(struct registers, mxcsr) == 232, "layout");
	_Static_assert(offsetof(struct registers, vector) == 240, "layout");
	_Static_assert(offsetof(struct registers, x87) == 752, "layout");
}

static void fill(struct registers *r, uint64_t seed)
{
	unsigned char *bytes = (unsigned char *)r;

	for (size_t i = 0; i < sizeof(*r); i++)
		bytes[i] = (unsigned char)(seed * 2654435761u + (i * 40503u >> 7));
	r->mxcsr = 0x3f80; /* rounding down, all masked */
	for (int i = 0; i < 8; i++)
		r->x87[i] = (long double)seed + i * 0.125L;
}

/* The value of one long double is 10 bytes; the rest is padding. */
static int same_registers(const struct registers *a, const struct registers *b)
{
	int same = !memcmp(a->general, b->general, sizeof(a->general)) &&
		   !memcmp(a->red_zone, b->red_zone, sizeof(a->red_zone)) && a->mxcsr == b->mxcsr &&
		   !memcmp(a->vector, b->vector, sizeof(a->vector));

	for (int i = 0; i < 8; i++)
		same = same && a->x87[i] == b->x87[i];
	return same;
}

static void mode_registers(long n)
{
	static struct registers in, out;
	long avx = __builtin_cpu_supports("avx") ? 1 : 0;

	ready();
	check_layout();
	while (!ended()) {
		fill(&in, work_nr);
		out = in;
		memset(&out.general, 0, sizeof(out.general));
		hold_registers(&in, &out, avx, n > 0 ? n : 2000000);
		expect(same_registers(&in, &out), "registers");
		expect(out.flags & 0x400, "direction flag");
		work_nr++;
	}
}

/* A child between vfork() and exec, its parent waiting inside the kernel; another thread free. */
static void *vfork_thread(void *arg)
{
	pid_t pid = vfork();

	if (!pid) {
		char c;

		while (read(0, &c, 1) > 0)
			;
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	return NULL;
}

static void mode_vfork(long n)
{
	pthread_t thread;

	expect(!pthread_create(&thread, NULL, vfork_thread, NULL), "pthread_create");
	ready();
	(void)pthread_join(thread, NULL);
}

/* Stays in a signal handler, on a stack of its own, that interrupted the allocator or not (N). */
static void handler_on_own_stack(int sig)
{
	char c;

	printf("inside\n");
	while (read(0, &c, 1) > 0)
		;
}

static void mode_handler(long n)
{
	static char stack[65536];
	stack_t s = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction a = {.sa_handler = handler_on_own_stack, .sa_flags = SA_ONSTACK};

	ready();
	expect(!sigaltstack(&s, NULL), "sigaltstack");
	expect(!sigaction(SIGUSR2, &a, NULL), "sigaction");
	(void)raise(SIGUSR2);
}

/* Blocks inside a function of the allocator (0) or the loader (1), as if preempted there; with 2
 * added it does so in a signal handler on a stack of its own. */
static ssize_t blocking_write(void *cookie, const char *data, size_t bytes)
{
	handler_on_own_stack(0);
	return (ssize_t)bytes;
}

static int blocking_callback(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	if (arg)
		(void)raise(SIGUSR2);
	else
		handler_on_own_stack(0);
	return 1;
}

static ssize_t raising_write(void *cookie, const char *data, size_t bytes)
{
	(void)raise(SIGUSR2);
	return (ssize_t)bytes;
}

static void mode_inside(long n)
{
	static char stack[65536];
	stack_t s = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction a = {.sa_handler = handler_on_own_stack, .sa_flags = SA_ONSTACK};
	cookie_io_functions_t io = {.write = n & 2 ? raising_write : blocking_write};
	FILE *f = fopencookie(NULL, "w", io);

	ready();
	expect(f && !setvbuf(f, NULL, _IONBF, 0), "fopencookie");
	expect(!sigaltstack(&s, NULL), "sigaltstack");
	expect(!sigaction(SIGUSR2, &a, NULL), "sigaction");
	if (n & 1)
		expect(dl_iterate_phdr(blocking_callback, n & 2 ? &s : NULL) == 1, "phdr");
	else
		expect(f && !malloc_info(0, f), "malloc_info");
}

/* System call filters: one that kills for memfd_create (0), one that refuses it (1), one that does
 * what those of containers do (2): refuse with an errno what is dangerous, and clone3; and one each
 * that kills for what only the collector calls (3 and 4). */
static void mode_filter(long n)
{
	static const unsigned int numbers[] = {SYS_memfd_create, SYS_memfd_create, SYS_ptrace,
					       SYS_fallocate, 324 /* membarrier */};
	bool kills = !n || n > 2;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[n % 5], 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 435, 2, 3),
		BPF_STMT(BPF_RET | BPF_K,
			 kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	expect(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges");
	expect(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
	mode_read(n);
}

static void mode_zombie(long n)
{
	char c;

	ready();
	printf("child %d\n", fork() ?: (_exit(0), 0));
	while (read(0, &c, 1) > 0)
		;
}

static void mode_hidden(long n)
{
	(void)prctl(PR_SET_DUMPABLE, 0);
	mode_read(n);
}

static const struct {
	const char *name;
	void (*run)(long n);
} modes[] = {
	{"read", mode_read},	   {"epoll", mode_epoll},	  {"select", mode_select},
	{"futex", mode_futex},	   {"sleep", mode_sleep},	  {"pause", mode_pause},
	{"suspend", mode_suspend}, {"malloc", mode_malloc},	  {"dlopen", mode_dlopen},
	{"threads", mode_threads}, {"registers", mode_registers}, {"vfork", mode_vfork},
	{"handler", mode_handler}, {"zombie", mode_zombie},	  {"inside", mode_inside},
	{"filter", mode_filter},   {"hidden", mode_hidden},
};

int main(int argc, char **argv)
{
	struct sigaction a = {.sa_handler = on_signal};
	long n = argc > 2 ? atol(argv[2]) : 0;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)sigaction(SIGUSR1, &a, NULL);
	(void)sigaction(SIGRTMIN, &a, NULL);
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		modes[i].run(n);
		printf("end errors=%lu work=%lu signals=%d\n", errors_nr, work_nr, (int)signals_nr);
		return errors_nr ? 1 : 0;
	}
	return 2;
}
