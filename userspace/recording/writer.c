/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes a .gpuprof file. Contents gather in one buffer per kind. A flush writes each buffer as a
 * chunk, names and processes before the events that refer to them. The first error sticks.
 */
#include "recording/recording.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "recording/chunk_writer.h"
#include "recording/delta.h"
#include "recording/event_kinds.h"
#include "recording/format.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define EVENTS_BYTES (1U << 20) /* raw bytes of events in a chunk */
#define TEXT_MAX     (1U << 20) /* longer texts are cut */
#define SMALL_MAX    (4U << 20) /* of other content are held back at most */
#define PACK_FROM    4096	/* shorter content is not packed */

struct loss {
	char *name;
	uint64_t count;
	bool is_new;
};

struct recording_writer {
	struct chunk_writer out;
	uint64_t events;
	struct buf meta;
	struct buf processes;
	struct buf names;
	struct buf frames;
	struct buf native_frames;
	struct buf frame_ops;
	struct buf frame_lines;
	struct buf first_lines;
	struct buf stacks;
	struct buf window;
	VEC(struct loss) losses;
	uint8_t *raw;	 /* EVENTS_BYTES */
	uint8_t *deltas; /* the differences of what is in `raw` */
	size_t raw_nr;
	size_t run_at;	   /* of the open run's header in raw; raw_nr if there is none */
	size_t packed_raw; /* counts to FORMAT_PACKED_MAX */
};

/* ---- chunks ---- */

static int write_buf(struct recording_writer *w, enum format_type type, struct buf *b)
{
	int err = buf__error(b);

	if (err)
		return chunk_writer__fail(&w->out, err);
	if (!b->nr)
		return 0;
	if (b->nr >= PACK_FROM && b->nr <= FORMAT_PACKED_MAX - w->packed_raw) {
		w->packed_raw += b->nr;
		err = chunk_writer__put_packed(&w->out, type, 0, b->bytes, b->nr);
	} else {
		err = chunk_writer__put(&w->out, type, 0, b->bytes, b->nr, b->nr);
	}
	buf__clear(b);
	return err;
}

static int write_events(struct recording_writer *w)
{
	int err = 0;

	if (w->raw_nr) {
		delta_encode(w->raw, w->raw_nr, w->deltas);
		err = chunk_writer__put_packed(&w->out, FORMAT_EVENTS, FORMAT_DELTA, w->deltas,
					       w->raw_nr);
	}
	w->raw_nr = w->run_at = 0;
	return err;
}

static void add_u32(struct buf *b, uint32_t n)
{
	buf__add(b, &n, sizeof(n));
}

static void add_text(struct buf *b, const char *text)
{
	size_t nr = strnlen(text, TEXT_MAX);

	add_u32(b, (uint32_t)nr);
	buf__add(b, text, nr);
}

static int write_losses(struct recording_writer *w)
{
	CLEANUP(buf__done) struct buf b = {0};

	for (size_t i = 0; i < w->losses.nr; i++) {
		struct loss *l = &w->losses.items[i];

		if (!l->is_new)
			continue;
		l->is_new = false;
		buf__add(&b, &l->count, sizeof(l->count));
		add_text(&b, l->name);
	}
	return write_buf(w, FORMAT_LOSSES, &b);
}

/* Writes what events refer to. */
static int write_references(struct recording_writer *w)
{
	int err = write_buf(w, FORMAT_META, &w->meta);

	err = err ? err : write_buf(w, FORMAT_WINDOW, &w->window);
	err = err ? err : write_buf(w, FORMAT_PROCESS, &w->processes);
	err = err ? err : write_buf(w, FORMAT_NAMES, &w->names);
	err = err ? err : write_buf(w, FORMAT_FRAMES, &w->frames);
	err = err ? err : write_buf(w, FORMAT_NATIVE_FRAMES, &w->native_frames);
	err = err ? err : write_buf(w, FORMAT_FRAME_OPS, &w->frame_ops);
	err = err ? err : write_buf(w, FORMAT_FRAME_LINES, &w->frame_lines);
	err = err ? err : write_buf(w, FORMAT_FIRST_LINES, &w->first_lines);
	return err ? err : write_buf(w, FORMAT_STACKS, &w->stacks);
}

