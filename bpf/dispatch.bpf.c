/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Operators that are called without their at::_ops::NAME::call (torch.ops, TorchScript, operator
 * libraries), and ranges: record_function()'s, which are such operators, and NVTX's. The probe is
 * where the caller asks which callbacks to run. One of the caller's registers then holds the
 * operator; the compiler chose which, so all are tried: other values do not look like an operator.
 * What is read is trusted only as the name of an event.
 */
#include "op.bpf.h"

/* A std::string of the C++ library since GCC 5. */
struct cxx_string {
	__u64 text;
	__u64 bytes;
	__u64 local[2];
};

/* A c10::impl::OperatorEntry begins with its name; a c10::OperatorHandle with a pointer to it. */
struct operator_name {
	struct cxx_string name;
	struct cxx_string overload;
};

/* What lies before the text of a std::string before GCC 5, which is a pointer to that text. */
struct old_string {
	__u64 bytes;
	__u64 capacity;
	__u64 users;
};

#define LOCAL_BYTES	15 /* stored in the string itself */
#define NAME_LEAST	4  /* "a::b" */
#define NAME_MOST	4096
#define SPACE_BYTES_MAX 40

/* Whether a string at `at` is consistent: texts of up to LOCAL_BYTES may be stored in it, longer
 * ones are not. */
static __always_inline bool string_fits(const struct cxx_string *s, __u64 at)
{
	if (s->bytes > NAME_MOST || !s->text)
		return 0;
	return s->text != at + offsetof(struct cxx_string, local) || s->bytes <= LOCAL_BYTES;
}

/* Reads a string of the old C++ ABI into the fields that a new one has. */
static __always_inline bool read_old_string(struct cxx_string *s, __u64 text)
{
	struct old_string old;

	s->text = text;
	s->bytes = 0;
	if (bpf_probe_read_user(&old, sizeof(old), (const void *)(text - sizeof(old))) ||
	    old.bytes > old.capacity || old.bytes > NAME_MOST)
		return 0;
	s->bytes = old.bytes;
	return 1;
}

/* Reads the string at `at`. */
static __always_inline bool read_string(struct cxx_string *s, __u64 at, bool old)
{
	if (!old)
		return !bpf_probe_read_user(s, sizeof(*s), (const void *)at);
	return !bpf_probe_read_user(&s->text, sizeof(s->text), (const void *)at) &&
	       read_old_string(s, s->text);
}

/* Reads at most max - 1 bytes of text into zeroed memory. */
static __always_inline bool read_text(char *to, const struct cxx_string *s, __u32 max)
{
	__u32 bytes = s->bytes < max ? (__u32)s->bytes : max - 1;

	if (bytes >= max)
		return 0;
	return !bytes || !bpf_probe_read_user(to, bytes, (const void *)s->text);
}

static __always_inline void clear_found(struct gp_ev_found_name *found)
{
	__builtin_memset(found->name, 0, sizeof(found->name));
	__builtin_memset(found->overload, 0, sizeof(found->overload));
}

/* Whether the text is "space::name", as an operator's is. */
static __always_inline bool has_space(const char *name)
{
	for (int i = 1; i < SPACE_BYTES_MAX; i++) {
		if (!name[i])
			return 0;
		if (name[i] == ':' && name[i + 1] == ':')
			return 1;
	}
	return 0;
}

/* Reads both strings of a possible operator name. False if it is none; o->name.text is then the
 * word at `at`, or 0. */
static __always_inline bool read_names(struct operator_name *o, __u64 at)
{
	if (bpf_probe_read_user(o, sizeof(*o), (const void *)at)) {
		if (bpf_probe_read_user(&o->name.text, sizeof(o->name.text), (const void *)at))
			o->name.text = 0;
		return 0;
	}
	return o->name.bytes >= NAME_LEAST && string_fits(&o->name, at) &&
	       string_fits(&o->overload, at + offsetof(struct operator_name, overload));
}

/* Does the same for old strings. */
static __always_inline bool read_old_names(struct operator_name *o, __u64 at)
{
	__u64 texts[2];

	o->name.text = 0;
	if (bpf_probe_read_user(texts, sizeof(texts), (const void *)at)) {
		if (bpf_probe_read_user(&o->name.text, sizeof(o->name.text), (const void *)at))
			o->name.text = 0;
		return 0;
	}
	return read_old_string(&o->name, texts[0]) && o->name.bytes >= NAME_LEAST &&
	       read_old_string(&o->overload, texts[1]);
}

/* Reads the name of the operator whose entry lies at `at` into t->found. Returns 0, or if it is no
 * operator a value that may point to one. Global, so that the verifier checks it once. */
