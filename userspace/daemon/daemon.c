/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Assembles the parts of the daemon.
 */
#include "daemon/daemon.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/killsafe_call.h"
#include "base/privileges.h"
#include "base/version.h"
#include "common/clock.h"
#include "daemon/capture_loop.h"
#include "daemon/profiles.h"
#include "daemon/reader.h"
#include "daemon/recording_store.h"
#include "daemon/server.h"
#include "daemon/totals.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"

#define TURN_MS	   20
#define EVENTS_MAX 150000 /* of a recording: about 50 MB while it is read */
#define STUCK_NS   (60 * SECOND_NS)

struct daemon {
	struct recording_store *store;
	struct profiles *profiles;
	struct reader *reader;
	struct server *server;
	struct capture_loop *loop;
	uint64_t start_realtime_ns;
	pthread_mutex_t lock;
	/* Written by the capturing thread, read by the server's. */
	struct capture_loop_counts counts;
	uint64_t turned_ns;
};

/* ---- what the server asks, in its thread ---- */

static void own_cpu(struct buf *out)
{
	metrics_family(out, "process_cpu_seconds_total", "counter",
		       "CPU time of gpuprof's own, without what its probes take in processes.");
	metrics_seconds(out, "process_cpu_seconds_total", killsafe_cpu_ns());
}

static void own_memory(struct buf *out)
{
	CLEANUP(cleanup_free) char *text = NULL;
	unsigned long long total, resident;

	if (file_read("/proc/self/statm", 4096, &text, NULL) ||
	    sscanf(text, "%llu %llu", &total, &resident) != 2)
		return;
	metrics_family(out, "process_resident_memory_bytes", "gauge", "Memory of gpuprof's own.");
	metrics_count(out, "process_resident_memory_bytes", NULL, NULL,
		      resident * (uint64_t)sysconf(_SC_PAGESIZE));
}

static void own_descriptors(struct buf *out)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t nr = 0;

	if (!d)
		return;
	while (readdir(d))
		nr++;
	(void)closedir(d);
	metrics_family(out, "process_open_fds", "gauge", "File descriptors that gpuprof has.");
	/* Without ".", ".." and that of the folder itself. */
	metrics_count(out, "process_open_fds", NULL, NULL, nr > 3 ? nr - 3 : 0);
}

struct number {
	const char *name, *type, *help;
	uint64_t value;
};

static void add_numbers(struct buf *out, const struct number *numbers, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		metrics_family(out, numbers[i].name, numbers[i].type, numbers[i].help);
		metrics_count(out, numbers[i].name, NULL, NULL, numbers[i].value);
	}
}

static void add_watch(const struct capture_loop_counts *c, struct buf *out)
{
	const struct number numbers[] = {
		{"gpuprof_processes", "gauge", "Processes that are profiled now.", c->processes_nr},
		{"gpuprof_attached_total", "counter", "Processes that were attached to.",
		 c->joined_nr},
		{"gpuprof_captures_total", "counter", "Captures that were begun.", c->captures_nr},
	};

	add_numbers(out, numbers, sizeof(numbers) / sizeof(*numbers));
}

/* Appends the counters of errors, by kind. */
static void add_errors(const struct daemon *d, const struct capture_loop_counts *w, struct buf *out)
{
	static const char name[] = "gpuprof_errors_total";
	struct reader_counts r;

	reader__counts(d->reader, &r);
	metrics_family(out, name, "counter", "What went wrong, by what it was.");
	metrics_count(out, name, "error", "attach_ended", w->gone_nr);
	metrics_count(out, name, "error", "attach_refused", w->refused_nr);
	metrics_count(out, name, "error", "capture_failed", w->failed_nr);
	metrics_count(out, name, "error", "scan_failed", w->scan_failed_nr);
	metrics_count(out, name, "error", "recording_dropped", r.dropped_nr);
	metrics_count(out, name, "error", "recording_damaged", r.damaged_nr);
	metrics_count(out, name, "error", "recording_not_saved", r.unsaved_nr);
	metrics_family(out, "gpuprof_dropped_events_total", "counter",
		       "Events in recordings that were dropped because reading them took too "
		       "long.");
	metrics_count(out, "gpuprof_dropped_events_total", NULL, NULL, r.dropped_events_nr);
}

