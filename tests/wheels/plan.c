/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What probe/ plans for each file named: operators that have probes, that have none, probes, and
 * those of them that are single-stepped; a line each, and "old" where its strings are the C++
 * library's old ones.
 */
#include "probe/plan/plan.h"
#include "base/reason.h"

#include <stdio.h>

static void show(const char *path, const struct probe_plan *plan)
{
	size_t placed_nr = 0, unplaced_nr = 0;

	for (size_t i = 0; i < plan->functions.nr; i++) {
		placed_nr += plan->functions.items[i].placed != 0;
		unplaced_nr += !plan->functions.items[i].placed;
	}
	printf("%s\t%zu\t%zu\t%zu\t%u\t%s\n", path, placed_nr, unplaced_nr, plan->sites.nr,
	       plan->single_stepped_nr, plan->old_strings ? "old" : "new");
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct probe_plan *plan;
		struct reason why;

		if (probe_plan__new(argv[i], NULL, &why, &plan)) {
			fprintf(stderr, "%s\n", why.text);
			return 1;
		}
		show(argv[i], plan);
		probe_plan__free(plan);
	}
	return 0;
}
