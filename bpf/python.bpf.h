/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the id of the current thread's Python stack. The thread state is the one in the
 * interpreters' lists that has our thread pointer: a thread that has released the GIL, as operators
 * do, keeps it, and while the thread is in here nobody else changes its frames. The last result is
 * only used while its neighbour in the list points to it. Everything read belongs to the traced
 * process: whatever it holds, the walk ends, and uncertain results are marked.
 *
 * There are four ways to an id; reads of the process's memory are what costs:
 * - the collector has noted under which frame the innermost op began and which id it gave that
 * stack, and that frame is still the innermost one;
 * - the thread's innermost open op began under the same frame at the same instruction: that frame
 * has been waiting for it since, so the stack is the op's;
 * - the frames' code and instructions match a known stack, and no code object has been freed since
 * (see gp_code_freed), so the code objects are the same;
 * - else the checksums of the frames' code decide whether the stack is new.
 */
#ifndef GP_BPF_PYTHON_BPF_H
#define GP_BPF_PYTHON_BPF_H

#include "walk.bpf.h"
#include "walk_memory.bpf.h"

/* Limits: interpreters and thread states searched; frames walked, Python's and others. */
#define PYTHON_SEARCH_MAX 4096
#define PYTHON_WALK_MAX	  (2 * GP_STACK_FRAMES)
#define PYTHON_WALK_STEP  8

/* The low bits of an entry of quick_stacks. */
#define PYTHON_QUICK_ID_MAX 0xfffffULL

/* Returns eight bytes of a piece of the process's memory; 0 if they lie outside of it. */
static __always_inline __u64 python_field(const __u64 *chunk, __u32 chunk_bytes, __u32 offset)
{
	if (offset > chunk_bytes - 8)
		return 0;
	return *(const __u64 *)((const char *)chunk + offset);
}

/* ---- whose thread state ---- */

struct python_walk {
	const struct gp_python *py;
	struct python_thread *memory;
	struct python_windows *windows;
	struct native_thread *native; /* NULL: no native stacks are wanted */
};

/* Finds the innermost frame of the thread state whose pointer to it, or to the C frame, is `frame`.
 */
static __always_inline bool python_innermost(const struct gp_python *py, __u64 *frame)
{
	return !py->has_cframe || walked_read(frame, 8, *frame + py->cframe_frame);
}

static __noinline void python_search_found(struct python_search *s, const struct gp_python *py,
					   __u64 tstate)
{
	__u64 frame;

	s->found_nr++;
	if (!walked_read(&frame, 8, tstate + py->state_frame) || !python_innermost(py, &frame) ||
	    frame)
		s->framed_nr++;
	else if (s->framed_nr)
		return;
	s->found = tstate;
}

static long python_search_one(__u32 n, struct python_walk *w)
{
	struct python_search *s = &w->memory->search;
	const struct gp_python *py = w->py;
	__u64 id, next, tstate = s->tstate;

	if (!tstate) {
		s->whole = !s->interp;
		if (s->whole || !walked_read(&s->tstate, 8, s->interp + py->interp_threads) ||
		    !walked_read(&s->interp, 8, s->interp + py->interp_next))
			return loop_end();
		return 0;
	}
	if (!walked_read(&id, 8, tstate + py->state_thread_id) ||
	    !walked_read(&next, 8, tstate + 8))
		return loop_end();
	if (id == s->self)
		python_search_found(s, py, tstate);
	s->tstate = next;
	return 0;
}

/* Reads the thread state and checks that it is the thread's and in its interpreter's list. */
static __always_inline bool python_state_good(struct python_thread *p, const struct gp_python *py,
					      __u64 tstate, __u64 self)
{
	__u64 prev, neighbour;

	if (!tstate || !walked_read(p->state, sizeof(p->state), tstate) ||
	    python_field(p->state, sizeof(p->state), py->state_thread_id) != self)
		return false;
	prev = p->state[0];
	if (!walked_read(&neighbour, 8, prev ? prev + 8 : p->state[2] + py->interp_threads))
		return false;
	return neighbour == tstate;
}

/* Whether the interpreter whose thread state was read is still the only one. The list grows at its
 * head; behind ours it only shrinks. */
static __always_inline bool python_one_interpreter(const struct python_thread *p,
						   const struct gp_python *py)
{
	__u64 first;

	return p->state[2] == p->single && walked_read(&first, 8, py->interpreters) &&
	       first == p->single;
}

