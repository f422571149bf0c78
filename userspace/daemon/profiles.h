/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Builds profiles of the next N seconds, of all processes or one, for clients that wait. The
 * recording in progress is cut where a profile begins and where it ends; each recording in between
 * is added as it is read, and nothing is kept. Three threads meet here: the server's, the
 * capturing one, and the one that reads recordings.
 */
#ifndef GP_DAEMON_PROFILES_H
#define GP_DAEMON_PROFILES_H

#include "timeline/model/timeline.h"

#include <stdbool.h>
#include <stdint.h>

#define PROFILES_MAX	     8
#define PROFILES_SECONDS_MAX 600

enum profile_kind { PROFILE_CPU = 0, PROFILE_GPU = 1, PROFILE_ALLOCS = 2 };

struct profiles;
struct profile;

/* `sampled`: recordings are of samples. NULL: out of memory. */
struct profiles *profiles__new(bool sampled);
void profiles__free(struct profiles *ps);

/* ---- whoever wants one ---- */

/* Starts a profile; pid 0: of all processes. 0; -EBUSY: too many are in progress; or -ENOMEM. */
int profiles__ask(struct profiles *ps, enum profile_kind kind, int32_t pid, uint32_t seconds,
		  struct profile **ret_profile);

/* Fetches the outcome. 0: *ret_fd, the caller's, reads the profile as gzip; -EAGAIN: it is not
 * finished; -ESRCH: no such process is captured; or another -errno. Except after -EAGAIN the
 * profile is gone. */
int profiles__get(struct profiles *ps, struct profile *p, int *ret_fd);

/* Abandons a profile that nobody waits for. */
void profiles__abandon(struct profiles *ps, struct profile *p);

/* ---- the thread that captures ---- */

/* Whether the recording in progress must be cut now. `has` says whether a process is captured. */
bool profiles__poll(struct profiles *ps, uint64_t now_ns, bool (*has)(void *arg, int32_t pid),
		    void *arg);

/* Notes that all events from now on are in recordings from number `next` on. */
void profiles__cut(struct profiles *ps, uint64_t next, uint64_t now_ns);

/* ---- the thread that reads recordings ---- */

/* Adds the recording of that number to the profiles that want it. NULL: it could not be read, and
 * those profiles fail with `err`. */
void profiles__add(struct profiles *ps, uint64_t nr, const struct timeline *t, int err);

/* Notes that all recordings below `next` were added, and finishes the profiles that are
 * complete. */
void profiles__finish(struct profiles *ps, uint64_t next);

/* How many there are now. */
uint64_t profiles__nr(struct profiles *ps);

#endif /* GP_DAEMON_PROFILES_H */
