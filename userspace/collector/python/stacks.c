/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Taking stacks. The first walks of a layout, and of each thread, are done twice: with checked
 * reads, and if those succeed with plain ones. Both must give the same. One failure switches stacks
 * off for good: they are not worth a crash of the process.
 */
#include "collector/python/stacks.h"

#include "collector/runtime/compat.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS (2 * GP_RING_STACKS) /* a power of two */
/* The other half is for threads that take the last free id at the same time. */
#define STACKS_MAX (GP_RING_STACKS / 2)
/* Walks that are done both ways: for a layout, and for each thread. */
#define CHECKS_ALL    64
#define CHECKS_THREAD 2
/* Thread states that may fail validation before the first one that passes. */
#define STRANGERS_MAX 64

_Static_assert(sizeof(struct gp_ev_stack) + GP_STACK_FRAMES * sizeof(struct gp_stack_frame) <=
		       GP_RING_EVENT_BYTES,
	       "the longest stack fits into an event");

struct stacks {
	struct python_api python;
	struct python_codes codes;
	bool ids;   /* stacks get ids */
	bool calls; /* calls are compared */
	const char *refused;
	uint32_t checks_nr;	  /* walks that were done both ways */
	uint32_t calls_checks_nr; /* the same for calls */
	uint32_t strangers_nr;	  /* thread states that failed validation */
	uint32_t last_id;
	uint32_t slots[SLOTS];		 /* ids, by hash; 0: free */
	uint64_t hashes[GP_RING_STACKS]; /* by id; written before the id is in a slot */
};

static const char astray[] = "stacks: Python's frames are not where they should be";

const char *stacks__resume(struct stacks *k, const struct gp_python *layout, bool ids)
{
	struct python_api api;
	const char *why = python_api__bind(&api, layout);

	if (why)
		return why;
	k->python = api;
	memset(&k->codes, 0, sizeof(k->codes));
	k->codes.dict_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyDict_Type");
	k->codes.cell_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCell_Type");
	k->ids = ids;
	k->calls = false;
	k->refused = NULL;
	k->checks_nr = 0;
	k->calls_checks_nr = 0;
	k->strangers_nr = 0;
	return NULL;
}