__noinline __u64 read_operator(struct thread_state *t, __u64 at, bool old)
{
	struct operator_name o;

	if (!t || (at & 7))
		return 1;
	if (old ? !read_old_names(&o, at) : !read_names(&o, at))
		return o.name.text ? o.name.text : 1;
	clear_found(&t->found);
	if (!read_text(t->found.name, &o.name, GP_FOUND_NAME_BYTES) ||
	    !read_text(t->found.overload, &o.overload, GP_FOUND_OVERLOAD_BYTES) ||
	    !has_space(t->found.name))
		return 1;
	return 0;
}

#define CANDIDATES 8 /* a power of two, so that an index can be masked */

struct operator_search {
	struct thread_state *thread;
	__u64 at[CANDIDATES];
	__u32 first;
	__u32 found; /* the index; CANDIDATES: none */
	bool old;    /* strings */
};

/* Tries the register's value, or the handle that it points to. */
static long try_candidate(__u32 n, struct operator_search *s)
{
	__u32 i = (s->first + n) & (CANDIDATES - 1);
	__u64 first;

	if (!s->at[i])
		return 0;
	first = read_operator(s->thread, s->at[i], s->old);
	if (first && (first <= 4096 || read_operator(s->thread, first, s->old)))
		return 0;
	s->found = i;
	return loop_end();
}

/* Whether t->found has the name of the operator that is called. */
static __always_inline bool find_operator(struct thread_state *t, const struct pt_regs *ctx,
					  bool old)
{
	__u32 slot = (__u32)(ctx->ip >> 1) & (GP_FOUND_IN_NR - 1);
	struct operator_search s = {
		.thread = t,
		/* Registers that a call preserves. */
		.at = {ctx->r12, ctx->r13, ctx->bp, ctx->r14, ctx->bx, ctx->r15},
		.first = gp_found_in[slot],
		.found = CANDIDATES,
		.old = old,
	};

	(void)bpf_loop(CANDIDATES, try_candidate, &s, 0);
	if (s.found >= CANDIDATES)
		return 0;
	if (s.found != s.first)
		gp_found_in[slot] = (__u8)s.found;
	return 1;
}

/* Gives the name in t->found an id and emits it. 0: no room. */
static __noinline __u32 new_name(struct thread_state *t, const struct found_key *key, __u64 now)
{
	struct gp_ev_found_name *event;
	__u32 id;

	if (gp_found_names_nr >= GP_NAMES_MAX)
		return 0;
	id = GP_FOUND_NAMES + __sync_fetch_and_add(&gp_found_names_nr, 1);
	event = emit_reserve(sizeof(*event));
	if (!event)
		return 0;
	__builtin_memcpy(event, &t->found, sizeof(*event));
	emit_head(&event->head, GP_EV_FOUND_NAME, 0, t, now);
	event->name_id = id;
	event->reserved = 0;
	emit_submit(event, t);
	if (bpf_map_update_elem(&found_names, key, &id, BPF_NOEXIST)) {
		const __u32 *known = bpf_map_lookup_elem(&found_names, key);

		return known ? *known : id;
	}
	return id;
}

static __always_inline __u64 found_hash(const struct thread_state *t)
{
	const __u64 *words = (const __u64 *)t->found.name;
	__u64 hash = 0;

	for (int i = 0; i < (GP_FOUND_NAME_BYTES + GP_FOUND_OVERLOAD_BYTES) / 8; i++)
		hash = gp_python_mix(hash, words[i]);
	return hash;
}

/* Returns the id of the name in t->found, which has this hash; 0: it has none. */
static __noinline __u32 found_name(struct thread_state *t, __u64 hash, __u64 now)
{
	struct found_key key = {.hash = hash, .process = (__u16)t->owner};
	const __u32 *known;

	known = bpf_map_lookup_elem(&found_names, &key);
	return known ? *known : new_name(t, &key, now);
}

/* ---- operators that were not chosen ---- */

struct glob_search {
	struct thread_state *thread;
	struct gp_glob_search search;
};

static long try_token(__u32 n, struct glob_search *s)
{
	__u8 byte = s->thread->found.name[s->search.byte & (GP_FOUND_NAME_BYTES - 1)];

	if (gp_glob_step((const __u16 *)gp_glob_tokens, (const __u64 *)gp_glob_sets, &s->search,
			 byte))
		return loop_end();
	return 0;
}

/* Whether the operator in t->found was chosen. Each name is matched once; the result is stored
 * among the names, under a process index that no process has. */
