/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See triggers.h.
 */
#include "output/summary/triggers.h"

#include "output/format/output.h"
#include "output/format/stack_text.h"

#include "base/banned.h"
#include "base/cleanup.h"

/* Frames of a thread that hung, and threads, that are shown. */
#define FRAMES_TEXT   5
#define THREADS_TEXT  16
#define TRIGGERS_TEXT 4 /* the last ones: one of them set it off */
#define FRAMES_JSON   GP_STACK_FRAMES
#define THREADS_JSON  256

const char *trigger_name(const struct tl_trigger *trigger)
{
	static const char *const names[] = {
		[GP_TRIGGER_SLOW_STEP] = "slow step", [GP_TRIGGER_OOM] = "out of memory",
		[GP_TRIGGER_HANG] = "hang",	      [GP_TRIGGER_SIGNAL] = "signal",
		[GP_TRIGGER_ASKED] = "asked for",
	};
	uint32_t what = trigger->reported.what;

	return what && what < sizeof(names) / sizeof(*names) ? names[what] : "?";
}

static void ms(struct buf *out, uint64_t ns)
{
	buf__printf(out, "%.3f ms", (double)ns / 1e6);
}

static void slow_step(struct buf *out, const struct gp_ev_trigger *e)
{
	buf__printf(out, "step %llu took ", (unsigned long long)e->step_nr);
	ms(out, e->head.time_ns - e->start_ns);
	buf__str(out, "; more than ");
	ms(out, e->bound_ns);
	buf__str(out, " is slow, where ");
	ms(out, e->usual_ns);
	buf__str(out, " are usual");
}

static void hang(struct buf *out, const struct gp_ev_trigger *e)
{
	buf__printf(out, "no %s for ", e->step_nr ? "step" : "event");
	ms(out, e->head.time_ns - e->start_ns);
	if (e->step_nr)
		buf__printf(out, " after %llu steps", (unsigned long long)e->step_nr);
}

void trigger_words(struct buf *out, const struct timeline *t, const struct tl_trigger *trigger)
{
	const struct gp_ev_trigger *e = &trigger->reported;

	if (e->what == GP_TRIGGER_SLOW_STEP)
		slow_step(out, e);
	else if (e->what == GP_TRIGGER_HANG)
		hang(out, e);
	else if (e->what == GP_TRIGGER_OOM)
		buf__printf(out, "%llu bytes were refused", (unsigned long long)e->bytes);
	else if (e->what == GP_TRIGGER_SIGNAL)
		buf__str(out, "gpuprof was sent a signal");
	else if (e->what == GP_TRIGGER_ASKED)
		buf__str(out, "by gpuprof ctl dump");
	else
		buf__str(out, "of a kind that this gpuprof does not know");
	if (trigger->thread != TL_NONE)
		buf__printf(out, ", thread %u", t->threads.items[trigger->thread].tid);
}

static void json_stack(struct json_writer *j, const struct timeline *t, uint32_t stack_id)
{
	size_t nr = 0;
	const uint32_t *frames = recording__stack(t->recording, stack_id, &nr, NULL);

	stack_text_json(j, t->recording, frames, nr < FRAMES_JSON ? nr : FRAMES_JSON);
}

static void json_threads(struct json_writer *j, const struct timeline *t, uint64_t time_ns)
{
	size_t shown = 0;

	json__put_array(j, "threads", &json_spaced);
	for (size_t i = 0; i < t->thread_stacks.nr && shown < THREADS_JSON; i++) {
		const struct tl_thread_stack *s = &t->thread_stacks.items[i];
		const struct tl_thread *thread = &t->threads.items[s->thread];

		if (s->time_ns != time_ns)
			continue;
		shown++;
		json__object(j, &json_spaced);
		json__put_i64(j, "pid", t->processes.items[thread->process].pid);
		json__put_u64(j, "tid", thread->tid);
		json__key(j, "stack");
		json_stack(j, t, s->stack_id);
		json__end(j);
	}
	json__end(j);
}

