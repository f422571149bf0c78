/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Decides what a thread waited for: from where it was in its code, from its system call, and from
 * its state.
 */
#include "timeline/model/timeline.h"

#include <string.h>

#include "base/banned.h"
#include "base/file.h"

/* System calls of x86-64 that wait, and what for. */
static const struct {
	uint16_t number;
	const char *what;
} waits[] = {
	{0, "waiting: read"},	  {1, "waiting: write"},      {7, "waiting: poll"},
	{16, "waiting: ioctl"},	  {17, "waiting: read"},      {18, "waiting: write"},
	{19, "waiting: read"},	  {20, "waiting: write"},     {23, "waiting: poll"},
	{24, "waiting: yield"},	  {34, "waiting: signal"},    {35, "waiting: sleep"},
	{42, "waiting: socket"},  {43, "waiting: socket"},    {44, "waiting: socket"},
	{45, "waiting: socket"},  {46, "waiting: socket"},    {47, "waiting: socket"},
	{61, "waiting: child"},	  {65, "waiting: semaphore"}, {74, "waiting: disk"},
	{75, "waiting: disk"},	  {128, "waiting: signal"},   {130, "waiting: signal"},
	{162, "waiting: disk"},	  {202, "waiting: futex"},    {208, "waiting: aio"},
	{230, "waiting: sleep"},  {232, "waiting: poll"},     {247, "waiting: child"},
	{270, "waiting: poll"},	  {271, "waiting: poll"},     {281, "waiting: poll"},
	{288, "waiting: socket"}, {295, "waiting: read"},     {296, "waiting: write"},
	{299, "waiting: socket"}, {307, "waiting: socket"},   {426, "waiting: io_uring"},
	{441, "waiting: poll"},	  {449, "waiting: futex"},    {455, "waiting: futex"},
};

static const char *of_syscall(const struct timeline *t, uint32_t number)
{
	const char *machine = recording__meta(t->recording, "machine");

	if (machine && strcmp(machine, "x86_64") != 0)
		return "waiting: system call";
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		if (waits[i].number == number)
			return waits[i].what;
	return "waiting: system call";
}

/* Libraries of CUDA, which wait for a GPU in different ways. */
static bool in_cuda(const struct timeline *t, const struct tl_sampled_stack *s)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		const char *module = recording__frame(t->recording, s->frames[i]).module;
		const char *name = file_base_name(module);

		if (!strncmp(name, "libcuda.so", 10) || !strncmp(name, "libcudart", 9))
			return true;
	}
	return false;
}

const char *timeline__activity(const struct timeline *t, const struct tl_sample *s)
{
	if (s->flags & GP_SAMPLE_RUNNING)
		return s->flags & GP_SAMPLE_KERNEL ? "running in the kernel" : "running";
	if (s->flags & GP_SAMPLE_RUNNABLE)
		return "waiting for a CPU";
	if (s->flags & GP_SAMPLE_STOPPED)
		return "stopped";
	if (in_cuda(t, &t->sampled_stacks.items[s->stack]))
		return "waiting: GPU";
	if (s->syscall == GP_SAMPLE_NO_SYSCALL)
		return s->flags & GP_SAMPLE_UNINTERRUPTIBLE ? "waiting: page fault" : "waiting";
	return of_syscall(t, s->syscall);
}
