/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Files whole. The temporary file lies in the directory of the final one, so that rename() is
 * atomic, and nothing is ever opened through a name that may have been swapped. A path that is no
 * regular file (/dev/stdout, a pipe) is written directly.
 */
#include "base/file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

/* `at`: the offset; negative: where the descriptor stands. */
static ssize_t read_all(int fd, int64_t at, void *to, size_t bytes)
{
	size_t nr = 0;

	while (nr < bytes) {
		char *rest = (char *)to + nr;
		ssize_t got = at < 0 ? read(fd, rest, bytes - nr)
				     : pread(fd, rest, bytes - nr, at + (int64_t)nr);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		nr += (size_t)got;
	}
	return (ssize_t)nr;
}

ssize_t file_read_all(int fd, void *to, size_t bytes)
{
	return read_all(fd, -1, to, bytes);
}

ssize_t file_read_all_at(int fd, uint64_t offset, void *to, size_t bytes)
{
	if (bytes > INT64_MAX || offset > INT64_MAX - bytes)
		return -EOVERFLOW;
	return read_all(fd, (int64_t)offset, to, bytes);
}

int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_bytes)
{
	CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(cleanup_free) char *text = NULL;
	size_t nr = 0, cap = 0;

	if (fd < 0)
		return -errno;
	while (nr + 1 >= cap) {
		char *grown = realloc(text, cap = cap ? 2 * cap : 4096);
		ssize_t got;

		if (!grown)
			return -ENOMEM;
		text = grown;
		got = file_read_all(fd, text + nr, cap - nr - 1);
		if (got < 0)
			return (int)got;
		nr += (size_t)got;
		if (nr > max_bytes)
			return -EFBIG;
	}
	text[nr] = '\0';
	*ret_text = TAKE(text);
	if (ret_bytes)
		*ret_bytes = nr;
	return 0;
}

