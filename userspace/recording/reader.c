/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads a .gpuprof file. Opening walks all chunks once. It checks the frame and checksum of each
 * before it keeps anything of it, and ends at the first bad one. Events stay in the file:
 * recording__each_event() unpacks one chunk at a time. The file is not trusted: a length counts
 * only if it lies within the file and below FORMAT_CHUNK_MAX.
 */
#include "recording/recording.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"
#include "recording/chunk.h"
#include "recording/cursor.h"
#include "recording/event_kinds.h"
#include "recording/format.h"
#include "recording/stack_tables.h"
#include "recording/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct pair {
	const char *key;
	const char *value;
};

struct name {
	const char *name;
	const char *overload;
};

struct loss {
	const char *name;
	uint64_t count;
};

struct recording {
	struct chunk_reader chunks;
	struct intern *texts;
	VEC(struct pair) metas;
	struct hash meta_of; /* interned key -> index */
	VEC(struct recording_process) processes;
	struct hash process_of; /* index in events -> index */
	VEC(struct name) names;
	struct hash name_of; /* id -> index */
	struct stack_tables stacks;
	VEC(struct loss) losses;
	struct hash loss_of;   /* interned name -> index */
	uint32_t packed_bytes; /* counts to FORMAT_PACKED_MAX */
	VEC(struct chunk) events;
	uint64_t events_nr;
	uint64_t unknown_nr;
	uint64_t last_ns;
	struct format_window window;
	bool has_end;
	char damage[200];
};

/* ---- contents of chunks ---- */

static int parse_meta(struct recording *r, struct cursor *c)
{
	while (c->left) {
		struct pair p;
		size_t i;

		p.key = take_string(r->texts, c);
		p.value = p.key ? take_string(r->texts, c) : NULL;
		if (!p.value)
			return take_error(c);
		if (index_of(&r->meta_of, (uintptr_t)p.key, r->metas.nr, &i) ||
		    vec_put(&r->metas, i, p))
			return -ENOMEM;
	}
	return 0;
}

static int parse_processes(struct recording *r, struct cursor *c)
{
	while (c->left) {
		struct format_process f = {0};
		struct recording_process p;
		size_t i;

		take_copy(c, &f, sizeof(f));
		p = (struct recording_process){
			.index = f.index,
			.pid = f.pid,
			.rank = f.rank,
			.world_size = f.world_size,
			.start_boot_ns = f.start_boot_ns,
		};
		if (f.index > UINT16_MAX)
			return -EBADMSG;
		p.comm = take_string(r->texts, c);
		p.cmdline = p.comm ? take_string(r->texts, c) : NULL;
		if (!p.cmdline)
			return take_error(c);
		if (index_of(&r->process_of, f.index, r->processes.nr, &i) ||
		    vec_put(&r->processes, i, p))
			return -ENOMEM;
	}
	return 0;
}

static int parse_names(struct recording *r, struct cursor *c)
{
	while (c->left) {
		uint32_t id = 0;
		struct name n;
		size_t i;

		take_copy(c, &id, sizeof(id));
		if (id >= RECORDING_NAME_IDS)
			return -EBADMSG;
		n.name = take_string(r->texts, c);
		n.overload = n.name ? take_string(r->texts, c) : NULL;
		if (!n.overload)
			return take_error(c);
		if (index_of(&r->name_of, id, r->names.nr, &i) || vec_put(&r->names, i, n))
			return -ENOMEM;
	}
	return 0;
}

static int parse_losses(struct recording *r, struct cursor *c)
{
	while (c->left) {
		struct loss l = {0};
		size_t i;

		take_copy(c, &l.count, sizeof(l.count));
		l.name = take_string(r->texts, c);
		if (!l.name)
			return take_error(c);
		if (index_of(&r->loss_of, (uintptr_t)l.name, r->losses.nr, &i) ||
		    vec_put(&r->losses, i, l))
			return -ENOMEM;
	}
	return 0;
}

static int parse_window(struct recording *r, struct cursor *c)
{
	struct format_window f;

	take_copy(c, &f, sizeof(f));
	if (!c->ok)
		return -EBADMSG;
	r->window = f;
	return 0;
}

static int parse_end(struct recording *r, struct cursor *c)
{
	struct format_end f = {0};

	take_copy(c, &f, sizeof(f));
	if (!c->ok || f.events != r->events_nr + r->unknown_nr)
		return -EBADMSG;
	r->has_end = true;
	return 0;
}

/* ---- events ---- */

struct event_counts {
	uint64_t known;
	uint64_t unknown;
	uint64_t last_ns;
};

