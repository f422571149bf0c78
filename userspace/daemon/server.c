/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Runs the server's thread. It drives libmicrohttpd rather than leaving the thread to the library,
 * so that the thread has no privileges and everything about a connection happens in one place.
 * Each listening socket (a door) is a libmicrohttpd daemon of its own, so that a client that takes
 * all connections at one locks nobody out at the other. The library bounds how long a connection
 * may be silent; this file bounds how long it may take altogether.
 */
#include "daemon/server.h"

#include "base/cleanup.h"
#include "base/thread.h"
#include "base/vec.h"
#include "common/clock.h"
#include "daemon/listen.h"
#include "daemon/request.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"

#define TURN_MS		  100
#define CONNECTIONS_MAX	  64
#define SILENCE_S	  10
#define REQUEST_NS	  (5 * SECOND_NS)  /* from its first byte, or the last answer's end */
#define ANSWER_NS	  (30 * SECOND_NS) /* and a second more for each so many bytes: */
#define ANSWER_RATE_BYTES (128 << 10)
#define HEADERS_BYTES_MAX (16 << 10)

enum door_kind { DOOR_UNIX = 0, DOOR_TCP = 1, DOORS_NR = 2 };

/* One place where it listens. */
struct door {
	struct server *server;
	struct request_rules rules;
	struct MHD_Daemon *mhd; /* NULL: there is none */
	int epoll;		/* the library's */
};

/* One connection. */
struct peer {
	int fd;
	bool is_trusted; /* by who it is; of DOOR_UNIX */
	uint64_t deadline_ns;
	struct MHD_Connection *waiting; /* suspended until its profile is there */
	struct profile *profile;
	int profile_err, profile_fd; /* its outcome; -1: no descriptor */
	bool has_outcome;
};

struct server {
	struct server_options options;
	struct door doors[DOORS_NR];
	struct unix_socket socket;
	char outsiders[256]; /* the answer they get */
	char *token;
	char address[LISTEN_BYTES];
	pthread_t thread;
	bool started;
	bool stop; /* set by another thread */
	VEC(struct peer *) peers;
	struct server_counts counts; /* of one thread, read by it alone */
};

static bool is_stopping(const struct server *s)
{
	return __atomic_load_n(&s->stop, __ATOMIC_RELAXED);
}

/* ---- answers ---- */

static enum MHD_Result answer(struct server *s, struct MHD_Connection *c, struct peer *peer,
			      unsigned int status, struct MHD_Response *response, uint64_t bytes)
{
	enum MHD_Result queued;

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(response, "Cache-Control", "no-store");
	/* Keeps pages of other sites from reading answers with a token that the browser
	 * remembers. */
	(void)MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	(void)MHD_add_response_header(response, "Content-Security-Policy",
				      "default-src 'none'; frame-ancestors 'none'");
	queued = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	peer->deadline_ns = clock_now_ns() + ANSWER_NS + bytes / ANSWER_RATE_BYTES * SECOND_NS;
	if (status == MHD_HTTP_OK)
		s->counts.answered_nr++;
	else
		s->counts.refused_nr++;
	return queued;
}

static enum MHD_Result answer_text(struct server *s, struct MHD_Connection *c, struct peer *peer,
				   const char *type, struct buf *text)
{
	struct MHD_Response *response;
	size_t bytes = text->nr;

	if (buf__error(text) || !text->bytes) {
		buf__done(text);
		return MHD_NO;
	}
	response = MHD_create_response_from_buffer(bytes, text->bytes, MHD_RESPMEM_MUST_FREE);
	if (!response)
		buf__done(text);
	else
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return answer(s, c, peer, MHD_HTTP_OK, response, bytes);
}

static enum MHD_Result refuse(struct server *s, struct MHD_Connection *c, struct peer *peer,
			      unsigned int status, const char *why, bool of_pprof)
{
	struct buf text = {0};
	struct MHD_Response *response = NULL;

	buf__printf(&text, "%s\n", why);
	if (!buf__error(&text))
		response =
			MHD_create_response_from_buffer(text.nr, text.bytes, MHD_RESPMEM_MUST_COPY);
	buf__done(&text);
	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				      "text/plain; charset=utf-8");
	/* The second one makes browsers ask for a password, which is the token. */
	if (status == MHD_HTTP_UNAUTHORIZED) {
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					      "Bearer realm=\"gpuprof\"");
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					      "Basic realm=\"gpuprof\"");
	}
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	/* Go's tools recognize the text as an error by this. */
	if (of_pprof)
		(void)MHD_add_response_header(response, "X-Go-Pprof", "1");
	return answer(s, c, peer, status, response, 0);
}