int file_write_all(int fd, const void *data, size_t bytes)
{
	const char *p = data;

	while (bytes) {
		ssize_t n = write(fd, p, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int file_open_regular(const char *path)
{
	CLEANUP(cleanup_fd) int at = open(path, O_PATH | O_CLOEXEC);
	char again[32];
	struct stat st;
	int fd;

	if (at < 0 || fstat(at, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
	fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

const char *file_error(int err)
{
	switch (err) {
	case -ELOOP:
		return "a symbolic link leads there that other users may have made; name the file "
		       "that is meant, or one in a folder that is yours alone";
	case -EISNAM:
		return "it is a pipe or device that other users may have made; name another file";
	case -ENXIO:
		return "nothing reads from the pipe; start what reads from it first";
	default:
		return strerror(-err);
	}
}

/* ---- temporary files, for signal handlers ---- */

enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_USED, SLOT_TAKEN };

/* Those there are now; what finds no place is not remembered. Only who makes SLOT_USED something
 * else may use the descriptor: the handler, whose process then ends, or the owner, who closes it.
 */
static struct slot {
	atomic_int state;
	pid_t pid; /* a child's handler is to leave them alone */
	int folder;
	char name[NAME_MAX + 1];
} slots[16];

static int remember_temporary(int folder, const char *name)
{
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		int free_state = SLOT_FREE;

		if (!atomic_compare_exchange_strong(&slots[i].state, &free_state, SLOT_FILLING))
			continue;
		slots[i].pid = getpid();
		slots[i].folder = folder;
		(void)snprintf(slots[i].name, sizeof(slots[i].name), "%s", name);
		atomic_store(&slots[i].state, SLOT_USED);
		return (int)i;
	}
	return -1;
}

/* False: a handler has it now, and with it the folder's descriptor. */
static bool forget_temporary(struct file_new *f)
{
	int used = SLOT_USED, at = f->slot;

	f->slot = -1;
	return at < 0 || atomic_compare_exchange_strong(&slots[at].state, &used, SLOT_FREE);
}

void file_new__abandon_all(void)
{
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		int used = SLOT_USED;

		if (atomic_compare_exchange_strong(&slots[i].state, &used, SLOT_TAKEN) &&
		    slots[i].pid == getpid())
			(void)unlinkat(slots[i].folder, slots[i].name, 0);
	}
}

/* ---- new files ---- */

#define TRIES_MAX      16
#define STEM_BYTES     (NAME_MAX - 17) /* of a name, before a dot and 16 digits */
#define READER_WAIT_MS 3000

static int create_temporary(struct file_new *f)
{
	uint64_t random;

	for (int i = 0; i < TRIES_MAX; i++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		if (asprintf(&f->temporary, "%.*s.%016llx", STEM_BYTES, f->at.name,
			     (unsigned long long)random) < 0) {
			f->temporary = NULL;
			return -ENOMEM;
		}
		f->fd = openat(f->at.folder, f->temporary,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (f->fd >= 0)
			return 0;
		free(TAKE(f->temporary));
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* File systems without owners refuse: then the file stays ours, for us alone. */
static void set_owner(const struct file_new *f)
{
	struct file_owner owner = file_owner_get();
	const struct stat *st = &f->at.st;
	bool keeps =
		f->at.is_trusted && S_ISREG(st->st_mode) && (!geteuid() || st->st_uid == geteuid());
	mode_t mode = keeps ? st->st_mode & 0777 : 0600;
	int ignored;

	if (keeps && fchown(f->fd, st->st_uid, st->st_gid) && fchown(f->fd, -1, st->st_gid))
		mode &= 0707;
	else if (!keeps && !geteuid())
		ignored = fchown(f->fd, owner.uid, owner.gid);
	ignored = fchmod(f->fd, mode);
	(void)ignored;
}

static int open_temporary(struct file_new *f)
{
	sigset_t all, before;
	int err;

	/* A handler in between would not know of it. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = create_temporary(f);
	if (!err)
		f->slot = remember_temporary(f->at.folder, f->temporary);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		set_owner(f);
	return err;
}

/* A pipe's reader may be about to come: whoever starts both starts one of them first. */
static int open_for_reader(const char *path, bool pipe)
{
	for (int waited_ms = 0;; waited_ms += 10) {
		int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

		if (fd >= 0)
			return fd;
		if (errno == ENXIO && !pipe)
			return -ENODEV;
		if (errno != ENXIO || waited_ms >= READER_WAIT_MS)
			return -errno;
		(void)usleep(10000);
	}
}

/* What is no regular file, by a handle on it: what is looked at is what is opened. */
static int open_special(struct file_new *f)
{
	CLEANUP(cleanup_fd)
	int at = openat(f->at.folder, f->at.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char again[32];
	struct stat st;
	int flags;

	if (at < 0 || fstat(at, &st))
		return -errno;
	if (st.st_dev != f->at.st.st_dev || st.st_ino != f->at.st.st_ino)
		return -ESTALE;
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
	f->fd = open_for_reader(again, S_ISFIFO(st.st_mode));
	if (f->fd < 0)
		return f->fd;
	flags = fcntl(f->fd, F_GETFL);
	return flags < 0 || fcntl(f->fd, F_SETFL, flags & ~O_NONBLOCK) ? -errno : 0;
}

/* Where the path leads, if it is one to write to. */
static int find_place(struct file_place *p, const struct file_folder *folder, const char *path)
{
	int err = file_place__open(p, folder, path);

	if (err || p->own >= 0 || !p->exists || S_ISREG(p->st.st_mode))
		return err;
	err = S_ISDIR(p->st.st_mode) ? -EISDIR : p->is_trusted ? 0 : -EISNAM;
	if (err)
		file_place__done(p);
	return err;
}

int file_check(const char *path)
{
	CLEANUP(file_place__done) struct file_place p = {.folder = -1};
	int err = find_place(&p, NULL, path);

	return err == -ELOOP || err == -EISNAM ? err : 0;
}

int file_new__open_in(struct file_new *f, const struct file_folder *folder, const char *path)
{
	int err;

	*f = FILE_NEW_NONE;
	err = find_place(&f->at, folder, path);
	if (err)
		return err;
	if (f->at.own >= 0) {
		f->fd = fcntl(f->at.own, F_DUPFD_CLOEXEC, 0);
		err = f->fd < 0 ? -errno : 0;
	} else {
		err = f->at.exists && !S_ISREG(f->at.st.st_mode) ? open_special(f)
								 : open_temporary(f);
	}
	if (err)
		file_new__done(f);
	return err;
}

int file_new__open(struct file_new *f, const char *path)
{
	return file_new__open_in(f, NULL, path);
}

int file_new__place(struct file_new *f)
{
	if (!f->temporary)
		return 0;
	if (renameat(f->at.folder, f->temporary, f->at.folder, f->at.name))
		return -errno;
	if (!forget_temporary(f))
		f->at.folder = -1;
	free(TAKE(f->temporary));
	return 0;
}

int file_new__commit(struct file_new *f)
{
	int err = 0;

	if (close(take_fd(&f->fd)))
		err = -errno;
	if (!err)
		err = file_new__place(f);
	file_new__done(f);
	return err;
}

void file_new__done(struct file_new *f)
{
	if (f->fd >= 0)
		(void)close(take_fd(&f->fd));
	if (f->temporary)
		(void)unlinkat(f->at.folder, f->temporary, 0);
	/* While a handler uses the folder it stays open. */
	if (f->temporary && !forget_temporary(f))
		f->at.folder = -1;
	free(TAKE(f->temporary));
	file_place__done(&f->at);
}

const char *file_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_same_there(const char *a, const char *b)
{
	struct stat sa, sb;

	return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* The directory of a path, with the last slash. NULL: out of memory. */
static char *dir_of(const char *path)
{
	size_t bytes = (size_t)(file_base_name(path) - path);

	return bytes ? strndup(path, bytes) : strdup("./");
}

bool file_is_same(const char *a, const char *b)
{
	CLEANUP(cleanup_free) char *dir_a = dir_of(a);
	CLEANUP(cleanup_free) char *dir_b = dir_of(b);

	return is_same_there(a, b) || (!strcmp(file_base_name(a), file_base_name(b)) && dir_a &&
				       dir_b && is_same_there(dir_a, dir_b));
}
