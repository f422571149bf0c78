/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Each feature has a step that compares what is wanted with what is in force and moves towards it.
 * A feature that was refused for good is tried again only after gpuprof has stopped wanting it.
 */
#include "collector/features.h"

#include "collector/cupti/cupti.h"
#include "collector/python/stack_cache.h"
#include "collector/runtime/compat.h"

#include <string.h>

/* Turns between looks for PyTorch. */
#define RETRY_TURNS 5
/* Turns between flushes of CUPTI, and between tries to arm it. */
#define SECOND_TURNS 10
/* Each try holds all threads of the process, so the pause between tries doubles up to this. */
#define CUPTI_TURNS_MAX (32 * SECOND_TURNS)

/* What the callbacks can report: operators, or annotations alone. */
#define OPS_FEATURES (uint32_t)(GP_FEATURE_OPS | GP_FEATURE_STEPS)
/* What is read from Python's frames. */
#define STACK_FEATURES (uint32_t)(GP_FEATURE_STACKS | GP_FEATURE_MODULES | GP_FEATURE_CALLS)

void features__init(struct features *f, struct ring_writer *ring)
{
	*f = (struct features){.page = ring->page, .ring = ring, .cupti_pause = SECOND_TURNS};
}

static void add_text(char *message, size_t bytes, const char *text)
{
	size_t at = strlen(message);
	size_t nr = strlen(text);

	if (at && at + 2 < bytes) {
		memcpy(message + at, "; ", 2);
		at += 2;
	}
	if (nr > bytes - 1 - at)
		nr = bytes - 1 - at;
	memcpy(message + at, text, nr);
}

void features__report(struct features *f, uint32_t active, uint32_t failed)
{
	struct gp_ring_page *page = f->page;
	char message[sizeof(page->message)] = "";

	if ((failed & OPS_FEATURES) && f->ops_why)
		add_text(message, sizeof(message), f->ops_why);
	if ((failed & GP_FEATURE_SHAPES) && f->extras.shapes_why)
		add_text(message, sizeof(message), f->extras.shapes_why);
	if ((failed & STACK_FEATURES) && f->extras.stacks_why)
		add_text(message, sizeof(message), f->extras.stacks_why);
	if ((failed & GP_FEATURE_TENSORS) && f->extras.tensors_why)
		add_text(message, sizeof(message), f->extras.tensors_why);
	if ((failed & GP_FEATURE_MEMORY) && f->memory_why)
		add_text(message, sizeof(message), f->memory_why);
	if ((failed & GP_FEATURE_CUPTI) && f->cupti_why)
		add_text(message, sizeof(message), f->cupti_why);
	/* The message first: whoever sees the bit finds its reason. */
	memcpy(page->message, message, sizeof(message));
	page->stack_tops = active & GP_FEATURE_STACKS ? stack_cache__address() : 0;
	__atomic_store_n(&page->failed, failed, __ATOMIC_RELEASE);
	__atomic_store_n(&page->active, active, __ATOMIC_RELEASE);
	f->active = active;
	f->failed = failed;
}

/* While ops are in force: which of the wanted features that build on them are, too. */
static uint32_t extras_in_force(struct features *f, uint32_t wanted)
{
	struct ops_extras *e = &f->extras;
	uint32_t in_force = 0;

	if (e->python && !e->stacks_why)
		e->stacks_why = ops__stacks_refused();
	if (e->shapes && !e->shapes_why)
		in_force |= GP_FEATURE_SHAPES;
	if (e->tensors && !e->tensors_why)
		in_force |= GP_FEATURE_TENSORS;
	if (e->python && !e->stacks_why)
		in_force |= STACK_FEATURES;
	in_force |= GP_FEATURE_CPU_TIME | GP_FEATURE_OPS_ALONE;
	return wanted & in_force;
}