/* Call after adding to b: remembers a failure, and writes out what grew large. */
static int added(struct recording_writer *w, const struct buf *b)
{
	if (buf__error(b))
		return chunk_writer__fail(&w->out, buf__error(b));
	return b->nr > SMALL_MAX ? write_references(w) : 0;
}

/* ---- the interface ---- */

int recording_writer__new(const char *path, struct reason *why,
			  struct recording_writer **ret_writer)
{
	struct recording_writer *w;
	int err = recording_writer__new_in(NULL, path, why, &w);

	if (err)
		return err;
	err = recording_writer__place(w);
	if (err) {
		recording_writer__free(w);
		return reason_set(why, err, "cannot create the recording '%s': %s", path,
				  strerror(-err));
	}
	*ret_writer = w;
	return 0;
}

int recording_writer__new_in(const struct file_folder *folder, const char *path, struct reason *why,
			     struct recording_writer **ret_writer)
{
	CLEANUP(cleanup_writer) struct recording_writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return reason_set(why, -ENOMEM, "out of memory");
	err = chunk_writer__init(&w->out);
	w->raw = malloc(EVENTS_BYTES);
	w->deltas = malloc(EVENTS_BYTES);
	if (err || !w->raw || !w->deltas)
		return reason_set(why, -ENOMEM, "out of memory");
	err = file_new__open_in(&w->out.file, folder, folder ? file_base_name(path) : path);
	if (err)
		return reason_set(why, err,
				  "cannot create the recording '%s': %s; "
				  "name another place with -o",
				  path, file_error(err));
	err = chunk_writer__begin(&w->out);
	if (err)
		return reason_set(why, err, "cannot write to the recording '%s': %s", path,
				  strerror(-err));
	*ret_writer = TAKE(w);
	return 0;
}

int recording_writer__place(struct recording_writer *w)
{
	int err = file_new__place(&w->out.file);

	if (err)
		(void)chunk_writer__fail(&w->out, err);
	return err;
}

void recording_writer__free(struct recording_writer *w)
{
	if (!w)
		return;
	chunk_writer__done(&w->out);
	for (size_t i = 0; i < w->losses.nr; i++)
		free(w->losses.items[i].name);
	vec_done(&w->losses);
	buf__done(&w->meta);
	buf__done(&w->processes);
	buf__done(&w->names);
	buf__done(&w->frames);
	buf__done(&w->native_frames);
	buf__done(&w->frame_ops);
	buf__done(&w->frame_lines);
	buf__done(&w->first_lines);
	buf__done(&w->stacks);
	buf__done(&w->window);
	free(w->raw);
	free(w->deltas);
	free(w);
}

void recording_writer__set_room(struct recording_writer *w, struct recording_room room)
{
	w->out.room = room;
}

int recording_writer__error(const struct recording_writer *w)
{
	return w->out.err;
}

int recording_writer__meta(struct recording_writer *w, const char *key, const char *value)
{
	if (w->out.err)
		return w->out.err;
	add_text(&w->meta, key);
	add_text(&w->meta, value);
	return added(w, &w->meta);
}

int recording_writer__process(struct recording_writer *w, const struct recording_process *p)
{
	struct format_process f = {
		.index = p->index,
		.pid = p->pid,
		.rank = p->rank,
		.world_size = p->world_size,
		.start_boot_ns = p->start_boot_ns,
	};

	if (w->out.err)
		return w->out.err;
	if (p->index > UINT16_MAX)
		return -EINVAL;
	buf__add(&w->processes, &f, sizeof(f));
	add_text(&w->processes, p->comm ? p->comm : "");
	add_text(&w->processes, p->cmdline ? p->cmdline : "");
	return added(w, &w->processes);
}