/* Passes the events of a payload to fn (may be NULL: they are only checked). */
static int walk_events(struct cursor *c, struct event_counts *counts,
		       int (*fn)(const void *event, size_t bytes, void *arg), void *arg)
{
	while (c->left) {
		struct format_run run = {0};

		take_copy(c, &run, sizeof(run));
		if (!c->ok || !run.nr || run.bytes < sizeof(struct gp_ev_head) || run.bytes % 8 ||
		    run.bytes > FORMAT_EVENT_MAX || run.nr > c->left / run.bytes)
			return -EBADMSG;
		for (uint32_t i = 0; i < run.nr; i++) {
			const struct gp_ev_head *head = take(c, run.bytes);
			const struct event_kind *kind = event_kind_of(head);
			int stop;

			if (!kind->bytes || kind->flags & EVENT_KIND_TRANSIENT) {
				counts->unknown++;
				continue;
			}
			if (run.bytes < kind->bytes)
				return -EBADMSG;
			counts->known++;
			if (head->time_ns > counts->last_ns)
				counts->last_ns = head->time_ns;
			stop = fn ? fn(head, run.bytes, arg) : 0;
			if (stop)
				return stop;
		}
	}
	return 0;
}

static int parse_events(struct recording *r, const struct chunk *chunk, struct cursor *c)
{
	struct event_counts counts = {.last_ns = r->last_ns};
	int err = walk_events(c, &counts, NULL, NULL);

	if (err)
		return err;
	if (vec_push(&r->events, *chunk))
		return -ENOMEM;
	r->events_nr += counts.known;
	r->unknown_nr += counts.unknown;
	r->last_ns = counts.last_ns;
	return 0;
}

int recording__each_event(struct recording *r,
			  int (*fn)(const void *event, size_t bytes, void *arg), void *arg)
{
	CLEANUP(chunk_buffers__done) struct chunk_buffers buffers = {0};

	for (size_t i = 0; i < r->events.nr; i++) {
		struct event_counts counts = {0};
		struct chunk chunk;
		struct cursor c = {.ok = true};
		int err;

		err = chunk_reader__get(&r->chunks, r->events.items[i].at, &buffers, &chunk);
		/* The chunk was whole when the recording was opened. */
		if (err)
			return err == -ENOMEM ? err : -EIO;
		c.at = chunk.payload;
		c.left = chunk.head.raw_bytes;
		err = walk_events(&c, &counts, fn, arg);
		if (err)
			return err;
	}
	return 0;
}

/* ---- opening ---- */

/* Limits what a small file can unpack to. */
static int count_packed(struct recording *r, const struct format_chunk *h)
{
	if (!(h->flags & FORMAT_ZSTD) || h->type == FORMAT_EVENTS)
		return 0;
	if (h->raw_bytes > FORMAT_PACKED_MAX - r->packed_bytes)
		return -EBADMSG;
	r->packed_bytes += h->raw_bytes;
	return 0;
}

static int parse_chunk(struct recording *r, const struct chunk *chunk)
{
	struct cursor c = {.at = chunk->payload, .left = chunk->head.raw_bytes, .ok = true};

	if (!format_type_known(chunk->head.type))
		return 0; /* from a later version, which older readers may skip */
	if (count_packed(r, &chunk->head))
		return -EBADMSG;
	switch (chunk->head.type) {
	case FORMAT_META:
		return parse_meta(r, &c);
	case FORMAT_PROCESS:
		return parse_processes(r, &c);
	case FORMAT_NAMES:
		return parse_names(r, &c);
	case FORMAT_EVENTS:
		return parse_events(r, chunk, &c);
	case FORMAT_FRAMES:
		return stack_tables__parse_frames(&r->stacks, r->texts, &c);
	case FORMAT_NATIVE_FRAMES:
		return stack_tables__parse_native_frames(&r->stacks, r->texts, &c);
	case FORMAT_STACKS:
		return stack_tables__parse_stacks(&r->stacks, &c);
	case FORMAT_FRAME_OPS:
		return stack_tables__parse_frame_ops(&r->stacks, &c);
	case FORMAT_FRAME_LINES:
		return stack_tables__parse_frame_lines(&r->stacks, r->texts, &c);
	case FORMAT_FIRST_LINES:
		return stack_tables__parse_first_lines(&r->stacks, &c);
	case FORMAT_LOSSES:
		return parse_losses(r, &c);
	case FORMAT_WINDOW:
		return parse_window(r, &c);
	default:
		return parse_end(r, &c);
	}
}

__attribute__((format(printf, 2, 3))) static void set_damage(struct recording *r, const char *fmt,
							     ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(r->damage, sizeof(r->damage), fmt, ap);
	va_end(ap);
}

/* Walks the chunks up to the first bad one. Fails only if memory runs out or reading fails. */
static int parse_file(struct recording *r)
{
	CLEANUP(chunk_buffers__done) struct chunk_buffers buffers = {0};
	uint64_t at = sizeof(struct format_header), end = r->chunks.file_bytes;
	uint32_t nr = 0;

	while (at < end && !r->has_end) {
		struct chunk chunk;
		int err = chunk_reader__get(&r->chunks, at, &buffers, &chunk);

		if (!err && chunk.head.index != nr)
			err = -EBADMSG;
		if (!err)
			err = parse_chunk(r, &chunk);
		if (err == -ENODATA)
			set_damage(r, "cut after %u chunks, %llu bytes left over", nr,
				   (unsigned long long)(end - at));
		else if (err == -EBADMSG)
			set_damage(r, "damaged after %u chunks, the last %llu bytes were not read",
				   nr, (unsigned long long)(end - at));
		else if (err == -ENOTSUP)
			set_damage(r,
				   "chunk %u was written by a newer gpuprof, the last %llu "
				   "bytes were not read",
				   nr, (unsigned long long)(end - at));
		else if (err)
			return err;
		if (err)
			return 0;
		at += sizeof(chunk.head) + chunk.head.stored_bytes;
		nr++;
	}
	if (!r->has_end)
		set_damage(r,
			   "cut after %u chunks: the capture still runs, or did not end in order",
			   nr);
	else if (at < end)
		set_damage(r, "%llu bytes after the end", (unsigned long long)(end - at));
	return 0;
}