static void add_server(const struct daemon *d, struct buf *out)
{
	struct server_counts s;
	uint64_t nr, memory, disk;

	server__counts(d->server, &s);
	recording_store__sizes(d->store, &nr, &memory, &disk);
	{
		const struct number numbers[] = {
			{"gpuprof_http_answered_total", "counter", "Requests with status 200.",
			 s.answered_nr},
			{"gpuprof_http_refused_total", "counter", "Requests with another status.",
			 s.refused_nr},
			{"gpuprof_http_too_slow_total", "counter",
			 "Connections that were ended because they took too long.", s.too_slow_nr},
			{"gpuprof_http_connections", "gauge", "Connections now.", s.connections_nr},
			{"gpuprof_profiles_running", "gauge", "Profiles that are being made.",
			 profiles__nr(d->profiles)},
			{"gpuprof_recordings_kept", "gauge", "Recordings that can be fetched.", nr},
			{"gpuprof_recordings_memory_bytes", "gauge", "Their bytes in memory.",
			 memory},
			{"gpuprof_recordings_disk_bytes", "gauge", "Their bytes on disk.", disk},
		};

		add_numbers(out, numbers, sizeof(numbers) / sizeof(*numbers));
	}
}

static struct capture_loop_counts counts_of(struct daemon *d)
{
	struct capture_loop_counts counts;

	(void)pthread_mutex_lock(&d->lock);
	counts = d->counts;
	(void)pthread_mutex_unlock(&d->lock);
	return counts;
}

static void metrics(void *arg, struct buf *out)
{
	struct daemon *d = arg;
	struct capture_loop_counts counts = counts_of(d);

	metrics_family(out, "gpuprof_build_info", "gauge", "The version of gpuprof.");
	metrics_count(out, "gpuprof_build_info", "version", gpuprof_version, 1);
	add_watch(&counts, out);
	add_errors(d, &counts, out);
	add_server(d, out);
	own_cpu(out);
	own_memory(out);
	own_descriptors(out);
	metrics_family(out, "process_start_time_seconds", "gauge",
		       "When gpuprof started, in seconds since 1970.");
	metrics_seconds(out, "process_start_time_seconds", d->start_realtime_ns);
	reader__metrics(d->reader, out);
}

static void make_index(void *arg, struct buf *out)
{
	struct daemon *d = arg;
	struct capture_loop_counts counts = counts_of(d);

	buf__printf(out,
		    "<!doctype html><html lang=en><meta charset=utf-8><title>gpuprof</title>\n"
		    "<h1>gpuprof %s</h1>\n<p>%llu processes are profiled.\n<ul>\n",
		    gpuprof_version, (unsigned long long)counts.processes_nr);
	buf__str(out, "<li><a href=/metrics>/metrics</a>: for Prometheus\n"
		      "<li><a href=/recordings>/recordings</a>: the last recordings\n"
		      "<li><a href=\"/debug/pprof/profile?seconds=5\">"
		      "/debug/pprof/profile?seconds=5</a>: CPU time, for pprof; "
		      "<code>&amp;pid=PID</code> for one process\n"
		      "<li><a href=\"/debug/pprof/gpu?seconds=5\">/debug/pprof/gpu?seconds=5</a>: "
		      "GPU time\n"
		      "<li><a href=\"/debug/pprof/allocs?seconds=5\">"
		      "/debug/pprof/allocs?seconds=5</a>: bytes allocated\n"
		      "<li><a href=/healthz>/healthz</a>\n</ul>\n"
		      "<table><tr><th>PID<th>name<th>steps\n");
	reader__index(d->reader, out);
	buf__str(out, "</table>\n");
}