int recording_writer__name(struct recording_writer *w, uint32_t id, const char *name,
			   const char *overload)
{
	if (w->out.err)
		return w->out.err;
	if (id >= RECORDING_NAME_IDS)
		return -EINVAL;
	add_u32(&w->names, id);
	add_text(&w->names, name);
	add_text(&w->names, overload ? overload : "");
	return added(w, &w->names);
}

static int add_python_frame(struct recording_writer *w, uint32_t id,
			    const struct recording_frame *frame)
{
	struct format_frame f = {.id = id, .line = frame->line};
	struct format_first_line first = {.frame = id, .line = frame->first_line};

	buf__add(&w->frames, &f, sizeof(f));
	add_text(&w->frames, frame->file);
	add_text(&w->frames, frame->function);
	if (first.line)
		buf__add(&w->first_lines, &first, sizeof(first));
	if (buf__error(&w->first_lines))
		return chunk_writer__fail(&w->out, buf__error(&w->first_lines));
	return added(w, &w->frames);
}

static int add_native_frame(struct recording_writer *w, uint32_t id,
			    const struct recording_frame *frame)
{
	struct format_native_frame f = {
		.id = id,
		.kind = frame->kind,
		.address = frame->address,
		.line = frame->line,
	};

	buf__add(&w->native_frames, &f, sizeof(f));
	add_text(&w->native_frames, frame->module);
	add_text(&w->native_frames, frame->build_id);
	add_text(&w->native_frames, frame->function);
	add_text(&w->native_frames, frame->file);
	return added(w, &w->native_frames);
}

int recording_writer__frame(struct recording_writer *w, uint32_t id,
			    const struct recording_frame *frame)
{
	if (w->out.err)
		return w->out.err;
	if (id >= RECORDING_STACK_IDS)
		return -EINVAL;
	return frame->kind == RECORDING_FRAME_PYTHON ? add_python_frame(w, id, frame)
						     : add_native_frame(w, id, frame);
}

int recording_writer__frame_op(struct recording_writer *w, uint32_t frame, uint32_t name,
			       uint32_t scope)
{
	struct format_frame_op f = {.frame = frame, .name = name, .scope = scope};

	if (w->out.err)
		return w->out.err;
	if (frame >= RECORDING_STACK_IDS || name >= RECORDING_NAME_IDS)
		return -EINVAL;
	buf__add(&w->frame_ops, &f, sizeof(f));
	return added(w, &w->frame_ops);
}

int recording_writer__frame_lines(struct recording_writer *w, uint32_t frame,
				  const struct recording_line *lines, size_t nr)
{
	struct format_frame_lines f = {.frame = frame, .nr = (uint32_t)nr};

	if (w->out.err)
		return w->out.err;
	if (frame >= RECORDING_STACK_IDS || !nr || nr > RECORDING_FRAME_LINES)
		return -EINVAL;
	buf__add(&w->frame_lines, &f, sizeof(f));
	for (size_t i = 0; i < nr; i++) {
		add_u32(&w->frame_lines, lines[i].line);
		add_text(&w->frame_lines, lines[i].function);
		add_text(&w->frame_lines, lines[i].file);
	}
	return added(w, &w->frame_lines);
}

int recording_writer__stack(struct recording_writer *w, uint32_t id, uint32_t flags,
			    const uint32_t *frames, size_t nr)
{
	struct format_stack f = {.id = id, .flags = flags, .nr = (uint32_t)nr};

	if (w->out.err)
		return w->out.err;
	if (id >= RECORDING_STACK_IDS || nr > RECORDING_STACK_FRAMES)
		return -EINVAL;
	buf__add(&w->stacks, &f, sizeof(f));
	buf__add(&w->stacks, frames, nr * sizeof(*frames));
	return added(w, &w->stacks);
}

