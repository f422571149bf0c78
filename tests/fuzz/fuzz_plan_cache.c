/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Fuzzes what reads a plan of the cache, behind the digest: any functions, sites and texts. What it
 * takes must hold together: names that end, sites inside functions that have places, in order.
 */
#include "fuzz/fuzz_seed.h"
#include "probe/plan/plan_cache.c"

#include <stdlib.h>

#define NUMBERS 3

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct {
		uint8_t numbers[NUMBERS];
		struct cache_function function;
		struct cache_site sites[2];
		char texts[8];
	} __attribute__((packed)) seed = {
		.numbers = {1, 2, 8},
		.function = {.symbol = 1,
			     .kind = PROBE_OP,
			     .placed = 1,
			     .code_bytes = 64,
			     .code_offset = 0x1000},
		.sites = {{.offset = 0x1004, .sp_delta = 8}, {.offset = 0x1010, .is_exit = 1}},
		.texts = "\0symbol",
	};

	fuzz_seed(*argc, *argv, "plan", (const uint8_t *)&seed, sizeof(seed));
	return 0;
}

static void check(const struct probe_plan *plan)
{
	size_t letters = 0;

	for (size_t i = 0; i < plan->functions.nr; i++) {
		const struct probe_function *fn = &plan->functions.items[i];

		letters += strlen(fn->symbol) + strlen(fn->name) + strlen(fn->overload) +
			   strlen(fn->why);
	}
	for (size_t i = 0; i < plan->sites.nr; i++) {
		const struct probe_site *site = &plan->sites.items[i];
		const struct probe_function *fn;

		if (site->function >= plan->functions.nr ||
		    (i && site->function < site[-1].function))
			abort();
		fn = &plan->functions.items[site->function];
		if (!fn->placed || site->offset < fn->code_offset ||
		    site->offset - fn->code_offset >= fn->code_bytes)
			abort();
	}
	if (letters > SIZE_MAX / 2)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct probe_plan plan = {.texts = intern__new()};
	struct cache_head head = {0};
	size_t need;

	if (bytes >= NUMBERS) {
		head.functions_nr = data[0];
		head.sites_nr = data[1];
		head.texts_bytes = data[2];
	}
	need = head.functions_nr * sizeof(struct cache_function) +
	       head.sites_nr * sizeof(struct cache_site) + head.texts_bytes;
	if (!plan.texts)
		abort();
	if (bytes >= NUMBERS && bytes - NUMBERS == need) {
		/* Of its own, so that a read beyond it is seen. */
		char *body = malloc(need + !need);

		if (!body)
			abort();
		memcpy(body, data + NUMBERS, need);
		if (!load_body(&plan, &head, body))
			check(&plan);
		free(body);
	}
	vec_done(&plan.functions);
	vec_done(&plan.sites);
	intern__free(plan.texts);
	return 0;
}
