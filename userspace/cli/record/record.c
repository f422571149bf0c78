/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Leads one capture from its start to the printed table. What can be refused is refused before a
 * process is touched. Once it runs, every way out (a signal, the end of the processes, a full
 * disk) takes the same path.
 */
#include "cli/record/record.h"

#include "base/cache.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/privileges.h"
#include "cli/core/cli.h"
#include "cli/core/signals.h"
#include "cli/record/record_args.h"
#include "cli/record/record_control.h"
#include "cli/view/loaded_recording.h"
#include "cli/view/metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS	      50
#define STEPS_POLL_MS 2	   /* steps are short */
#define SILENT_SHARE  0.05 /* of a CPU: less is used by a process that waits */
#define CHEAP_POLL_MS 200  /* polling costs, too; the capture polls more often where it must */

struct record {
	struct record_options options;
	struct file_folder folder; /* of the recordings */
	struct capture *capture;
	struct record_control control;
	struct rotate rotate;
	struct flight *flight; /* NULL: no flight recorder */
	bool rotates;
	bool progress;
};

char *record_default_path(pid_t pid)
{
	time_t now = time(NULL);
	struct tm tm;
	char when[32];
	char *path;
	struct stat st;

	(void)gmtime_r(&now, &tm);
	(void)strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	if (asprintf(&path, "gpuprof-%d-%s.gpuprof", (int)pid, when) < 0)
		return NULL;
	/* A default name never replaces another recording. */
	for (int nr = 2; !lstat(path, &st); nr++) {
		free(path);
		if (asprintf(&path, "gpuprof-%d-%s-%d.gpuprof", (int)pid, when, nr) < 0)
			return NULL;
	}
	return path;
}

static void make_dir(char *path)
{
	char *parent_end = strrchr(path, '/');

	if (parent_end && parent_end != path) {
		*parent_end = '\0';
		(void)mkdir(path, 0755);
		*parent_end = '/';
	}
	(void)mkdir(path, 0755);
}

/* Uses secure_getenv(): if gpuprof has more rights than its caller, the caller does not choose
 * where files go. */
static char *cache_path(void)
{
	const char *own = secure_getenv("GPUPROF_CACHE_DIR"), *base;
	char *path;

	if (own)
		return *own ? strdup(own) : NULL;
	if (!geteuid())
		return strdup("/var/cache/gpuprof");
	base = secure_getenv("XDG_CACHE_HOME");
	if (base && *base == '/')
		return asprintf(&path, "%s/gpuprof", base) < 0 ? NULL : path;
	base = secure_getenv("HOME");
	if (!base || *base != '/')
		return NULL;
	return asprintf(&path, "%s/.cache/gpuprof", base) < 0 ? NULL : path;
}

char *record_cache_dir(void)
{
	CLEANUP(cleanup_free) char *path = cache_path();
	struct reason why;
	int err;

	if (!path)
		return NULL;
	make_dir(path);
	err = cache_check(path, &why);
	if (!err)
		return TAKE(path);
	if (err == -EPERM)
		log_warn("cannot cache anything for the next run: %s; set GPUPROF_CACHE_DIR",
			 why.text);
	return NULL;
}

/* Whether the path is safe to write to: as root, nobody else may choose where it leads. */
static bool may_write(const char *path)
{
	int err = file_check(path);

	if (err)
		log_err("cannot write '%s': %s", path, file_error(err));
	return !err;
}

/* Checks that the file can be written. A `recording` is read again at the end, while the table
 * goes to stdout. */
static bool can_write(const char *path, bool recording)
{
	CLEANUP(cleanup_free) char *dir = strdup(path);
	struct stat st, out;
	char *slash;

	if (!dir)
		return false;
	if (!stat(path, &st)) {
		if (S_ISDIR(st.st_mode)) {
			log_err("cannot write '%s': it is a directory; name a file in it", path);
			return false;
		}
		if (recording && !S_ISREG(st.st_mode)) {
			log_err("cannot record into '%s': it is no regular file, from which the "
				"table could be made; name one, and remove it when it is not "
				"wanted",
				path);
			return false;
		}
		if (recording && !fstat(STDOUT_FILENO, &out) && out.st_dev == st.st_dev &&
		    out.st_ino == st.st_ino) {
			log_err("cannot record into '%s': the table goes there; name another file",
				path);
			return false;
		}
		if (!access(path, W_OK))
			return true;
		log_err("cannot write '%s': %s; name another file", path, strerror(errno));
		return false;
	}
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	if (!access(slash ? dir : ".", W_OK | X_OK))
		return true;
	log_err("cannot write '%s': %s; name a file in a directory that is there and that you may "
		"write to",
		path, strerror(errno));
	return false;
}