struct stacks *stacks__new(const struct gp_python *layout, bool ids, const char **why_text)
{
	void *p = mmap(NULL, sizeof(struct stacks), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*why_text = "stacks: out of memory";
	if (p == MAP_FAILED)
		return NULL;
	*why_text = stacks__resume(p, layout, ids);
	if (*why_text) {
		stacks__free(p);
		return NULL;
	}
	return p;
}

void stacks__want_calls(struct stacks *k)
{
	k->calls = true;
}

void stacks__release(struct stacks *k)
{
	if (k)
		python_api__release(&k->python);
}

void stacks__free(struct stacks *k)
{
	if (k)
		(void)munmap(k, sizeof(*k));
}

const char *stacks__refused(const struct stacks *k)
{
	return __atomic_load_n(&k->refused, __ATOMIC_ACQUIRE);
}

/* ---- ids ---- */

/* Writes the stack to the ring with a new id; 0: there is no room. Reserves in the ring first, so
 * that a stack that cannot be announced does not use up an id. */
static uint32_t announce(struct stacks *k, struct ring_writer *w, const struct python_stack *s)
{
	struct gp_ev_stack ev = {
		.head = {.kind = GP_EV_STACK, .flags = (uint8_t)s->flags},
		.frames_nr = s->nr,
	};
	size_t bytes = s->nr * sizeof(s->frames[0]);
	uint64_t position;

	if (__atomic_load_n(&k->last_id, __ATOMIC_RELAXED) >= STACKS_MAX ||
	    !ring_writer__reserve(w, sizeof(ev) + bytes, &position))
		return 0;
	ev.stack_id = __atomic_add_fetch(&k->last_id, 1, __ATOMIC_RELAXED);
	k->hashes[ev.stack_id] = s->hash;
	ring_writer__fill(w, position, 0, &ev, sizeof(ev));
	ring_writer__fill(w, position, sizeof(ev), s->frames, bytes);
	ring_writer__commit(w, position);
	return ev.stack_id;
}

static uint32_t id_of(struct stacks *k, struct ring_writer *w, const struct python_stack *s)
{
	uint32_t i = (uint32_t)(s->hash >> 32) & (SLOTS - 1), mine = 0;

	for (;; i = (i + 1) & (SLOTS - 1)) {
		uint32_t there = __atomic_load_n(&k->slots[i], __ATOMIC_ACQUIRE);

		if (!there && !mine) {
			mine = announce(k, w, s);
			if (!mine)
				return 0;
		}
		if (!there && __atomic_compare_exchange_n(&k->slots[i], &there, mine, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return mine;
		/* Another thread took the slot, perhaps for this very stack: then both ids stand
		 * for it. */
		if (k->hashes[there] == s->hash)
			return there;
	}
}

/* ---- walks ---- */

static bool equal(const struct python_stack *a, const struct python_stack *b)
{
	return a->hash == b->hash && a->nr == b->nr && a->flags == b->flags &&
	       !memcmp(a->frames, b->frames, a->nr * sizeof(a->frames[0]));
}

static void count_check(struct stacks *k, struct thread_stack *t)
{
	(void)__atomic_add_fetch(&k->checks_nr, 1, __ATOMIC_RELAXED);
	t->checks_nr++;
}

static bool walk_both_ways(struct stacks *k, struct thread_stack *t, uint64_t frame)
{
	const struct gp_python *py = &k->python.layout;

	count_check(k, t);
	return python_walk(py, frame, PYTHON_CHECKED, &t->walked) &&
	       python_walk(py, frame, PYTHON_PLAIN, &t->again) && equal(&t->walked, &t->again);
}

/* The same for module calls. Not inlined, because it needs two kilobytes of C stack. */
static __attribute__((noinline)) bool modules_both_ways(struct stacks *k, uint64_t frame,
							struct python_modules *found)
{
	const struct gp_python *py = &k->python.layout;
	struct python_modules plain;

	return python_modules(py, &k->codes, frame, PYTHON_CHECKED, found) &&
	       python_modules(py, &k->codes, frame, PYTHON_PLAIN, &plain) &&
	       python_modules_equal(found, &plain);
}

static bool needs_checks(const struct stacks *k, const struct thread_stack *t)
{
	return t->checks_nr < CHECKS_THREAD ||
	       __atomic_load_n(&k->checks_nr, __ATOMIC_RELAXED) < CHECKS_ALL;
}

static void count(const struct stacks *k, struct ring_writer *w, const struct op_stack *s)
{
	if (!k->ids)
		return;
	if (s->flags)
		ring_writer__count(w, GP_LOSS_STACK_INCOMPLETE, 1);
	if (s->frame && !s->id)
		ring_writer__count(w, GP_LOSS_STACK_ROOM, 1);
}

/* Takes a stack with checked reads: an interpreter that is shutting down may free the thread state
 * of a thread that still runs. */
static struct op_stack take_checked(struct stacks *k, struct ring_writer *w, struct thread_stack *t,
				    uint64_t state, uint64_t self)
{
	const struct gp_python *py = &k->python.layout;
	struct python_stack *s = &t->walked;
	struct op_stack found = {0};

	if (!python_state_is_good(py, state, self) ||
	    !python_first_frame(py, state, PYTHON_CHECKED, &found.frame)) {
		found.flags = GP_STACK_INCOMPLETE;
	} else if (found.frame) {
		(void)python_walk(py, found.frame, PYTHON_CHECKED, s);
		found.flags = s->flags;
		found.id = s->nr && k->ids ? id_of(k, w, s) : 0;
		/* Only the interpreter's own frames, or it is marked incomplete. */
		if (!s->nr)
			found.frame = 0;
	}
	return found;
}

static void refuse(struct stacks *k, const char *why)
{
	if (!python_can_check())
		why = "stacks: process_vm_readv is no longer allowed in this process";
	__atomic_store_n(&k->refused, why, __ATOMIC_RELEASE);
}

/* Validates the thread state that the thread will use from now on. Once in a while a good one may
 * fail, if its list changes meanwhile. */
static __attribute__((noinline)) bool adopt(struct stacks *k, struct thread_stack *t,
					    uint64_t state, uint64_t self)
{
	t->state = 0;
	if (python_state_is_good(&k->python.layout, state, self)) {
		t->state = state;
		return true;
	}
	if (!python_can_check() ||
	    (__atomic_add_fetch(&k->strangers_nr, 1, __ATOMIC_RELAXED) >= STRANGERS_MAX &&
	     !__atomic_load_n(&k->checks_nr, __ATOMIC_RELAXED)))
		refuse(k, "stacks: Python's thread states are not where they should be");
	return false;
}

/* Finds the module calls that the thread is in. */
static void take_modules(struct stacks *k, struct ring_writer *w, bool checked, uint64_t frame,
			 struct python_modules *found)
{
	if (!(checked ? modules_both_ways(k, frame, found)
		      : python_modules(&k->python.layout, &k->codes, frame, PYTHON_PLAIN, found))) {
		refuse(k, astray);
		found->cut = true;
	}
	if (__builtin_expect(found->cut, 0)) {
		ring_writer__count(w, GP_LOSS_MODULES, 1);
		found->nr = 0;
	}
}

/* Walks outwards from found->frame, and gives the stack its id. */
static void take_plain(struct stacks *k, struct ring_writer *w, struct thread_stack *t,
		       struct op_stack *found)
{
	struct python_stack *s = &t->walked;

	if (needs_checks(k, t) ? !walk_both_ways(k, t, found->frame)
			       : !python_walk(&k->python.layout, found->frame, PYTHON_PLAIN, s)) {
		found->interp = 0;
		refuse(k, astray);
		return;
	}
	found->flags = s->flags;
	found->id = s->nr ? id_of(k, w, s) : 0;
	/* Only the interpreter's own frames. */
	if (!s->nr)
		found->frame = 0;
}

/* The stack of a thread that has a thread state. */
static struct op_stack take(struct stacks *k, struct ring_writer *w, struct thread_stack *t,
			    uint64_t state, const struct op_stack *outer,
			    struct python_modules *modules)
{
	const struct gp_python *py = &k->python.layout;
	uint64_t self = (uint64_t)(uintptr_t)pthread_self();
	struct op_stack found = {.state = state};
	bool checked = needs_checks(k, t);

	if (__builtin_expect(k->python.is_finalizing(), 0))
		return take_checked(k, w, t, state, self);
	if (__builtin_expect(state != t->state, 0) && !adopt(k, t, state, self))
		return (struct op_stack){.flags = GP_STACK_INCOMPLETE};
	found.interp = python_only_interpreter(py, state);
	if (__builtin_expect(!found.interp, 0) && !python_state_is_only(py, state, self))
		return (struct op_stack){.flags = GP_STACK_INCOMPLETE};
	if (!python_first_frame(py, state, checked ? PYTHON_CHECKED : PYTHON_PLAIN, &found.frame)) {
		refuse(k, astray);
		return (struct op_stack){.flags = GP_STACK_INCOMPLETE};
	}
	if (outer && found.frame && outer->frame == found.frame)
		return *outer;
	if (!found.frame)
		return found;
	if (modules)
		take_modules(k, w, checked, found.frame, modules);
	if (k->ids)
		take_plain(k, w, t, &found);
	else if (__builtin_expect(checked, 0))
		count_check(k, t);
	return found;
}

struct op_stack stacks__take(struct stacks *k, struct ring_writer *w, struct thread_stack *t,
			     const struct op_stack *outer, struct python_modules *modules)
{
	void *state = k->python.thread_state();
	struct op_stack found;

	if (!state)
		return (struct op_stack){0};
	if (__builtin_expect(stacks__refused(k) != NULL, 0)) {
		ring_writer__count(w, GP_LOSS_STACK_ROOM, k->ids);
		ring_writer__count(w, GP_LOSS_MODULES, modules != NULL);
		return (struct op_stack){0};
	}
	found = take(k, w, t, (uint64_t)(uintptr_t)state, outer, modules);
	/* Without the thread's frames its modules are not known either. */
	if (__builtin_expect(modules && !found.frame && found.flags, 0))
		ring_writer__count(w, GP_LOSS_MODULES, 1);
	count(k, w, &found);
	return found;
}

/* ---- calls ---- */

/* Reads the calls; the first ones with both ways of reading, too. */
static bool read_calls(struct stacks *k, struct thread_stack *t, uint64_t frame,
		       struct python_calls *ret_calls)
{
	const struct gp_python *py = &k->python.layout;

	if (__builtin_expect(t->calls_checks_nr >= CHECKS_THREAD &&
				     __atomic_load_n(&k->calls_checks_nr, __ATOMIC_RELAXED) >=
					     CHECKS_ALL,
			     1))
		return python_calls(py, frame, PYTHON_PLAIN, ret_calls);
	(void)__atomic_add_fetch(&k->calls_checks_nr, 1, __ATOMIC_RELAXED);
	t->calls_checks_nr++;
	return python_calls(py, frame, PYTHON_CHECKED, ret_calls) &&
	       python_calls(py, frame, PYTHON_PLAIN, &t->calls_again) &&
	       python_calls_equal(ret_calls, &t->calls_again);
}

const struct python_calls *stacks__calls(struct stacks *k, struct thread_stack *t,
					 const struct op_stack *found, uint32_t *ret_same_nr)
{
	struct python_calls *before = &t->calls[t->calls_now], *now = &t->calls[!t->calls_now];

	if (!k->calls)
		return NULL;
	/* A doubtful or incomplete stack is not compared. */
	if (!found->interp || !found->frame || !found->id || found->flags) {
		before->nr = 0;
		return NULL;
	}
	if (!read_calls(k, t, found->frame, now)) {
		refuse(k, astray);
		now->nr = 0;
	}
	*ret_same_nr = python_calls_same(before, now);
	t->calls_now = !t->calls_now;
	return now->nr ? now : NULL;
}