/* Whether the open run can take another event of this length. */
static bool run_fits(const struct recording_writer *w, size_t bytes)
{
	const struct format_run *run = (const void *)(w->raw + w->run_at);

	return w->raw_nr && run->bytes == bytes;
}

/* Accepts kinds that this version does not know. */
static bool is_recordable(const struct event_kind *kind, size_t bytes)
{
	return bytes >= kind->bytes && !(kind->flags & EVENT_KIND_TRANSIENT);
}

int recording_writer__event(struct recording_writer *w, const void *event, size_t bytes)
{
	const struct gp_ev_head *head = event;

	if (bytes < sizeof(*head))
		return w->out.err ? w->out.err : -EINVAL;
	return recording_writer__event_of(w, head->process, event, bytes);
}

int recording_writer__event_of(struct recording_writer *w, uint16_t process, const void *event,
			       size_t bytes)
{
	struct format_run *run;

	if (w->out.err)
		return w->out.err;
	if (bytes < sizeof(struct gp_ev_head) || bytes % 8 || bytes > FORMAT_EVENT_MAX ||
	    !is_recordable(event_kind_of(event), bytes))
		return -EINVAL;
	if (EVENTS_BYTES - w->raw_nr < sizeof(*run) + bytes) {
		int err = recording_writer__flush(w);

		if (err)
			return err;
	}
	if (!run_fits(w, bytes)) {
		w->run_at = w->raw_nr;
		run = (struct format_run *)(w->raw + w->run_at);
		*run = (struct format_run){.bytes = (uint32_t)bytes};
		w->raw_nr += sizeof(*run);
	}
	run = (struct format_run *)(w->raw + w->run_at);
	memcpy(w->raw + w->raw_nr, event, bytes);
	memcpy(w->raw + w->raw_nr + offsetof(struct gp_ev_head, process), &process,
	       sizeof(process));
	w->raw_nr += bytes;
	run->nr++;
	w->events++;
	return 0;
}

int recording_writer__loss(struct recording_writer *w, const char *name, uint64_t count)
{
	struct loss l = {.count = count, .is_new = true};

	if (w->out.err)
		return w->out.err;
	for (size_t i = 0; i < w->losses.nr; i++) {
		struct loss *old = &w->losses.items[i];

		if (strcmp(old->name, name))
			continue;
		old->is_new |= old->count != count;
		old->count = count;
		return 0;
	}
	l.name = strndup(name, TEXT_MAX);
	if (!l.name || vec_push(&w->losses, l)) {
		free(l.name);
		return chunk_writer__fail(&w->out, -ENOMEM);
	}
	return 0;
}

int recording_writer__window(struct recording_writer *w, uint64_t start_ns, uint64_t end_ns,
			     uint64_t start_realtime_ns)
{
	struct format_window f = {start_ns, end_ns, start_realtime_ns};

	if (w->out.err)
		return w->out.err;
	buf__clear(&w->window);
	buf__add(&w->window, &f, sizeof(f));
	return added(w, &w->window);
}

int recording_writer__flush(struct recording_writer *w)
{
	int err = w->out.err ? w->out.err : write_references(w);

	err = err ? err : write_losses(w);
	return err ? err : write_events(w);
}

int recording_writer__finish(struct recording_writer *w)
{
	struct format_end f = {.events = w->events};
	int err = recording_writer__flush(w);

	err = err ? err : chunk_writer__put(&w->out, FORMAT_END, 0, &f, sizeof(f), sizeof(f));
	if (err)
		return err;
	/* Network file systems report a full disk only here. */
	if (close(take_fd(&w->out.file.fd)))
		return chunk_writer__fail(&w->out, -errno);
	w->out.err = -EBADF;
	return 0;
}

uint64_t recording_writer__bytes(const struct recording_writer *w)
{
	return w->out.written_bytes;
}
