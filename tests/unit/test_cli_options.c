/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Options from tables: every way of writing them, every mistake, and the help.
 */
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/core/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct values {
	bool flag, quiet;
	const char *text, *unit, *even;
	long number, any;
	double seconds;
};

#define FIELD(f) .offset = offsetof(struct values, f)

static const char *const units[] = {"s", "ms", NULL};

static bool is_even(const char *value)
{
	return strlen(value) % 2 == 0;
}

static const struct option_spec options[] = {
	{.name = "flag", .letter = 'f', .kind = OPTION_FLAG, FIELD(flag), .help = "A flag."},
	{.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, FIELD(quiet), .help = "Less."},
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_TEXT,
	 FIELD(text),
	 .value_name = "FILE",
	 .help = "A text that is long enough to be wrapped more than once, because the column of "
		 "help texts leaves only some fifty letters to each line."},
	{.name = "unit",
	 .kind = OPTION_TEXT,
	 FIELD(unit),
	 .value_name = "UNIT",
	 .choices = units,
	 .help = "A choice."},
	{.name = "even",
	 .kind = OPTION_TEXT,
	 FIELD(even),
	 .value_name = "WORD",
	 .known = is_even,
	 .rule = "a WORD of even length",
	 .help = "A word."},
	{.name = "number",
	 .letter = 'n',
	 .kind = OPTION_NUMBER,
	 FIELD(number),
	 .value_name = "N",
	 .min = -1,
	 .max = 9,
	 .help = "A number."},
	{.name = "any",
	 .kind = OPTION_NUMBER,
	 FIELD(any),
	 .value_name = "N",
	 .help = "Any number.",
	 .hidden = true},
	{.name = "seconds",
	 .kind = OPTION_SECONDS,
	 FIELD(seconds),
	 .value_name = "SEC",
	 .help = "Seconds."},
	{0},
};

static const struct command command = {
	.name = "try",
	.usage = "[options] REC",
	.about = "First paragraph.\nSecond one.",
	.options = options,
	.max_operands = 2,
};

static const struct command runner = {
	.name = "run",
	.usage = "[options] -- CMD",
	.about = "Runs.",
	.operand = "the command",
	.options = options,
	.min_operands = 1,
	.max_operands = -1,
	.stops_at_operand = true,
};

#define WORDS_MAX 16

/* Parses the words of a NULL-terminated list into *v; argv is left in words. */
static int parse(const struct command *c, const char **words, struct values *v, int *ret_operands)
{
	int argc = 0;

	while (words[argc])
		argc++;
	*v = (struct values){.number = 5};
	*ret_operands = -1;
	return options_parse(c, argc, (char **)words, v, ret_operands);
}

#define WORDS(...)                                                                                 \
	(const char *[WORDS_MAX])                                                                  \
	{                                                                                          \
		"try", __VA_ARGS__                                                                 \
	}

static void test_every_way_of_writing(void **state)
{
	const char **ways[] = {WORDS("-f", "-o", "x", "-n", "7", "a", "b"),
			       WORDS("a", "-fox", "b", "-n7"),
			       WORDS("--flag", "--output", "x", "--number", "7", "--", "a", "b"),
			       WORDS("a", "--output=x", "b", "--number=7", "--flag")};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct values v;
		int operands;

		assert_int_equal(parse(&command, ways[i], &v, &operands), -1);
		assert_true(v.flag && !v.quiet);
		assert_string_equal(v.text, "x");
		assert_int_equal(v.number, 7);
		assert_int_equal(operands, 2);
		assert_string_equal(ways[i][1], "a");
		assert_string_equal(ways[i][2], "b");
	}
}

static void test_values(void **state)
{
	const char **words = WORDS("--unit", "ms", "--seconds=1.5", "--any", "-9000000000",
				   "--output=a=b", "-n", "-1", "--even=word", "-");
	struct values v;
	int operands;

	assert_int_equal(parse(&command, words, &v, &operands), -1);
	assert_string_equal(v.unit, "ms");
	assert_true(v.seconds == 1.5);
	assert_int_equal(v.any, -9000000000);
	assert_string_equal(v.text, "a=b");
	assert_int_equal(v.number, -1);
	assert_string_equal(v.even, "word");
	/* A dash alone is an operand: stdin or stdout. */
	assert_int_equal(operands, 1);
	assert_string_equal(words[1], "-");
}

static void test_defaults_stay(void **state)
{
	struct values v;
	int operands;

	assert_int_equal(parse(&command, WORDS(NULL), &v, &operands), -1);
	assert_int_equal(operands, 0);
	assert_int_equal(v.number, 5);
	assert_null(v.text);
}

static void test_what_is_run_keeps_its_options(void **state)
{
	const char **ways[] = {WORDS("-q", "python3", "-f", "--output", "y", "--", "z"),
			       WORDS("-q", "--", "python3", "-f", "--output", "y", "--", "z")};

	for (size_t i = 0; i < 2; i++) {
		struct values v;
		int operands;

		assert_int_equal(parse(&runner, ways[i], &v, &operands), -1);
		assert_true(v.quiet && !v.flag && !v.text);
		assert_int_equal(operands, 6);
		assert_string_equal(ways[i][1], "python3");
		assert_string_equal(ways[i][2], "-f");
		assert_string_equal(ways[i][5], "--");
		assert_string_equal(ways[i][6], "z");
	}
}

