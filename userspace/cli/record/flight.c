/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Keeps short recordings in memory files and drops the oldest. When a trigger fires, the recording
 * in progress ends and a thread merges all of them into a file while the capture goes on. Memory
 * that is being merged counts until the merge is done.
 */
#include "cli/record/flight.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/record/flight_dump.h"
#include "cli/record/record_args.h"
#include "cli/record/rotate.h"
#include "common/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PARTS	      8
#define PART_LEAST_S  0.25
#define DEFAULT_BYTES (64U << 20)
#define DEFAULT_APART 60

struct part {
	unsigned int nr;
	int fd;
	uint64_t begun_ns, ended_ns; /* about; ended 0: it has not */
};

struct flight {
	struct flight_options options;
	struct rotate rotate;
	VEC(struct part) parts; /* the oldest first */
	char *(*dump_path)(void *arg, unsigned int nr);
	void *dump_arg;
	const struct file_folder *folder; /* of dumps */
	struct flight_dump *dump;	  /* that is being written; NULL: none */
	unsigned int dump_end_nr;	  /* parts before it are in that one */
	unsigned int dumps_nr, failed_nr;
	char *last_path;
	bool wanted;		/* a dump, once the part in progress has ended */
	unsigned int wanted_nr; /* parts before it are to be in it */
	uint64_t last_ns;	/* when the last one was set off */
	uint64_t skipped_nr;	/* what set it off too soon after, since the last dump */
	uint64_t all_skipped_nr;
};

static volatile sig_atomic_t signalled;

static void on_usr2(int sig)
{
	signalled = sig;
}

/* ---- parts ---- */

static struct part *find_part(struct flight *f, unsigned int nr)
{
	for (size_t i = 0; i < f->parts.nr; i++)
		if (f->parts.items[i].nr == nr)
			return &f->parts.items[i];
	return NULL;
}

static char *part_path(void *arg, unsigned int nr)
{
	const struct part *p = find_part(arg, nr);
	char *path;

	if (!p)
		return NULL;
	return asprintf(&path, "/proc/self/fd/%d", p->fd) < 0 ? NULL : path;
}

static char *new_part(void *arg, unsigned int nr)
{
	struct flight *f = arg;
	struct part p = {.nr = nr, .begun_ns = clock_now_ns()}, *old;

	f->rotate.begun_nr = nr + 1;
	/* It was asked for before and could not be written. */
	old = find_part(f, nr);
	if (old && (ftruncate(old->fd, 0) || lseek(old->fd, 0, SEEK_SET)))
		return NULL;
	if (old)
		return part_path(f, nr);
	p.fd = memfd_create("gpuprof-flight", MFD_CLOEXEC);
	if (p.fd < 0)
		return NULL;
	if (vec_push(&f->parts, p)) {
		(void)close(p.fd);
		return NULL;
	}
	return part_path(f, nr);
}

static void remove_part(void *arg, unsigned int nr)
{
	struct flight *f = arg;
	struct part *p = find_part(f, nr);

	if (!p)
		return;
	if (f->dump && nr < f->dump_end_nr && f->rotate.bytes.nr)
		f->rotate.held_bytes += f->rotate.bytes.items[0];
	(void)close(p->fd);
	f->parts.nr--;
	memmove(p, p + 1, (f->parts.nr - (size_t)(p - f->parts.items)) * sizeof(*p));
}

/* What lies wholly before the time that is to be held. */
static void drop_old(struct flight *f)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t hold_ns = (uint64_t)(f->options.seconds * 1e9) + CAPTURE_TRIGGER_LATE_NS;

	for (size_t i = 0; i < f->parts.nr; i++)
		if (f->parts.items[i].nr < f->rotate.ended_nr && !f->parts.items[i].ended_ns)
			f->parts.items[i].ended_ns = now_ns;
	while (f->parts.nr && f->parts.items[0].ended_ns && !f->wanted &&
	       now_ns - f->parts.items[0].ended_ns > hold_ns)
		if (!rotate__remove_oldest(&f->rotate))
			return;
}

double flight__held(const struct flight *f)
{
	return f->parts.nr ? (double)(clock_now_ns() - f->parts.items[0].begun_ns) / 1e9 : 0;
}

/* ---- dumps ---- */

