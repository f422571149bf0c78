/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof daemon`: profiles the processes it finds until a signal ends it, and serves the results
 * over HTTP.
 */
#include "daemon/daemon.h"

#include "base/accounts.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/unix_socket.h"
#include "base/vec.h"
#include "cli/core/cli.h"
#include "cli/core/option_rows.h"
#include "cli/core/pids.h"
#include "cli/core/record_mode.h"
#include "cli/core/signals.h"
#include "cli/record/record.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#define SECOND_NS     1000000000.0
#define PERIOD_S      5.0
#define KEEP_MIB      64
#define RING_BYTES    (16U << 20)
#define GROUP_DEFAULT "gpuprof"

struct daemon_args {
	const char *pids, *name, *cgroup;
	const char *socket, *group;
	const char *listen, *token_file;
	const char *folder;
	const char *stack;
	const char *mode;
	long hz;
	double overhead_pct;
	double period_s;
	long keep_mib;
	bool memory, no_ops, no_annotations, python_gc, no_gpu, no_inject;
};

#define ARG(field) .offset = offsetof(struct daemon_args, field)

static const struct option_spec options[] = {
	ROW_PIDS(struct daemon_args, "Profile these processes, whatever is in them."),
	ROW_NAME(struct daemon_args,
		 "Only processes whose command line contains PATTERN (a shell pattern)."),
	{.name = "cgroup",
	 .kind = OPTION_TEXT,
	 ARG(cgroup),
	 .value_name = "PATH",
	 .complete = COMPLETE_FILE,
	 .help = "Only processes in this control group, or one below it."},
	ROW_MODE(struct daemon_args,
		 "sample (the default): take stacks, so many times a second; costs next to "
		 "nothing, times are estimates. trace: record every operator; the default with "
		 "--memory, --stack, --python-gc and --no-ops."),
	ROW_HZ(struct daemon_args),
	ROW_OVERHEAD_OF_SAMPLES(struct daemon_args),
	OPTION_HEADING("who can ask it, and where"),
	ROW_SOCKET(struct daemon_args, "Serve HTTP at this socket. Default unless --listen is "
				       "given: /run/gpuprof/daemon.sock."),
	{.name = "group",
	 .kind = OPTION_TEXT,
	 ARG(group),
	 .value_name = "NAME",
	 .help = "Let the members of this group use the socket; root always can. Default: "
		 "'" GROUP_DEFAULT "', where there is one."},
	{.name = "listen",
	 .kind = OPTION_TEXT,
	 ARG(listen),
	 .value_name = "ADDRESS:PORT",
	 .help = "Serve HTTP over TCP there, to clients that send the token of --token-file. The "
		 "usual port is 9477."},
	{.name = "token-file",
	 .kind = OPTION_TEXT,
	 ARG(token_file),
	 .value_name = "FILE",
	 .complete = COMPLETE_FILE,
	 .help = "With --listen: the token that clients must send ('Authorization: Bearer ...', or "
		 "as a password); only /healthz needs none. Only its owner may be able to read "
		 "FILE."},
	OPTION_HEADING("what it keeps"),
	{.name = "period",
	 .kind = OPTION_SECONDS,
	 ARG(period_s),
	 .value_name = "SEC",
	 .help = "End each recording after SEC seconds at most; metrics are that old. Default: 5."},
	{.name = "recordings",
	 .kind = OPTION_TEXT,
	 ARG(folder),
	 .value_name = "DIR",
	 .complete = COMPLETE_FILE,
	 .help = "Keep the last recordings in DIR. Default: in memory."},
	{.name = "keep",
	 .kind = OPTION_NUMBER,
	 ARG(keep_mib),
	 .value_name = "MIB",
	 .min = 1,
	 .max = 1L << 30,
	 .help = "Keep at most MIB MiB of recordings; the oldest are deleted. Default: 64."},
	OPTION_HEADING("what it records"),
	ROW_MEMORY(struct daemon_args, "Record allocations too."),
	ROW_STACK(struct daemon_args,
		  "Record stacks, so that profiles show where operators were called from."),
	ROW_FLAG(struct daemon_args, "no-ops", no_ops, "Leave operators out."),
	ROW_NO_ANNOTATIONS(
		struct daemon_args,
		"Leave out annotations and autograd nodes, and with them the steps of training."),
	ROW_PYTHON_GC(
		struct daemon_args,
		"Record Python's garbage collections, where this Python has probes for them."),
	ROW_NO_GPU(struct daemon_args, "Leave out GPU activity."),
	ROW_NO_INJECT(struct daemon_args,
		      "Put nothing into processes; trace them from outside only. GPU times are "
		      "then missing, calls of CUDA are there."),
	{0},
};

static const char *const first[] = {"name",	  "pid",	"mode", "socket", "group", "listen",
				    "token-file", "recordings", "keep", "memory", NULL};

const struct command command_daemon = {
	.name = "daemon",
	.summary = "profile all processes continuously and serve the results over HTTP",
	.usage = "[options]",
	.about = "Profiles every process that has PyTorch or CUDA in it until SIGTERM or Ctrl-C, "
		 "and serves HTTP: to root and a group at a socket ('curl --unix-socket "
		 "/run/gpuprof/daemon.sock http://localhost/'), and with --listen to clients that "
		 "send a token. Prometheus scrapes /metrics; 'go tool pprof', Parca and "
		 "Pyroscope fetch /debug/pprof/profile (CPU time), /debug/pprof/gpu and "
		 "/debug/pprof/allocs; /recordings lists the last recordings.",
	.options = options,
	.first = first,
	.ends_in_order = true,
	.run = cli_daemon,
};

/* Samples by default, which costs next to nothing: the daemon is meant to stay on. Options that
 * need operators turn tracing on. CLI_DONE or CLI_USAGE. */
static int mode_from(const struct daemon_args *args, struct capture_options *o)
{
	const struct record_mode mode = {
		.name = args->mode,
		.hz = args->hz,
		.overhead_pct = args->overhead_pct,
		.overhead_of_samples = true,
		.other = args->memory	   ? "--memory"
			 : args->stack	   ? "--stack"
			 : args->python_gc ? "--python-gc"
			 : args->no_ops	   ? "--no-ops"
					   : NULL,
		.samples_by_default = true,
	};

	return record_mode_choose(&mode, o) ?: record_check_python_gc(o, "--no-ops");
}

/* Who may ask and where. Usage errors are the caller's to return; CLI_DONE if all is well. */
static int check_access(const struct daemon_args *args)
{
	if (args->listen && !args->token_file)
		return options_usage_error(
			&command_daemon,
			"--listen serves everybody who can reach it, so it needs --token-file FILE "
			"('umask 077; openssl rand -hex 32 > FILE' makes one); without --listen "
			"root and the group use a socket");
	if (args->token_file && !args->listen)
		return options_usage_error(
			&command_daemon,
			"--token-file goes with --listen; at the socket the user decides");
	if (args->group && args->listen && !args->socket)
		return options_usage_error(&command_daemon,
					   "--group is about the socket: give --socket PATH too");
	return CLI_DONE;
}

/* The group that may ask, too. *ret_group.name NULL: none. CLI_DONE or CLI_FAILED. */
static int find_group(const struct daemon_args *args, struct unix_group *ret_group)
{
	const char *name = args->group ? args->group : GROUP_DEFAULT;
	gid_t gid = 0;
	bool found = !account_group_id(&account_sources_here, name, &gid);

	if (!found && args->group) {
		log_err("there is no group '%s'; 'groupadd --system %s' makes it", name, name);
		return CLI_FAILED;
	}
	*ret_group = (struct unix_group){gid, found ? name : NULL};
	return CLI_DONE;
}

/* The path of the socket, whose folder exists then. NULL: a message says why not. */
static char *socket_path(const struct daemon_args *args)
{
	CLEANUP(cleanup_free) char *folder = args->socket ? NULL : unix_socket_folder();
	struct reason why = {"out of memory"};
	char *path;

	if (args->socket)
		return strdup(args->socket);
	if (folder && !unix_socket_make_folder(folder, &why) &&
	    asprintf(&path, "%s/daemon.sock", folder) >= 0)
		return path;
	log_err("%s; name another place with --socket",
		folder ? why.text : "there is no folder for the socket");
	return NULL;
}

static struct daemon_options options_from(const struct daemon_args *args, const struct pids *pids,
					  const char *cache)
{
	return (struct daemon_options){
		.capture =
			{
				.cache_dir = cache,
				.ring_bytes = RING_BYTES,
				.ops = !args->no_ops,
				.ops_alone = args->no_annotations,
				.python_gc = args->python_gc,
				.memory = args->memory,
				.stacks = record_stacks_wanted(args->stack),
				.gpu = !args->no_gpu,
				.inject = !args->no_inject,
			},
		.find =
			{
				.name = args->name,
				.cgroup = args->cgroup,
				.pids = pids->items,
				.pids_nr = pids->nr,
			},
		.socket = args->socket,
		.listen = args->listen,
		.token_file = args->token_file,
		.folder = args->folder,
		.keep_bytes = (uint64_t)args->keep_mib << 20,
		.period_ns = (uint64_t)(args->period_s * SECOND_NS),
	};
}

/* Where it answers whom, and how to ask. */
static void say_where(const struct daemon_options *o, const struct daemon *d)
{
	if (o->socket)
		(void)fprintf(
			stderr,
			"answering at %s, root%s%s: curl --unix-socket %s http://localhost/\n",
			o->socket,
			o->group ? " and the group " : " alone (--group NAME lets others ask)",
			o->group ? o->group->name : "", o->socket);
	if (o->listen)
		(void)fprintf(stderr,
			      "answering at http://%s/, who sends what is in %s: 'Authorization: "
			      "Bearer ...', or as the password of any user\n",
			      daemon__address(d), o->token_file);
	(void)fprintf(stderr, "profiling; Ctrl-C ends\n");
}

static int run(const struct daemon_options *o)
{
	struct reason why = {0};
	struct daemon *d;

	if (daemon__new(o, &why, &d)) {
		log_err("%s", why.text);
		return CLI_FAILED;
	}
	say_where(o, d);
	while (!signals_asked())
		daemon__poll(d);
	daemon__free(d);
	return CLI_DONE;
}

int cli_daemon(int argc, char **argv)
{
	struct daemon_args args = {.period_s = PERIOD_S, .keep_mib = KEEP_MIB};
	CLEANUP(cleanup_free) char *cache = NULL, *socket = NULL;
	CLEANUP(cleanup_pids) struct pids pids = {0};
	struct unix_group group;
	struct daemon_options o;
	int operands, status = options_parse(&command_daemon, argc, argv, &args, &operands);

	if (status >= 0)
		return status;
	if (args.pids && (args.name || args.cgroup))
		return options_usage_error(&command_daemon, "give --pid or %s, not both",
					   args.name ? "--name" : "--cgroup");
	status = check_access(&args);
	status = !status && args.pids ? pids_parse(&command_daemon, args.pids, &pids) : status;
	if (status)
		return status;
	for (size_t i = 0; i < pids.nr; i++)
		if (kill(pids.items[i], 0) && errno == ESRCH)
			log_warn("there is no process %d yet: it is profiled once it starts",
				 (int)pids.items[i]);
	cache = record_cache_dir();
	o = options_from(&args, &pids, cache);
	status = mode_from(&args, &o.capture);
	if (!status && (args.socket || !args.listen)) {
		status = find_group(&args, &group);
		o.group = !status && group.name ? &group : NULL;
		o.socket = socket = status ? NULL : socket_path(&args);
		status = status ? status : o.socket ? CLI_DONE : CLI_FAILED;
	}
	return status ? status : run(&o);
}