/* The descriptor becomes the response's. */
static enum MHD_Result answer_file(struct server *s, struct MHD_Connection *c, struct peer *peer,
				   int fd, uint64_t bytes, const char *name)
{
	struct MHD_Response *response = fd < 0 ? NULL : MHD_create_response_from_fd64(bytes, fd);
	char disposition[STORE_ID_BYTES + 64];

	if (!response) {
		if (fd >= 0)
			(void)close(fd);
		return MHD_NO;
	}
	(void)snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"", name);
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				      "application/octet-stream");
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, disposition);
	return answer(s, c, peer, MHD_HTTP_OK, response, bytes);
}

static enum MHD_Result answer_recording(struct server *s, struct MHD_Connection *c,
					struct peer *peer, const char *id)
{
	struct store_item *item = recording_store__take(s->options.store, id);
	char name[STORE_ID_BYTES + 16];
	enum MHD_Result result;

	if (!item)
		return refuse(s, c, peer, MHD_HTTP_NOT_FOUND,
			      "there is no such recording (any more)", false);
	(void)snprintf(name, sizeof(name), "%s.gpuprof", id);
	result = answer_file(s, c, peer, dup(item->fd), item->bytes, name);
	recording_store__give_back(s->options.store, item);
	return result;
}

/* ---- profiles ---- */

static enum MHD_Result answer_profile(struct server *s, struct MHD_Connection *c, struct peer *peer)
{
	int fd = take_fd(&peer->profile_fd);
	off_t bytes;

	peer->has_outcome = false;
	if (peer->profile_err == -ESRCH)
		return refuse(s, c, peer, MHD_HTTP_NOT_FOUND,
			      "no process of this pid is being profiled", true);
	if (peer->profile_err)
		return refuse(s, c, peer, MHD_HTTP_INTERNAL_SERVER_ERROR,
			      peer->profile_err == -EBUSY
				      ? "gpuprof could not keep up: ask again, for fewer seconds"
				      : "the profile could not be made",
			      true);
	bytes = lseek(fd, 0, SEEK_END);
	return answer_file(s, c, peer, fd, bytes < 0 ? 0 : (uint64_t)bytes, "profile");
}

static enum MHD_Result begin_profile(struct server *s, struct MHD_Connection *c, struct peer *peer,
				     const struct request *r)
{
	int err =
		profiles__ask(s->options.profiles, r->profile, r->pid, r->seconds, &peer->profile);

	if (err)
		return refuse(s, c, peer,
			      err == -EBUSY ? MHD_HTTP_SERVICE_UNAVAILABLE
					    : MHD_HTTP_INTERNAL_SERVER_ERROR,
			      err == -EBUSY ? "too many profiles are being made; ask again later"
					    : "out of memory",
			      true);
	peer->waiting = c;
	peer->deadline_ns = UINT64_MAX;
	MHD_suspend_connection(c);
	return MHD_YES;
}

