/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The writing end of the collector's ring. It runs inside the traced process: after open there is
 * no lock, no allocation and no wait. Positions only grow. The reader owns `tail`, and the writer
 * uses it only to see how much room there is.
 */
#include "collector/runtime/ring_writer.h"

#include "collector/runtime/compat.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

_Static_assert(sizeof(struct gp_ring_page) <= RING_PAGE_BYTES, "the page holds the header");

/* Makes an unlinked file in one of these folders, for where memfd_create() is refused. It must lie
 * in a tmpfs, because gpuprof maps only files in memory. */
static int make_file(void)
{
	static const char *const names[] = {"/dev/shm/" GP_RING_NAME, "/tmp/" GP_RING_NAME,
					    "/run/" GP_RING_NAME, "/var/tmp/" GP_RING_NAME};
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, names[i], flags, 0600);
		struct statfs fs;

		if (fd < 0)
			continue;
		if (!syscall(SYS_unlinkat, AT_FDCWD, names[i], 0) &&
		    !syscall(SYS_fstatfs, fd, &fs) && fs.f_type == TMPFS_MAGIC)
			return fd;
		(void)close(fd);
	}
	errno = EACCES;
	return -1;
}

static bool is_refusal(int err)
{
	return err == EPERM || err == EACCES || err == ENOSYS;
}

