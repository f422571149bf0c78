/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof merge A B ... -o C`: merges recordings into one.
 */
#include "cli/view/merged.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/core/cli.h"
#include "cli/core/option_rows.h"
#include "cli/view/merge_align.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct merge_args {
	const char *output_path;
};

static const struct option_spec merge_options[] = {
	ROW_OUTPUT(struct merge_args, "OUT", "The recording to write; - is the standard output."),
	{0},
};

const struct command command_merge = {
	.name = "merge",
	.summary = "make one recording of several",
	.usage = "REC REC... -o OUT",
	.about = "Puts recordings of several processes, ranks, machines or times into one, from "
		 "which tables and traces are made as from any other. Recordings of one machine "
		 "share its clock; those of several are put beside each other by the time of day "
		 "of each, and where they hold ranks of one job, by its collectives: nobody is "
		 "done with one before all have begun it. How well they are aligned then is told "
		 "by 'table --distributed'.",
	.options = merge_options,
	.operand = "recordings",
	.min_operands = 2,
	.max_operands = -1,
	.complete = COMPLETE_FILE,
	.run = cli_merge,
};

static int open_parts(struct merged *m, int nr, char **paths, const char *output_path)
{
	struct reason why = {0};

	for (int i = 0; i < nr; i++) {
		const char *damage;

		if (file_is_same(paths[i], output_path)) {
			log_err("cannot write '%s': it is one of the recordings; name another "
				"file",
				output_path);
			return CLI_USAGE;
		}
		if (merged__open(m, paths[i], &why)) {
			log_err("%s", why.text);
			return CLI_FAILED;
		}
		damage = recording__damage(m->parts.items[m->parts.nr - 1]);
		if (damage)
			log_warn("the recording '%s' is not whole: %s; what comes before is taken",
				 paths[i], damage);
	}
	return CLI_DONE;
}

/* Aligns the machines' clocks by the collectives of their ranks, which is more exact than their
 * times of day. The merged recording keeps `clocks` with its shifts. Where it is not possible the
 * times of day stay, with a warning unless the recordings themselves rule it out. */
static void align(struct merged *m, int64_t *shifts_ns, struct merge_clocks *clocks)
{
	struct reason why = {0};
	int err = merge_align(m, shifts_ns, clocks, &why);

	if (err == -ENOENT)
		return;
	if (err) {
		log_warn("merging by the machines' times of day, not checked against what the "
			 "ranks did together: %s",
			 why.text);
		return;
	}
	log_info("the clocks agree within %.3f us by what the ranks did together",
		 (double)clocks->error_ns / 1e3);
	if (clocks->next_ns != UINT64_MAX)
		log_warn("the ranks' collectives would also fit each other if the machines' times "
			 "of day were wrong by %.3f ms more",
			 (double)clocks->next_ns / 1e6);
	m->clocks = clocks;
}

static int merge_into(struct merged *m, const char *path)
{
	CLEANUP(cleanup_free)
	int64_t *shifts_ns = calloc(m->parts.nr, sizeof(*shifts_ns));
	struct merge_clocks clocks = {.shifts_ns = shifts_ns, .next_ns = UINT64_MAX};
	struct reason why = {0};
	int err = shifts_ns ? 0 : reason_set(&why, -ENOMEM, "out of memory");

	if (!err) {
		align(m, shifts_ns, &clocks);
		err = merged__write(m, NULL, path, &why);
	}
	m->clocks = NULL;
	if (err)
		log_err("%s", why.text);
	return err ? CLI_FAILED : CLI_DONE;
}

int cli_merge(int argc, char **argv)
{
	CLEANUP(merged__done) struct merged m = {0};
	struct merge_args args = {0};
	int operands, status = options_parse(&command_merge, argc, argv, &args, &operands);

	if (status >= 0)
		return status;
	if (!args.output_path)
		return options_usage_error(&command_merge, "missing -o OUT");
	if (!strcmp(args.output_path, "-"))
		args.output_path = "/dev/stdout";
	memory_end_me_first();
	status = open_parts(&m, operands, argv + 1, args.output_path);
	if (status != CLI_DONE)
		return status;
	return merge_into(&m, args.output_path);
}
