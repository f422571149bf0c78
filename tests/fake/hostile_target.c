/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A process that does what it can to mislead a profiler run by root, for tests/integration/
 * test_hostile.py:
 *
 *     hostile_target FOLDER DECOY MEANS...
 *
 * FOLDER is its own and holds libtorch_cpu.so (a stand-in) and libother.so; DECOY is a file of
 * root's that nobody else may read. It loads the library and runs operators in it, says "ready",
 * and ends when its standard input does. Meanwhile, without pause, by each of the MEANS:
 *
 *     descriptors  a sibling that shares its descriptors puts DECOY in the place of each memory
 * file of gpuprof's, and back files        FIFOs and links to DECOY take the place of its mapped
 * files, and back; one that is mapped and never run is cut and overwritten mappings     mappings of
 * code and of memory files with gpuprof's names come and go rings        memory files that look
 * like the collector's ring are cut as they are sealed
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#define STACK_BYTES (256u << 10)
#define FDS	    16	 /* the lowest free ones are what gpuprof gets */
#define KEPT_AT	    1000 /* descriptors that the sibling keeps for itself */
#define TOGGLES	    3000
#define RING_BYTES  (4096u + (1u << 20))

static const char *folder, *decoy;

typedef void begin_fn(unsigned at, const char *name, int scope, long long sequence_nr);
typedef void end_fn(unsigned at);

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

static void pause_us(unsigned us)
{
	struct timespec t = {.tv_nsec = (long)us * 1000};

	(void)nanosleep(&t, NULL);
}

static void path_of(const char *name, char path[512])
{
	(void)snprintf(path, 512, "%s/%s", folder, name);
}

static bool ended(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* ---- descriptors ---- */

static bool is_gpuprofs(int fd)
{
	char path[64], text[256];
	ssize_t nr;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	nr = readlink(path, text, sizeof(text) - 1);
	if (nr <= 0)
		return false;
	text[nr] = '\0';
	return strstr(text, "memfd:") && strstr(text, "gpuprof");
}

static void toggle(int fd, int other)
{
	int kept = dup2(fd, KEPT_AT + fd);

	for (int i = 0; i < TOGGLES; i++) {
		(void)dup2(other, fd);
		(void)dup2(kept, fd);
	}
	(void)close(kept);
}

static int swap_descriptors(void *arg)
{
	int other = open(decoy, O_PATH);
	unsigned seed = 3;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;; pause_us(20))
		for (int fd = 3; fd < FDS; fd++)
			if (fd != other && is_gpuprofs(fd) && next_random(&seed) % 8 == 0)
				toggle(fd, other);
	return 0;
}

/* ---- rings ---- */

/* One that is large when it is looked at and small once it is sealed. */
static void make_ring(unsigned *seed)
{
	int fd = memfd_create(GP_RING_NAME, MFD_ALLOW_SEALING);
	struct gp_ring_page page = {.magic = GP_RING_MAGIC,
				    .wire_version = GP_WIRE_VERSION,
				    .data_bytes = RING_BYTES - 4096,
				    .head = 1 << 16};

	if (fd < 0)
		return;
	(void)ftruncate(fd, RING_BYTES);
	(void)pwrite(fd, &page, sizeof(page), 0);
	pause_us(next_random(seed) % 50);
	(void)ftruncate(fd, 4096);
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	pause_us(next_random(seed) % 500);
	(void)close(fd);
}

static int make_rings(void *arg)
{
	unsigned seed = 7;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		make_ring(&seed);
	return 0;
}

/* ---- files ---- */

static void exchange(const char *a, const char *b)
{
	char from[512], to[512];

	path_of(a, from);
	path_of(b, to);
	(void)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 2 /* RENAME_EXCHANGE */);
}

static void spoil(const char *name, unsigned *seed)
{
	char path[512], bytes[64];
	int fd;

	path_of(name, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)next_random(seed);
	(void)pwrite(fd, bytes, sizeof(bytes), next_random(seed) % 4096);
	(void)ftruncate(fd, next_random(seed) % 65536);
	(void)close(fd);
}

static int swap_files(void *arg)
{
	static const char *const others[] = {"fifo", "link", "absolute"};
	unsigned seed = 11, pick;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		const char *name = next_random(&seed) % 256 ? "libswapped.so" : "libtorch_cpu.so";

		pick = next_random(&seed) % 3;
		exchange(name, others[pick]);
		pause_us(next_random(&seed) % 100);
		exchange(name, others[pick]);
		if (next_random(&seed) % 8 == 0)
			spoil("libother.so", &seed);
		pause_us(next_random(&seed) % 200);
	}
	return 0;
}

static void make_others(void)
{
	char path[512];

	path_of("fifo", path);
	(void)syscall(SYS_mknod, path, 010600, 0);
	path_of("link", path);
	(void)symlink(decoy, path);
	path_of("absolute", path);
	(void)symlink("/dev/tty", path);
}

/* ---- mappings ---- */

static void map_other(void)
{
	char path[512];
	int fd;

	path_of("libother.so", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	(void)close(fd);
}

static void *change_mappings(void *arg)
{
	unsigned seed = 13;

	for (;;) {
		size_t bytes = 4096 * (1 + next_random(&seed) % 64);
		int fd = memfd_create("gpuprof-test-0000000000000000", MFD_CLOEXEC);
		void *at = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		(void)ftruncate(fd, next_random(&seed) % 8192);
		(void)close(fd);
		pause_us(next_random(&seed) % 100);
		if (at != MAP_FAILED)
			(void)mprotect(at, bytes / 2, PROT_READ);
		pause_us(next_random(&seed) % 50);
		if (at != MAP_FAILED)
			(void)munmap(at, bytes);
	}
	return NULL;
}

/* ---- all ---- */

static void sibling(int (*fn)(void *), int flags)
{
	char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED || clone(fn, stack + STACK_BYTES, flags | SIGCHLD, NULL) < 0) {
		perror("clone");
		exit(1);
	}
}

static void use(const char *means)
{
	pthread_t thread;

	if (!strcmp(means, "descriptors"))
		sibling(swap_descriptors, CLONE_FILES);
	else if (!strcmp(means, "rings"))
		sibling(make_rings, CLONE_FILES);
	else if (!strcmp(means, "files"))
		sibling(swap_files, 0);
	else if (!strcmp(means, "mappings"))
		(void)pthread_create(&thread, NULL, change_mappings, NULL);
}

/* A library's operators. */
struct operators {
	begin_fn *begin;
	end_fn *end;
};

static struct operators load(const char *name)
{
	struct operators o = {NULL, NULL};
	char path[512];
	void *library;

	path_of(name, path);
	library = dlopen(path, RTLD_NOW);
	if (library) {
		o.begin = (begin_fn *)dlsym(library, "fake_begin");
		o.end = (end_fn *)dlsym(library, "fake_end");
	}
	if (!o.begin || !o.end) {
		(void)fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return o;
}

int main(int argc, char **argv)
{
	struct operators torch, swapped;
	unsigned long nr = 0;

	if (argc < 3)
		return 2;
	folder = argv[1];
	decoy = argv[2];
	torch = load("libtorch_cpu.so");
	swapped = load("libswapped.so");
	make_others();
	map_other();
	for (int i = 3; i < argc; i++)
		use(argv[i]);
	printf("ready\n");
	(void)fflush(stdout);
	for (; nr % 1024 || !ended(); nr++) {
		torch.begin(0, "aten::add", 0, -1);
		swapped.begin(0, "aten::mul", 0, -1);
		swapped.end(0);
		torch.end(0);
	}
	printf("end %lu\n", nr);
	return 0;
}