/* Searches the lists. Returns as python_find(). */
#define python_find_anew WALK_NAME(python_find_anew)
__noinline int python_find_anew(struct python_thread *p, const struct gp_python *py, __u64 self)
{
	struct python_walk w = {.py = py, .memory = p};
	struct python_search *s;
	__u64 next;

	if (!p || !py)
		return -1;
	s = &p->search;
	p->tstate = 0;
	p->single = 0;
	*s = (struct python_search){.self = self};
	if (!walked_read(&s->interp, 8, py->interpreters))
		return -1;
	if (s->interp && walked_read(&next, 8, s->interp + py->interp_next) && !next)
		p->single = s->interp;
	(void)bpf_loop(PYTHON_SEARCH_MAX, python_search_one, &w, 0);
	if (!s->whole)
		return -1;
	if (!s->found_nr)
		return 0;
	/* Only one of several interpreters' states is the thread's now; those without frames
	 * are not, or the thread has no stack. */
	if (s->framed_nr > 1 || !python_state_good(p, py, s->found, self))
		return -1;
	p->tstate = s->found;
	return 1;
}

/* 1: the thread state is in p->state; 0: the thread has none; -1: unknown. */
static __always_inline int python_find(struct python_thread *p, const struct gp_python *py)
{
	__u64 self = walked_thread_pointer();

	if (python_state_good(p, py, p->tstate, self) && python_one_interpreter(p, py))
		return 1;
	return python_find_anew(p, py, self);
}

/* ---- the frames ---- */

/* Returns eight bytes of the frame at this place in what was read. */
static __always_inline __u64 python_frame_field(const char *frame, __u32 offset)
{
	return *(const __u64 *)(frame + (offset & (GP_PYTHON_FRAME_BYTES - 1)));
}

/*
 * Reads a frame that neither window holds. Since 3.11 most frames are contiguous, so they are read
 * together with what precedes them in their page, which is mapped if they are; before 3.11, those
 * that lie shortly before their callee. Others are read with what follows them: generators' frames
 * lie anywhere, but the interpreter's own lie on the C stack, the next one above. Returns the
 * position in r->read, or a negative number.
 */
#define python_read_frame WALK_NAME(python_read_frame)
__noinline int python_read_frame(struct python_thread *p, struct python_windows *r,
				 const struct gp_python *py, __u64 at)
{
	__u32 bytes, before = at & (GP_PYTHON_PAGE_BYTES - 1);
	__u32 behind = GP_PYTHON_PAGE_BYTES - before;

	if (!p || !r || !py)
		return -1;
	bytes = py->frame_bytes;
	if (bytes > GP_PYTHON_FRAME_BYTES)
		return -1;
	if ((py->has_window && !p->nr) || r->window - at <= 2 * GP_PYTHON_PAGE_BYTES ||
	    r->other - at <= GP_PYTHON_PAGE_BYTES) {
		r->window_last = 0;
		r->window = at - before;
		if (!walked_read(r->read, before + bytes, r->window))
			return -1;
		r->window_last = before + 1;
		if (!p->has_first)
			p->first_instr =
				python_frame_field((const char *)r->read + before, py->frame_instr);
		p->has_first = 1;
		return (int)before;
	}
	if (behind > GP_PYTHON_BEHIND_BYTES)
		behind = GP_PYTHON_BEHIND_BYTES;
	if (!py->has_window || behind < bytes)
		behind = bytes;
	r->other_last = 0;
	r->other = at;
	if (!walked_read((char *)r->read + GP_PYTHON_WINDOW_BYTES, behind, at))
		return -1;
	r->other_last = behind - bytes + 1;
	if (!p->has_first)
		p->first_instr = python_frame_field((const char *)r->read + GP_PYTHON_WINDOW_BYTES,
						    py->frame_instr);
	p->has_first = 1;
	return GP_PYTHON_WINDOW_BYTES;
}

/* Adds a function's frame, without branches: the verifier follows each one, and the loop multiplies
 * them. */
static __always_inline void python_add(struct python_thread *p, const struct gp_python *py,
				       const char *frame, __u32 i)
{
	struct gp_stack_frame *to = &p->frames[i];
	__u64 code = python_frame_field(frame, py->frame_code) & py->code_mask;
	__u64 instr = python_frame_field(frame, py->frame_instr);
	__u64 owner = *(const __u8 *)(frame + (py->frame_owner & (GP_PYTHON_FRAME_BYTES - 1)));
	__u64 is_function = ((owner & p->owner_mask) - GP_PYTHON_OWNER_INTERPRETER) >> 63;
	__u32 lasti = (__u32)(instr - ((code + py->code_start) & p->base_mask));
	__u64 hash = gp_python_mix(p->hash, code * 0xd6e8feb86659fd93ULL + lasti);

	to->code = code;
	to->lasti = (__s32)lasti;
	p->hash ^= (hash ^ p->hash) & -is_function;
	p->nr = i + (__u32)is_function;
}

