/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes a .gpuprof file. Each kind of content gathers in its own buffer; a flush writes each as
 * one chunk, names and processes before the events that refer to them. The first error sticks; what
 * a failed write left behind is cut off again, so the file ends with a whole chunk.
 */
#include "recording/recording.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "recording/delta.h"
#include "recording/event_kinds.h"
#include "recording/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define EVENTS_BYTES (1U << 20) /* raw bytes of events in a chunk */
#define TEXT_MAX     (1U << 20) /* longer texts are cut */
#define SMALL_MAX    (4U << 20) /* other content that is not written yet */
#define PACK_FROM    4096	/* bytes of other content that are worth it */

/* 1 is zstd's fastest level that still finds most of what repeats: see FORMAT.md. */
#define ZSTD_LEVEL 1

struct loss {
	char *name;
	uint64_t count;
	bool is_new;
};

struct recording_writer {
	struct file_new file;
	uint64_t begin_bytes;	    /* of what lies before, in an open file that was handed to us */
	struct recording_room room; /* fn NULL: nobody */
	int err;
	uint64_t written_bytes;
	uint64_t events;
	uint32_t chunks;
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
	ZSTD_CCtx *zstd;
	uint8_t *raw;	 /* EVENTS_BYTES */
	uint8_t *deltas; /* as many, of what is in `raw` */
	size_t raw_nr;
	size_t run_at; /* of the open run's header in raw; raw_nr if there is none */
	uint8_t *packed;
	size_t packed_cap;
	size_t packed_raw; /* counts to FORMAT_PACKED_MAX */
};

/* ---- chunks ---- */

static int writer_fail(struct recording_writer *w, int err)
{
	if (!w->err)
		w->err = err;
	return w->err;
}

/* Header and payload in one system call where the kernel takes all of it. */
static int write_two(int fd, const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	struct iovec parts[2] = {{(void *)a, a_bytes}, {(void *)b, b_bytes}};
	ssize_t n;
	int err;

	do
		n = writev(fd, parts, 2);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n < a_bytes) {
		err = file_write_all(fd, (const char *)a + n, a_bytes - (size_t)n);
		return err ? err : file_write_all(fd, b, b_bytes);
	}
	n -= (ssize_t)a_bytes;
	return file_write_all(fd, (const char *)b + n, b_bytes - (size_t)n);
}

static bool may_write(const struct recording_writer *w, size_t bytes, int err)
{
	if (!w->room.fn)
		return !err;
	return (!err || err == -ENOSPC || err == -EDQUOT) && w->room.fn(w->room.arg, bytes, err);
}

static int write_chunk(struct recording_writer *w, enum format_type type, unsigned int flags,
		       const void *stored, size_t stored_bytes, size_t raw_bytes)
{
	struct format_chunk c = {
		.magic = FORMAT_CHUNK_MAGIC,
		.type = (uint16_t)type,
		.flags = (uint16_t)flags,
		.stored_bytes = (uint32_t)stored_bytes,
		.raw_bytes = (uint32_t)raw_bytes,
		.index = w->chunks,
	};
	int err;

	c.crc = format_chunk_crc(&c, stored);
	if (!may_write(w, sizeof(c) + stored_bytes, 0))
		return writer_fail(w, -ENOSPC);
	do {
		err = write_two(w->file.fd, &c, sizeof(c), stored, stored_bytes);
		if (err) {
			/* A device or pipe refuses: it has nothing to cut. */
			off_t end = (off_t)(w->begin_bytes + w->written_bytes);
			int ignored = ftruncate(w->file.fd, end);

			(void)ignored;
			(void)lseek(w->file.fd, end, SEEK_SET);
		}
	} while (err && may_write(w, sizeof(c) + stored_bytes, err));
	if (err)
		return writer_fail(w, err);
	w->chunks++;
	w->written_bytes += sizeof(c) + stored_bytes;
	return 0;
}

/* As one zstd frame where that is shorter. */
static int write_packed(struct recording_writer *w, enum format_type type, unsigned int flags,
			const void *raw, size_t bytes)
{
	size_t bound = ZSTD_compressBound(bytes), nr;

	if (w->packed_cap < bound) {
		free(w->packed);
		w->packed_cap = 0;
		w->packed = malloc(bound);
		if (!w->packed)
			return writer_fail(w, -ENOMEM);
		w->packed_cap = bound;
	}
	nr = ZSTD_compressCCtx(w->zstd, w->packed, w->packed_cap, raw, bytes, ZSTD_LEVEL);
	if (ZSTD_isError(nr))
		return writer_fail(w, -ENOMEM);
	if (nr < bytes)
		return write_chunk(w, type, flags | FORMAT_ZSTD, w->packed, nr, bytes);
	return write_chunk(w, type, flags, raw, bytes, bytes);
}

static int write_buf(struct recording_writer *w, enum format_type type, struct buf *b)
{
	int err = buf__error(b);

	if (err)
		return writer_fail(w, err);
	if (!b->nr)
		return 0;
	if (b->nr >= PACK_FROM && b->nr <= FORMAT_PACKED_MAX - w->packed_raw) {
		w->packed_raw += b->nr;
		err = write_packed(w, type, 0, b->bytes, b->nr);
	} else {
		err = write_chunk(w, type, 0, b->bytes, b->nr, b->nr);
	}
	buf__clear(b);
	return err;
}