/* Whether the file differs from the earlier ones: only the last one written would remain. */
static bool is_another(const char *const *paths, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (!paths[i] || !file_is_same(paths[i], paths[at]))
			continue;
		log_err("cannot write '%s': it is named for two outputs; give each a file of its "
			"own",
			paths[at]);
		return false;
	}
	return true;
}

bool record_check_outputs(const struct record_options *options)
{
	const char *paths[] = {options->capture.output_path, options->trace_path,
			       options->memory_path};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (paths[i] &&
		    (!may_write(paths[i]) || !can_write(paths[i], i == 0) || !is_another(paths, i)))
			return false;
	return true;
}

/* NAME.N.EXT of NAME.EXT, where EXT may be two such as json.gz; N counts from 1. NULL: out of
 * memory.
 */
static char *numbered(const char *path, unsigned int nr)
{
	const char *base = strrchr(path, '/'), *ext;
	char *out;

	base = base ? base + 1 : path;
	ext = strrchr(base, '.');
	if (ext && ext > base && !strcmp(ext, ".gz")) {
		const char *before = memrchr(base, '.', (size_t)(ext - base));

		ext = before && before > base ? before : ext;
	}
	if (!ext || ext == base)
		ext = path + strlen(path);
	return asprintf(&out, "%.*s.%u%s", (int)(ext - path), path, nr + 1, ext) < 0 ? NULL : out;
}

static char *recording_path(void *arg, unsigned int nr)
{
	const struct record *r = arg;
	const char *path = r->options.capture.output_path;

	return r->options.many ? numbered(path, nr) : strdup(path);
}

static void say_recording(const struct record *r)
{
	CLEANUP(cleanup_free) char *path = NULL;
	const pid_t *pids = r->control.pids;
	size_t pids_nr = r->control.pids_nr;
	struct capture_status s;

	capture__status(r->capture, &s);
	if (r->options.quiet || !pids_nr)
		return;
	(void)fprintf(stderr, "recording %d", (int)pids[0]);
	for (size_t i = 1; i < pids_nr; i++)
		(void)fprintf(stderr, ",%d", (int)pids[i]);
	if (s.processes_nr > pids_nr)
		(void)fprintf(stderr, " and %zu of its children", s.processes_nr - pids_nr);
	if (r->options.duration_s > 0)
		(void)fprintf(stderr, " for %g s", r->options.duration_s);
	(void)fprintf(stderr, " (%u function%s, %u probe%s by %s", s.functions_nr,
		      s.functions_nr == 1 ? "" : "s", s.sites_nr, s.sites_nr == 1 ? "" : "s",
		      s.method);
	if (s.callbacks_nr)
		(void)fprintf(stderr, ", operators by callback");
	if (r->flight) {
		(void)fprintf(stderr, "), the last %g s in memory; Ctrl-C ends\n",
			      r->options.flight.seconds);
		return;
	}
	path = recording_path((void *)r, 0);
	(void)fprintf(stderr, ") into %s%s; Ctrl-C ends%s\n",
		      path ? path : r->options.capture.output_path,
		      r->options.many ? " and so on" : "",
		      r->options.duration_s > 0 ? " earlier" : "");
}

/* Adds the processes and leaves in `pids` those that were added. 0 or -errno with a reason. */
static int add_processes(struct record *r, pid_t *pids, size_t *pids_nr, struct reason *why)
{
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < *pids_nr; i++) {
		err = capture__add(r->capture, pids[i], why);
		if (err == -ESRCH && r->options.may_end)
			log_info("process %d has ended meanwhile", (int)pids[i]);
		else if (err)
			return err;
		else
			pids[nr++] = pids[i];
	}
	*pids_nr = nr;
	return nr ? 0 : err;
}

static void record_free(struct record *r)
{
	if (r) {
		file_folder__done(&r->folder);
		control__free(r->control.control);
		free(r->control.pids);
		rotate__done(&r->rotate);
		flight__free(r->flight);
	}
	free(r);
}

/* Opens the control socket. Without one the capture goes on. */
static void listen_for_ctl(struct record *r, const pid_t *pids, size_t pids_nr)
{
	struct record_control *c = &r->control;

	c->capture = r->capture;
	c->path = r->options.capture.output_path;
	c->recording_path = recording_path;
	c->recording_arg = r;
	c->flight = r->flight;
	c->pids = malloc(pids_nr * sizeof(*pids));
	if (!c->pids)
		return;
	memcpy(c->pids, pids, pids_nr * sizeof(*pids));
	c->pids_nr = pids_nr;
	c->control = control__new(r->options.socket_path);
}

/* Opens the folder in which all recordings are made and deleted, so that renaming it changes
 * nothing. A path to an open file of ours has no folder. */
