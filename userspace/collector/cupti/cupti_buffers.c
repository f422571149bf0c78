/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Whoever changes a buffer's `used` from 0 to 1 owns the buffer. The list of returned buffers is
 * only pushed to and taken whole, so its links cannot go wrong.
 */
#include "collector/cupti/cupti_buffers.h"

#include "collector/runtime/compat.h"

#include <sys/mman.h>

#define SPARES_NR   8
#define SPARE_BYTES (64U << 10)
#define NOBODY	    0

static struct {
	uint8_t *memory;
	uint32_t open;
	uint32_t used[BUFFERS_NR];
	size_t valid_bytes[BUFFERS_NR];
	uint32_t next[BUFFERS_NR]; /* index plus one */
	uint32_t done;		   /* the buffer that was returned last: index plus one */
	uint32_t spare_used[SPARES_NR];
	uint8_t spares[SPARES_NR][SPARE_BYTES] __attribute__((aligned(4096)));
	uint8_t last[SPARE_BYTES] __attribute__((aligned(4096))); /* shared by all other requests */
} pool;

static int used_nr(void)
{
	int nr = 0;

	for (int i = 0; i < BUFFERS_NR; i++)
		nr += __atomic_load_n(&pool.used[i], __ATOMIC_SEQ_CST) != NOBODY;
	return nr;
}

/* Leaves the memory to CUPTI. Buffers that it returns from now on are not recognized and only
 * counted. */
static void leave_to_cupti(void)
{
	__atomic_store_n(&pool.memory, NULL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&pool.done, 0, __ATOMIC_SEQ_CST);
	for (int i = 0; i < BUFFERS_NR; i++)
		__atomic_store_n(&pool.used[i], NOBODY, __ATOMIC_SEQ_CST);
}

bool cupti_buffers__open(void)
{
	void *p;

	if (used_nr() > BUFFERS_NR / 2)
		leave_to_cupti();
	p = pool.memory;
	if (!p) {
		p = mmap(NULL, (size_t)BUFFERS_NR * BUFFER_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return false;
		__atomic_store_n(&pool.memory, p, __ATOMIC_SEQ_CST);
	}
	__atomic_store_n(&pool.open, 1, __ATOMIC_SEQ_CST);
	return true;
}

void cupti_buffers__close(void)
{
	uint8_t *memory = pool.memory;

	__atomic_store_n(&pool.open, 0, __ATOMIC_SEQ_CST);
	if (!memory || used_nr())
		return;
	__atomic_store_n(&pool.memory, NULL, __ATOMIC_SEQ_CST);
	(void)munmap(memory, (size_t)BUFFERS_NR * BUFFER_BYTES);
}

/* Takes a spare buffer; NULL if there is none. */
static uint8_t *spare(void)
{
	for (uint32_t i = 0; i < SPARES_NR; i++) {
		uint32_t nobody = NOBODY;

		if (__atomic_compare_exchange_n(&pool.spare_used[i], &nobody, 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return pool.spares[i];
	}
	return NULL;
}

/* Takes a buffer of the pool; NULL if there is none. */
static uint8_t *take_one(void)
{
	for (uint32_t i = 0; i < BUFFERS_NR; i++) {
		uint32_t nobody = NOBODY;

		if (!__atomic_compare_exchange_n(&pool.used[i], &nobody, 1, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_RELAXED))
			continue;
		/* Closing reads `used` after it has cleared `open`: one of us sees the other. */
		if (!__atomic_load_n(&pool.open, __ATOMIC_SEQ_CST)) {
			__atomic_store_n(&pool.used[i], NOBODY, __ATOMIC_RELEASE);
			return NULL;
		}
		return pool.memory + (size_t)i * BUFFER_BYTES;
	}
	return NULL;
}

void cupti_buffers__request(bool may_refuse, uint8_t **ret_buffer, size_t *ret_bytes)
{
	uint8_t *buffer = take_one();

	*ret_bytes = buffer ? BUFFER_BYTES : SPARE_BYTES;
	if (!buffer)
		buffer = spare();
	if (!buffer && may_refuse)
		*ret_bytes = 0;
	else if (!buffer)
		buffer = pool.last;
	*ret_buffer = buffer;
}

bool cupti_buffers__complete(uint8_t *buffer, size_t valid_bytes)
{
	const uint8_t *memory = __atomic_load_n(&pool.memory, __ATOMIC_SEQ_CST);
	uintptr_t at = (uintptr_t)buffer - (uintptr_t)memory;
	uint32_t index = (uint32_t)(at / BUFFER_BYTES);

	if (!memory || at >= (size_t)BUFFERS_NR * BUFFER_BYTES || at % BUFFER_BYTES)
		return false;
	pool.valid_bytes[index] = valid_bytes < BUFFER_BYTES ? valid_bytes : BUFFER_BYTES;
	pool.next[index] = __atomic_load_n(&pool.done, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&pool.done, &pool.next[index], index + 1, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return true;
}

uint32_t cupti_buffers__take(uint8_t *ret_indices)
{
	uint32_t at = __atomic_exchange_n(&pool.done, 0, __ATOMIC_ACQUIRE);
	uint32_t nr = 0;

	for (; at && nr < BUFFERS_NR; at = pool.next[at - 1])
		ret_indices[nr++] = (uint8_t)(at - 1);
	for (uint32_t i = 0; i < nr / 2; i++) {
		uint8_t other = ret_indices[i];

		ret_indices[i] = ret_indices[nr - 1 - i];
		ret_indices[nr - 1 - i] = other;
	}
	return nr;
}

uint8_t *cupti_buffers__content(uint8_t index, size_t *ret_valid_bytes)
{
	*ret_valid_bytes = pool.valid_bytes[index];
	return pool.memory + (size_t)index * BUFFER_BYTES;
}

void cupti_buffers__release(uint8_t index)
{
	__atomic_store_n(&pool.used[index], NOBODY, __ATOMIC_RELEASE);
}

bool cupti_buffers__spare_is_own(const uint8_t *buffer)
{
	uintptr_t at = (uintptr_t)buffer - (uintptr_t)pool.spares;

	return at < sizeof(pool.spares);
}

void cupti_buffers__release_spare(const uint8_t *buffer)
{
	for (uint32_t i = 0; i < SPARES_NR; i++)
		if (buffer == pool.spares[i])
			__atomic_store_n(&pool.spare_used[i], NOBODY, __ATOMIC_RELEASE);
}