static void json_where(struct json_writer *j, const struct timeline *t, uint32_t number)
{
	const struct tl_thread *thread;

	if (number == TL_NONE) {
		json__put_null(j, "pid");
		json__put_null(j, "tid");
		return;
	}
	thread = &t->threads.items[number];
	json__put_i64(j, "pid", t->processes.items[thread->process].pid);
	json__put_u64(j, "tid", thread->tid);
}

static void json_trigger(struct json_writer *j, const struct timeline *t,
			 const struct tl_trigger *x)
{
	const struct gp_ev_trigger *e = &x->reported;

	json__object(j, &json_spaced);
	json__put_word(j, "kind", trigger_name(x));
	/* From the start of the recording; what lies before it is negative. */
	json__put_us(j, "time_us", (int64_t)(e->head.time_ns - t->start_ns));
	json_where(j, t, x->thread);
	json__put_us(j, "us", e->start_ns ? (int64_t)(e->head.time_ns - e->start_ns) : 0);
	json__put_us(j, "bound_us", (int64_t)e->bound_ns);
	json__put_us(j, "usual_us", (int64_t)e->usual_ns);
	json__put_u64(j, "step", e->step_nr);
	json__put_u64(j, "bytes", e->bytes);
	if (e->what == GP_TRIGGER_HANG)
		json_threads(j, t, e->head.time_ns);
	json__end(j);
}

void triggers_json(struct json_writer *j, const struct timeline *t)
{
	json__array(j, &json_spaced);
	for (size_t i = 0; i < t->triggers.nr; i++)
		json_trigger(j, t, &t->triggers.items[i]);
	json__end(j);
}

static void text_thread(struct buf *out, const struct timeline *t, const struct tl_thread_stack *s)
{
	CLEANUP(buf__done) struct buf line = {0};
	size_t nr = 0;
	const uint32_t *frames = recording__stack(t->recording, s->stack_id, &nr, NULL);

	buf__printf(out, "  thread %u was at\n", t->threads.items[s->thread].tid);
	for (size_t i = 0; i < nr && i < FRAMES_TEXT; i++) {
		buf__clear(&line);
		stack_text_frame(&line, t->recording, frames[i]);
		buf__str(out, "    ");
		buf__line(out, line.bytes ? line.bytes : "");
		buf__char(out, '\n');
	}
	if (nr > FRAMES_TEXT)
		buf__printf(out, "    and %zu more\n", nr - FRAMES_TEXT);
	out->err = out->err ? out->err : buf__error(&line);
}

static void text_threads(struct buf *out, const struct timeline *t, uint64_t time_ns)
{
	size_t shown = 0;

	for (size_t i = 0; i < t->thread_stacks.nr && shown < THREADS_TEXT; i++) {
		if (t->thread_stacks.items[i].time_ns != time_ns)
			continue;
		text_thread(out, t, &t->thread_stacks.items[i]);
		shown++;
	}
}

int output_triggers_text(struct sink *s, const struct timeline *t)
{
	size_t left_out = t->triggers.nr > TRIGGERS_TEXT ? t->triggers.nr - TRIGGERS_TEXT : 0;
	struct buf b = {0};

	if (left_out)
		buf__printf(&b, "%zu triggers before these ('gpuprof table --json' has them)\n",
			    left_out);
	for (size_t i = left_out; i < t->triggers.nr; i++) {
		const struct tl_trigger *x = &t->triggers.items[i];

		buf__printf(&b, "Trigger at %.3f s: %s: ",
			    (double)(int64_t)(x->reported.head.time_ns - t->start_ns) / 1e9,
			    trigger_name(x));
		trigger_words(&b, t, x);
		buf__char(&b, '\n');
		if (x->reported.what == GP_TRIGGER_HANG)
			text_threads(&b, t, x->reported.head.time_ns);
	}
	return sink__write_buf(s, &b);
}