static int open_folder(struct record *r, struct reason *why)
{
	const char *path = r->options.capture.output_path;
	CLEANUP(file_place__done) struct file_place p = {.folder = -1};
	int err = file_place__open(&p, NULL, path);

	if (!err && p.own < 0)
		err = file_folder__open_of(&r->folder, path);
	if (err)
		return reason_set(why, err, "cannot write '%s': %s", path, file_error(err));
	if (p.own < 0)
		r->options.capture.folder = &r->folder;
	return 0;
}

static int prepare(struct record *r, const struct record_options *options, struct reason *why)
{
	struct capture_options *o = &r->options.capture;
	int err;

	r->options = *options;
	r->folder.fd = -1;
	r->progress = !options->quiet && isatty(STDERR_FILENO);
	err = open_folder(r, why);
	if (err)
		return err;
	if (options->many || options->capture.schedule.active) {
		o->recording_path = recording_path;
		o->recording_arg = r;
	}
	r->rotates = rotate_wanted(&options->rotate);
	rotate__init(&r->rotate, &options->rotate, o->folder, recording_path, r);
	if (r->rotates) {
		o->recording_path = rotate_next_path;
		o->recording_arg = &r->rotate;
		o->room = (struct recording_room){rotate_make_room, &r->rotate};
		o->outlive_disk = true;
	}
	if (!options->capture.triggers.on)
		return 0;
	r->flight = flight__new(&options->flight, o->folder, recording_path, r);
	if (!r->flight)
		return reason_set(why, -ENOMEM, "out of memory");
	flight__prepare(r->flight, o);
	return 0;
}

/* Checks whether a signal came already. 0 or -ECANCELED with a reason. */
static int check_asked(struct reason *why)
{
	return signals_asked() ? reason_set(why, -ECANCELED,
					    "ended by a signal before recording began: nothing was "
					    "recorded")
			       : 0;
}

int record_begin(const struct record_options *options, pid_t *pids, size_t pids_nr,
		 struct record **ret_record)
{
	struct record *r = calloc(1, sizeof(*r));
	struct reason why = {0};
	int err = r ? 0 : reason_set(&why, -ENOMEM, "out of memory");

	if (!err)
		err = prepare(r, options, &why);
	if (!err)
		err = check_asked(&why) ?: capture__new(&r->options.capture, &why, &r->capture);
	if (!err)
		err = metadata_add(r->capture, options->metadata, &why);
	if (!err)
		err = check_asked(&why) ?: add_processes(r, pids, &pids_nr, &why);
	if (!err)
		err = check_asked(&why) ?: capture__start(r->capture, &why);
	if (err) {
		log_err("%s", why.text);
		if (r)
			capture__free(r->capture);
		record_free(r);
		return err == -EEXIST ? CLI_USAGE : CLI_FAILED;
	}
	listen_for_ctl(r, pids, pids_nr);
	*ret_record = r;
	return CLI_DONE;
}

bool record_has_no_bpf(const struct record *r)
{
	struct capture_status s;

	capture__status(r->capture, &s);
	return s.no_bpf;
}

static void show_progress(const struct record *r, bool last)
{
	struct capture_status s;

	if (!r->progress)
		return;
	capture__status(r->capture, &s);
	(void)fprintf(stderr, "\r\033[K%.1f s  %llu events  %.1f MB  %llu lost%s",
		      (double)s.running_ns / 1e9, (unsigned long long)s.events_nr,
		      (double)s.bytes / 1e6, (unsigned long long)s.lost_nr, last ? "\n" : "");
}

static int poll_until_end(struct record *r)
{
	struct capture_status s;
	struct reason why = {0};
	unsigned int turn = 0;
	const struct capture_options *o = &r->options.capture;
	bool is_cheap = o->overhead_pct > 0 || o->mode == CAPTURE_SAMPLE;
	int poll_ms = o->schedule.active ? STEPS_POLL_MS : is_cheap ? CHEAP_POLL_MS : POLL_MS;

	while (!signals_asked()) {
		int here = capture__poll(r->capture, poll_ms, &why);

		if (here < 0) {
			show_progress(r, true);
			log_err("%s; what was written so far can be read", why.text);
			return CLI_FAILED;
		}
		if (!here)
			break;
		if (r->rotates)
			rotate__poll(&r->rotate, r->capture);
		if (r->flight)
			flight__poll(r->flight, r->capture);
		capture__status(r->capture, &s);
		if (s.over || record_control_poll(&r->control))
			break;
		if (r->options.duration_s > 0 &&
		    (double)s.running_ns >= r->options.duration_s * 1e9)
			break;
		if (turn++ % 4 == 0)
			show_progress(r, false);
	}
	show_progress(r, true);
	return CLI_DONE;
}

