/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Connects `gpuprof ctl` to a running capture by a socket. A client sends one line, the command;
 * the answer's first line begins with "ok" or "error". Only the socket's owner and root can
 * connect.
 */
#ifndef GP_CLI_RECORD_CONTROL_H
#define GP_CLI_RECORD_CONTROL_H

#include "base/reason.h"

#include <stdbool.h>
#include <stddef.h>

/* The longest command, with its zero. */
#define CONTROL_COMMAND_BYTES 1024

struct control;

/* Listens at `path`, or (NULL) in the folder for sockets, under this process's PID. Returns NULL
 * and logs it where that fails: the capture goes on without a socket. */
struct control *control__new(const char *path);
void control__free(struct control *c);

/* Takes a command from a client, if one waits, into `command` (terminated, without newline). Never
 * waits longer than a moment. The caller answers with control__answer(). */
bool control__take(struct control *c, char *command, size_t bytes);

/* Answers the command that was taken and closes the connection. */
void control__answer(struct control *c, const char *text);

/* Sends `command` to the socket, which must be root's or ours. *ret_text is the answer, to be
 * freed. 0 or -errno with a reason: -ECONNREFUSED where the one that listened there has died. */
int control_send(const char *path, const char *command, struct reason *why, char **ret_text);

#endif /* GP_CLI_RECORD_CONTROL_H */
