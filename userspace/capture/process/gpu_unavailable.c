/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One reason for each process, by its pid.
 */
#include "capture/process/gpu_unavailable.h"

#include "base/banned.h"
#include "capture/process/traced_process.h"
#include "inspect/process/process.h"

#include <stdio.h>

#define LACKS_MAX 64

static struct gpu_lack *find(const struct gpu_unavailable *l, pid_t pid)
{
	for (size_t i = 0; i < l->items.nr; i++)
		if (l->items.items[i].pid == pid)
			return &l->items.items[i];
	return NULL;
}

void gpu_unavailable__note(struct gpu_unavailable *l, pid_t pid, const char *why)
{
	struct gpu_lack *known = find(l, pid), lack = {.pid = pid};

	(void)snprintf(lack.why, sizeof(lack.why), "%s", why);
	if (known)
		*known = lack;
	else if (l->items.nr < LACKS_MAX)
		(void)vec_push(&l->items, lack);
}

static void take_out(struct gpu_unavailable *l, struct gpu_lack *lack)
{
	*lack = l->items.items[--l->items.nr];
}

void gpu_unavailable__forget(struct gpu_unavailable *l, pid_t pid)
{
	struct gpu_lack *known = find(l, pid);

	if (known)
		take_out(l, known);
}

static bool is_there(const struct process_table *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->nr; i++)
		if (!processes->items[i]->end && processes->items[i]->process->pid == pid)
			return true;
	return false;
}

void gpu_unavailable__poll(struct gpu_unavailable *l, const struct process_table *processes)
{
	for (size_t i = l->items.nr; i-- > 0;)
		if (!is_there(processes, l->items.items[i].pid))
			take_out(l, &l->items.items[i]);
}

int gpu_unavailable__write(const struct gpu_unavailable *l, struct recording_writer *w)
{
	int err = 0;

	for (size_t i = 0; i < l->items.nr && !err; i++) {
		char key[64];

		(void)snprintf(key, sizeof(key), RECORDING_GPU_LACK "%d",
			       (int)l->items.items[i].pid);
		err = recording_writer__meta(w, key, l->items.items[i].why);
	}
	return err;
}

void gpu_unavailable__done(struct gpu_unavailable *l)
{
	vec_done(&l->items);
}
