/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A recording numbers its processes by itself, in the order in which it hears of them.
 */
#include "capture/process/process_record.h"

#include <errno.h>
#include <string.h>

static int write_known(const struct traced_process *m, struct recording_writer *w, uint16_t number)
{
	int err = buf__error(&m->schemas);

	for (size_t at = 0; at < m->schemas.nr && !err;) {
		uint64_t bytes;

		memcpy(&bytes, m->schemas.bytes + at, sizeof(bytes));
		at += sizeof(bytes);
		err = recording_writer__event_of(w, number, m->schemas.bytes + at, bytes);
		at += bytes;
	}
	for (size_t i = 0; i < m->devices.nr && !err; i++)
		err = recording_writer__event_of(w, number, &m->devices.items[i],
						 sizeof(m->devices.items[i]));
	if (!err && m->clock.head.kind)
		err = recording_writer__event_of(w, number, &m->clock, sizeof(m->clock));
	return err;
}

/* Its number in the recording; a new one if it has none. 0, -ENOSPC or -ENOMEM. */
static int number_process(const struct traced_process *m, struct segment *to, uint16_t *ret_number)
{
	const uint64_t *known = hash__find(&to->processes, m->serial);
	uint32_t number = known ? (uint32_t)*known : m->serial ? to->processes_nr + 1 : 0;
	int err = known ? 0 : number > UINT16_MAX ? -ENOSPC : 0;

	if (!known && !err)
		err = hash__set(&to->processes, m->serial, number);
	if (err)
		return err;
	to->processes_nr += !known && number;
	*ret_number = (uint16_t)number;
	return 0;
}

int process_record__describe(const struct traced_process *m, struct segment *to,
			     uint16_t *ret_number)
{
	struct recording_process rp = {
		.pid = m->process->pid,
		.rank = m->job.rank,
		.world_size = m->job.world_size,
		.start_boot_ns = m->process->start_boot_ns,
		.comm = m->process->comm,
		.cmdline = m->process->cmdline ? m->process->cmdline : "",
	};
	int err = number_process(m, to, ret_number);

	if (err)
		return err;
	rp.index = *ret_number;
	err = recording_writer__process(to->writer, &rp);
	if (!err && m->job.nccl_version[0])
		err = recording_writer__meta(to->writer, "nccl_version", m->job.nccl_version);
	return err ? err : write_known(m, to->writer, *ret_number);
}
