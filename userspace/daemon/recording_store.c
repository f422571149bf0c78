/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lists recordings, oldest first. Files are named by their ids; they are found through the list
 * only, never by a name that a client sent.
 */
#include "daemon/recording_store.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/vec.h"
#include "common/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX	   ".gpuprof"
#define PART	   ".part" /* of one that is being written, or was when the daemon was killed */
#define COPY_BYTES (1 << 16)
#define ITEMS_MAX  256 /* in memory, and on disk: each is an open file */

struct recording_store {
	pthread_mutex_t lock;
	int folder; /* -1: none */
	uint64_t bytes_max;
	VEC(struct store_item *) items;
};

bool store_is_id(const char *text)
{
	size_t nr = strspn(text, "0123456789TZ-");

	return nr && !text[nr] && nr < STORE_ID_BYTES;
}

/* ---- one ---- */

static void drop_holder(struct store_item *item)
{
	if (--item->holders)
		return;
	(void)close(item->fd);
	free(item);
}

static void file_name(const struct store_item *item, char name[STORE_ID_BYTES + 16])
{
	(void)snprintf(name, STORE_ID_BYTES + 16, "%s" SUFFIX, item->id);
}

static uint64_t bytes_of_all(const struct recording_store *s, bool on_disk)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->items.nr; i++)
		if (s->items.items[i]->on_disk == on_disk)
			bytes += s->items.items[i]->bytes;
	return bytes;
}

static void remove_at(struct recording_store *s, size_t at)
{
	struct store_item *item = s->items.items[at];
	char name[STORE_ID_BYTES + 16];

	memmove(&s->items.items[at], &s->items.items[at + 1],
		(s->items.nr - at - 1) * sizeof(*s->items.items));
	s->items.nr--;
	file_name(item, name);
	if (item->on_disk)
		(void)unlinkat(s->folder, name, 0);
	drop_holder(item);
}

static size_t number_of_all(const struct recording_store *s, bool on_disk)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->items.nr; i++)
		nr += s->items.items[i]->on_disk == on_disk;
	return nr;
}

/* Makes room for a recording of so many bytes, in memory or on disk. */
static void make_room(struct recording_store *s, uint64_t bytes, bool on_disk)
{
	for (size_t i = 0; i < s->items.nr;) {
		if (bytes_of_all(s, on_disk) + bytes <= s->bytes_max &&
		    number_of_all(s, on_disk) < ITEMS_MAX)
			return;
		if (s->items.items[i]->on_disk == on_disk)
			remove_at(s, i);
		else
			i++;
	}
}

/* ---- what is in the folder already ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_file(struct recording_store *s, const char *name)
{
	struct store_item *item = calloc(1, sizeof(*item));
	struct stat st;

	if (!item)
		return -ENOMEM;
	item->fd = openat(s->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (item->fd < 0 || fstat(item->fd, &st) || !S_ISREG(st.st_mode)) {
		if (item->fd >= 0)
			(void)close(item->fd);
		free(item);
		return 0;
	}
	(void)snprintf(item->id, sizeof(item->id), "%.*s", (int)(strlen(name) - strlen(SUFFIX)),
		       name);
	item->bytes = (uint64_t)st.st_size;
	item->start_realtime_ns = (uint64_t)st.st_mtim.tv_sec * SECOND_NS;
	item->on_disk = true;
	item->holders = 1;
	if (vec_push(&s->items, item)) {
		drop_holder(item);
		return -ENOMEM;
	}
	return 0;
}

static bool is_ours(const char *name, const char *ending)
{
	char id[STORE_ID_BYTES];
	size_t nr = strlen(name), suffix = strlen(ending);

	if (nr <= suffix || nr - suffix >= sizeof(id) || strcmp(name + nr - suffix, ending))
		return false;
	(void)snprintf(id, sizeof(id), "%.*s", (int)(nr - suffix), name);
	return store_is_id(id);
}

static int read_folder(struct recording_store *s)
{
	VEC(char *) names = {0};
	struct dirent *entry;
	int fd = dup(s->folder), err = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return -errno;
	while (!err && (entry = readdir(d))) {
		char *name = is_ours(entry->d_name, SUFFIX) ? strdup(entry->d_name) : NULL;

		if (name)
			err = vec_push(&names, name);
		else if (is_ours(entry->d_name, SUFFIX PART))
			(void)unlinkat(s->folder, entry->d_name, 0);
	}
	(void)closedir(d);
	/* Ids begin with the time. */
	if (names.nr)
		qsort(names.items, names.nr, sizeof(*names.items), compare_names);
	for (size_t i = 0; i < names.nr; i++) {
		err = err ? err : add_file(s, names.items[i]);
		free(names.items[i]);
	}
	vec_done(&names);
	make_room(s, 0, true);
	return err;
}

static int open_folder(struct recording_store *s, const char *folder, struct reason *why)
{
	CLEANUP(file_folder__done) struct file_folder f;
	int err = file_folder__open(&f, folder);

	if (err)
		return reason_set(why, err, "cannot keep recordings in '%s': %s", folder,
				  file_error(err));
	if (!file_folder__is_safe(&f))
		return reason_set(why, -EPERM,
				  "cannot keep recordings in '%s': other users may write there; "
				  "make a folder for them that root alone may write to",
				  folder);
	s->folder = openat(f.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->folder < 0)
		return reason_set(why, -errno, "cannot keep recordings in '%s': %s", folder,
				  strerror(errno));
	if (faccessat(s->folder, ".", W_OK | X_OK, AT_EACCESS))
		return reason_set(why, -errno, "cannot keep recordings in '%s': %s", folder,
				  strerror(errno));
	err = read_folder(s);
	return err ? reason_set(why, err, "cannot read '%s': %s", folder, strerror(-err)) : 0;
}

