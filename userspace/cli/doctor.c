/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof doctor`: what this machine, this user and a process allow, and what to do about a no.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/option_rows.h"
#include "target/capabilities.h"

#include <string.h>

struct doctor_options {
	long pid; /* 0: the machine only */
	bool json;
};

static const struct option_spec options[] = {
	ROW_PID(struct doctor_options, "Look at this process, too."),
	ROW_JSON(struct doctor_options, "Print one JSON object instead of lines."),
	{0},
};

const struct command command_doctor = {
	.name = "doctor",
	.summary = "say what works on this machine, and what to do about the rest",
	.usage = "[--pid PID] [--json]",
	.about = "Tries each thing that gpuprof needs from the kernel, undoes it, and says yes, no "
		 "or partly; the last line says what comes of it. With --pid it also looks at a "
		 "process, without touching it. The exit status is 1 if something is missing that "
		 "gpuprof cannot work without.",
	.options = options,
	.run = cli_doctor,
};

static const char *answer_word(enum capability_answer answer)
{
	switch (answer) {
	case CAPABILITY_YES:
		return "yes";
	case CAPABILITY_PARTLY:
		return "partly";
	case CAPABILITY_NO:
		break;
	}
	return "no";
}

static void print_lines(struct buf *out, const struct capability *c, size_t nr)
{
	for (size_t i = 0; i < nr; i++, c++) {
		buf__printf(out, "%-13s  %-6s  ", c->name, answer_word(c->answer));
		buf__line(out, c->detail);
		buf__str(out, c->required && c->answer == CAPABILITY_NO ? " (required)\n" : "\n");
		if (!c->advice[0])
			continue;
		buf__printf(out, "%-13s          -> ", "");
		buf__line(out, c->advice);
		buf__char(out, '\n');
	}
}

static void print_json(struct buf *out, const struct capability *c, size_t nr, long pid, bool able)
{
	buf__printf(out, "{\"able\":%s,\"pid\":", able ? "true" : "false");
	if (pid)
		buf__i64(out, pid);
	else
		buf__str(out, "null");
	buf__str(out, ",\"capabilities\":[");
	for (size_t i = 0; i < nr; i++, c++) {
		buf__printf(out, "%s{\"name\":\"%s\",\"answer\":\"%s\",\"required\":%s,\"detail\":",
			    i ? "," : "", c->name, answer_word(c->answer),
			    c->required ? "true" : "false");
		buf__json(out, c->detail);
		buf__str(out, ",\"advice\":");
		buf__json(out, c->advice);
		buf__char(out, '}');
	}
	buf__str(out, "]}\n");
}

static void cleanup_process(struct target_process **p)
{
	target_process__free(*p);
}

int cli_doctor(int argc, char **argv)
{
	CLEANUP(cleanup_process) struct target_process *p = NULL;
	CLEANUP(buf__done) struct buf out = {0};
	struct capability capabilities[CAPABILITIES_MAX];
	struct doctor_options o = {0};
	struct reason why = {""};
	bool able = true;
	size_t nr;
	int operands, err, status = options_parse(&command_doctor, argc, argv, &o, &operands);

	if (status >= 0)
		return status;
	if (o.pid && target_process__new((pid_t)o.pid, &why, &p)) {
		log_err("%s", why.text);
		return CLI_FAILED;
	}
	nr = capabilities_check(p, capabilities);
	for (size_t i = 0; i < nr; i++)
		able &= !capabilities[i].required || capabilities[i].answer != CAPABILITY_NO;
	if (o.json)
		print_json(&out, capabilities, nr, o.pid, able);
	else
		print_lines(&out, capabilities, nr);
	err = buf__error(&out);
	if (!err)
		err = file_write_all(1, out.bytes, out.nr);
	if (err) {
		(void)log_errno(err, "cannot write the answers");
		return CLI_FAILED;
	}
	return able ? CLI_DONE : CLI_FAILED;
}
