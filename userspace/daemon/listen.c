/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Opens the TCP socket and reads the token. Addresses are numbers only: what a host name resolves
 * to can change.
 */
#include "daemon/listen.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN_BYTES_MIN 16
#define TOKEN_BYTES_MAX 4096
#define BACKLOG		64

static bool parse_port(const char *text, in_port_t *ret_port)
{
	unsigned long port;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	port = strtoul(text, &end, 10);
	if (*end || port > 65535)
		return false;
	*ret_port = htons((in_port_t)port);
	return true;
}

int listen_parse(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_bytes)
{
	struct sockaddr_storage storage = {0};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;
	const char *colon = strrchr(text, ':');
	bool bracket = text[0] == '[' && colon && colon > text && colon[-1] == ']';
	char host[INET6_ADDRSTRLEN + 1];
	in_port_t port;

	if (!parse_port(colon ? colon + 1 : text, &port))
		return -EINVAL;
	if (colon && (size_t)(colon - text) >= sizeof(host))
		return -EINVAL;
	(void)snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - text) - 2 * bracket : 9,
		       colon ? text + bracket : "127.0.0.1");
	if (bracket ? inet_pton(AF_INET6, host, &v6->sin6_addr) == 1
		    : inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		storage.ss_family = bracket ? AF_INET6 : AF_INET;
		*(bracket ? &v6->sin6_port : &v4->sin_port) = port;
		*ret_bytes = bracket ? sizeof(*v6) : sizeof(*v4);
		*ret_address = storage;
		return 0;
	}
	return -EINVAL;
}

bool listen_is_local(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

	if (address->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void report_address(int fd, char ret_text[LISTEN_BYTES])
{
	struct sockaddr_storage at = {0};
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&at;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&at;
	socklen_t bytes = sizeof(at);
	char host[INET6_ADDRSTRLEN] = "?";

	(void)getsockname(fd, (struct sockaddr *)&at, &bytes);
	if (at.ss_family == AF_INET6)
		(void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
	else
		(void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
	(void)snprintf(
		ret_text, LISTEN_BYTES, at.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
		(unsigned int)ntohs(at.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port));
}

int listen_open(const struct sockaddr_storage *address, socklen_t bytes,
		char ret_text[LISTEN_BYTES])
{
	CLEANUP(cleanup_fd)
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (const struct sockaddr *)address, bytes) || listen(fd, BACKLOG))
		return -errno;
	report_address(fd, ret_text);
	return take_fd(&fd);
}

/* Opens the file and checks the handle: by then the name may lead elsewhere. */
static int open_token(const char *path, struct reason *why)
{
	CLEANUP(cleanup_fd)
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return reason_set(why, -ELOOP,
				  "will not take the token from '%s', a symbolic link: name the "
				  "file that it leads to",
				  path);
	if (fd < 0 || fstat(fd, &st))
		return reason_set(why, -errno, "cannot read the token in '%s': %s", path,
				  strerror(errno));
	if (!S_ISREG(st.st_mode))
		return reason_set(
			why, -EINVAL,
			"will not take the token from '%s', which is no regular file: put "
			"it into one",
			path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return reason_set(
			why, -EPERM,
			"will not take the token from '%s', which is user %u's: 'chown root' "
			"it",
			path, (unsigned int)st.st_uid);
	if (st.st_mode & 077)
		return reason_set(
			why, -EPERM,
			"will not take the token from '%s', which others may read or "
			"write (mode %03o): 'chmod 600' it, and make a new token if others "
			"could read it",
			path, (unsigned int)(st.st_mode & 0777));
	return take_fd(&fd);
}

int listen_read_token(const char *path, struct reason *why, char **ret_token, size_t *ret_bytes)
{
	CLEANUP(cleanup_fd) int fd = open_token(path, why);
	CLEANUP(cleanup_free) char *text = NULL;
	char opened[32];
	size_t nr;
	int err;

	if (fd < 0)
		return fd;
	(void)snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
	err = file_read(opened, TOKEN_BYTES_MAX, &text, &nr);
	if (err)
		return reason_set(why, err, "cannot read the token in '%s': %s", path,
				  strerror(-err));
	while (nr && strchr(" \t\r\n", text[nr - 1]))
		nr--;
	text[nr] = '\0';
	if (nr < TOKEN_BYTES_MIN)
		return reason_set(why, -EINVAL,
				  "the token in '%s' is shorter than %d characters: 'openssl rand "
				  "-hex 32' makes one",
				  path, TOKEN_BYTES_MIN);
	if (strlen(text) < nr)
		return reason_set(why, -EINVAL,
				  "the token in '%s' has a zero byte in it, which nobody can send: "
				  "'openssl rand -hex 32' makes one",
				  path);
	*ret_token = TAKE(text);
	*ret_bytes = nr;
	return 0;
}