/* Makes the ring's file. *ret_seals: it can be sealed. Returns -1 with errno on failure. */
static int make_memory(bool *ret_seals)
{
	long fd = syscall(SYS_memfd_create, GP_RING_NAME, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_memfd_create, GP_RING_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	*ret_seals = fd >= 0;
	return fd < 0 && is_refusal(errno) ? make_file() : (int)fd;
}

/* Calls fstat() by number: its symbol is new in glibc 2.33. */
static int stat_fd(int fd, struct stat *ret_st)
{
	return (int)syscall(SYS_fstat, fd, ret_st);
}

int ring_writer__open(struct ring_writer *w, uint32_t data_bytes)
{
	struct ring_writer made = {.data_bytes = data_bytes};
	size_t all = RING_PAGE_BYTES + (size_t)data_bytes;
	struct stat st;
	bool seals;
	void *p;
	int err;

	if (data_bytes < RING_DATA_MIN_BYTES || (data_bytes & (data_bytes - 1)))
		return -EINVAL;
	made.fd = make_memory(&seals);
	if (made.fd < 0)
		return -errno;
	if (stat_fd(made.fd, &st) || ftruncate(made.fd, (off_t)all) ||
	    (seals && fcntl(made.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)))
		goto fail;
	p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
	if (p == MAP_FAILED)
		goto fail;
	made.page = p;
	made.data = (unsigned char *)p + RING_PAGE_BYTES;
	made.device = st.st_dev;
	made.inode = st.st_ino;
	made.page->wire_version = GP_WIRE_VERSION;
	made.page->data_bytes = data_bytes;
	/* Set whole: a thread that was stopped inside a callback of an earlier ring may use it at
	 * any moment. */
	*w = made;
	/* Set last: a reader that sees it sees the rest. */
	__atomic_store_n(&w->page->magic, GP_RING_MAGIC, __ATOMIC_RELEASE);
	return 0;
fail:
	err = -errno;
	(void)close(made.fd);
	return err;
}

static bool fd_is_ours(const struct ring_writer *w)
{
	struct stat st;

	return w->fd >= 0 && !stat_fd(w->fd, &st) && st.st_dev == w->device &&
	       st.st_ino == w->inode;
}

int ring_writer__populate(struct ring_writer *w)
{
	off_t all = RING_PAGE_BYTES + (off_t)w->data_bytes;

	if (!fd_is_ours(w))
		return -EBADF;
	if (fallocate(w->fd, 0, 0, all))
		return -errno;
	/* Maps each page without changing it, so that no writing thread has to. */
	for (off_t at = 0; at < all; at += RING_PAGE_BYTES)
		(void)__atomic_fetch_or((unsigned char *)w->page + at, 0, __ATOMIC_RELAXED);
	return 0;
}

void ring_writer__close_fd(struct ring_writer *w)
{
	if (fd_is_ours(w))
		(void)close(w->fd);
	w->fd = -1;
}

void ring_writer__close(struct ring_writer *w)
{
	if (w->page)
		(void)munmap(w->page, RING_PAGE_BYTES + (size_t)w->data_bytes);
	ring_writer__close_fd(w);
	*w = (struct ring_writer){.fd = -1};
}

static struct gp_ring_slot *slot_at(struct ring_writer *w, uint64_t position)
{
	return (struct gp_ring_slot *)(w->data + (position & (w->data_bytes - 1)));
}

/*
 * The reader has cleared the next bytes on another CPU, which owns their cache lines. Fetch them
 * now, so that the next event need not wait for them: twice the length of most events.
 */
#define AHEAD_BYTES 256
#define LINE_BYTES  64

static void fetch_next(const struct ring_writer *w, uint64_t position)
{
	for (uint64_t at = 0; at < AHEAD_BYTES; at += LINE_BYTES) {
		const unsigned char *line = w->data + ((position + at) & (w->data_bytes - 1));

#ifdef __x86_64__
		/* All these CPUs have it, but the compiler would use a read. */
		__asm__ volatile("prefetchw %0" : : "m"(*line));
#else
		__builtin_prefetch(line, 1);
#endif
	}
}

bool ring_writer__reserve(struct ring_writer *w, size_t bytes, uint64_t *ret_position)
{
	uint64_t need = sizeof(struct gp_ring_slot) + bytes;
	__u64 head = __atomic_load_n(&w->page->head, __ATOMIC_RELAXED);

	do {
		/* Acquire, because the reader cleared the room before it gave it back. */
		uint64_t tail = __atomic_load_n(&w->page->tail, __ATOMIC_ACQUIRE);

		if (head - tail + need > w->data_bytes || head - tail > w->data_bytes) {
			(void)__atomic_fetch_add(&w->page->lost, 1, __ATOMIC_RELAXED);
			return false;
		}
	} while (!__atomic_compare_exchange_n(&w->page->head, &head, head + need, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	__atomic_store_n(&slot_at(w, head)->bytes, (uint32_t)need, __ATOMIC_RELAXED);
	*ret_position = head;
	fetch_next(w, head + need);
	return true;
}

void ring_writer__fill(struct ring_writer *w, uint64_t position, size_t at, const void *data,
		       size_t bytes)
{
	size_t offset = (position + sizeof(struct gp_ring_slot) + at) & (w->data_bytes - 1);
	size_t first = w->data_bytes - offset;

	if (__builtin_expect(first >= bytes, 1)) {
		memcpy(w->data + offset, data, bytes);
		return;
	}
	memcpy(w->data + offset, data, first);
	memcpy(w->data, (const unsigned char *)data + first, bytes - first);
}

void ring_writer__commit(struct ring_writer *w, uint64_t position)
{
	__atomic_store_n(&slot_at(w, position)->ready, (uint32_t)position + 1, __ATOMIC_RELEASE);
}

bool ring_writer__write(struct ring_writer *w, const void *event, size_t bytes)
{
	uint64_t position;

	if (!ring_writer__reserve(w, bytes, &position))
		return false;
	ring_writer__fill(w, position, 0, event, bytes);
	ring_writer__commit(w, position);
	return true;
}

void ring_writer__timed(struct ring_writer *w, uint64_t ns)
{
	(void)__atomic_fetch_add(&w->page->timed_ns, ns, __ATOMIC_RELAXED);
	(void)__atomic_fetch_add(&w->page->timed_nr, 1, __ATOMIC_RELAXED);
}

void ring_writer__count(struct ring_writer *w, enum gp_loss what, uint64_t nr)
{
	(void)__atomic_fetch_add(&w->page->losses[what], nr, __ATOMIC_RELAXED);
}
