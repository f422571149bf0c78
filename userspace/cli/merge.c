/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof merge A B ... -o C`: several recordings as one.
 */
#include "cli/merged.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/options.h"

struct merge_args {
	const char *output_path;
};

static const struct option_spec merge_options[] = {
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct merge_args, output_path),
	 .value_name = "OUT",
	 .complete = COMPLETE_FILE,
	 .help = "The recording to write."},
	{0},
};

const struct command command_merge = {
	.name = "merge",
	.summary = "make one recording of several",
	.usage = "REC REC... -o OUT",
	.about = "Puts recordings of several processes, ranks, machines or times into one, from "
		 "which tables and traces are made as from any other. Recordings of one machine "
		 "share its clock; those of several are put beside each other by the time of day "
		 "of each, and are as well aligned as that is.",
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

int cli_merge(int argc, char **argv)
{
	CLEANUP(merged__done) struct merged m = {0};
	struct merge_args args = {0};
	struct reason why = {0};
	int operands, status = options_parse(&command_merge, argc, argv, &args, &operands);

	if (status >= 0)
		return status;
	if (!args.output_path)
		return options_usage_error(&command_merge, "missing -o OUT");
	status = open_parts(&m, operands, argv + 1, args.output_path);
	if (status != CLI_DONE)
		return status;
	if (merged__write(&m, args.output_path, &why)) {
		log_err("%s", why.text);
		return CLI_FAILED;
	}
	return CLI_DONE;
}