static bool hung_up(const struct peer *peer)
{
	struct pollfd p = {.fd = peer->fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static void abandon(struct server *s, struct peer *peer)
{
	if (peer->profile)
		profiles__abandon(s->options.profiles, TAKE(peer->profile));
	if (peer->profile_fd >= 0)
		(void)close(take_fd(&peer->profile_fd));
	peer->has_outcome = false;
}

static void look_after_profile(struct server *s, struct peer *peer)
{
	struct MHD_Connection *c = peer->waiting;
	int err = profiles__get(s->options.profiles, peer->profile, &peer->profile_fd);

	if (err == -EAGAIN && !is_stopping(s) && !hung_up(peer))
		return;
	if (err == -EAGAIN)
		abandon(s, peer);
	peer->profile = NULL;
	peer->profile_err = err;
	peer->has_outcome = true;
	peer->waiting = NULL;
	MHD_resume_connection(c);
}

/* ---- requests ---- */

static enum MHD_Result fulfil(struct server *s, struct MHD_Connection *c, struct peer *peer,
			      const struct request *r)
{
	const struct server_options *o = &s->options;
	struct buf text = {0};

	switch (r->what) {
	case REQUEST_PROFILE:
		return peer->has_outcome ? answer_profile(s, c, peer)
					 : begin_profile(s, c, peer, r);
	case REQUEST_RECORDING:
		return answer_recording(s, c, peer, r->id);
	case REQUEST_INDEX:
		o->index(o->arg, &text);
		return answer_text(s, c, peer, "text/html; charset=utf-8", &text);
	case REQUEST_METRICS:
		o->metrics(o->arg, &text);
		return answer_text(s, c, peer, "text/plain; version=0.0.4; charset=utf-8", &text);
	case REQUEST_RECORDINGS:
		recording_store__json(o->store, &text);
		return answer_text(s, c, peer, "application/json", &text);
	case REQUEST_HEALTH:
		if (!o->healthy(o->arg))
			return refuse(s, c, peer, MHD_HTTP_SERVICE_UNAVAILABLE,
				      "gpuprof has stopped working", false);
		buf__str(&text, "ok\n");
		return answer_text(s, c, peer, "text/plain; charset=utf-8", &text);
	default:
		return MHD_NO;
	}
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static const char *argument(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);
}

/* The password of the request, for any user name. To be freed with MHD_free(). */
static char *read_password(struct MHD_Connection *c)
{
	char *password = NULL, *user = MHD_basic_auth_get_username_password(c, &password);

	MHD_free(user);
	return password;
}

static struct request read_request(const struct door *door, const struct peer *peer,
				   struct MHD_Connection *c, const char *url, const char *method)
{
	const char *length = header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
	char *password = door->rules.token ? read_password(c) : NULL;
	struct request_parts parts = {
		.method = method,
		.path = url,
		.host = header(c, MHD_HTTP_HEADER_HOST),
		.authorization = header(c, MHD_HTTP_HEADER_AUTHORIZATION),
		.password = password,
		.seconds = argument(c, "seconds"),
		.pid = argument(c, "pid"),
		.has_body = (length && strcmp(length, "0")) ||
			    header(c, MHD_HTTP_HEADER_TRANSFER_ENCODING),
		.is_trusted = peer->is_trusted,
	};
	struct request r = request_of(&parts, &door->rules);

	MHD_free(password);
	return r;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_bytes, void **request_arg)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct peer *peer = info ? info->socket_context : NULL;
	struct door *door = arg;
	struct request r;

	if (!peer)
		return MHD_NO;
	r = read_request(door, peer, c, url, method);
	if (r.what == REQUEST_REFUSED)
		return refuse(door->server, c, peer, r.status, r.why, false);
	/* The first call is about the headers; it is answered once all has come. */
	if (!*request_arg) {
		*request_arg = peer;
		return MHD_YES;
	}
	*upload_bytes = 0;
	return fulfil(door->server, c, peer, &r);
}

static void on_completed(void *arg, struct MHD_Connection *c, void **request_arg,
			 enum MHD_RequestTerminationCode how)
{
	struct peer *peer = *request_arg;

	if (!peer)
		return;
	peer->waiting = NULL;
	abandon(((struct door *)arg)->server, peer);
	peer->deadline_ns = clock_now_ns() + REQUEST_NS;
}

static void on_connection(void *arg, struct MHD_Connection *c, void **socket_context,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct door *door = arg;
	struct server *s = door->server;
	struct peer *peer = *socket_context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
		peer = info ? calloc(1, sizeof(*peer)) : NULL;
		if (!peer || vec_push(&s->peers, peer)) {
			free(peer);
			return;
		}
		peer->fd = info->connect_fd;
		peer->is_trusted = door == &s->doors[DOOR_UNIX] &&
				   unix_socket_is_trusted(peer->fd, s->options.group);
		peer->profile_fd = -1;
		peer->deadline_ns = clock_now_ns() + REQUEST_NS;
		*socket_context = peer;
	} else if (peer) {
		abandon(s, peer);
		for (size_t i = 0; i < s->peers.nr; i++)
			if (s->peers.items[i] == peer)
				s->peers.items[i--] = s->peers.items[--s->peers.nr];
		free(peer);
		*socket_context = NULL;
	}
	s->counts.connections_nr = s->peers.nr;
}

/* Leaves escapes alone: no path needs them, and %00 would end one early. */
static size_t keep_escapes(void *arg, struct MHD_Connection *c, char *text)
{
	return strlen(text);
}

/* ---- the thread ---- */

static void look_after_peers(struct server *s)
{
	uint64_t now = clock_now_ns();

	for (size_t i = 0; i < s->peers.nr; i++) {
		struct peer *peer = s->peers.items[i];

		if (peer->waiting) {
			look_after_profile(s, peer);
		} else if (peer->deadline_ns < now) {
			s->counts.too_slow_nr++;
			peer->deadline_ns = UINT64_MAX;
			/* The library sees its end and closes it. */
			(void)shutdown(peer->fd, SHUT_RDWR);
		}
	}
}

/* Waits until there is something to do at a door, for TURN_MS at most. */
static void wait_at_doors(const struct server *s)
{
	struct pollfd polls[DOORS_NR];
	MHD_UNSIGNED_LONG_LONG ms;
	int wait_ms = TURN_MS;

	for (size_t i = 0; i < DOORS_NR; i++) {
		const struct door *door = &s->doors[i];

		polls[i] = (struct pollfd){.fd = door->epoll, .events = POLLIN};
		if (door->mhd && MHD_get_timeout(door->mhd, &ms) == MHD_YES &&
		    ms < (unsigned int)wait_ms)
			wait_ms = (int)ms;
	}
	(void)poll(polls, DOORS_NR, wait_ms);
}

