/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Both ends of the control socket. The one that listens has a capture to attend to: it gives a
 * caller a moment to say what it wants, and hangs up on one that does not.
 */
#include "cli/control.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MOMENT_MS    100
#define ASK_TIMES    20
#define ANSWER_MS    30000
#define ANSWER_BYTES 65536

struct control {
	int fd;
	int peer; /* who waits for an answer, -1: nobody */
	char *path;
};

char *control_folder(void)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	char *path;

	if (!geteuid())
		return strdup("/run/gpuprof");
	if (!base || *base != '/')
		return NULL;
	return asprintf(&path, "%s/gpuprof", base) < 0 ? NULL : path;
}

/* The folder is ours alone, or it is not used. */
static char *default_path(void)
{
	CLEANUP(cleanup_free) char *folder = control_folder();
	struct stat st;
	char *path;

	if (!folder)
		return NULL;
	if (mkdir(folder, 0700) && errno != EEXIST)
		return NULL;
	if (lstat(folder, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 022))
		return NULL;
	return asprintf(&path, "%s/%d.sock", folder, (int)getpid()) < 0 ? NULL : path;
}

static int address_of(const char *path, struct sockaddr_un *ret_address)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t nr = strlen(path);

	if (nr >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	memcpy(a.sun_path, path, nr);
	*ret_address = a;
	return 0;
}

static int listen_at(const char *path)
{
	CLEANUP(cleanup_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	struct stat st;
	mode_t mask;
	int err = fd < 0 ? -errno : address_of(path, &address);

	if (err)
		return err;
	/* Left behind by one that was killed: nobody listens there. A file stays. */
	if (!lstat(path, &st) && S_ISSOCK(st.st_mode) &&
	    control_send(path, "status", true, NULL) == -ECONNREFUSED)
		(void)unlink(path);
	mask = umask(0177);
	err = bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	(void)umask(mask);
	if (!err && listen(fd, 8))
		err = -errno;
	return err ? err : take_fd(&fd);
}

struct control *control__new(const char *path)
{
	CLEANUP(cleanup_free) char *own = path ? strdup(path) : default_path();
	struct control *c;
	int fd = own ? listen_at(own) : -ENOENT;

	if (fd < 0) {
		log_at(path ? LOG_WARN : LOG_INFO, "no control socket%s%s: %s", own ? " at " : "",
		       own ? own : "", strerror(-fd));
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		(void)close(fd);
		(void)unlink(own);
		return NULL;
	}
	*c = (struct control){fd, -1, TAKE(own)};
	return c;
}

void control__free(struct control *c)
{
	if (!c)
		return;
	if (c->peer >= 0)
		(void)close(c->peer);
	(void)close(c->fd);
	(void)unlink(c->path);
	free(c->path);
	free(c);
}

static bool may_talk(int fd)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) &&
	       (who.uid == 0 || who.uid == geteuid());
}

/* One line, or what there is of it when the moment is over: then nothing. */
static bool read_line(int fd, char *line, size_t bytes)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t nr = 0;

	while (nr + 1 < bytes && poll(&p, 1, MOMENT_MS) == 1) {
		ssize_t got = recv(fd, line + nr, bytes - 1 - nr, MSG_DONTWAIT);
		char *end;

		if (got <= 0)
			return false;
		nr += (size_t)got;
		line[nr] = '\0';
		end = strchr(line, '\n');
		if (end) {
			*end = '\0';
			return true;
		}
	}
	return false;
}

bool control__take(struct control *c, char *command, size_t bytes)
{
	if (!c)
		return false;
	c->peer = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (c->peer < 0)
		return false;
	if (may_talk(c->peer) && read_line(c->peer, command, bytes))
		return true;
	(void)close(take_fd(&c->peer));
	return false;
}

void control__answer(struct control *c, const char *text)
{
	ssize_t ignored = send(c->peer, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);

	(void)ignored;
	(void)close(take_fd(&c->peer));
}

/* ---- the other end ---- */

static int read_answer(int fd, char *text, size_t bytes)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t nr = 0;

	while (nr + 1 < bytes) {
		ssize_t got;

		if (poll(&p, 1, ANSWER_MS) != 1)
			return -ETIMEDOUT;
		got = recv(fd, text + nr, bytes - 1 - nr, 0);
		if (got < 0)
			return -errno;
		if (!got)
			break;
		nr += (size_t)got;
	}
	text[nr] = '\0';
	return nr ? 0 : -ECONNABORTED;
}

/* Asks once. -EPIPE or -ECONNRESET: it closed without having read it. */
static int ask(const struct sockaddr_un *address, const char *line, size_t nr, char *text)
{
	CLEANUP(cleanup_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t sent;

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		return -errno;
	sent = send(fd, line, nr, MSG_NOSIGNAL);
	if (sent < 0)
		return -errno;
	return (size_t)sent == nr ? read_answer(fd, text, ANSWER_BYTES) : -EIO;
}

int control_send(const char *path, const char *command, bool quiet, char **ret_text)
{
	CLEANUP(cleanup_free) char *text = malloc(ANSWER_BYTES);
	char line[CONTROL_COMMAND_BYTES];
	struct sockaddr_un address;
	int nr = snprintf(line, sizeof(line), "%s\n", command);
	int err = address_of(path, &address);

	if (!err && (!text || nr < 0 || nr >= (int)sizeof(line)))
		err = -ENOMEM;
	if (err)
		return err;
	/* We may have stood still for longer than the moment that it waits. */
	for (int tries = 0; tries < ASK_TIMES; tries++) {
		err = ask(&address, line, (size_t)nr, text);
		if (err != -EPIPE && err != -ECONNRESET)
			break;
	}
	if (err)
		return err;
	if (!quiet && strncmp(text, "ok", 2)) {
		const char *why = strncmp(text, "error: ", 7) ? text : text + 7;

		log_err("%.*s", (int)strcspn(why, "\n"), why);
		return CLI_FAILED;
	}
	if (ret_text)
		*ret_text = TAKE(text);
	return CLI_DONE;
}
