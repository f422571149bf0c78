/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Implements both ends of the control socket. The listening end has a capture to run: it gives a
 * client a moment to send its command and closes the connection of one that does not.
 */
#include "cli/record/control.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/unix_socket.h"
#include "cli/core/cli.h"
#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS_NS	     1000000ULL
#define MOMENT_NS    (100 * MS_NS)
#define ASK_TIMES    20
#define ANSWER_NS    (30 * SECOND_NS)
#define ANSWER_BYTES 65536

struct control {
	struct unix_socket socket;
	int peer; /* who waits for an answer, -1: nobody */
};

/* The default path of this process's socket. NULL with a reason. */
static char *default_path(struct reason *why)
{
	CLEANUP(cleanup_free) char *folder = unix_socket_folder();
	char *path;

	if (!folder) {
		(void)reason_set(why, -ENOENT, "XDG_RUNTIME_DIR names no folder");
		return NULL;
	}
	if (unix_socket_make_folder(folder, why))
		return NULL;
	return asprintf(&path, "%s/%d.sock", folder, (int)getpid()) < 0 ? NULL : path;
}

struct control *control__new(const char *path)
{
	struct reason why = {"out of memory"};
	CLEANUP(cleanup_free) char *own = path ? strdup(path) : default_path(&why);
	struct control *c = own ? calloc(1, sizeof(*c)) : NULL;

	if (!c || unix_socket__listen(&c->socket, own, NULL, &why)) {
		log_at(path ? LOG_WARN : LOG_INFO, "'gpuprof ctl' cannot reach this capture: %s",
		       why.text);
		free(c);
		return NULL;
	}
	c->peer = -1;
	return c;
}

void control__free(struct control *c)
{
	if (!c)
		return;
	if (c->peer >= 0)
		(void)close(c->peer);
	unix_socket__done(&c->socket);
	free(c);
}

/* Waits until there is something to read. False: it is too late. */
static bool wait_readable(int fd, uint64_t deadline_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t now = clock_now_ns();

	return now < deadline_ns && poll(&p, 1, (int)((deadline_ns - now) / MS_NS) + 1) == 1;
}

/* Reads to the end, or to one of the bytes in `stop`. The time limit is for all of it, so a client
 * cannot hold us up by sending a little at a time. Returns the bytes, -ETIMEDOUT or another
 * -errno. */
static ssize_t read_text(int fd, uint64_t time_ns, const char *stop, char *text, size_t bytes)
{
	uint64_t deadline_ns = clock_now_ns() + time_ns;
	size_t nr = 0;

	while (nr + 1 < bytes) {
		ssize_t got;

		if (!wait_readable(fd, deadline_ns))
			return -ETIMEDOUT;
		got = recv(fd, text + nr, bytes - 1 - nr, MSG_DONTWAIT);
		if (got < 0)
			return -errno;
		text[nr + (size_t)got] = '\0';
		nr += (size_t)got;
		if (!got || strpbrk(text, stop))
			break;
	}
	return (ssize_t)nr;
}

/* Reads one line. The capture waits meanwhile. */
static bool read_line(int fd, char *line, size_t bytes)
{
	char *end = read_text(fd, MOMENT_NS, "\n", line, bytes) > 0 ? strchr(line, '\n') : NULL;

	if (end)
		*end = '\0';
	return end;
}

bool control__take(struct control *c, char *command, size_t bytes)
{
	if (!c)
		return false;
	c->peer = accept4(c->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (c->peer < 0)
		return false;
	if (unix_socket_is_trusted(c->peer, NULL) && read_line(c->peer, command, bytes))
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
	ssize_t nr = read_text(fd, ANSWER_NS, "", text, bytes);

	if (nr < 0)
		return (int)nr;
	return nr ? 0 : -ECONNABORTED;
}

/* Asks once. -EPIPE or -ECONNRESET: the other end closed without reading. */
static int ask(const char *path, const char *line, size_t nr, char *text, struct reason *why)
{
	CLEANUP(cleanup_fd) int fd = unix_socket_connect(path, why);
	ssize_t sent;
	int err;

	if (fd < 0)
		return fd;
	sent = send(fd, line, nr, MSG_NOSIGNAL);
	err = sent < 0 ? -errno : (size_t)sent == nr ? read_answer(fd, text, ANSWER_BYTES) : -EIO;
	return err ? reason_set(why, err, "no answer at '%s': %s", path, strerror(-err)) : 0;
}

int control_send(const char *path, const char *command, struct reason *why, char **ret_text)
{
	CLEANUP(cleanup_free) char *text = malloc(ANSWER_BYTES);
	char line[CONTROL_COMMAND_BYTES];
	int err, nr = snprintf(line, sizeof(line), "%s\n", command);

	if (!text || nr < 0 || nr >= (int)sizeof(line))
		return reason_set(why, -ENOMEM, "out of memory");
	/* We may have been stopped for longer than the other end waits. */
	for (int tries = 0; tries < ASK_TIMES; tries++) {
		err = ask(path, line, (size_t)nr, text, why);
		if (err != -EPIPE && err != -ECONNRESET)
			break;
	}
	if (!err)
		*ret_text = TAKE(text);
	return err;
}