static void run_doors(struct server *s)
{
	for (size_t i = 0; i < DOORS_NR; i++)
		if (s->doors[i].mhd)
			(void)MHD_run(s->doors[i].mhd);
}

static void *serve(void *arg)
{
	struct server *s = arg;

	while (!is_stopping(s)) {
		wait_at_doors(s);
		run_doors(s);
		look_after_peers(s);
	}
	look_after_peers(s);
	run_doors(s);
	return NULL;
}

/* ---- the doors ---- */

/* Has the library serve what comes to the socket, which becomes its own. */
static int open_door(struct server *s, enum door_kind kind, int fd, unsigned int flags,
		     struct reason *why)
{
	struct door *door = &s->doors[kind];
	const union MHD_DaemonInfo *info;

	door->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | flags, 0, NULL, NULL, on_request, door,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)SILENCE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HEADERS_BYTES_MAX, MHD_OPTION_NOTIFY_COMPLETED, on_completed, door,
		MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, s, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, door, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	info = door->mhd ? MHD_get_daemon_info(door->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		if (!door->mhd)
			(void)close(fd);
		return reason_set(why, -EIO, "cannot serve HTTP");
	}
	door->epoll = info->epoll_fd;
	return 0;
}

static int open_unix(struct server *s, struct reason *why)
{
	const struct unix_group *group = s->options.group;
	int err = unix_socket__listen(&s->socket, s->options.socket, group, why);

	if (err)
		return err;
	if (group)
		(void)snprintf(s->outsiders, sizeof(s->outsiders),
			       "gpuprof answers root and the members of the group '%s': have root "
			       "run 'usermod -aG %s USER' and log in again",
			       group->name, group->name);
	else
		(void)snprintf(s->outsiders, sizeof(s->outsiders),
			       "gpuprof answers root alone: ask with sudo, or have root start it "
			       "with --group NAME");
	s->doors[DOOR_UNIX].rules.outsiders = s->outsiders;
	return open_door(s, DOOR_UNIX, take_fd(&s->socket.fd), 0, why);
}

static int open_tcp(struct server *s, struct reason *why)
{
	const struct server_options *o = &s->options;
	struct request_rules *rules = &s->doors[DOOR_TCP].rules;
	struct sockaddr_storage address;
	socklen_t bytes;
	int fd, err;

	if (listen_parse(o->listen, &address, &bytes))
		return reason_set(why, -EINVAL,
				  "cannot listen at '%s': give ADDRESS:PORT, the address as a "
				  "number",
				  o->listen);
	err = listen_read_token(o->token_file, why, &s->token, &rules->token_bytes);
	if (err)
		return err;
	rules->token = s->token;
	rules->local_only = listen_is_local(&address);
	fd = listen_open(&address, bytes, s->address);
	if (fd < 0)
		return reason_set(why, fd, "cannot listen at '%s': %s", o->listen, strerror(-fd));
	return open_door(s, DOOR_TCP, fd, address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0, why);
}

int server__new(const struct server_options *options, struct reason *why,
		struct server **ret_server)
{
	struct server *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return reason_set(why, -ENOMEM, "out of memory");
	s->options = *options;
	s->socket = (struct unix_socket)UNIX_SOCKET_NONE;
	for (size_t i = 0; i < DOORS_NR; i++)
		s->doors[i] = (struct door){.server = s, .epoll = -1};
	if (options->socket)
		err = open_unix(s, why);
	if (!err && options->listen)
		err = open_tcp(s, why);
	if (err) {
		server__free(s);
		return err;
	}
	*ret_server = s;
	return 0;
}

int server__start(struct server *s, struct reason *why)
{
	int err = thread_start_with(&s->thread, "gp-http", 0, serve, s);

	s->started = !err;
	return err ? reason_set(why, err, "cannot start a thread: %s", strerror(-err)) : 0;
}

void server__free(struct server *s)
{
	if (!s)
		return;
	if (s->started) {
		__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
		(void)pthread_join(s->thread, NULL);
	}
	unix_socket__done(&s->socket);
	for (size_t i = 0; i < DOORS_NR; i++)
		if (s->doors[i].mhd)
			MHD_stop_daemon(s->doors[i].mhd);
	for (size_t i = 0; i < s->peers.nr; i++)
		free(s->peers.items[i]);
	vec_done(&s->peers);
	if (s->token)
		explicit_bzero(s->token, strlen(s->token));
	free(s->token);
	free(s);
}

const char *server__address(const struct server *s)
{
	return s->options.listen ? s->address : NULL;
}

void server__counts(const struct server *s, struct server_counts *ret_counts)
{
	*ret_counts = s->counts;
}