static __noinline bool is_chosen(struct thread_state *t, __u64 hash)
{
	struct found_key key = {.hash = hash, .process = ~0ULL};
	struct glob_search s = {.thread = t};
	const __u32 *known;

	known = bpf_map_lookup_elem(&found_names, &key);
	if (known)
		return *known;
	(void)bpf_loop(GP_GLOB_STEPS_MAX, try_token, &s, 0);
	(void)bpf_map_update_elem(&found_names, &key, &s.search.fits, BPF_ANY);
	return s.search.fits;
}

/* ---- ranges: the operator that begins one becomes the range ---- */

#define WORD(a, b, c, d, e, f, g, h)                                                               \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 |   \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

enum range_part { RANGE_NONE, RANGE_BEGIN, RANGE_END };

/* Whether t->found is "profiler::_record_function_enter", perhaps "..._new", or "..._exit". */
static __always_inline enum range_part range_part(const struct thread_state *t)
{
	const __u64 *words = (const __u64 *)t->found.name;

	if (words[0] != WORD('p', 'r', 'o', 'f', 'i', 'l', 'e', 'r') ||
	    words[1] != WORD(':', ':', '_', 'r', 'e', 'c', 'o', 'r') ||
	    words[2] != WORD('d', '_', 'f', 'u', 'n', 'c', 't', 'i'))
		return RANGE_NONE;
	if (words[3] == WORD('o', 'n', '_', 'e', 'n', 't', 'e', 'r'))
		return RANGE_BEGIN;
	return words[3] == WORD('o', 'n', '_', 'e', 'x', 'i', 't', 0) ? RANGE_END : RANGE_NONE;
}

/* The innermost open op, if it is this one. */
static __always_inline struct thread_frame *top_if(struct thread_state *t, __u32 op)
{
	struct thread_frame *frame = thread_top(t);

	return op && frame && frame->op == op ? frame : 0;
}

/* The range's operator has returned: the range stays open, until the op around it ends. */
static __always_inline void range_stay(struct thread_state *t, struct thread_frame *frame)
{
	const struct thread_frame *around = thread_frame(t, (__u64)t->depth - 2);

	frame->tag = (__u32)GP_SCOPE_USER << 24;
	frame->sp = around ? around->sp : ~0ULL;
}

/* Pushes an operator that begins or ends a range, which torch.profiler does not show: it is not
 * emitted. */
static __always_inline void open_untold(struct op_site *site, __u32 name_id)
{
	struct thread_state *t = site->thread;
	const struct thread_frame *around = thread_top(t);
	struct thread_frame *frame;

	frame = top_if(t, op_push(t, site->sp, COOKIE_TAG(site->cookie), name_id, site->now, 0));
	if (frame)
		frame->op = around ? around->op : 0;
	else
		count_hit();
}

static __always_inline void range_close(struct thread_state *t, __u64 now)
{
	const struct thread_frame *frame = thread_top(t);

	if (t->ranges_over)
		t->ranges_over--;
	else if (frame && TAG_SCOPE(frame->tag) == GP_SCOPE_USER)
		thread_close_top(t, now, 0);
	else
		count_loss(GP_LOSS_OPEN_AT_START);
}

/* Opens the operator that ends a range; the range ends with it. If it is too deep its end is not
 * seen, so the range ends at its begin. */
static __always_inline void open_range_end(struct op_site *site)
{
	bool deep = site->thread->depth >= GP_OP_DEPTH && !gp_ops_alone;

	if (deep)
		range_close(site->thread, site->now);
	open_untold(site, deep ? NAME_UNCHOSEN : NAME_RANGE_END);
}

/* (T *result, const std::string &name, ...), called by the operator that begins a range. */
SEC("uprobe")
int gp_range(struct pt_regs *ctx)
{
	struct thread_frame *frame;
	struct thread_state *t;
	struct cxx_string name;
	struct op_site site;

	if (!op_begin(ctx, &site))
		return 0;
	count_hit();
	t = site.thread;
	frame = top_if(t, t->range_op);
	if (!frame)
		return 0;
	frame->name_id = 0;
	clear_found(&t->found);
	if (read_string(&name, PT_REGS_PARM2(ctx), COOKIE_OLD_STRINGS(site.cookie)) &&
	    read_text(t->found.name, &name, GP_FOUND_NAME_BYTES))
		frame->name_id = found_name(t, found_hash(t), site.now);
	return 0;
}

/* ---- NVTX ranges ---- */

/* The most stack that NVTX's function uses when it calls a tool's; mostly it jumps. */
#define NVTX_FRAME_BYTES 64

/* In a tool's function: whether NVTX's own function has handled this call. */
static __always_inline bool nvtx_is_emitted(const struct op_site *site)
{
	__u64 sp = site->thread->nvtx_sp;

	site->thread->nvtx_sp = 0;
	return site->sp <= sp && sp - site->sp <= NVTX_FRAME_BYTES;
}

