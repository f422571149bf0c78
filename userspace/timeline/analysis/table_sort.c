/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The sort keys of torch.profiler's table. As there, "device", "xpu" and "privateuse1" may replace
 * "cuda".
 */
#include "timeline/analysis/table_sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"

/* Wide enough for any 64-bit sum, exactly. */
typedef long double (*sort_value)(const struct table_row *row);

static long double cpu_time(const struct table_row *r)
{
	return r->calls ? (long double)r->cpu_total_ns / r->calls : 0;
}

static long double cuda_time(const struct table_row *r)
{
	return r->calls ? (long double)r->cuda_total_ns / r->calls : 0;
}

static long double cpu_time_total(const struct table_row *r)
{
	return r->cpu_total_ns;
}

static long double cuda_time_total(const struct table_row *r)
{
	return r->cuda_total_ns;
}

static long double self_cpu_time_total(const struct table_row *r)
{
	return r->self_cpu_ns;
}

static long double self_cuda_time_total(const struct table_row *r)
{
	return r->self_cuda_ns;
}

static long double cpu_memory_usage(const struct table_row *r)
{
	return r->cpu_bytes;
}

static long double cuda_memory_usage(const struct table_row *r)
{
	return r->cuda_bytes;
}

static long double self_cpu_memory_usage(const struct table_row *r)
{
	return r->self_cpu_bytes;
}

static long double self_cuda_memory_usage(const struct table_row *r)
{
	return r->self_cuda_bytes;
}

static long double count(const struct table_row *r)
{
	return r->calls;
}

static long double flops(const struct table_row *r)
{
	return r->flops;
}

static long double all_flops(const struct table_row *r)
{
	return r->all_flops;
}

static const sort_value values[] = {
	cpu_time,
	cuda_time,
	cpu_time_total,
	cuda_time_total,
	self_cpu_time_total,
	self_cuda_time_total,
	cpu_memory_usage,
	cuda_memory_usage,
	self_cpu_memory_usage,
	self_cuda_memory_usage,
	count,
	flops,
	all_flops,
};

const char *const table_sort_keys[] = {
	"cpu_time",
	"cuda_time",
	"cpu_time_total",
	"cuda_time_total",
	"self_cpu_time_total",
	"self_cuda_time_total",
	"cpu_memory_usage",
	"cuda_memory_usage",
	"self_cpu_memory_usage",
	"self_cuda_memory_usage",
	"count",
	"flops",
	"all_flops",
	NULL,
};

_Static_assert(sizeof(values) / sizeof(*values) + 1 ==
		       sizeof(table_sort_keys) / sizeof(*table_sort_keys),
	       "a value for each key");

/* The bytes of a word at the key's beginning that replaces "cuda"; 0: none. */
static size_t device_word(const char *key)
{
	static const char *const words[] = {"device", "xpu", "privateuse1"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strncmp(key, words[i], strlen(words[i])))
			return strlen(words[i]);
	return 0;
}

bool table_sort_key_is(const char *key, const char *name)
{
	while (*key && *name) {
		if (device_word(key) && !strncmp(name, "cuda", 4)) {
			key += device_word(key);
			name += 4;
		} else if (*key++ != *name++) {
			return false;
		}
	}
	return *key == *name;
}

static sort_value value_of(const char *key)
{
	for (size_t i = 0; table_sort_keys[i]; i++)
		if (table_sort_key_is(key, table_sort_keys[i]))
			return values[i];
	return NULL;
}

bool table_sort_key_known(const char *key)
{
	return value_of(key) != NULL;
}

bool table_has_any_of(const struct table *table, const char *key)
{
	sort_value value = value_of(key);

	for (size_t i = 0; i < table->rows.nr; i++)
		if (value(&table->rows.items[i]) != 0)
			return true;
	return false;
}

struct keyed {
	long double value;
	size_t index;
};

static int largest_first(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int earliest_first(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

int table_sort_by_time(struct table *table, struct span *when)
{
	size_t nr = table->rows.nr;
	CLEANUP(cleanup_free) struct table_row *copy = malloc((nr + 1) * sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (!nr)
		return 0;
	memcpy(copy, table->rows.items, nr * sizeof(*copy));
	qsort(when, nr, sizeof(*when), earliest_first);
	for (size_t i = 0; i < nr; i++)
		table->rows.items[i] = copy[when[i].index];
	return 0;
}

int table_sort_by_key(struct table *table, const char *key)
{
	size_t nr = table->rows.nr;
	CLEANUP(cleanup_free) struct table_row *copy = malloc((nr + 1) * sizeof(*copy));
	CLEANUP(cleanup_free) struct keyed *order = malloc((nr + 1) * sizeof(*order));
	sort_value value = value_of(key);

	if (!copy || !order)
		return -ENOMEM;
	if (!nr)
		return 0;
	memcpy(copy, table->rows.items, nr * sizeof(*copy));
	for (size_t i = 0; i < nr; i++)
		order[i] = (struct keyed){value(&copy[i]), i};
	qsort(order, nr, sizeof(*order), largest_first);
	for (size_t i = 0; i < nr; i++)
		table->rows.items[i] = copy[order[i].index];
	return 0;
}