/* Arms or disarms the op callbacks as wanted. Returns which of OPS_FEATURES are in force. */
static uint32_t follow_ops(struct features *f, uint32_t wanted, uint32_t active)
{
	enum torch_result result;

	if (!wanted) {
		f->refused &= ~OPS_FEATURES;
		f->ops_why = NULL;
		f->extras = (struct ops_extras){0};
		return active && !ops__disarm() ? active : 0;
	}
	if (!active) {
		if ((f->refused & OPS_FEATURES) || (f->ops_why && f->turns % RETRY_TURNS))
			return 0;
		f->python = f->page->python;
		f->extras = (struct ops_extras){
			.shapes = f->wanted & GP_FEATURE_SHAPES,
			.tensors = f->wanted & GP_FEATURE_TENSORS,
			.stacks = f->wanted & GP_FEATURE_STACKS,
			.modules = f->wanted & GP_FEATURE_MODULES,
			.calls = f->wanted & GP_FEATURE_CALLS,
		};
		if (f->extras.stacks || f->extras.modules)
			f->extras.python = &f->python;
		result = ops__arm(f->ring, &f->extras, &f->ops_why);
		if (result == TORCH_REFUSED)
			f->refused |= OPS_FEATURES;
		if (result != TORCH_BOUND)
			return 0;
	}
	ops__cover(wanted & GP_FEATURE_OPS,
		   (wanted & GP_FEATURE_STEPS) || !(f->wanted & GP_FEATURE_OPS_ALONE));
	ops__emit_cpu_time(f->wanted & GP_FEATURE_CPU_TIME, !(wanted & GP_FEATURE_OPS));
	return wanted;
}

/* Switches events of CPU memory on or off as wanted. `ops`: operators are in force. Returns
 * GP_FEATURE_MEMORY if it is in force, else 0. */
static uint32_t follow_memory(struct features *f, uint32_t wanted, bool ops)
{
	const char *why;

	wanted &= GP_FEATURE_MEMORY;
	if (!wanted) {
		f->refused &= ~(uint32_t)GP_FEATURE_MEMORY;
		f->memory_why = NULL;
	}
	if (f->refused & GP_FEATURE_MEMORY)
		return 0;
	why = ops__emit_memory(wanted && ops);
	if (why) {
		f->memory_why = why;
		f->refused |= GP_FEATURE_MEMORY;
	}
	return ops && !why ? wanted : 0;
}

/* Arms, polls, pauses or disarms CUPTI as wanted. Returns whether its records are on. */
static bool follow_cupti(struct features *f, uint32_t wanted, bool active)
{
	enum cupti_outcome outcome;

	if (!(wanted & GP_FEATURE_CUPTI)) {
		f->refused &= ~(uint32_t)GP_FEATURE_CUPTI;
		if (f->turns >= f->cupti_not_before)
			f->cupti_why = NULL;
		if (!(wanted & GP_FEATURE_CUPTI_HELD)) {
			cupti__disarm();
			return false;
		}
		cupti__pause_records();
		cupti__poll(f->turns % SECOND_TURNS == 0);
		return false;
	}
	if (active)
		cupti__poll(f->turns % SECOND_TURNS == 0);
	if (active || (f->refused & GP_FEATURE_CUPTI))
		return active;
	if (f->cupti_why && (f->turns < f->cupti_not_before || f->turns % SECOND_TURNS))
		return false;
	outcome = cupti__arm(f->ring, false, f->page->any_cupti, &f->cupti_why);
	if (outcome == CUPTI_HELD_UP) {
		f->cupti_not_before = f->turns + f->cupti_pause;
		if (f->cupti_pause < CUPTI_TURNS_MAX)
			f->cupti_pause *= 2;
	}
	if (outcome == CUPTI_REFUSED)
		f->refused |= GP_FEATURE_CUPTI;
	return outcome == CUPTI_ARMED;
}

void features__poll(struct features *f)
{
	const uint32_t cupti = GP_FEATURE_CUPTI;
	uint32_t wanted = __atomic_load_n(&f->page->wanted, __ATOMIC_ACQUIRE);
	const char *cupti_why = f->cupti_why;
	uint32_t now = f->active & cupti;
	uint32_t failed;

	f->wanted = wanted;
	now |= follow_ops(f, wanted & OPS_FEATURES, f->active & OPS_FEATURES);
	if (now & OPS_FEATURES)
		now |= extras_in_force(f, wanted);
	now |= follow_memory(f, wanted, now & GP_FEATURE_OPS) | (wanted & GP_FEATURE_CUPTI_HELD);
	/* Reported before CUPTI is asked, which may take seconds to answer. */
	failed = (wanted & ~now & ~cupti) | (f->failed & wanted & cupti);
	if (now != f->active || failed != f->failed)
		features__report(f, now, failed);
	now &= ~cupti;
	if (follow_cupti(f, wanted, f->active & cupti))
		now |= cupti;
	if (now != f->active || (wanted & ~now) != f->failed || cupti_why != f->cupti_why)
		features__report(f, now, wanted & ~now);
	f->turns++;
}

bool features__disarm(struct features *f)
{
	bool left = ops__disarm();

	cupti__disarm();
	if (!left)
		f->ops_why = "operator callbacks: a thread is stopped inside one";
	return left;
}
