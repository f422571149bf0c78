/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds functions that have no symbol by what they call. Every caller of an operator first asks
 * which callbacks to run. The operators' own functions do so, and every other function that does
 * calls operators in another way: the dispatcher's boxed call (torch.ops, TorchScript), and typed
 * calls in operator libraries.
 */
#include "probe/plan/plan_calls.h"

#include "base/cleanup.h"
#include "base/intern.h"
#include "wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Its second argument is an at::RecordScope (enum gp_op_scope). */
#define ASK_FOR_CALLBACKS "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE"

/* at::RecordFunction::RecordFunction(RecordScope). Two of the small functions that create one for a
 * range are record_function()'s; at run time their caller tells which. Others create one for a
 * TorchScript function. */
#define MAKE_RECORD	"_ZN2at14RecordFunctionC1ENS_11RecordScopeE"
#define RANGE_BYTES_MAX 512

/* More than any library has. */
#define CALLS_MAX 4096

bool plan_calls_any(struct planner *p)
{
	return elf_file__mentions(p->file, ASK_FOR_CALLBACKS) ||
	       elf_file__mentions(p->file, MAKE_RECORD);
}

bool plan_calls_use_old_strings(struct planner *p)
{
	/* Functions that take a string and that nearly all code that uses PyTorch calls to report
	 * an error: "Ss" is the old string. The new one's mangled name has its namespace. */
	static const char *const takes_old[] = {
		"_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
		"_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs",
		"_ZN3c105ErrorC1ENS_14SourceLocationESs",
		"_ZN3c105ErrorC2ENS_14SourceLocationESs",
	};

	for (size_t i = 0; i < sizeof(takes_old) / sizeof(*takes_old); i++)
		if (elf_file__mentions(p->file, takes_old[i]))
			return true;
	return false;
}

void plan_calls_digest(struct planner *p, size_t first, uint8_t ret_sum[DIGEST_BYTES])
{
	struct digest d;

	digest__init(&d);
	for (size_t i = first; i < p->plan->functions.nr; i++) {
		const struct probe_function *fn = &p->plan->functions.items[i];
		const unsigned char *code;
		size_t nr = 0;

		code = elf_file__code(p->file, fn->code_offset, fn->code_bytes, &nr);
		digest__add_number(&d, fn->code_offset);
		digest__add(&d, code, code ? nr : 0);
	}
	digest__end(&d, ret_sum);
}

bool plan_calls_are_there(struct planner *p, size_t first)
{
	for (size_t i = first; i < p->plan->functions.nr; i++) {
		const struct probe_function *fn = &p->plan->functions.items[i];

		if (fn->kind != PROBE_DISPATCH && fn->kind != PROBE_UNSEEN &&
		    fn->kind != PROBE_RANGE)
			return false;
		if (fn->placed && !elf_file__has_function(p->file, fn->code_offset, fn->code_bytes))
			return false;
	}
	return true;
}

/* Returns the instruction at the offset, or NULL. */
static const struct code_insn *insn_at(const struct code *c, uint32_t offset)
{
	for (size_t i = 0; i < c->insns.nr; i++)
		if (c->insns.items[i].offset == offset)
			return &c->insns.items[i];
	return NULL;
}

/* Places the call and, if they show when the operator ended, the exits; otherwise the function
 * becomes PROBE_UNSEEN. */
static int place_dispatch(struct planner *p, const struct found *f, struct code *code,
			  uint32_t index, bool countable)
{
	struct probe_function *fn = &p->plan->functions.items[p->plan->functions.nr - 1];
	struct code_insn *call = &code->insns.items[index];
	uint32_t exits[CODE_EXITS_MAX];
	size_t exits_nr = 0;
	const char *why;
	int err;

	if (!countable || call->height < 0 || call->height > PROBE_SP_DELTA_MAX ||
	    code_exits(code, call->offset, CODE_EXIT_ANY, exits, &exits_nr, &why) ||
	    !code_passes_once(code, index)) {
		fn->kind = PROBE_UNSEEN;
		call->height = 0;
		exits_nr = 0;
	}
	err = planner_add_site(p, f, call, false);
	for (size_t i = 0; i < exits_nr && !err; i++)
		err = planner_add_site(p, f, &code->insns.items[exits[i]], true);
	return err;
}