static int show_one(const struct record *r, const char *path, unsigned int cycle)
{
	CLEANUP(cleanup_free) char *trace = NULL, *memory = NULL;
	const struct record_options *o = &r->options;
	struct show_options show = {
		.sort = o->sort,
		.limit = o->limit,
		.json = o->json,
		.wide = o->wide,
		.report_steps = !o->quiet,
		.trace_path = o->trace_path,
		.memory_path = o->memory_path,
	};
	int status;

	if (o->many && o->trace_path)
		show.trace_path = trace = numbered(o->trace_path, cycle);
	if (o->many && o->memory_path)
		show.memory_path = memory = numbered(o->memory_path, cycle);
	memory_end_me_first();
	status = show_recording(path, &show);
	if (!o->quiet)
		(void)fprintf(stderr, "recording kept in %s\n", path);
	return status;
}

static int show_cycles(const struct record *r, const struct capture_status *s)
{
	int worst = CLI_DONE;

	for (unsigned int i = 0; i < s->recordings_nr; i++) {
		CLEANUP(cleanup_free) char *path = recording_path((void *)r, i);
		int status = path ? show_one(r, path, i) : CLI_FAILED;

		worst = worst == CLI_DONE || status == CLI_FAILED ? status : worst;
	}
	if (s->late_steps_nr)
		log_warn("waited for %llu steps more than the schedule says: gpuprof was not ready "
			 "in time",
			 (unsigned long long)s->late_steps_nr);
	if (s->recordings_nr)
		return worst;
	if (s->steps_by)
		log_err("nothing was recorded: the capture ended after %llu steps, before the "
			"first one to record",
			(unsigned long long)s->steps_nr);
	else
		log_err("nothing was recorded: no steps were found; record without %s",
			"--steps and --schedule");
	return CLI_FAILED;
}

/* Warns about recordings of an earlier capture with the same name pattern, which 'merge' with a
 * wildcard would include. */
static void warn_of_earlier(const struct record *r, unsigned int nr)
{
	CLEANUP(cleanup_free) char *path = recording_path((void *)r, nr);
	struct stat st;

	if (r->options.many && path && r->folder.fd >= 0 &&
	    !fstatat(r->folder.fd, file_base_name(path), &st, AT_SYMLINK_NOFOLLOW))
		log_warn("'%s' is from an earlier capture, not part of this one", path);
}

/* Warns when processes used CPU time and never hit a probe: they ran something else, or where
 * probes do not reach. */
static void warn_of_silence(const struct record *r, const struct capture_status *s)
{
	double cpu_s = (double)s->targets_ns / 1e9, share = cpu_s * 1e9 / (double)s->running_ns;

	if (s->events_nr || !s->sites_nr || !s->running_ns || share < SILENT_SHARE ||
	    r->options.capture.mode != CAPTURE_TRACE)
		return;
	log_warn("nothing at all was recorded, of %u probes none was hit, though process %d used "
		 "%.1f s of "
		 "CPU time: it may have run no PyTorch meanwhile, or run it where probes do not "
		 "get to (a sandbox such as gVisor, a virtual machine); 'gpuprof attach --mode "
		 "sample' shows what it does",
		 s->sites_nr, (int)r->control.pids[0], cpu_s);
}

int record_finish(struct record *r)
{
	struct reason why = {0};
	struct capture_status s;
	int shown, flight, status;

	if (capture__keep(r->capture, &why)) {
		log_err("%s", why.text);
		record_abandon(r);
		return CLI_FAILED;
	}
	say_recording(r);
	status = poll_until_end(r);
	if (capture__stop(r->capture, &why) && status == CLI_DONE) {
		log_err("%s; what was written so far can be read", why.text);
		status = CLI_FAILED;
	}
	capture__status(r->capture, &s);
	warn_of_silence(r, &s);
	flight = r->flight ? flight__end(r->flight, r->capture, r->options.quiet) : CLI_DONE;
	capture__free(TAKE(r->capture));
	/* From here on only recordings are read, whose content comes from the processes. */
	if (privileges_keep(privileges_of_output(), &why))
		log_info("%s", why.text);
	if (r->flight) {
		shown = flight;
	} else if (r->rotates) {
		shown = rotate__end(&r->rotate, &s, r->options.quiet);
	} else if (r->options.capture.schedule.active) {
		shown = show_cycles(r, &s);
	} else {
		shown = show_one(r, r->options.capture.output_path, 0);
	}
	if (!r->flight)
		warn_of_earlier(r, s.recordings_nr);
	record_free(r);
	return status == CLI_DONE ? shown : status;
}

void record_abandon(struct record *r)
{
	capture__free(TAKE(r->capture));
	record_free(r);
}