/* Walks one frame. True: the walk ends. */
static __always_inline bool python_walk_frame(struct python_thread *p, struct python_windows *r,
					      const struct gp_python *py)
{
	__u64 at = p->frame + py->frame_at, offset = at - r->window;
	__u32 place = (__u32)offset, i = p->nr;
	const char *frame;

	if (!p->frame)
		return true;
	if (i >= GP_STACK_FRAMES) {
		p->flags |= GP_STACK_TRUNCATED;
		return true;
	}
	if (offset >= r->window_last) {
		offset = at - r->other;
		place = (__u32)offset + GP_PYTHON_WINDOW_BYTES;
		if (offset >= r->other_last)
			place = (__u32)python_read_frame(p, r, py, at);
	}
	if (place > GP_PYTHON_WINDOW_BYTES + GP_PYTHON_BEHIND_BYTES) {
		p->flags |= GP_STACK_INCOMPLETE;
		return true;
	}
	frame = (const char *)r->read + place;
	python_add(p, py, frame, i);
	p->frame = python_frame_field(frame, py->frame_back);
	return false;
}

/* Walks several frames at a time: each return costs as much as a frame. */
static long python_walk_some(__u32 n, struct python_walk *w)
{
	for (int i = 0; i < PYTHON_WALK_STEP; i++)
		if (python_walk_frame(w->memory, w->windows, w->py))
			return loop_end();
	return 0;
}

/* ---- the calls of the interpreter ---- */

/* Marks frame number `i` as the outermost one of a call. */
static __always_inline void python_mark_call(struct python_thread *p, __u32 i)
{
	if (i < GP_STACK_FRAMES)
		p->event.entries[i / 64] |= 1ULL << i % 64;
}

static __always_inline __u8 python_byte(const __u64 *frame, __u32 offset)
{
	return ((const __u8 *)frame)[offset & (GP_PYTHON_FRAME_BYTES - 1)];
}

static long python_call_one(__u32 n, struct python_walk *w)
{
	const struct gp_python *py = w->py;
	struct python_thread *p = w->memory;
	struct native_thread *native = w->native;
	__u32 bytes = py->frame_bytes;
	__u64 i = native->anchors_nr;

	if (!p->call_frame || p->call_nr > GP_STACK_FRAMES || bytes > GP_PYTHON_FRAME_BYTES ||
	    !walked_read(p->call, bytes, p->call_frame + py->frame_at))
		return loop_end();
	if (py->frame_owner != GP_PYTHON_NO_FIELD &&
	    python_byte(p->call, py->frame_owner) >= GP_PYTHON_OWNER_INTERPRETER) {
		python_mark_call(p, p->call_nr - 1);
		if (i < GP_STACK_FRAMES) {
			native->anchors[i] = p->call_frame;
			native->anchors_nr = i + 1;
		}
	} else {
		p->call_nr++;
		if (py->is_index || (py->frame_entry && python_byte(p->call, py->frame_entry)))
			python_mark_call(p, p->call_nr - 1);
	}
	p->call_frame = python_field(p->call, sizeof(p->call), py->frame_back);
	return 0;
}

/* Finds which frames each interpreter call runs, for walks that include the native stack: a
 * separate walk, so that the others cost nothing more. */
static __always_inline void python_calls(struct python_walk *w, __u64 first)
{
	struct python_thread *p = w->memory;

	__builtin_memset(p->event.entries, 0, sizeof(p->event.entries));
	p->call_frame = first;
	p->call_nr = 0;
	(void)bpf_loop(PYTHON_WALK_MAX, python_call_one, w, 0);
	p->hash = gp_python_mix_words(p->hash, p->event.entries, GP_STACK_FRAMES / 64);
}

/* ---- the codes ---- */

/* Adds what distinguishes code made at run time. What cannot be read counts as 0. Out of line
 * because it is rare. */
