/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Time and memory of unwind tables: unwind_bench FILE... builds the table of each file in a process
 * of its own, then reads it from a cache of its own, and prints one line a file. Times are the
 * least of three; the first look at a file also reads it from disk, which is not counted.
 */
#include "base/cleanup.h"
#include "inspect/unwind/unwind_cache.h"
#include "inspect/unwind/unwind_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Milliseconds to open the file and have its table, from `dir` if not NULL. */
static double get_once(const char *path, const char *dir, struct unwind_table *ret_table)
{
	struct reason why = {0};
	struct elf_file *f;
	double begin = now_ms();

	if (elf_file__open(path, &why, &f)) {
		(void)fprintf(stderr, "unwind_bench: %s\n", why.text);
		exit(1);
	}
	if (unwind_cache_get(f, dir, ret_table)) {
		(void)fprintf(stderr, "unwind_bench: '%s' has no unwind information\n", path);
		exit(1);
	}
	begin = now_ms() - begin;
	elf_file__free(f);
	return begin;
}

static double get_least(const char *path, const char *dir, struct unwind_table *ret_table)
{
	double least = 1e9;

	for (int i = 0; i < 3; i++) {
		double ms;

		unwind_table__done(ret_table);
		ms = get_once(path, dir, ret_table);
		least = ms < least ? ms : least;
	}
	return least;
}

static void measure(const char *path, const char *dir)
{
	struct unwind_table t = {0};
	struct rusage usage;
	double build, cached;

	build = get_least(path, NULL, &t);
	(void)getrusage(RUSAGE_SELF, &usage);
	(void)get_once(path, dir, &t);
	cached = get_least(path, dir, &t);
	(void)printf("%s: %u rows, %u rules, %.1f MiB; built in %.1f ms with %.1f MiB in memory, "
		     "from the cache in %.1f ms; %u rows hard, %llu records not understood\n",
		     path, t.rows_nr, t.rules_nr, (double)t.words_nr * 8 / (1 << 20), build,
		     (double)usage.ru_maxrss / 1024, cached, t.hard_nr,
		     (unsigned long long)t.skipped_nr);
	unwind_table__done(&t);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/unwind-bench-XXXXXX";
	int status, failed = 0;

	if (argc < 2 || !mkdtemp(dir))
		return 2;
	for (int i = 1; i < argc; i++) {
		(void)fflush(stdout);
		if (!fork()) {
			measure(argv[i], dir);
			return 0;
		}
		(void)wait(&status);
		failed |= status;
	}
	execlp("rm", "rm", "-rf", dir, NULL);
	return failed != 0;
}