static bool healthy(void *arg)
{
	struct daemon *d = arg;
	uint64_t turned_ns;

	(void)pthread_mutex_lock(&d->lock);
	turned_ns = d->turned_ns;
	(void)pthread_mutex_unlock(&d->lock);
	return clock_ns(CLOCK_MONOTONIC) - turned_ns < STUCK_NS;
}

/* ---- the capturing thread ---- */

static void on_began(uint64_t nr, void *arg)
{
	profiles__cut(((struct daemon *)arg)->profiles, nr, clock_ns(CLOCK_MONOTONIC));
}

static void on_ended(const struct captured_recording *recording, void *arg)
{
	reader__give(((struct daemon *)arg)->reader, recording);
}

static bool has_process(void *arg, int32_t pid)
{
	return capture_loop__has(((struct daemon *)arg)->loop, (pid_t)pid);
}

void daemon__poll(struct daemon *d)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (profiles__poll(d->profiles, now, has_process, d) && !capture_loop__cut(d->loop))
		profiles__cut(d->profiles, capture_loop__next(d->loop), now);
	capture_loop__poll(d->loop, TURN_MS);
	(void)pthread_mutex_lock(&d->lock);
	capture_loop__counts(d->loop, &d->counts);
	d->turned_ns = clock_ns(CLOCK_MONOTONIC);
	(void)pthread_mutex_unlock(&d->lock);
}

static int make_watch(struct daemon *d, const struct daemon_options *o, struct reason *why)
{
	struct capture_loop_options loop = {
		.capture = o->capture,
		.find = o->find,
		.period_ns = o->period_ns,
		.events_max = EVENTS_MAX,
		.began = on_began,
		.ended = on_ended,
		.arg = d,
	};

	d->loop = capture_loop__new(&loop);
	return d->loop ? capture_loop__try(d->loop, why)
		       : reason_set(why, -ENOMEM, "out of memory");
}

/* Each process takes some descriptors. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int daemon__new(const struct daemon_options *options, struct reason *why,
		struct daemon **ret_daemon)
{
	struct daemon *d = calloc(1, sizeof(*d));
	struct server_options server = {
		.socket = options->socket,
		.group = options->group,
		.listen = options->listen,
		.token_file = options->token_file,
		.metrics = metrics,
		.index = make_index,
		.healthy = healthy,
		.arg = d,
	};
	int err;

	if (!d)
		return reason_set(why, -ENOMEM, "out of memory");
	(void)pthread_mutex_init(&d->lock, NULL);
	raise_descriptors();
	d->start_realtime_ns = clock_ns(CLOCK_REALTIME);
	d->turned_ns = clock_ns(CLOCK_MONOTONIC);
	d->profiles = server.profiles = profiles__new(options->capture.mode == CAPTURE_SAMPLE);
	err = d->profiles ? 0 : reason_set(why, -ENOMEM, "out of memory");
	err = err ? err
		  : recording_store__new(options->folder, options->keep_bytes, why, &d->store);
	server.store = d->store;
	err = err ? err : server__new(&server, why, &d->server);
	err = err ? err : privileges_keep(privileges_of_capture(), why);
	err = err ? err : reader__new(d->profiles, d->store, why, &d->reader);
	err = err ? err : make_watch(d, options, why);
	err = err ? err : server__start(d->server, why);
	if (err) {
		daemon__free(d);
		return err;
	}
	*ret_daemon = d;
	return 0;
}

const char *daemon__address(const struct daemon *d)
{
	return server__address(d->server);
}

void daemon__free(struct daemon *d)
{
	if (!d)
		return;
	capture_loop__free(d->loop);
	server__free(d->server);
	reader__free(d->reader);
	profiles__free(d->profiles);
	recording_store__free(d->store);
	(void)pthread_mutex_destroy(&d->lock);
	free(d);
}
