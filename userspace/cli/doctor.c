/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof doctor`: checks what this machine, this user and a process allow, and says how to fix
 * what they do not.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/core/option_rows.h"
#include "inspect/program/capabilities.h"
#include "probe/plan/plan.h"
#include "probe/session/program_check.h"

#include <errno.h>
#include <stdio.h>
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

/* ---- the BPF programs ---- */

/* The programs that the kernel refuses. */
struct refused {
	VEC(struct program_refusal) items;
	bool all; /* without one of them nothing is probed */
	int err;
};

static void note_refusal(const struct program_refusal *refusal, void *arg)
{
	struct refused *r = arg;

	for (size_t i = 0; i < r->items.nr; i++)
		if (!strcmp(r->items.items[i].program, refusal->program))
			return;
	r->all |= refusal->all;
	r->err = r->err ?: vec_push(&r->items, *refusal);
}

static void check_programs(struct capability *c, struct refused *r)
{
	int nr = program_check_all(note_refusal, r);
	char kernel[80];

	*c = (struct capability){.name = "programs", .required = true};
	(void)program_check_kernel(kernel, sizeof(kernel));
	if (nr < 0 || r->err) {
		(void)snprintf(c->detail, sizeof(c->detail), "they could not be tried: %s",
			       strerror(-(nr < 0 ? nr : r->err)));
		(void)snprintf(c->advice, sizeof(c->advice), "see bpf and btf, above");
		return;
	}
	c->answer = !r->items.nr ? CAPABILITY_YES : r->all ? CAPABILITY_NO : CAPABILITY_PARTLY;
	if (!r->items.nr)
		(void)snprintf(c->detail, sizeof(c->detail), "%s takes all of gpuprof's", kernel);
	else
		(void)snprintf(c->detail, sizeof(c->detail), "%s refuses %zu of gpuprof's", kernel,
			       r->items.nr);
	if (r->items.nr)
		(void)snprintf(
			c->advice, sizeof(c->advice),
			"please report what follows; before Linux 5.17 it is to be expected");
}

static const char *refusal_words(const struct program_refusal *r)
{
	return r->answer.words[0] ? r->answer.words : strerror(-r->answer.error);
}

/* ---- the probes of a process ---- */

/* Counts what a capture of the process would probe. */
struct places {
	size_t functions_nr, sites_nr, stepped_nr, not_placed_nr;
};

static void count_places(struct places *places, const char *path)
{
	struct probe_plan *plan;

	if (probe_plan__new(path, NULL, NULL, &plan))
		return;
	places->functions_nr += plan->functions.nr;
	places->sites_nr += plan->sites.nr;
	places->stepped_nr += plan->single_stepped_nr;
	places->not_placed_nr += plan->not_placed_nr;
	probe_plan__free(plan);
}

static void check_probes(struct capability *c, const struct target_process *p)
{
	struct places places = {0};

	for (size_t i = 0; i < p->libraries_nr; i++)
		count_places(&places, p->libraries[i].open_path);
	*c = (struct capability){.name = "probes"};
	c->answer = !places.functions_nr			? CAPABILITY_NO
		    : places.stepped_nr || places.not_placed_nr ? CAPABILITY_PARTLY
								: CAPABILITY_YES;
	(void)snprintf(c->detail, sizeof(c->detail),
		       "%zu functions, %zu of them without a place; %zu places, %zu of them "
		       "single-stepped",
		       places.functions_nr, places.not_placed_nr, places.sites_nr,
		       places.stepped_nr);
	if (places.not_placed_nr)
		(void)snprintf(c->advice, sizeof(c->advice),
			       "what has no place is counted as the loss 'probe' where it is "
			       "recorded by probes");
	else if (places.stepped_nr)
		(void)snprintf(c->advice, sizeof(c->advice),
			       "a single-stepped place costs some ten times what another does");
}

/* ---- output ---- */

static void print_lines(struct buf *out, const struct capability *c, size_t nr,
			const struct refused *r)
{
	for (size_t i = 0; i < nr; i++, c++) {
		buf__printf(out, "%-13s  %-6s  ", c->name, answer_word(c->answer));
		buf__line(out, c->detail);
		buf__str(out, c->required && c->answer == CAPABILITY_NO ? " (required)\n" : "\n");
		if (c->advice[0]) {
			buf__printf(out, "%-13s          -> ", "");
			buf__line(out, c->advice);
			buf__char(out, '\n');
		}
		for (size_t k = 0; k < r->items.nr && !strcmp(c->name, "programs"); k++)
			buf__printf(out, "%-13s          -> %s: '%s': no %s\n", "",
				    r->items.items[k].program, refusal_words(&r->items.items[k]),
				    r->items.items[k].costs);
	}
}

static void put_refusals(struct json_writer *j, const struct refused *r)
{
	json__put_array(j, "refused", &json_tight);
	for (size_t i = 0; i < r->items.nr; i++) {
		const struct program_refusal *one = &r->items.items[i];

		json__object(j, &json_tight);
		json__put_word(j, "program", one->program);
		json__put_text(j, "words", refusal_words(one));
		json__put_text(j, "costs", one->costs);
		json__end(j);
	}
	json__end(j);
}

static void put_capability(struct json_writer *j, const struct capability *c,
			   const struct refused *r)
{
	json__object(j, &json_tight);
	json__put_word(j, "name", c->name);
	json__put_word(j, "answer", answer_word(c->answer));
	json__put_bool(j, "required", c->required);
	json__put_text(j, "detail", c->detail);
	json__put_text(j, "advice", c->advice);
	if (!strcmp(c->name, "programs"))
		put_refusals(j, r);
	json__end(j);
}

static void print_json(struct buf *out, const struct capability *c, size_t nr, long pid, bool able,
		       const struct refused *r)
{
	struct json_writer j;

	json__init(&j, out);
	json__object(&j, &json_tight);
	json__put_bool(&j, "able", able);
	if (pid)
		json__put_i64(&j, "pid", pid);
	else
		json__put_null(&j, "pid");
	json__put_array(&j, "capabilities", &json_tight);
	for (size_t i = 0; i < nr; i++)
		put_capability(&j, &c[i], r);
	json__end(&j);
	json__end(&j);
	buf__char(out, '\n');
}

static void cleanup_process(struct target_process **p)
{
	target_process__free(*p);
}

static void refused_done(struct refused *r)
{
	vec_done(&r->items);
}

int cli_doctor(int argc, char **argv)
{
	CLEANUP(cleanup_process) struct target_process *p = NULL;
	CLEANUP(buf__done) struct buf out = {0};
	CLEANUP(refused_done) struct refused refused = {.all = false};
	struct capability capabilities[CAPABILITIES_MAX], later[2];
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
	check_programs(&later[0], &refused);
	if (p)
		check_probes(&later[1], p);
	nr = capabilities_check(p, later, p ? 2 : 1, capabilities);
	for (size_t i = 0; i < nr; i++)
		able &= !capabilities[i].required || capabilities[i].answer != CAPABILITY_NO;
	if (o.json)
		print_json(&out, capabilities, nr, o.pid, able, &refused);
	else
		print_lines(&out, capabilities, nr, &refused);
	err = buf__error(&out);
	if (!err)
		err = file_write_all(1, out.bytes, out.nr);
	if (err) {
		(void)log_errno(err, "cannot write the answers");
		return CLI_FAILED;
	}
	return able ? CLI_DONE : CLI_FAILED;
}