static __always_inline void nvtx_push(struct op_site *site, __u64 text)
{
	struct thread_state *t = site->thread;
	struct thread_frame *frame;

	clear_found(&t->found);
	(void)bpf_probe_read_user_str(t->found.name, GP_FOUND_NAME_BYTES, (const void *)text);
	frame = top_if(t, op_open(site, found_name(t, found_hash(t), site->now)));
	if (frame)
		range_stay(t, frame);
	else
		t->ranges_over++;
}

/* int nvtxRangePushA(const char *) */
SEC("uprobe")
int gp_nvtx_push(struct pt_regs *ctx)
{
	struct op_site site;

	if (!op_begin(ctx, &site))
		return 0;
	nvtx_push(&site, PT_REGS_PARM1(ctx));
	site.thread->nvtx_sp = site.sp;
	return 0;
}

/* int nvtxRangePop(void) */
SEC("uprobe")
int gp_nvtx_pop(struct pt_regs *ctx)
{
	struct op_site site;

	if (!op_begin(ctx, &site))
		return 0;
	range_close(site.thread, site.now);
	site.thread->nvtx_sp = site.sp;
	return 0;
}

/* int gpuprof_nvtx_push(const char *) */
SEC("uprobe")
int gp_nvtx_tool_push(struct pt_regs *ctx)
{
	struct op_site site;

	if (op_begin(ctx, &site) && !nvtx_is_emitted(&site))
		nvtx_push(&site, PT_REGS_PARM1(ctx));
	return 0;
}

/* int gpuprof_nvtx_pop(void) */
SEC("uprobe")
int gp_nvtx_tool_pop(struct pt_regs *ctx)
{
	struct op_site site;

	if (op_begin(ctx, &site) && !nvtx_is_emitted(&site))
		range_close(site.thread, site.now);
	return 0;
}

/* ---- operators ---- */

/* At a call of at::getStepCallbacksUnlessEmpty(RecordScope), whose result is returned in memory. */
SEC("uprobe")
int gp_dispatch_entry(struct pt_regs *ctx)
{
	enum range_part part = RANGE_NONE;
	struct thread_state *t;
	struct op_site site;
	bool is_named;
	__u64 hash;
	__u32 op;

	if (!op_begin(ctx, &site))
		return 0;
	t = site.thread;
	is_named = find_operator(t, ctx, COOKIE_OLD_STRINGS(site.cookie));
	if (is_named)
		part = range_part(t);
	if (part == RANGE_END || (part == RANGE_BEGIN && gp_ops_alone)) {
		open_range_end(&site);
		return 0;
	}
	hash = is_named ? found_hash(t) : 0;
	if (part == RANGE_NONE && gp_ops_chosen && !(is_named && is_chosen(t, hash))) {
		/* An operator without a name may have been chosen. */
		if (!is_named)
			count_loss(GP_LOSS_BOXED_UNSEEN);
		open_untold(&site, NAME_UNCHOSEN);
		return 0;
	}
	op = op_open(&site, is_named ? found_name(t, hash, site.now) : 0);
	if (part != RANGE_BEGIN)
		return 0;
	t->range_op = op;
	if (!op)
		t->ranges_over++;
	return 0;
}

SEC("uprobe")
int gp_dispatch_exit(struct pt_regs *ctx)
{
	struct thread_frame *frame;
	struct op_site site;
	struct thread_state *t;
	__u32 name_id;

	if (!op_end_begin(ctx, &site))
		return 0;
	t = site.thread;
	frame = thread_top(t);
	name_id = frame ? frame->name_id : 0;
	if (!name_is_emitted(name_id)) {
		if (op_close(&site) && name_id == NAME_RANGE_END && !gp_ops_alone)
			range_close(t, site.now);
		return 0;
	}
	frame = top_if(t, t->range_op);
	/* Counted as a hit when the range closes, together with the op that ends it. */
	if (frame && frame->tag == COOKIE_TAG(site.cookie))
		range_stay(t, frame);
	else
		(void)op_close(&site);
	return 0;
}

/* The same place in a function whose exits do not show when the operator ended. */
SEC("uprobe")
int gp_dispatch_unseen(struct pt_regs *ctx)
{
	__u32 scope = (__u32)PT_REGS_PARM2(ctx); /* an at::RecordScope */

	if (!gp_epoch)
		return 0;
	count_hit();
	if (scope == GP_SCOPE_FUNCTION)
		count_loss(GP_LOSS_BOXED_UNSEEN);
	else if (scope == GP_SCOPE_SCRIPT)
		count_loss(GP_LOSS_SCRIPT_UNSEEN);
	return 0;
}
