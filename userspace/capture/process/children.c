/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the processes of a capture start. The kernel tells of each fork; one that came before the
 * kernel knew of the parent is found in /proc. A child runs a little before it is probed: what it
 * did until then is not known, and such children are counted.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "capture/private.h"
#include "inspect/process/scan.h"

#include <errno.h>
#include <string.h>

#define BORN_MAX 65536

void capture_note_child(struct capture *c, pid_t pid)
{
	if (c->born.nr >= BORN_MAX || vec_push(&c->born, pid))
		c->child_missed_nr++;
}

static void join_child(struct capture *c, pid_t pid)
{
	struct reason why = {0};
	int err = capture_join(c, pid, true, &why);

	if (err == -EEXIST)
		return;
	if (err) {
		c->child_missed_nr++;
		log_at(err == -ESRCH ? LOG_INFO : LOG_WARN, "child %d is not recorded: %s",
		       (int)pid, why.text);
		return;
	}
	c->child_late_nr += c->started;
	log_info("child %d is recorded", (int)pid);
	capture_join_children(c, pid);
}

void capture_join_children(struct capture *c, pid_t pid)
{
	CLEANUP(cleanup_free) pid_t *pids = NULL;
	size_t nr = 0;
	int err;

	if (!c->options.children)
		return;
	err = target_scan_children(pid, &pids, &nr);
	/* One that has ended has none. */
	if (err && err != -ENOENT && err != -ESRCH) {
		c->child_missed_nr++;
		log_warn("cannot look for children of %d: %s", (int)pid, strerror(-err));
	}
	for (size_t i = 0; i < nr; i++)
		join_child(c, pids[i]);
}

void capture_poll_children(struct capture *c)
{
	while (c->born.nr && !c->failed)
		join_child(c, c->born.items[--c->born.nr]);
}
