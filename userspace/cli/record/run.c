/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof run`: starts a child that waits before exec until its probes can be placed. From then
 * on it stops for a moment whenever the loader maps a file, so that a library is probed before its
 * first instruction runs. If gpuprof dies, its guard, a process that does nothing else, lets the
 * child go on. (A parent-death signal of the child's own would be lost when it changes its user.)
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/core/options.h"
#include "cli/core/signals.h"
#include "cli/record/record.h"
#include "cli/record/record_args.h"
#include "cli/record/run_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The status of a child that could not execute its program, as in a shell. */
#define STATUS_NOT_FOUND 127

/* How the child is released. */
#define GO_INVITED 'i'
#define GO_ALONE   'a' /* gpuprof puts the collector in itself */

struct child {
	pid_t pid;
	pid_t guard;
	int go;	    /* write end: one byte lets it go on to exec */
	int failed; /* read end: the errno of a failed exec, or nothing */
};

/* The changes to the child's environment. */
struct invitation {
	char *library; /* NULL: nothing */
	bool children; /* is for them too */
	bool nvtx;     /* NVTX is to ask it as well */
};

static void child_main(int go, int failed, pid_t parent, char **argv,
		       const struct invitation *invitation)
{
	char byte;
	int err;

	if (getppid() != parent || read(go, &byte, 1) != 1)
		_exit(STATUS_NOT_FOUND);
	(void)signal(SIGPIPE, SIG_DFL);
	/* Where only ancestors may trace (yama): gpuprof's processes may, too. */
	(void)prctl(PR_SET_PTRACER, parent, 0, 0, 0);
	if (invitation->library && byte == GO_INVITED)
		run_gpu_invite(invitation->library, invitation->children, invitation->nvtx);
	(void)execvp(argv[0], argv);
	err = errno;
	if (write(failed, &err, sizeof(err)) < 0)
		_exit(STATUS_NOT_FOUND);
	_exit(STATUS_NOT_FOUND);
}

/* Waits for the end of gpuprof and ignores all other signals. */
static void guard_main(pid_t gpuprof, pid_t child)
{
	sigset_t all, death;
	int fd, got;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)sigemptyset(&death);
	(void)sigaddset(&death, SIGUSR1);
	/* Closes what gpuprof has open: it must not stay open here. */
	(void)syscall(SYS_close_range, 0, ~0U, 0);
	fd = (int)syscall(SYS_pidfd_open, child, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGUSR1);
	while (getppid() == gpuprof)
		(void)sigwait(&death, &got);
	(void)syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0);
	_exit(0);
}

/* Forks the guard. 0, or -errno with a message. */
static int start_guard(struct child *c)
{
	pid_t gpuprof = getpid();

	c->guard = signals_fork();
	if (!c->guard)
		guard_main(gpuprof, c->pid);
	return c->guard < 0 ? log_errno(-errno, "cannot guard '%d'", (int)c->pid) : 0;
}

static void end_guard(struct child *c)
{
	if (c->guard <= 0)
		return;
	(void)kill(c->guard, SIGKILL);
	while (waitpid(c->guard, NULL, 0) < 0 && errno == EINTR)
		;
}

static int start_child(char **argv, const struct invitation *invitation, struct child *ret_child)
{
	pid_t parent = getpid();
	int go[2], failed[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		return log_errno(-errno, "cannot make a pipe");
	if (pipe2(failed, O_CLOEXEC)) {
		int err = -errno;

		(void)close(go[0]);
		(void)close(go[1]);
		return log_errno(err, "cannot make a pipe");
	}
	pid = signals_fork();
	if (!pid) {
		(void)close(go[1]);
		child_main(go[0], failed[1], parent, argv, invitation);
	}
	(void)close(go[0]);
	(void)close(failed[1]);
	if (pid < 0)
		return log_errno(-errno, "cannot start '%s'", argv[0]);
	*ret_child = (struct child){.pid = pid, .guard = 0, .go = go[1], .failed = failed[0]};
	return 0;
}

/* Lets the child execute its program. Returns 0 or the negative errno of exec. */
static int let_go(struct child *c, char how)
{
	int err = 0;
	ssize_t n;

	if (write(c->go, &how, 1) != 1)
		return -ESRCH;
	do
		n = read(c->failed, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(err) ? -err : 0;
}

static void report_end(const struct child *c, pid_t waited, int how)
{
	if (!waited)
		log_warn("%d still runs; it is no longer recorded", (int)c->pid);
	else if (WIFSIGNALED(how))
		log_warn("%d was ended by signal %d (%s)", (int)c->pid, WTERMSIG(how),
			 strsignal(WTERMSIG(how)));
	else if (WEXITSTATUS(how))
		log_warn("%d ended with status %d", (int)c->pid, WEXITSTATUS(how));
}

static void reap(struct child *c, bool report)
{
	pid_t waited;
	int how = 0;

	(void)close(c->go);
	(void)close(c->failed);
	end_guard(c);
	do
		waited = waitpid(c->pid, &how, WNOHANG);
	while (waited < 0 && errno == EINTR);
	if (report && waited >= 0)
		report_end(c, waited, how);
}

static int record_child(struct child *c, struct record_options *options, char **argv)
{
	struct record *record;
	int err, status = record_begin(options, &c->pid, 1, &record);

	if (status) {
		(void)kill(c->pid, SIGKILL);
		return status;
	}
	err = let_go(c, record_has_no_bpf(record) ? GO_ALONE : GO_INVITED);
	if (err) {
		record_abandon(record);
		if (err == -ESRCH)
			log_err("'%s' was ended before it began", argv[0]);
		else
			log_err("cannot run '%s': %s", argv[0], strerror(-err));
		return CLI_FAILED;
	}
	return record_finish(record);
}

static void cleanup_invitation(struct invitation *i)
{
	free(i->library);
}

int cli_run(int argc, char **argv)
{
	struct record_args args = RECORD_ARGS_DEFAULT;
	CLEANUP(cleanup_free) char *path = NULL, *cache = NULL;
	CLEANUP(cleanup_invitation) struct invitation invitation = {.children = false};
	struct record_options options;
	struct reason no_gpu = {0};
	struct child child;
	int operands, status = options_parse(&command_run, argc, argv, &args, &operands);

	if (status >= 0)
		return status;
	if (args.shapes || args.flops || args.modules || args.python_functions)
		return options_usage_error(&command_run,
					   "%s needs the collector in the process, and run traces "
					   "from outside; use attach once it runs",
					   args.shapes	  ? "--shapes"
					   : args.flops	  ? "--flops"
					   : args.modules ? "--modules"
							  : "--python-functions");
	/* The operands were moved to the front; their old copies follow them. */
	argv[1 + operands] = NULL;
	cache = record_cache_dir();
	path = args.output_path ? strdup(args.output_path) : NULL;
	if (!args.no_gpu && !args.no_inject)
		invitation.library = run_gpu_library(argv[1], cache, &no_gpu);
	invitation.children = args.children;
	invitation.nvtx = !args.no_annotations;
	if (start_child(argv + 1, &invitation, &child))
		return CLI_FAILED;
	if (!args.output_path)
		path = record_default_path(child.pid);
	status = record_options_from(&args, path, cache, &options);
	if (!status && start_guard(&child))
		status = CLI_FAILED;
	if (status) {
		(void)kill(child.pid, SIGKILL);
	} else {
		options.capture.follow_exec = true;
		options.capture.inject_without_bpf = !args.no_inject;
		options.capture.invited = invitation.library;
		options.capture.uninvited_why = no_gpu.text[0] ? no_gpu.text : NULL;
		status = record_child(&child, &options, argv + 1);
	}
	reap(&child, status == CLI_DONE || status == CLI_LOST);
	return status;
}