/* What goes to `fd` while fn runs, cut at `cap`. */
static void caught(int fd, char *text, size_t cap, void (*fn)(void *arg), void *arg)
{
	FILE *file = tmpfile();
	int kept = dup(fd);
	size_t nr;

	assert_true(file && kept >= 0);
	(void)fflush(NULL);
	assert_int_equal(dup2(fileno(file), fd), fd);
	fn(arg);
	(void)fflush(NULL);
	assert_int_equal(dup2(kept, fd), fd);
	(void)close(kept);
	rewind(file);
	nr = fread(text, 1, cap - 1, file);
	text[nr] = '\0';
	(void)fclose(file);
}

struct mistake {
	const char **words;
	const char *says;
};

static void make_mistake(void *arg)
{
	const struct mistake *m = arg;
	struct values v;
	int operands;

	assert_int_equal(parse(&command, m->words, &v, &operands), CLI_USAGE);
	assert_int_equal(operands, -1);
}

static void test_mistakes(void **state)
{
	struct mistake mistakes[] = {
		{WORDS("--nonsense"), "unknown option '--nonsense'"},
		{WORDS("--ouput=x"), "did you mean '--output'?"},
		{WORDS("--fla"), "did you mean '--flag'?"},
		{WORDS("-x"), "unknown option '-x'"},
		{WORDS("-fx"), "unknown option '-fx'"},
		{WORDS("--output"), "--output needs a FILE"},
		{WORDS("-o"), "--output needs a FILE"},
		{WORDS("--output="), "not an empty text"},
		{WORDS("--bogus"), "unknown option '--bogus';"},
		{WORDS("--flag=1"), "--flag takes no value"},
		{WORDS("-n", "10"), "from -1 to 9, not '10'"},
		{WORDS("-n", "-2"), "from -1 to 9, not '-2'"},
		{WORDS("-n", "3x"), "takes a whole number, not '3x'"},
		{WORDS("-n", ""), "takes a whole number"},
		{WORDS("--any", "99999999999999999999"), "takes a whole number"},
		{WORDS("--seconds", "0"), "above 0"},
		{WORDS("--seconds", "-3"), "above 0"},
		{WORDS("--seconds", "nan"), "above 0"},
		{WORDS("--seconds", "inf"), "above 0"},
		{WORDS("--seconds", "1d"), "above 0"},
		{WORDS("--unit", "us"), "unknown value 'us' for --unit: choose one of s, ms"},
		{WORDS("--even", "odd"), "--even takes a WORD of even length, not 'odd'"},
		{WORDS("a", "b", "c"), "unexpected 'c'"},
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		char text[1024];

		caught(STDERR_FILENO, text, sizeof(text), make_mistake, &mistakes[i]);
		if (!strstr(text, mistakes[i].says) || !strstr(text, "gpuprof try --help"))
			fail_msg("'%s' lacks '%s'", text, mistakes[i].says);
	}
}

static void miss_operand(void *arg)
{
	struct values v;
	int operands;

	assert_int_equal(parse(&runner, WORDS("-q"), &v, &operands), CLI_USAGE);
}

static void test_missing_operand(void **state)
{
	char text[1024];

	caught(STDERR_FILENO, text, sizeof(text), miss_operand, NULL);
	assert_non_null(strstr(text, "missing the command: gpuprof run [options] -- CMD"));
}

static void ask_help(void *arg)
{
	struct values v;
	int operands;

	assert_int_equal(parse(&command, WORDS("x", "-h", "y", "z", "zz"), &v, &operands),
			 CLI_DONE);
}

static void test_help(void **state)
{
	char text[4096];

	caught(STDOUT_FILENO, text, sizeof(text), ask_help, NULL);
	assert_non_null(strstr(text, "usage: gpuprof try [options] REC\n\nFirst paragraph.\n"
				     "Second one.\n\noptions:\n"));
	assert_non_null(strstr(text, "\n  -o, --output FILE           A text that is long"));
	assert_non_null(strstr(text, "\n      --unit UNIT             A choice.\n"));
	assert_non_null(strstr(text, "\n  -h, --help                  Show help.\n"));
	assert_null(strstr(text, "--any"));
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		size_t nr = strcspn(line, "\n");

		assert_true(nr < 80);
		assert_true(!nr || line[nr - 1] != ' ');
	}
}

static void test_verbose(void **state)
{
	const struct {
		const char **words;
		enum log_level level;
	} cases[] = {{WORDS("x"), LOG_WARN},
		     {WORDS("-v"), LOG_INFO},
		     {WORDS("-vv"), LOG_DEBUG},
		     {WORDS("-v", "--verbose"), LOG_DEBUG}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct values v;
		int operands;

		log_set_level(LOG_WARN);
		assert_int_equal(parse(&command, cases[i].words, &v, &operands), -1);
		assert_int_equal(log_get_level(), cases[i].level);
	}
	log_set_level(LOG_WARN);
}

static void test_distance(void **state)
{
	static const char longest[] =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

	assert_int_equal(options_distance("", ""), 0);
	assert_int_equal(options_distance("table", "table"), 0);
	assert_int_equal(options_distance("tabel", "table"), 2);
	assert_int_equal(options_distance("", "abc"), 3);
	assert_int_equal(options_distance("abc", ""), 3);
	assert_int_equal(options_distance("kitten", "sitting"), 3);
	assert_int_equal(sizeof(longest) - 1, 63);
	assert_int_equal(options_distance(longest, longest), 0);
	assert_int_equal(options_distance(longest, longest + 1), 1);
	assert_int_equal(options_distance("a",
					  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					  "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
			 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_way_of_writing),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_defaults_stay),
		cmocka_unit_test(test_what_is_run_keeps_its_options),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_missing_operand),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_verbose),
		cmocka_unit_test(test_distance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