static void cleanup_recording(struct recording **r)
{
	recording__free(*r);
}

static int add_unknown_loss(struct recording *r)
{
	struct loss l = {.name = intern__str(r->texts, "unknown_events"), .count = r->unknown_nr};
	size_t i;

	if (!l.name || index_of(&r->loss_of, (uintptr_t)l.name, r->losses.nr, &i))
		return -ENOMEM;
	return vec_put(&r->losses, i, l);
}

int recording__open(const char *path, struct reason *why, struct recording **ret_recording)
{
	CLEANUP(cleanup_recording) struct recording *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return reason_set(why, -ENOMEM, "out of memory");
	r->chunks.fd = -1;
	r->texts = intern__new();
	if (!r->texts)
		return reason_set(why, -ENOMEM, "out of memory");
	err = chunk_reader__open(&r->chunks, path, why);
	if (err)
		return err;
	err = parse_file(r);
	err = err ? err : stack_tables__expand(&r->stacks);
	err = err ? err : add_unknown_loss(r);
	if (err)
		return reason_set(why, err, "cannot read '%s': %s", path, strerror(-err));
	*ret_recording = TAKE(r);
	return 0;
}

void recording__free(struct recording *r)
{
	if (!r)
		return;
	chunk_reader__done(&r->chunks);
	intern__free(r->texts);
	vec_done(&r->metas);
	hash__done(&r->meta_of);
	vec_done(&r->processes);
	hash__done(&r->process_of);
	vec_done(&r->names);
	hash__done(&r->name_of);
	stack_tables__done(&r->stacks);
	vec_done(&r->losses);
	hash__done(&r->loss_of);
	vec_done(&r->events);
	free(r);
}

/* ---- asking ---- */

const char *recording__damage(const struct recording *r)
{
	return r->damage[0] ? r->damage : NULL;
}

const char *recording__meta(const struct recording *r, const char *key)
{
	for (size_t i = 0; i < r->metas.nr; i++)
		if (!strcmp(r->metas.items[i].key, key))
			return r->metas.items[i].value;
	return NULL;
}

bool recording__is_on(const struct recording *r, const char *key)
{
	const char *value = recording__meta(r, key);

	return value && strcmp(value, "0") != 0;
}

size_t recording__metas(const struct recording *r)
{
	return r->metas.nr;
}

void recording__meta_at(const struct recording *r, size_t i, const char **ret_key,
			const char **ret_value)
{
	*ret_key = r->metas.items[i].key;
	*ret_value = r->metas.items[i].value;
}

size_t recording__processes(const struct recording *r)
{
	return r->processes.nr;
}

const struct recording_process *recording__process_at(const struct recording *r, size_t i)
{
	return &r->processes.items[i];
}

const char *recording__name(const struct recording *r, uint32_t id, const char **ret_overload)
{
	const uint64_t *i = hash__find(&r->name_of, id);

	if (ret_overload)
		*ret_overload = i ? r->names.items[*i].overload : "";
	return i ? r->names.items[*i].name : "?";
}

struct recording_frame recording__frame(const struct recording *r, uint32_t id)
{
	return stack_tables__frame(&r->stacks, id);
}

bool recording__frame_op(const struct recording *r, uint32_t id, uint32_t *ret_name,
			 uint32_t *ret_scope)
{
	return stack_tables__frame_op(&r->stacks, id, ret_name, ret_scope);
}

const struct recording_line *recording__frame_lines(const struct recording *r, uint32_t id,
						    size_t *ret_nr)
{
	return stack_tables__frame_lines(&r->stacks, id, ret_nr);
}

const uint32_t *recording__stack(const struct recording *r, uint32_t id, size_t *ret_nr,
				 uint32_t *ret_flags)
{
	return stack_tables__stack(&r->stacks, id, ret_nr, ret_flags);
}

size_t recording__losses(const struct recording *r)
{
	return r->losses.nr;
}

const char *recording__loss_at(const struct recording *r, size_t i, uint64_t *ret_count)
{
	*ret_count = r->losses.items[i].count;
	return r->losses.items[i].name;
}

void recording__window(const struct recording *r, uint64_t *ret_start_ns, uint64_t *ret_end_ns,
		       uint64_t *ret_start_realtime_ns)
{
	*ret_start_ns = r->window.start_ns;
	*ret_end_ns = r->window.end_ns ? r->window.end_ns : r->last_ns;
	*ret_start_realtime_ns = r->window.start_realtime_ns;
}