int recording_store__new(const char *folder, uint64_t bytes_max, struct reason *why,
			 struct recording_store **ret_shelf)
{
	struct recording_store *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return reason_set(why, -ENOMEM, "out of memory");
	(void)pthread_mutex_init(&s->lock, NULL);
	s->folder = -1;
	s->bytes_max = bytes_max;
	if (folder)
		err = open_folder(s, folder, why);
	if (err) {
		recording_store__free(s);
		return err;
	}
	*ret_shelf = s;
	return 0;
}

void recording_store__free(struct recording_store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->items.nr; i++)
		drop_holder(s->items.items[i]);
	vec_done(&s->items);
	if (s->folder >= 0)
		(void)close(s->folder);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- putting and taking ---- */

static int copy_all(int from, int to)
{
	CLEANUP(cleanup_free) char *block = malloc(COPY_BYTES);
	uint64_t at = 0;

	if (!block)
		return -ENOMEM;
	for (;;) {
		ssize_t nr = file_read_all_at(from, at, block, COPY_BYTES);
		int err;

		if (nr <= 0)
			return (int)nr;
		err = file_write_all(to, block, (size_t)nr);
		if (err)
			return err;
		at += (uint64_t)nr;
	}
}

/* Writes the recording to a file, which gets its name once it is complete. */
static int save(struct recording_store *s, struct store_item *item)
{
	CLEANUP(cleanup_fd) int fd = -1;
	char name[STORE_ID_BYTES + 16], part[sizeof(name) + sizeof(PART)];
	int err;

	file_name(item, name);
	(void)snprintf(part, sizeof(part), "%s" PART, name);
	fd = openat(s->folder, part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	err = copy_all(item->fd, fd);
	if (!err && renameat(s->folder, part, s->folder, name))
		err = -errno;
	if (err) {
		(void)unlinkat(s->folder, part, 0);
		return err;
	}
	(void)close(item->fd);
	item->fd = take_fd(&fd);
	item->on_disk = true;
	return 0;
}

int recording_store__put(struct recording_store *s, const struct store_item *like)
{
	struct store_item *item = malloc(sizeof(*item));
	int err = 0, saved = 0;

	if (!item || like->bytes > s->bytes_max) {
		(void)close(like->fd);
		free(item);
		return item ? -EFBIG : -ENOMEM;
	}
	*item = *like;
	item->on_disk = false;
	item->holders = 1;
	if (s->folder >= 0) {
		(void)pthread_mutex_lock(&s->lock);
		make_room(s, item->bytes, true);
		(void)pthread_mutex_unlock(&s->lock);
		/* Only one thread puts. The disk may be slow, so nobody waits for the lock. */
		saved = save(s, item);
	}
	(void)pthread_mutex_lock(&s->lock);
	if (!item->on_disk)
		make_room(s, item->bytes, false);
	if (vec_push(&s->items, item))
		err = -ENOMEM;
	(void)pthread_mutex_unlock(&s->lock);
	if (err && item->on_disk) {
		char name[STORE_ID_BYTES + 16];

		file_name(item, name);
		(void)unlinkat(s->folder, name, 0);
	}
	if (err)
		drop_holder(item);
	return err ? err : saved;
}

struct store_item *recording_store__take(struct recording_store *s, const char *id)
{
	struct store_item *found = NULL;

	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->items.nr && !found; i++)
		if (!strcmp(s->items.items[i]->id, id))
			found = s->items.items[i];
	if (found)
		found->holders++;
	(void)pthread_mutex_unlock(&s->lock);
	return found;
}

void recording_store__give_back(struct recording_store *s, struct store_item *item)
{
	(void)pthread_mutex_lock(&s->lock);
	drop_holder(item);
	(void)pthread_mutex_unlock(&s->lock);
}

static void put_item(struct json_writer *j, const struct store_item *item)
{
	json__object(j, &json_tight);
	json__put_word(j, "id", item->id);
	json__put_u64(j, "bytes", item->bytes);
	json__put_u64(j, "start_unix_ns", item->start_realtime_ns);
	json__put_bool(j, "on_disk", item->on_disk);
	if (item->duration_ns) {
		json__put_u64(j, "duration_ns", item->duration_ns);
		json__put_u64(j, "processes", item->processes_nr);
		json__put_u64(j, "events", item->events_nr);
	}
	json__end(j);
}

void recording_store__json(struct recording_store *s, struct buf *out)
{
	struct json_writer j;

	json__init(&j, out);
	json__object(&j, &json_tight);
	json__put_array(&j, "recordings", &json_tight);
	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = s->items.nr; i-- > 0;)
		put_item(&j, s->items.items[i]);
	(void)pthread_mutex_unlock(&s->lock);
	json__end(&j);
	json__end(&j);
	buf__char(out, '\n');
}

void recording_store__sizes(struct recording_store *s, uint64_t *ret_nr, uint64_t *ret_memory_bytes,
			    uint64_t *ret_disk_bytes)
{
	(void)pthread_mutex_lock(&s->lock);
	*ret_nr = s->items.nr;
	*ret_memory_bytes = bytes_of_all(s, false);
	*ret_disk_bytes = bytes_of_all(s, true);
	(void)pthread_mutex_unlock(&s->lock);
}
