/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Many processes with the stand-in for libtorch_cpu in them: crowd LIBRARY NUMBER. Each is a
 * program of its own, not only a fork. Says "ready PID..." and obeys one order a line:
 *
 *     call N    each of them calls an operator N times; "called"
 *     flicker   half of them end at once, others take their places; "ready PID..."
 *
 * They end with the first one.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER_MAX 1000

struct one {
	pid_t pid;
	int orders, answers;
};

static struct one all[NUMBER_MAX];

static void die(const char *why)
{
	perror(why);
	exit(1);
}

/* What each of them does: for each number on its input, as many calls. */
static void live(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);
	void (*sinh_call)(void *);
	int calls;

	if (!handle)
		die(dlerror());
	*(void **)&sinh_call = dlsym(handle, "_ZN2at4_ops4sinh4callERKNS_6TensorE");
	if (!sinh_call)
		die("no sinh");
	if (write(1, "r", 1) != 1)
		exit(1);
	while (read(0, &calls, sizeof(calls)) == sizeof(calls)) {
		for (int i = 0; i < calls; i++)
			sinh_call(NULL);
		if (write(1, "d", 1) != 1)
			break;
	}
	exit(0);
}

static void start(struct one *o, const char *self, const char *library)
{
	int orders[2], answers[2];

	if (pipe(orders) || pipe(answers))
		die("pipe");
	o->pid = fork();
	if (o->pid < 0)
		die("fork");
	if (!o->pid) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(orders[0], 0) < 0 || dup2(answers[1], 1) < 0)
			die("dup2");
		for (int fd = 3; fd < 4 * NUMBER_MAX; fd++)
			(void)close(fd);
		(void)execl(self, self, library, (char *)NULL);
		die("exec");
	}
	(void)close(orders[0]);
	(void)close(answers[1]);
	o->orders = orders[1];
	o->answers = answers[0];
}

static void end(struct one *o)
{
	(void)kill(o->pid, SIGKILL);
	(void)waitpid(o->pid, NULL, 0);
	(void)close(o->orders);
	(void)close(o->answers);
}

static void wait_for(const struct one *o, char wanted)
{
	char c;

	if (read(o->answers, &c, 1) != 1 || c != wanted)
		die("one has ended");
}

static void emit(int nr)
{
	printf("ready");
	for (int i = 0; i < nr; i++)
		printf(" %d", (int)all[i].pid);
	printf("\n");
	(void)fflush(stdout);
}

static void call(int nr, int calls)
{
	for (int i = 0; i < nr; i++)
		if (write(all[i].orders, &calls, sizeof(calls)) != sizeof(calls))
			die("one has ended");
	for (int i = 0; i < nr; i++)
		wait_for(&all[i], 'd');
	printf("called\n");
	(void)fflush(stdout);
}

static void flicker(int nr, const char *self, const char *library)
{
	for (int i = 0; i < nr; i += 2) {
		end(&all[i]);
		start(&all[i], self, library);
	}
	for (int i = 0; i < nr; i += 2)
		wait_for(&all[i], 'r');
	emit(nr);
}

int main(int argc, char **argv)
{
	int nr = argc == 3 ? atoi(argv[2]) : 0;
	char line[64];

	if (argc == 2)
		live(argv[1]);
	if (nr <= 0 || nr > NUMBER_MAX)
		return 2;
	for (int i = 0; i < nr; i++)
		start(&all[i], argv[0], argv[1]);
	for (int i = 0; i < nr; i++)
		wait_for(&all[i], 'r');
	emit(nr);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "call ", 5))
			call(nr, atoi(line + 5));
		else
			flicker(nr, argv[0], argv[1]);
	}
	return 0;
}
