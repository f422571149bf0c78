/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's side of the page's `quiesce` word: it asks, waits for the answer, uses what it
 * got and gives it up.
 */
#include "collector/runtime/quiesce.h"

#include "collector/runtime/compat.h"
#include "common/clock.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIMIT_NS  5000000000ULL /* gpuprof refuses earlier */
#define SILENT_NS 1500000000ULL /* a living gpuprof sends its heartbeat more often */
#define TURN_NS	  5000000L

bool quiesce__is_silent(const struct gp_ring_page *page)
{
	uint64_t beat_ns = __atomic_load_n(&page->heartbeat_ns, __ATOMIC_RELAXED);

	return !beat_ns || clock_now_ns() > beat_ns + SILENT_NS;
}

/* Takes the request back unless gpuprof has answered it; returns what the word is then. */
static uint32_t withdraw(struct gp_ring_page *page)
{
	uint32_t now = GP_QUIESCE_ASKED;

	(void)__atomic_compare_exchange_n(&page->quiesce, &now, GP_QUIESCE_NONE, false,
					  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return now;
}

enum gp_quiesce quiesce__begin(struct gp_ring_page *page, bool (*meanwhile)(void))
{
	static const struct timespec turn = {.tv_nsec = TURN_NS};
	uint64_t end_ns = clock_now_ns() + LIMIT_NS;
	uint32_t now = GP_QUIESCE_ASKED;

	__atomic_store_n(&page->quiesce, GP_QUIESCE_ASKED, __ATOMIC_RELEASE);
	while (now == GP_QUIESCE_ASKED && !quiesce__is_silent(page) && clock_now_ns() < end_ns &&
	       meanwhile()) {
		(void)syscall(SYS_futex, &page->quiesce, FUTEX_WAIT, GP_QUIESCE_ASKED, &turn, NULL,
			      0);
		now = __atomic_load_n(&page->quiesce, __ATOMIC_ACQUIRE);
	}
	if (now == GP_QUIESCE_ASKED)
		now = withdraw(page);
	return now == GP_QUIESCE_ALL_OUT || now == GP_QUIESCE_WAITING ? now : GP_QUIESCE_NONE;
}

/* Whether a tracer has stopped the process's first thread, one of those that gpuprof holds. It runs
 * again once gpuprof has died. (The tracer's PID does not show: it may be in another PID
 * namespace.) */
static bool first_thread_is_stopped(void)
{
	char text[256];
	const char *after;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		(void)close(fd);
	if (bytes <= 0)
		return false;
	text[bytes] = '\0';
	after = strrchr(text, ')');
	return after && !strncmp(after, ") t", 3);
}

bool quiesce__use(struct gp_ring_page *page)
{
	uint32_t now = __atomic_load_n(&page->quiesce, __ATOMIC_ACQUIRE);

	if (now != GP_QUIESCE_ALL_OUT && now != GP_QUIESCE_WAITING)
		return false;
	return __atomic_compare_exchange_n(&page->quiesce, &now, GP_QUIESCE_USED, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	       first_thread_is_stopped();
}

void quiesce__end(struct gp_ring_page *page)
{
	__atomic_store_n(&page->quiesce, GP_QUIESCE_NONE, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, &page->quiesce, FUTEX_WAKE, 1, NULL, NULL, 0);
}