static void end_dump(struct flight *f, struct flight_dump *dump)
{
	CLEANUP(cleanup_free) char *path = NULL;
	struct reason why = {0};
	int err = flight_dump__finish(dump, &why, &path);

	f->rotate.held_bytes = 0;
	free(TAKE(f->last_path));
	if (err) {
		log_err("%s", why.text);
		f->failed_nr++;
		return;
	}
	log_at(LOG_WARN, "the last seconds are in '%s'", path);
	f->last_path = TAKE(path);
	f->dumps_nr++;
}

static void report_short(const struct flight *f)
{
	double held_s = flight__held(f);

	if (f->parts.nr && f->parts.items[0].nr && held_s < f->options.seconds)
		log_warn("only %.1f of %.1f s are held: more does not fit into %llu MB; see "
			 "--flight-bytes",
			 held_s, f->options.seconds, (unsigned long long)(f->options.bytes >> 20));
}

static void begin_dump(struct flight *f)
{
	CLEANUP(cleanup_free) char *path = f->dump_path(f->dump_arg, f->dumps_nr + f->failed_nr);
	struct reason why = {0};
	int err = path ? 0 : -ENOMEM;

	f->wanted = false;
	report_short(f);
	err = err ? reason_set(&why, err, "out of memory")
		  : flight_dump__new(f->folder, path, f->skipped_nr, &why, &f->dump);
	for (size_t i = 0; i < f->parts.nr && !err; i++)
		if (f->parts.items[i].nr < f->wanted_nr)
			err = flight_dump__add(f->dump, f->parts.items[i].fd, &why);
	f->skipped_nr = 0;
	f->dump_end_nr = f->wanted_nr;
	err = err ? err : flight_dump__start(f->dump, &why);
	if (!err)
		return;
	log_err("%s", why.text);
	f->failed_nr++;
	flight_dump__free(TAKE(f->dump));
}

static const char *words(const struct gp_ev_trigger *ev)
{
	switch (ev->what) {
	case GP_TRIGGER_SLOW_STEP:
		return "a slow step";
	case GP_TRIGGER_OOM:
		return "out of memory";
	case GP_TRIGGER_HANG:
		return "a hang";
	case GP_TRIGGER_SIGNAL:
		return "a signal";
	default:
		return "someone asked";
	}
}

static void set_off(struct flight *f, struct capture *c, const struct gp_ev_trigger *ev)
{
	bool by_someone = capture_trigger_is_asked_for(ev);
	uint64_t now_ns = clock_now_ns();
	struct capture_status s;

	if (f->wanted || f->dump ||
	    (f->last_ns && !by_someone &&
	     (double)(now_ns - f->last_ns) < f->options.apart_s * 1e9)) {
		f->skipped_nr++;
		f->all_skipped_nr++;
		log_info("trigger: %s, too soon after the last one", words(ev));
		return;
	}
	log_warn("trigger: %s", words(ev));
	capture__status(c, &s);
	f->wanted = true;
	f->wanted_nr = s.files_nr;
	f->last_ns = now_ns;
	(void)capture__rotate(c, NULL);
}

void flight__poll(struct flight *f, struct capture *c)
{
	struct gp_ev_trigger ev;

	if (signalled && f->options.on_signal) {
		signalled = 0;
		capture__trigger(c, GP_TRIGGER_SIGNAL);
	}
	rotate__poll(&f->rotate, c);
	drop_old(f);
	if (capture__take_trigger(c, &ev))
		set_off(f, c, &ev);
	if (f->dump && flight_dump__is_done(f->dump))
		end_dump(f, TAKE(f->dump));
	if (f->wanted && !f->dump && f->rotate.ended_nr >= f->wanted_nr)
		begin_dump(f);
}

unsigned int flight__dumps(const struct flight *f, const char **ret_path, bool *ret_busy)
{
	*ret_path = f->last_path;
	*ret_busy = f->wanted || f->dump;
	return f->dumps_nr + f->failed_nr;
}

int flight__end(struct flight *f, struct capture *c, bool quiet)
{
	struct gp_ev_trigger ev;

	if (f->dump)
		end_dump(f, TAKE(f->dump));
	if (capture__take_trigger(c, &ev))
		set_off(f, c, &ev);
	if (f->wanted) {
		/* All of them have ended. */
		begin_dump(f);
		if (f->dump)
			end_dump(f, TAKE(f->dump));
	}
	if (!quiet)
		(void)fprintf(stderr, "%u recording%s written, %llu more trigger%s came too soon\n",
			      f->dumps_nr, f->dumps_nr == 1 ? "" : "s",
			      (unsigned long long)f->all_skipped_nr,
			      f->all_skipped_nr == 1 ? "" : "s");
	return f->failed_nr ? CLI_FAILED : CLI_DONE;
}