static __noinline __u64 python_check_made(struct python_thread *p, __u64 hash, __u64 name,
					  __u64 lines)
{
	struct gp_python_made *m = &p->made;
	__u64 nr = m->name_bytes;

	if (nr > sizeof(m->name))
		nr = sizeof(m->name);
	__builtin_memset(m->name, 0, sizeof(m->name));
	__builtin_memset(m->lines, 0, sizeof(m->lines));
	(void)walked_read(m->name, nr, name + 48);
	hash = gp_python_mix_words(hash, m->name, sizeof(m->name) / 8);
	if (!walked_read(&m->lines_bytes, 8, lines + 16))
		return hash;
	nr = m->lines_bytes;
	if (nr > sizeof(m->lines))
		nr = sizeof(m->lines);
	(void)walked_read(m->lines, nr, lines + 32);
	return gp_python_mix_words(hash, m->lines, sizeof(m->lines) / 8);
}

/* Returns the checksum of the code object in p->check. */
static __always_inline __u32 python_check(struct python_thread *p, const struct gp_python *py)
{
	__u64 name, hash = gp_python_mix_words(0, p->check, GP_PYTHON_CHECK_BYTES / 8);

	if (!py->code_filename)
		return (__u32)(hash >> 32);
	name = python_field(p->check, sizeof(p->check), py->code_filename - py->code_check);
	/* Length, hash, state, another pointer, the first characters. */
	if (walked_read(&p->made, 40, name + 16) && p->made.name_bytes &&
	    (__u8)p->made.name[0] == '<')
		hash = python_check_made(p, hash, name, p->check[GP_PYTHON_CHECK_BYTES / 8 - 1]);
	return (__u32)(hash >> 32);
}

static long python_check_one(__u32 i, struct python_walk *w)
{
	struct python_thread *p = w->memory;
	struct gp_stack_frame *frame;

	if (i >= GP_STACK_FRAMES || i >= p->nr)
		return loop_end();
	frame = &p->frames[i];
	if (!walked_read(p->check, sizeof(p->check), frame->code + w->py->code_check)) {
		p->flags |= GP_STACK_INCOMPLETE;
		p->nr = i;
		return loop_end();
	}
	frame->check = python_check(p, w->py);
	p->hash = gp_python_mix(gp_python_mix(p->hash, frame->code),
				(__u64)frame->check << 32 | (__u32)frame->lasti);
	return 0;
}

/* ---- the id ---- */

/* Emits a stack with a new id. */
static __always_inline bool python_emit(struct python_thread *p, const struct thread_state *t,
					__u32 id, __u64 now)
{
	__u32 nr = p->nr;

	if (nr > GP_STACK_FRAMES)
		return false;
	emit_head(&p->event.head, GP_EV_STACK, (__u8)p->flags, t, now);
	p->event.stack_id = id;
	p->event.frames_nr = nr;
	/* Wakes the reader at once: it reads the code objects while the process still has them. */
	return !bpf_ringbuf_output(&ring, &p->event,
				   sizeof(p->event) + nr * sizeof(struct gp_stack_frame),
				   BPF_RB_FORCE_WAKEUP);
}

/* Finds the id by the checksums of the code objects. */
static __noinline __u32 python_id(struct python_thread *p, const struct thread_state *t, __u64 now)
{
	__u64 key = walk_key(p->hash, p->nr, p->flags, t);
	bool is_new;
	__u32 id = walk_id(key, &is_new);

	return is_new ? walk_emitted(key, id, python_emit(p, t, id, now)) : id;
}

/* Returns the id of the walked stack, known or new. */
static __always_inline __u32 python_known_id(struct python_walk *w, const struct thread_state *t,
					     __u64 now)
{
	struct python_thread *p = w->memory;
	__u64 generation = w->py->generation;
	__u64 key = walk_key(gp_python_mix(p->hash, generation), p->nr, p->flags, t);
	__u32 slot = (__u16)key, flags = p->flags, id;
	volatile __u64 *quick;

	key &= ~(__u64)PYTHON_QUICK_ID_MAX;
	quick = bpf_map_lookup_elem(&quick_stacks, &slot);
	if (generation && quick) {
		__u64 is = *quick;

		if ((is & ~(__u64)PYTHON_QUICK_ID_MAX) == key && (is & PYTHON_QUICK_ID_MAX))
			return is & PYTHON_QUICK_ID_MAX;
	}
	p->hash = gp_python_mix_words(0, p->event.entries, GP_STACK_FRAMES / 64);
	(void)bpf_loop(GP_STACK_FRAMES, python_check_one, w, 0);
	if (!p->nr)
		return 0;
	id = python_id(p, t, now);
	if (generation && quick && p->flags == flags && id <= PYTHON_QUICK_ID_MAX)
		*quick = key | id;
	return id;
}

