/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "probe/session/program_try.h"

#include "base/cleanup.h"

#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The largest size that all kernels accept. Before 6.4 they keep the log's beginning, so the end of
 * a longer log is lost. */
#define LOG_BYTES ((1u << 24) - 1)

/* Whether it is one of the lines with which the verifier ends each log. */
static bool is_statistics(const char *line)
{
	static const char *const begin[] = {"processed ", "verification time ", "stack depth ",
					    "old state:", "cur state:"};

	for (size_t i = 0; i < sizeof(begin) / sizeof(*begin); i++)
		if (!strncmp(line, begin[i], strlen(begin[i])))
			return true;
	return false;
}

void verifier_last_words(const char *log, char *to, unsigned long bytes)
{
	const char *end = log + strlen(log);
	size_t nr = 0;

	to[0] = '\0';
	while (end > log && !nr) {
		const char *line = end;

		while (line > log && line[-1] != '\n')
			line--;
		if (end > line && !is_statistics(line))
			nr = (size_t)(end - line);
		end = nr || line == log ? line : line - 1;
	}
	if (nr >= bytes)
		nr = bytes - 1;
	for (size_t i = 0; i < nr; i++)
		to[i] = (char)(isprint((unsigned char)end[i]) ? end[i] : ' ');
	to[nr] = '\0';
}

void program_try(struct bpf_object *object, const char *name, struct program_answer *ret_answer)
{
	CLEANUP(cleanup_free) char *log = calloc(1, LOG_BYTES);
	struct bpf_program *program, *wanted = NULL;

	*ret_answer = (struct program_answer){.error = -ENOMEM};
	if (!log)
		return;
	bpf_object__for_each_program(program, object)
	{
		bool is_it = !strcmp(bpf_program__name(program), name);

		(void)bpf_program__set_autoload(program, is_it);
		if (is_it)
			wanted = program;
	}
	ret_answer->error = wanted ? bpf_program__set_log_buf(wanted, log, LOG_BYTES) : -ENOENT;
	if (!ret_answer->error)
		ret_answer->error = bpf_object__load(object);
	if (!ret_answer->error)
		return;
	ret_answer->verified = log[0];
	verifier_last_words(log, ret_answer->words, sizeof(ret_answer->words));
}
