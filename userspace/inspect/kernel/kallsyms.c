/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses /proc/kallsyms. Symbols have no sizes there: a function ends where the next one begins,
 * within a limit.
 */
#include "inspect/kernel/kallsyms.h"

#include "base/file.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

#define TEXT_BYTES_MAX	   (256u << 20)
#define FUNCTION_BYTES_MAX (1u << 20)

struct kallsyms {
	char *text; /* holds the names */
	VEC(struct kernel_function) functions;
};

void kallsyms__free(struct kallsyms *k)
{
	if (!k)
		return;
	vec_done(&k->functions);
	free(k->text);
	free(k);
}

/* Parses "ffffffff81000000 T do_one_initcall" or "... t nft_do_chain\t[nf_tables]" in place. False:
 * not a function, or its address is hidden. */
static bool parse_line(char *line, struct kernel_function *ret)
{
	struct kernel_function f = {0};
	char *rest, *type, *tab;

	errno = 0;
	f.start = strtoull(line, &rest, 16);
	if (errno || rest == line || *rest != ' ' || !f.start)
		return false;
	type = rest + 1;
	if (!*type || !strchr("tTwW", *type) || type[1] != ' ' || !type[2])
		return false;
	f.name = type + 2;
	tab = strchr(type + 2, '\t');
	if (tab) {
		*tab = '\0';
		f.module = tab + 1;
	}
	*ret = f;
	return true;
}

/* Sorts by address, and at one address the shorter name first: the others are variants of it. */
static int compare(const void *a, const void *b)
{
	const struct kernel_function *x = a, *y = b;
	size_t x_bytes, y_bytes;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	x_bytes = strlen(x->name);
	y_bytes = strlen(y->name);
	if (x_bytes != y_bytes)
		return x_bytes < y_bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

int kallsyms__parse(char *text, struct kallsyms **ret_symbols)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	char *rest = text, *line;
	int err = k ? 0 : -ENOMEM;

	if (!k) {
		free(text);
		return err;
	}
	k->text = text;
	while (!err && (line = strsep(&rest, "\n"))) {
		struct kernel_function f;

		if (parse_line(line, &f))
			err = vec_push(&k->functions, f);
	}
	if (err) {
		kallsyms__free(k);
		return err;
	}
	if (k->functions.nr)
		qsort(k->functions.items, k->functions.nr, sizeof(*k->functions.items), compare);
	*ret_symbols = k;
	return 0;
}

int kallsyms__read(struct kallsyms **ret_symbols)
{
	char *text;
	int err = file_read("/proc/kallsyms", TEXT_BYTES_MAX, &text, NULL);

	return err ? err : kallsyms__parse(text, ret_symbols);
}

size_t kallsyms__nr(const struct kallsyms *k)
{
	return k->functions.nr;
}

int kallsyms__find(const struct kallsyms *k, uint64_t address, struct kernel_function *ret)
{
	const struct kernel_function *items = k->functions.items;
	size_t low = 0, high = k->functions.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - items[low - 1].start >= FUNCTION_BYTES_MAX)
		return -ENOENT;
	while (low > 1 && items[low - 2].start == items[low - 1].start)
		low--;
	*ret = items[low - 1];
	return 0;
}

int kallsyms__addresses(const char *const *names, size_t nr, uint64_t *ret_addresses)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	size_t room = 0, left = nr;
	char *line = NULL;

	memset(ret_addresses, 0, nr * sizeof(*ret_addresses));
	if (!file)
		return -errno;
	while (left && getline(&line, &room, file) > 0) {
		struct kernel_function f;

		line[strcspn(line, "\n")] = '\0';
		if (!parse_line(line, &f) || f.module)
			continue;
		for (size_t i = 0; i < nr; i++)
			if (!ret_addresses[i] && !strcmp(f.name, names[i])) {
				ret_addresses[i] = f.start;
				left--;
			}
	}
	free(line);
	(void)fclose(file);
	return 0;
}