static int write_events(struct recording_writer *w)
{
	int err = 0;

	if (w->raw_nr) {
		delta_encode(w->raw, w->raw_nr, w->deltas);
		err = write_packed(w, FORMAT_EVENTS, FORMAT_DELTA, w->deltas, w->raw_nr);
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

/* What the events refer to. */
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

/* After an addition to b: remembers a failure, writes out what grew large. */
static int added(struct recording_writer *w, const struct buf *b)
{
	if (buf__error(b))
		return writer_fail(w, buf__error(b));
	return b->nr > SMALL_MAX ? write_references(w) : 0;
}

/* ---- the interface ---- */

static uint64_t bytes_before(int fd)
{
	bool appends = fcntl(fd, F_GETFL) & O_APPEND;
	off_t at = lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);

	return at < 0 ? 0 : (uint64_t)at;
}

static int write_header(struct recording_writer *w)
{
	struct format_header h = {.version = FORMAT_VERSION, .wire_version = GP_WIRE_VERSION};
	int err;

	memcpy(h.magic, FORMAT_MAGIC, FORMAT_MAGIC_BYTES);
	h.crc = (uint32_t)crc32(0, (const Bytef *)&h, offsetof(struct format_header, crc));
	err = file_write_all(w->file.fd, &h, sizeof(h));
	w->written_bytes = sizeof(h);
	return err;
}

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
	w->file = FILE_NEW_NONE;
	w->zstd = ZSTD_createCCtx();
	w->raw = malloc(EVENTS_BYTES);
	w->deltas = malloc(EVENTS_BYTES);
	if (!w->zstd || !w->raw || !w->deltas)
		return reason_set(why, -ENOMEM, "out of memory");
	err = file_new__open_in(&w->file, folder, folder ? file_base_name(path) : path);
	if (err)
		return reason_set(why, err,
				  "cannot create the recording '%s': %s; "
				  "name another place with -o",
				  path, file_error(err));
	w->begin_bytes = bytes_before(w->file.fd);
	err = write_header(w);
	if (err)
		return reason_set(why, err, "cannot write to the recording '%s': %s", path,
				  strerror(-err));
	*ret_writer = TAKE(w);
	return 0;
}

int recording_writer__place(struct recording_writer *w)
{
	int err = file_new__place(&w->file);

	if (err)
		(void)writer_fail(w, err);
	return err;
}

void recording_writer__free(struct recording_writer *w)
{
	if (!w)
		return;
	file_new__done(&w->file);
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
	ZSTD_freeCCtx(w->zstd);
	free(w->raw);
	free(w->deltas);
	free(w->packed);
	free(w);
}

void recording_writer__set_room(struct recording_writer *w, struct recording_room room)
{
	w->room = room;
}

int recording_writer__error(const struct recording_writer *w)
{
	return w->err;
}

int recording_writer__meta(struct recording_writer *w, const char *key, const char *value)
{
	if (w->err)
		return w->err;
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

	if (w->err)
		return w->err;
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
	if (w->err)
		return w->err;
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
		return writer_fail(w, buf__error(&w->first_lines));
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
	if (w->err)
		return w->err;
	if (id >= RECORDING_STACK_IDS)
		return -EINVAL;
	return frame->kind == RECORDING_FRAME_PYTHON ? add_python_frame(w, id, frame)
						     : add_native_frame(w, id, frame);
}

int recording_writer__frame_op(struct recording_writer *w, uint32_t frame, uint32_t name,
			       uint32_t scope)
{
	struct format_frame_op f = {.frame = frame, .name = name, .scope = scope};

	if (w->err)
		return w->err;
	if (frame >= RECORDING_STACK_IDS || name >= RECORDING_NAME_IDS)
		return -EINVAL;
	buf__add(&w->frame_ops, &f, sizeof(f));
	return added(w, &w->frame_ops);
}

int recording_writer__frame_lines(struct recording_writer *w, uint32_t frame,
				  const struct recording_line *lines, size_t nr)
{
	struct format_frame_lines f = {.frame = frame, .nr = (uint32_t)nr};

	if (w->err)
		return w->err;
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

	if (w->err)
		return w->err;
	if (id >= RECORDING_STACK_IDS || nr > RECORDING_STACK_FRAMES)
		return -EINVAL;
	buf__add(&w->stacks, &f, sizeof(f));
	buf__add(&w->stacks, frames, nr * sizeof(*frames));
	return added(w, &w->stacks);
}

/* Whether the open run takes one more event of this length. */
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
		return w->err ? w->err : -EINVAL;
	return recording_writer__event_of(w, head->process, event, bytes);
}

int recording_writer__event_of(struct recording_writer *w, uint16_t process, const void *event,
			       size_t bytes)
{
	struct format_run *run;

	if (w->err)
		return w->err;
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

	if (w->err)
		return w->err;
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
		return writer_fail(w, -ENOMEM);
	}
	return 0;
}

int recording_writer__window(struct recording_writer *w, uint64_t start_ns, uint64_t end_ns,
			     uint64_t start_realtime_ns)
{
	struct format_window f = {start_ns, end_ns, start_realtime_ns};

	if (w->err)
		return w->err;
	buf__clear(&w->window);
	buf__add(&w->window, &f, sizeof(f));
	return added(w, &w->window);
}

int recording_writer__flush(struct recording_writer *w)
{
	int err = w->err ? w->err : write_references(w);

	err = err ? err : write_losses(w);
	return err ? err : write_events(w);
}

int recording_writer__finish(struct recording_writer *w)
{
	struct format_end f = {.events = w->events};
	int err = recording_writer__flush(w);

	err = err ? err : write_chunk(w, FORMAT_END, 0, &f, sizeof(f), sizeof(f));
	if (err)
		return err;
	/* Network file systems say here that the disk was full. */
	if (close(take_fd(&w->file.fd)))
		return writer_fail(w, -errno);
	w->err = -EBADF;
	return 0;
}

uint64_t recording_writer__bytes(const struct recording_writer *w)
{
	return w->written_bytes;
}