/* Returns what is known of the stack of op number `i`, from 0, or NULL: see thread_frame(). */
static __always_inline struct python_top *python_top(const struct python_thread *p, __u64 i)
{
	barrier_var(i);
	if (i >= GP_OP_DEPTH)
		return 0;
	return (struct python_top *)&p->tops[i];
}

/* Returns the id of the innermost open op's stack if its Python frame is still the innermost one
 * and at the same instruction; else 0. */
static __always_inline __u32 python_waiting_id(const struct python_thread *p,
					       const struct gp_python *py,
					       const struct thread_state *t)
{
	const struct python_top *top = python_top(p, (__u64)t->depth - 1);
	const struct thread_frame *op = thread_frame(t, (__u64)t->depth - 1);
	__u64 frame, instr;

	if (!py->sees_catches || !top || !op || !p->tstate)
		return 0;
	if (!top->frame || top->op != op->op ||
	    !walked_read(&frame, 8, p->tstate + py->state_frame) || !python_innermost(py, &frame) ||
	    frame != top->frame ||
	    !walked_read(&instr, 8, frame + py->frame_at + py->frame_instr) || instr != top->instr)
		return 0;
	return top->id;
}

/* Notes the frame under which the next op, if any, begins. */
static __always_inline void python_note(struct python_thread *p, const struct thread_state *t,
					__u64 frame, __u64 instr, __u32 id)
{
	struct python_top *top = python_top(p, t->depth);

	if (!top)
		return;
	top->frame = frame;
	top->instr = instr;
	top->id = id;
	top->op = t->next_op + 1;
}

/* Walks from the innermost frame on. */
static __always_inline void python_walk(struct python_walk *w, __u64 first)
{
	struct python_thread *p = w->memory;

	p->frame = first;
	p->base_mask = w->py->is_index ? 0 : ~0ULL;
	p->owner_mask = w->py->frame_owner == GP_PYTHON_NO_FIELD ? 0 : ~0ULL;
	w->windows->window_last = w->windows->other_last = 0;
	w->windows->window = w->windows->other = 0;
	p->has_first = 0;
	(void)bpf_loop(PYTHON_WALK_MAX / PYTHON_WALK_STEP, python_walk_some, w, 0);
	if (p->frame && !p->flags)
		p->flags = GP_STACK_INCOMPLETE;
}

/* Does the work of python_stack() with a walk. */
static __always_inline __u32 python_walked_id(struct python_walk *w, const struct thread_state *t,
					      __u64 now)
{
	struct python_thread *p = w->memory;
	int found = python_find(p, w->py);
	__u64 first;
	__u32 id;

	if (!found)
		return 0;
	p->hash = 0;
	p->nr = 0;
	p->flags = 0;
	first = python_field(p->state, sizeof(p->state), w->py->state_frame);
	if (found > 0 && python_innermost(w->py, &first)) {
		w->windows = python_windows_memory();
		if (!w->windows) {
			count_loss(GP_LOSS_STACK_ROOM);
			return 0;
		}
		python_walk(w, first);
		if (gp_stacks & GP_STACK_WANT_NATIVE)
			python_calls(w, first);
	} else {
		p->flags = GP_STACK_INCOMPLETE;
	}
	id = p->nr ? python_known_id(w, t, now) : 0;
	if (p->flags)
		count_loss(GP_LOSS_STACK_INCOMPLETE);
	else if (id)
		python_note(p, t, first, p->first_instr, id);
	return id;
}

/* Returns the id of the current thread's Python stack; 0 if it has none, or (counted) it cannot be
 * read. Call it before each op is opened. `native` receives the anchors if native stacks are wanted
 * too. */
static __noinline __u32 python_stack(const struct thread_state *t, struct native_thread *native,
				     __u64 now)
{
	__u32 process = (__u16)t->owner, id;
	const struct gp_python *py = bpf_map_lookup_elem(&pythons, &process);
	struct python_walk w = {.py = py, .native = native};
	const struct python_top *top;

	if (!py || !py->is_known)
		return 0;
	w.memory = python_memory();
	if (!w.memory) {
		count_loss(GP_LOSS_STACK_ROOM);
		return 0;
	}
	/* A native walk needs the interpreter's entry frames as they are now. */
	id = gp_stacks & GP_STACK_WANT_NATIVE ? 0 : python_waiting_id(w.memory, py, t);
	top = id ? python_top(w.memory, (__u64)t->depth - 1) : 0;
	if (top) {
		python_note(w.memory, t, top->frame, top->instr, id);
		return id;
	}
	python_note(w.memory, t, 0, 0, 0);
	return python_walked_id(&w, t, now);
}

#endif /* GP_BPF_PYTHON_BPF_H */
