/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Carries out the commands of `gpuprof ctl` and writes their answers.
 */
#include "cli/record/record_control.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/reason.h"
#include "cli/view/metadata.h"

#include <stdio.h>
#include <string.h>

#define TURNS_MAX 200 /* of a switch: at least 10 seconds */

static void answer(struct record_control *r, struct buf *text)
{
	control__answer(r->control, buf__error(text) ? "error: out of memory\n" : text->bytes);
	buf__done(text);
}

static void answer_error(struct record_control *r, const char *why)
{
	struct buf text = {0};

	buf__printf(&text, "error: %s\n", why);
	buf__char(&text, '\0');
	answer(r, &text);
}

/* The name of the recording in progress, to be freed; NULL: out of memory. */
static char *path_now(const struct record_control *r, const struct capture_status *s)
{
	return r->recording_path(r->recording_arg, s->files_nr ? s->files_nr - 1 : 0);
}

static void answer_status(struct record_control *r)
{
	CLEANUP(cleanup_free) char *path = NULL;
	struct capture_status s;
	struct buf text = {0};

	capture__status(r->capture, &s);
	if (!r->flight)
		path = path_now(r, &s);
	buf__str(&text, "ok");
	for (size_t i = 0; i < r->pids_nr; i++)
		buf__printf(&text, "\nprocess %d", (int)r->pids[i]);
	buf__printf(&text, "\nrecording %s\ncpu %s\ngpu %s\n", path ? path : r->path,
		    s.off & CAPTURE_CPU ? "off" : "on", s.off & CAPTURE_GPU ? "off" : "on");
	buf__printf(&text, "recorded %.1f s\nevents %llu\nlost %llu\nbytes %llu\n",
		    (double)s.running_ns / 1e9, (unsigned long long)s.events_nr,
		    (unsigned long long)s.lost_nr, (unsigned long long)s.bytes);
	buf__printf(&text, "recordings %u\nwriting %s\n", s.recordings_nr,
		    s.unwritten ? "no" : "yes");
	if (r->flight)
		buf__printf(&text, "holds %.1f s\n", flight__held(r->flight));
	if (s.budgeted)
		buf__printf(&text, "windows %u\ncost %.3f %% of their CPU time\n", s.windows_nr,
			    s.cost.cpu_ns > s.cost.inside_ns
				    ? 100 * (double)s.cost.cost_ns /
					      (double)(s.cost.cpu_ns - s.cost.inside_ns)
				    : 0);
	if (s.steps_by)
		buf__printf(&text, "steps %llu\n", (unsigned long long)s.steps_nr);
	buf__char(&text, '\0');
	answer(r, &text);
}

static void do_switch(struct record_control *r, const char *side, bool on)
{
	uint32_t sides = !strcmp(side, " cpu")	 ? CAPTURE_CPU
			 : !strcmp(side, " gpu") ? CAPTURE_GPU
						 : CAPTURE_CPU | CAPTURE_GPU;
	struct reason why = {0};

	if (capture__switch(r->capture, sides, on, &why)) {
		answer_error(r, why.text);
		return;
	}
	r->waiting = true;
	r->waited = 0;
}

static void ask_flight(struct record_control *r)
{
	const char *path;
	bool busy;

	r->dumps_nr = flight__dumps(r->flight, &path, &busy);
	if (busy) {
		answer_error(r, "it is writing already; try again in a moment");
		return;
	}
	capture__trigger(r->capture, GP_TRIGGER_ASKED);
	r->dumping = true;
}

static void wait_for_dump(struct record_control *r)
{
	struct buf text = {0};
	const char *path;
	bool busy;

	if (flight__dumps(r->flight, &path, &busy) == r->dumps_nr)
		return;
	r->dumping = false;
	if (!path) {
		answer_error(r, "it could not be written; gpuprof says why");
		return;
	}
	buf__printf(&text, "ok\n%s\n", path);
	buf__char(&text, '\0');
	answer(r, &text);
}

static void do_dump(struct record_control *r)
{
	CLEANUP(cleanup_free) char *path = NULL;
	struct capture_status s;
	struct reason why = {0};
	struct buf text = {0};

	if (r->flight) {
		ask_flight(r);
		return;
	}
	if (capture__flush(r->capture, &why)) {
		answer_error(r, why.text);
		return;
	}
	capture__status(r->capture, &s);
	path = path_now(r, &s);
	buf__printf(&text, "ok\n%s\n", path ? path : r->path);
	buf__char(&text, '\0');
	answer(r, &text);
}

static void do_rotate(struct record_control *r)
{
	struct capture_status s;
	struct reason why = {0};

	capture__status(r->capture, &s);
	if (r->flight) {
		answer_error(r, "the flight recorder writes what it holds at 'dump'");
		return;
	}
	if (capture__rotate(r->capture, &why)) {
		answer_error(r, why.text);
		return;
	}
	r->rotated_nr = s.recordings_nr + 1;
	r->waited = 0;
}

static void wait_for_rotation(struct record_control *r)
{
	struct capture_status s;

	capture__status(r->capture, &s);
	if (s.recordings_nr < r->rotated_nr && r->waited++ < TURNS_MAX)
		return;
	if (s.recordings_nr < r->rotated_nr)
		answer_error(r, "the recording has not ended yet; 'status' shows when it has");
	else
		control__answer(r->control, "ok\n");
	r->rotated_nr = 0;
}

static void do_metadata(struct record_control *r, const char *text)
{
	struct reason why = {0};

	if (!metadata_is_sane(text))
		answer_error(r, "give " METADATA_RULE);
	else if (metadata_add(r->capture, text, &why))
		answer_error(r, why.text);
	else
		control__answer(r->control, "ok\n");
}

/* Returns whether the capture should end. */
static bool obey(struct record_control *r, const char *command)
{
	if (!strcmp(command, "status")) {
		answer_status(r);
	} else if (!strncmp(command, "stop", 4)) {
		do_switch(r, command + 4, false);
	} else if (!strncmp(command, "start", 5)) {
		do_switch(r, command + 5, true);
	} else if (!strcmp(command, "dump")) {
		do_dump(r);
	} else if (!strcmp(command, "rotate")) {
		do_rotate(r);
	} else if (!strncmp(command, "metadata ", 9)) {
		do_metadata(r, command + 9);
	} else if (!strcmp(command, "end")) {
		control__answer(r->control, "ok\n");
		return true;
	} else {
		answer_error(r, "no such command");
	}
	return false;
}

static void wait_for_switch(struct record_control *r)
{
	struct capture_status s;

	capture__status(r->capture, &s);
	if (s.switching && r->waited++ < TURNS_MAX)
		return;
	r->waiting = false;
	if (s.switching)
		answer_error(r, "a process has not answered yet; 'status' shows when it has");
	else
		control__answer(r->control, "ok\n");
}

bool record_control_poll(struct record_control *r)
{
	char command[CONTROL_COMMAND_BYTES];

	if (r->waiting)
		wait_for_switch(r);
	else if (r->dumping)
		wait_for_dump(r);
	else if (r->rotated_nr)
		wait_for_rotation(r);
	else if (control__take(r->control, command, sizeof(command)))
		return obey(r, command);
	return false;
}
