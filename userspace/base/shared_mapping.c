/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The signal handler finds the mapping by its address in a list that only ever grows: an entry is
 * used again, never freed, so the handler needs no lock.
 */
#include "base/shared_mapping.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

struct shared_mapping {
	struct shared_mapping *next;
	uintptr_t start; /* 0: the entry is free */
	size_t bytes;
	bool lost;
};

static struct shared_mapping *mappings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who change the list */
static void (*before_death)(void);

static struct shared_mapping *mapping_of(uintptr_t address)
{
	struct shared_mapping *m = __atomic_load_n(&mappings, __ATOMIC_ACQUIRE);

	for (; m; m = m->next) {
		uintptr_t start = __atomic_load_n(&m->start, __ATOMIC_ACQUIRE);

		if (start && address - start < m->bytes)
			return m;
	}
	return NULL;
}

static void die(int sig)
{
	void (*fn)(void) = __atomic_load_n(&before_death, __ATOMIC_ACQUIRE);

	if (fn)
		fn();
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

/* The access that failed is tried again when this returns. */
static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
	struct shared_mapping *m = info->si_code > 0 ? mapping_of((uintptr_t)info->si_addr) : NULL;
	int before = errno;

	if (!m) {
		die(sig);
		return;
	}
	__atomic_store_n(&m->lost, true, __ATOMIC_RELEASE);
	if (mmap((void *)m->start, m->bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
		die(sig);
	errno = before;
}

/* Each time: somebody else may have had it meanwhile. */
static void install_handler(void)
{
	struct sigaction sa = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART};

	(void)sigaction(SIGBUS, &sa, NULL);
}

/* An entry that nobody uses, or a new one; NULL without memory. The lock is held. */
static struct shared_mapping *take_entry(void)
{
	struct shared_mapping *m = mappings;

	while (m && m->start)
		m = m->next;
	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (m) {
		m->next = mappings;
		__atomic_store_n(&mappings, m, __ATOMIC_RELEASE);
	}
	return m;
}

int shared_mapping__new(int fd, size_t bytes, struct shared_mapping **ret_mapping)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct shared_mapping *m;

	if (at == MAP_FAILED)
		return -errno;
	install_handler();
	(void)pthread_mutex_lock(&lock);
	m = take_entry();
	if (m) {
		m->lost = false;
		m->bytes = bytes;
		__atomic_store_n(&m->start, (uintptr_t)at, __ATOMIC_RELEASE);
	}
	(void)pthread_mutex_unlock(&lock);
	if (!m) {
		(void)munmap(at, bytes);
		return -ENOMEM;
	}
	*ret_mapping = m;
	return 0;
}

void shared_mapping__free(struct shared_mapping *m)
{
	void *at;

	if (!m)
		return;
	(void)pthread_mutex_lock(&lock);
	at = (void *)m->start;
	(void)munmap(at, m->bytes);
	__atomic_store_n(&m->start, 0, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&lock);
}

void *shared_mapping__memory(const struct shared_mapping *m)
{
	return (void *)m->start;
}

bool shared_mapping__is_lost(const struct shared_mapping *m)
{
	return __atomic_load_n(&m->lost, __ATOMIC_ACQUIRE);
}

void shared_mapping_before_death(void (*fn)(void))
{
	install_handler();
	__atomic_store_n(&before_death, fn, __ATOMIC_RELEASE);
}
