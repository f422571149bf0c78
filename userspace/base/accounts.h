/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Looks up names of users and groups in /etc/passwd and /etc/group, then through getent(1). It does
 * not call getpwuid() and getgrnam(): they load the name services' libraries into the process, and
 * libraries built for another C library crash a static executable.
 */
#ifndef GP_BASE_ACCOUNTS_H
#define GP_BASE_ACCOUNTS_H

#include <stddef.h>
#include <sys/types.h>

/* Where to look up accounts; a NULL member is skipped. */
struct account_sources {
	const char *users, *groups; /* files */
	const char *getent;	    /* a program */
};

/* The sources of this machine. */
extern const struct account_sources account_sources_here;

/* Writes the user's name, cut where it is longer than `bytes` - 1. 0 or -ENOENT: no user
 * has this number. */
int account_user_name(const struct account_sources *from, uid_t uid, char *ret_name, size_t bytes);

/* Finds the number of the group `name`. 0 or -ENOENT: no group has this name. */
int account_group_id(const struct account_sources *from, const char *name, gid_t *ret_gid);

#endif /* GP_BASE_ACCOUNTS_H */