/* ---- the beginning ---- */

struct flight *flight__new(const struct flight_options *options, const struct file_folder *folder,
			   char *(*dump_path)(void *, unsigned int), void *arg)
{
	struct rotate_options rotate = {.every_s = options->seconds / PARTS,
					.max_bytes = options->bytes};
	struct sigaction sa = {.sa_handler = on_usr2, .sa_flags = SA_RESTART};
	struct flight *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	if (rotate.every_s < PART_LEAST_S)
		rotate.every_s = PART_LEAST_S;
	f->options = *options;
	f->dump_path = dump_path;
	f->dump_arg = arg;
	f->folder = folder;
	rotate__init(&f->rotate, &rotate, NULL, part_path, f);
	f->rotate.remove = remove_part;
	signalled = 0;
	if (options->on_signal)
		(void)sigaction(SIGUSR2, &sa, NULL);
	return f;
}

void flight__free(struct flight *f)
{
	if (!f)
		return;
	flight_dump__free(f->dump);
	for (size_t i = 0; i < f->parts.nr; i++)
		(void)close(f->parts.items[i].fd);
	vec_done(&f->parts);
	rotate__done(&f->rotate);
	free(f->last_path);
	free(f);
}

void flight__prepare(struct flight *f, struct capture_options *options)
{
	options->folder = NULL;
	options->recording_path = new_part;
	options->recording_arg = f;
	options->room = (struct recording_room){rotate_make_room, &f->rotate};
	options->outlive_disk = true;
}

/* ---- options ---- */

/* A number of at least `least` behind the word, all of it; with `unit` s, m and h may follow. */
static bool take_number(const char *text, double least, bool unit, double *ret_number)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || !(n >= least) || n > 1e9)
		return false;
	if (unit && *end == 'm')
		n *= 60;
	else if (unit && *end == 'h')
		n *= 3600;
	else if (!unit || *end != 's')
		end--;
	end++;
	*ret_number = n;
	return !*end;
}

static bool take_trigger(const char *word, struct capture_triggers *t, bool *signal)
{
	double n;

	if (!strcmp(word, "oom")) {
		t->oom = true;
	} else if (!strcmp(word, "signal")) {
		*signal = true;
	} else if (!strncmp(word, "slow-step=", 10) && take_number(word + 10, 1, false, &n)) {
		t->slow_step = n;
	} else if (!strncmp(word, "hang=", 5) && take_number(word + 5, 0.001, true, &n)) {
		t->hang_ns = (uint64_t)(n * 1e9);
	} else {
		return false;
	}
	return true;
}

static bool parse_triggers(const char *text, struct capture_triggers *ret_triggers,
			   bool *ret_signal)
{
	CLEANUP(cleanup_free) char *copy = strdup(text);
	char *rest = copy, *word;
	bool ok = copy;

	while (ok && (word = strsep(&rest, ",")))
		ok = take_trigger(word, ret_triggers, ret_signal);
	return ok;
}

bool flight_triggers_known(const char *text)
{
	struct capture_triggers t = {0};
	bool signal;

	return parse_triggers(text, &t, &signal);
}

int flight_options_from(const struct record_args *args, struct flight_options *ret_options,
			struct capture_triggers *ret_triggers)
{
	struct capture_triggers t = {.on = args->flight_s > 0};
	struct flight_options o = {
		.seconds = args->flight_s,
		.bytes = args->flight_bytes ? args->flight_bytes : DEFAULT_BYTES,
		.apart_s = args->trigger_apart_s > 0 ? args->trigger_apart_s : DEFAULT_APART,
	};

	if (args->trigger && !parse_triggers(args->trigger, &t, &o.on_signal))
		return CLI_USAGE;
	*ret_options = o;
	*ret_triggers = t;
	if (!t.on) {
		if (!args->trigger && !args->flight_bytes && !(args->trigger_apart_s > 0))
			return CLI_DONE;
		log_err("--trigger, --trigger-apart and --flight-bytes are for the flight "
			"recorder: give --flight SEC too");
		return CLI_USAGE;
	}
	if (!args->steps && !args->schedule && args->rotate_s <= 0 && !args->max_bytes &&
	    !args->trace_path && !args->memory_path)
		return CLI_DONE;
	log_err("--flight writes recordings when a trigger fires: leave out --steps, --schedule, "
		"--rotate, --max-bytes, --trace and --memory-timeline");
	return CLI_USAGE;
}
