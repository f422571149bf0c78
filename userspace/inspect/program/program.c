/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Recognises programs by their arguments. Python's own options are parsed as the interpreter parses
 * them: a word that merely occurs in a command line does not make it a launcher.
 */
#include "inspect/program/program.h"

#include "base/file.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* What Python was asked to run. At most one is set. */
struct python_run {
	const char *code, *module, *script;
	const char *after; /* the argument after it; NULL: none */
};

static bool begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static bool ends_with(const char *text, const char *end)
{
	size_t bytes = strlen(text), end_bytes = strlen(end);

	return bytes >= end_bytes && !strcmp(text + bytes - end_bytes, end);
}

static bool is_one_of(const char *text, const char *const *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(text, list[i]))
			return true;
	return false;
}

/* Returns the next argument; NULL: none. */
static const char *next_argument(const struct target_arguments *a, const char *at)
{
	at += strlen(at) + 1;
	return at < a->text + a->bytes ? at : NULL;
}

/* One-letter options can be combined ("-Im"); one that takes a value ends the word, or takes the
 * rest of it. */
static struct python_run read_python_run(const struct target_arguments *a)
{
	const char *word = next_argument(a, a->text);

	for (; word; word = next_argument(a, word)) {
		const char *letter, *value;

		if (word[0] != '-' || !word[1])
			return (struct python_run){.script = word, .after = next_argument(a, word)};
		if (!strcmp(word, "--check-hash-based-pycs"))
			word = next_argument(a, word);
		if (!word)
			break;
		letter = word[1] == '-' ? "" : word + 1 + strcspn(word + 1, "cmWX");
		if (!*letter)
			continue;
		value = letter[1] ? letter + 1 : next_argument(a, word);
		if (!value)
			break;
		if (*letter == 'c')
			return (struct python_run){.code = value, .after = next_argument(a, value)};
		if (*letter == 'm')
			return (struct python_run){.module = value,
						   .after = next_argument(a, value)};
		word = value;
	}
	return (struct python_run){0};
}

/* Recognises the programs that Python's multiprocessing starts, and those of its variant with dill.
 */
static enum target_program program_of_code(const char *code)
{
	static const struct {
		const char *start;
		enum target_program program;
	} starts[] = {
		{".forkserver import main; main(", PROGRAM_FORKSERVER},
		{".resource_tracker import main;", PROGRAM_RESOURCE_TRACKER},
		{".spawn import spawn_main; spawn_main(", PROGRAM_SPAWNED},
	};

	/* CPython's gh-144503: the forkserver's. */
	if (begins_with(code, "import sys; "))
		code += strlen("import sys; ");
	if (begins_with(code, "from multiprocessing."))
		code += strlen("from multiprocessing");
	else if (begins_with(code, "from multiprocess."))
		code += strlen("from multiprocess");
	else
		return PROGRAM_OTHER;
	for (size_t i = 0; i < COUNT(starts); i++)
		if (begins_with(code, starts[i].start))
			return starts[i].program;
	return PROGRAM_OTHER;
}

static enum target_program program_of_module(const char *module)
{
	static const char *const launchers[] = {
		"torch.distributed.run",      "torch.distributed.launch",
		"accelerate.commands.launch", "deepspeed.launcher.launch",
		"deepspeed.launcher.runner",  "horovod.runner.launch",
	};

	if (is_one_of(module, launchers, COUNT(launchers)))
		return PROGRAM_LAUNCHER;
	return !strcmp(module, "torch._inductor.compile_worker") ? PROGRAM_COMPILE_WORKER
								 : PROGRAM_OTHER;
}

static enum target_program program_of_script(const char *script, const char *after)
{
	static const char *const launchers[] = {"torchrun", "accelerate-launch", "deepspeed",
						"horovodrun"};
	static const char *const paths[] = {
		"/torch/distributed/run.py", "/torch/distributed/launch.py",
		"/accelerate/commands/launch.py", "/deepspeed/launcher/launch.py"};
	const char *name = file_base_name(script);

	if (is_one_of(name, launchers, COUNT(launchers)) ||
	    (!strcmp(name, "accelerate") && after && !strcmp(after, "launch")))
		return PROGRAM_LAUNCHER;
	for (size_t i = 0; i < COUNT(paths); i++)
		if (ends_with(script, paths[i]))
			return PROGRAM_LAUNCHER;
	return ends_with(script, "/torch/_inductor/compile_worker/__main__.py")
		       ? PROGRAM_COMPILE_WORKER
		       : PROGRAM_OTHER;
}

enum target_program target_program_of(const struct target_arguments *a)
{
	static const char *const launchers[] = {"mpirun", "mpiexec", "orterun", "prterun",
						"raylet"};
	struct python_run run;
	const char *name;

	if (!a->bytes)
		return PROGRAM_OTHER;
	name = file_base_name(a->text);
	if (begins_with(a->text, "ray::"))
		return PROGRAM_RAY;
	if (!begins_with(name, "python"))
		return is_one_of(name, launchers, COUNT(launchers)) ? PROGRAM_LAUNCHER
								    : PROGRAM_OTHER;
	run = read_python_run(a);
	if (run.code)
		return program_of_code(run.code);
	if (run.module)
		return program_of_module(run.module);
	return run.script ? program_of_script(run.script, run.after) : PROGRAM_OTHER;
}

bool target_process__has_title(const struct target_process *p)
{
	return p->arguments.bytes && begins_with(file_base_name(p->exe), "python") &&
	       !begins_with(file_base_name(p->arguments.text), "python");
}