/* Returns 1 if the call is not what was searched for: the function leaves the plan. */
static int place_found(struct planner *p, const struct found *f, const unsigned char *bytes,
		       size_t nr, bool alone, const char **ret_why)
{
	CLEANUP(code__done) struct code code = {0};
	const struct code_insn *call;
	uint32_t index;
	int64_t scope;
	int err;

	p->base = f->symbol.address;
	err = code__read(&code, p->decoder, bytes, nr);
	*ret_why = "its code cannot be decoded";
	if (err)
		return err;
	code.is_function = planner_is_function;
	code.arg = p;
	call = insn_at(&code, f->call);
	/* Bytes that only looked like a call. */
	if (!call || call->kind != CODE_CALL)
		return 1;
	index = (uint32_t)(call - code.insns.items);
	scope = code_second_argument(&code, bytes, index);
	if (f->kind == PROBE_RANGE && scope == GP_SCOPE_USER && nr <= RANGE_BYTES_MAX)
		return planner_place_entry(p, f, bytes, nr, ret_why);
	if (scope != GP_SCOPE_SCRIPT && (scope > 0 || f->kind == PROBE_RANGE))
		return 1;
	return place_dispatch(p, f, &code, index, !scope && alone);
}

/* Places a found call. `alone`: its function has no other one. */
static int place_call(struct planner *p, const struct found *f, bool alone)
{
	size_t sites_nr = p->plan->sites.nr, nr = 0;
	const char *why = "its code cannot be read, or its size is absurd";
	const unsigned char *bytes = NULL;
	int err = planner_add_function(p, f);

	if (err)
		return err;
	if (f->code_bytes)
		bytes = elf_file__code(p->file, f->symbol.file_offset, f->code_bytes, &nr);
	err = -EINVAL;
	if (bytes && nr == f->code_bytes)
		err = place_found(p, f, bytes, nr, alone, &why);
	if (err == 1) {
		p->plan->functions.nr--;
		return 0;
	}
	return planner_end_function(p, sites_nr, err, why);
}

static int take_found_call(struct planner *p, const struct elf_call *call, uint8_t kind)
{
	struct found f = {.kind = kind, .call = (uint32_t)(call->address - call->function)};
	char name[40];

	if (p->calls.nr == CALLS_MAX)
		return -E2BIG;
	(void)snprintf(name, sizeof(name), "call+0x%llx", (unsigned long long)call->address);
	f.symbol.name = intern__str(p->plan->texts, name);
	f.symbol.address = call->function;
	if (call->function && call->function_bytes <= CODE_FUNCTION_BYTES_MAX &&
	    elf_file__offset_of(p->file, call->function, &f.symbol.file_offset))
		f.code_bytes = call->function_bytes;
	return f.symbol.name ? vec_push(&p->calls, f) : -ENOMEM;
}

static int take_dispatch(const struct elf_call *call, void *arg)
{
	struct planner *p = arg;

	/* The operators' own functions are planned by their symbols. */
	if (hash__find(&p->ops, call->function))
		return 0;
	return take_found_call(p, call, PROBE_DISPATCH);
}

static int take_range(const struct elf_call *call, void *arg)
{
	return take_found_call(arg, call, PROBE_RANGE);
}

/* Whether the function never returns, among those that callers of operators call. */
static bool never_returns(const char *name, const char *unused)
{
	static const char thrower[] = "__throw_", std[] = "_ZSt";
	static const char *const begins[] = {
		"__cxa_throw",
		"__cxa_rethrow",
		"_Unwind_Resume",
		"__stack_chk_fail",
		"abort",
		"_ZSt9terminatev",
		"_ZN3c106detail14torchCheckFail",
		"_ZN3c106detail23torchInternalAssertFail",
		"_ZNK3c104impl13OperatorEntry11reportError",
		"_ZNK3c106IValue23reportToTensorTypeErrorEv",
	};

	/* std::__throw_length_error() and the like: the name follows its length. */
	if (!strncmp(name, std, strlen(std)) &&
	    !strncmp(name + strlen(std) + strspn(name + strlen(std), "0123456789"), thrower,
		     strlen(thrower)))
		return true;
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static int take_end(uint64_t address, void *arg)
{
	struct planner *p = arg;

	return hash__set(&p->ends, address, 1);
}

static bool is_end(const void *arg, int64_t offset)
{
	const struct planner *p = arg;

	return hash__find(&p->ends, p->base + (uint64_t)offset) != NULL;
}

int plan_calls_place(struct planner *p)
{
	int err = 0;

	for (size_t i = 0; i < p->found.nr && !err; i++)
		if (p->found.items[i].kind == PROBE_OP)
			err = hash__set(&p->ops, p->found.items[i].symbol.address, 1);
	err = err ?: elf_file__each_import(p->file, never_returns, NULL, take_end, p);
	code_decoder__set_ends(p->decoder, is_end, p);
	err = err ?: elf_file__each_call(p->file, ASK_FOR_CALLBACKS, take_dispatch, p);
	err = err ?: elf_file__each_call(p->file, MAKE_RECORD, take_range, p);
	for (size_t i = 0; i < p->calls.nr && !err; i++) {
		const struct found *f = &p->calls.items[i];
		bool alone = (!i || f[-1].symbol.address != f->symbol.address) &&
			     (i + 1 == p->calls.nr || f[1].symbol.address != f->symbol.address);

		err = place_call(p, f, alone);
	}
	return err;
}
