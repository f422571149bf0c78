/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the functions of the catalogue in one file and places their probes. An operator gets all of
 * its probes or none: an entry without exits would never be closed.
 */
#include "base/cleanup.h"
#include "base/intern.h"
#include "probe/plan/cuda_api.h"
#include "probe/plan/plan_cache.h"
#include "probe/plan/plan_calls.h"
#include "probe/plan/planner.h"
#include "wire.h"

#include <errno.h>
#include <string.h>

/* Code to read of a function where only the entry is probed. */
#define ENTRY_BYTES 64

/* More than any library defines. */
#define FUNCTIONS_MAX 32768

/* Prefix of the virtual tables of all possible autograd nodes; an object points behind the first
 * two words. */
#define NODE_PREFIX  "_ZTVN5torch8autograd"
#define TABLE_OFFSET 16
#define NODES_MAX    4096

/* Limit for the code of all functions together; real libraries have some 4 MiB. */
#define CODE_BYTES_MAX (32 << 20)

struct catalogue_line {
	const char *begin;
	uint8_t kind;
	bool exact; /* the whole name must match */
};

/* By name. NVTX's functions come from the library or from its header, in the symbol table; Clang
 * mangles the header's. Two functions have a second spelling from when their totals were signed. */
static const struct catalogue_line catalogue[] = {
	{"_ZL12nvtxRangePopv", PROBE_NVTX_POP, true},
	{"_ZL14nvtxRangePushAPKc", PROBE_NVTX_PUSH, true},
	{"_ZN2at4_ops", PROBE_OP, false},
	{"_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm", PROBE_CPU_OOM, true},
	{"_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", PROBE_ALLOC, true},
	{"_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv", PROBE_FREE, true},
	{"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", PROBE_REPORT, true},
	{"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", PROBE_REPORT, true},
	{"_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE", PROBE_OOM, true},
	{"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", PROBE_OOM, true},
	{"_ZN5torch8autograd6Engine17evaluate_functionE", PROBE_NODE, false},
	{"__cxa_begin_catch", PROBE_CATCH, true},
	{"_dl_debug_state", PROBE_LOADER, true},
	{CUDA_API_PREFIX, PROBE_API, false},
	{"gpuprof_nvtx_pop", PROBE_NVTX_TOOL_POP, true},
	{"gpuprof_nvtx_push", PROBE_NVTX_TOOL_PUSH, true},
	{NCCL_PREFIX, PROBE_API, false},
	{"nvtxRangePop", PROBE_NVTX_POP, true},
	{"nvtxRangePushA", PROBE_NVTX_PUSH, true},
};
#define CATALOGUE_NR (sizeof(catalogue) / sizeof(*catalogue))

void probe_plan__free(struct probe_plan *plan)
{
	if (!plan)
		return;
	intern__free(plan->texts);
	vec_done(&plan->functions);
	vec_done(&plan->sites);
	vec_done(&plan->nodes);
	free(plan);
}

static const struct catalogue_line *line_of(const char *name)
{
	for (size_t i = 0; i < CATALOGUE_NR; i++) {
		const struct catalogue_line *line = &catalogue[i];

		if (line->exact ? !strcmp(name, line->begin)
				: !strncmp(name, line->begin, strlen(line->begin)))
			return line;
	}
	return NULL;
}

static int take_found(const struct elf_symbol *symbol, void *arg)
{
	const struct catalogue_line *line = line_of(symbol->name);
	struct found found = {.symbol = *symbol};
	struct planner *p = arg;
	const char *joined;
	size_t bytes;

	/* A dot marks the compiler's own functions, such as NAME.cold. */
	if (!line || strchr(symbol->name, '.') ||
	    (line->kind == PROBE_OP && op_symbol_parse(symbol->name, &joined, &bytes)) ||
	    (line->kind == PROBE_API && !cuda_api_find(symbol->name, &found.layout)))
		return 0;
	found.kind = line->kind;
	if (p->found.nr == FUNCTIONS_MAX)
		return -E2BIG;
	if (line->kind == PROBE_OP && op_names__add(&p->names, joined, bytes))
		return -ENOMEM;
	return vec_push(&p->found, found);
}

static int compare_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->symbol.file_offset != y->symbol.file_offset)
		return x->symbol.file_offset < y->symbol.file_offset ? -1 : 1;
	return strcmp(x->symbol.name, y->symbol.name);
}

/* Takes an autograd node's virtual table, or that of another class near it, which is harmless. */
static int take_node(const struct elf_symbol *symbol, void *arg)
{
	struct planner *p = arg;
	struct probe_node node = {.table = symbol->address + TABLE_OFFSET};
	char name[NODE_NAME_BYTES];

	if (p->plan->nodes.nr == NODES_MAX || hash__find(&p->tables, node.table) ||
	    node_name_parse(symbol->name, name, sizeof(name)))
		return 0;
	node.name = intern__str(p->plan->texts, name);
	if (!node.name || hash__set(&p->tables, node.table, 1))
		return -ENOMEM;
	return vec_push(&p->plan->nodes, node);
}

/* Whether all of the function's code is decoded. */
static bool is_whole(uint8_t kind)
{
	return kind == PROBE_OP || kind == PROBE_NODE || kind == PROBE_API;
}

static size_t code_bytes(const struct found *f)
{
	if (is_whole(f->kind))
		return f->symbol.bytes <= CODE_FUNCTION_BYTES_MAX ? f->symbol.bytes : 0;
	return f->symbol.bytes && f->symbol.bytes < ENTRY_BYTES ? f->symbol.bytes : ENTRY_BYTES;
}

/* Reads the code once, so that what is digested is what is placed even if somebody writes to the
 * file meanwhile. */
static void read_code(struct planner *p, struct found *f)
{
	if (f->code_bytes)
		f->code =
			elf_file__code(p->file, f->symbol.file_offset, f->code_bytes, &f->code_nr);
}

static int take_start(uint64_t address, void *arg)
{
	struct planner *p = arg;

	return vec_push(&p->addresses, address);
}

static int find_all(struct planner *p)
{
	const char *beginnings[CATALOGUE_NR];
	size_t left = CODE_BYTES_MAX;
	int err;

	for (size_t i = 0; i < CATALOGUE_NR; i++)
		beginnings[i] = catalogue[i].begin;
	err = elf_file__each_symbol_of(p->file, beginnings, CATALOGUE_NR, take_found, p);
	if (err)
		return err;
	if (elf_file__each_object(p->file, NODE_PREFIX, take_node, p))
		return -ENOMEM;
	if (p->found.nr)
		qsort(p->found.items, p->found.nr, sizeof(*p->found.items), compare_found);
	for (size_t i = 0; i < p->found.nr; i++) {
		size_t bytes = code_bytes(&p->found.items[i]);

		if (bytes > left)
			bytes = 0;
		left -= bytes;
		p->found.items[i].code_bytes = bytes;
		read_code(p, &p->found.items[i]);
	}
	return elf_file__each_start(p->file, take_start, p);
}

/* Digests everything that decides the sites of the functions found by name. */
static void make_key(struct planner *p, uint8_t ret_key[DIGEST_BYTES])
{
	struct digest d;

	digest__init(&d);
	digest__add_number(&d, PLAN_CACHE_VERSION);
	digest__add_number(&d, code_decoder_version());
	elf_file__digest_layout(p->file, &d);
	digest__add(&d, p->addresses.items, p->addresses.nr * sizeof(*p->addresses.items));
	digest__add_number(&d, p->found.nr);
	for (size_t i = 0; i < p->found.nr; i++) {
		const struct found *f = &p->found.items[i];

		digest__add_text(&d, f->symbol.name);
		digest__add_number(&d, f->symbol.address);
		digest__add_number(&d, f->symbol.file_offset);
		digest__add_number(&d, f->symbol.bytes);
		digest__add(&d, f->code, f->code_nr);
	}
	digest__end(&d, ret_key);
}

static int resolve_names(struct planner *p)
{
	const unsigned char *data;
	uint64_t address;
	size_t bytes;

	if (!p->names.items.nr || elf_file__section(p->file, ".rodata", &data, &bytes, &address))
		return 0;
	return op_names__scan(&p->names, data, bytes);
}

/* Sets the name as torch.profiler prints it, if the library's schema texts have it. 0 or -ENOMEM.
 */
static int name_op(struct planner *p, struct probe_function *fn)
{
	struct intern *texts = p->plan->texts;
	const struct op_name *name;
	const char *joined;
	char text[320];
	size_t bytes;

	if (fn->kind != PROBE_OP || op_symbol_parse(fn->symbol, &joined, &bytes))
		return 0;
	name = op_names__find(&p->names, joined, bytes);
	(void)snprintf(text, sizeof(text), "aten::%.*s", (int)bytes, joined);
	fn->named = !name || !name->name ? PROBE_NAMED_SYMBOL
		    : name->whole	 ? PROBE_NAMED_SCHEMA
					 : PROBE_NAMED_ENDING;
	fn->name = intern__str(texts, fn->named == PROBE_NAMED_SYMBOL ? text : name->name);
	fn->overload = intern__str(texts, fn->named == PROBE_NAMED_SYMBOL ? "" : name->overload);
	return fn->name && fn->overload ? 0 : -ENOMEM;
}

/* Whether control can reach an instruction between the first and this one from elsewhere. */
static bool entered_before(const struct code *c, uint32_t offset)
{
	for (size_t i = 0; i < c->insns.nr; i++) {
		const struct code_insn *insn = &c->insns.items[i];

		if ((insn->kind == CODE_JUMP || insn->kind == CODE_BRANCH) && insn->target > 0 &&
		    insn->target <= (int64_t)offset)
			return true;
	}
	return false;
}

/* A CUDA allocation is known from the function's result. */
static enum code_exit_rule exit_rule(const struct found *f)
{
	if (f->kind != PROBE_API)
		return CODE_EXIT_ANY;
	return cuda_api_needs_result(f->layout) ? CODE_EXIT_RESULT : CODE_EXIT_RETURN;
}

/* Places entry and exits. 0, -ENOMEM, or -EINVAL with the reason. */
static int place_both(struct planner *p, const struct found *f, const unsigned char *bytes,
		      size_t nr, const char **ret_why)
{
	CLEANUP(code__done) struct code code = {0};
	uint32_t exits[CODE_EXITS_MAX];
	struct code_insn entry;
	size_t exits_nr = 0;
	int err;

	err = code__read(&code, p->decoder, bytes, nr);
	if (err == -EINVAL)
		*ret_why = "its code cannot be decoded";
	if (err)
		return err;
	code.is_function = planner_is_function;
	code.arg = p;
	p->base = f->symbol.address;
	if (code_entry(p->decoder, bytes, nr, &entry) || entered_before(&code, entry.offset)) {
		entry = code.insns.items[0];
		entry.height = 0;
	}
	err = code_exits(&code, entry.offset, exit_rule(f), exits, &exits_nr, ret_why);
	if (err)
		return err;
	err = planner_add_site(p, f, &entry, false);
	for (size_t i = 0; i < exits_nr && !err; i++)
		err = planner_add_site(p, f, &code.insns.items[exits[i]], true);
	return err;
}

/* Places a call with its exits or, if that fails, without: its event then only has a start. Memory
 * calls need both, as the exit has the result. */
static int place_api(struct planner *p, const struct found *f, struct probe_function *fn, size_t nr,
		     const unsigned char *bytes, const char **ret_why)
{
	size_t sites_nr = p->plan->sites.nr;
	int err = nr == f->code_bytes ? place_both(p, f, bytes, nr, ret_why) : -EINVAL;

	fn->layout |= err ? 0 : GP_API_HAS_EXIT;
	if (err != -EINVAL || cuda_api_needs_result(f->layout))
		return err;
	p->plan->sites.nr = sites_nr;
	return planner_place_entry(p, f, bytes, nr, ret_why);
}

static int place(struct planner *p, const struct found *f, const struct found *before)
{
	struct probe_function *fn = &p->plan->functions.items[p->plan->functions.nr - 1];
	size_t want = f->code_bytes, nr = f->code_nr, sites_nr = p->plan->sites.nr;
	const char *why = "its code cannot be read, or its size is absurd";
	const unsigned char *bytes = f->code;
	int err = -EINVAL;

	if (before && before->symbol.file_offset == f->symbol.file_offset) {
		why = "it shares its code with another function";
		bytes = NULL;
	}
	if (bytes && f->kind == PROBE_API)
		err = place_api(p, f, fn, nr, bytes, &why);
	else if (bytes && is_whole(f->kind))
		err = nr == want ? place_both(p, f, bytes, nr, &why) : -EINVAL;
	else if (bytes && nr)
		err = planner_place_entry(p, f, bytes, nr, &why);
	return planner_end_function(p, sites_nr, err, why);
}

static void count_up(struct probe_plan *plan)
{
	plan->not_placed_nr = plan->single_stepped_nr = 0;
	for (size_t i = 0; i < plan->functions.nr; i++)
		plan->not_placed_nr += !plan->functions.items[i].placed;
	for (size_t i = 0; i < plan->sites.nr; i++)
		plan->single_stepped_nr += !plan->sites.items[i].emulated;
}

/* Creates what placing needs. 0 or -ENOMEM. */
static int prepare_placing(struct planner *p)
{
	int err = 0;

	for (size_t i = 0; i < p->addresses.nr && !err; i++)
		err = hash__set(&p->starts, p->addresses.items[i], 1);
	p->decoder = code_decoder__new();
	return err ?: p->decoder ? 0 : -ENOMEM;
}

static int place_found(struct planner *p)
{
	int err = 0;

	for (size_t i = 0; i < p->found.nr && !err; i++) {
		err = planner_add_function(p, &p->found.items[i]);
		if (!err)
			err = place(p, &p->found.items[i], i ? &p->found.items[i - 1] : NULL);
	}
	return err;
}

/* Keeps the functions found by name, and their sites, in the plan. */
static void leave_found(struct planner *p)
{
	struct probe_plan *plan = p->plan;

	plan->functions.nr = p->found.nr;
	while (plan->sites.nr && plan->sites.items[plan->sites.nr - 1].function >= p->found.nr)
		plan->sites.nr--;
}

/* Searches schema texts and all code for what no symbol says. */
static int search(struct planner *p)
{
	int err = resolve_names(p);

	for (size_t i = 0; i < p->found.nr && !err; i++)
		err = name_op(p, &p->plan->functions.items[i]);
	return err ?: plan_calls_place(p);
}

/* Whether the functions of a cached plan are those found in the file. */
static bool is_of_found(const struct planner *p)
{
	for (size_t i = 0; i < p->found.nr; i++) {
		const struct found *f = &p->found.items[i];
		const struct probe_function *fn = &p->plan->functions.items[i];

		if (strcmp(fn->symbol, f->symbol.name) != 0 || fn->kind != f->kind ||
		    fn->layout != (f->layout | (fn->layout & GP_API_HAS_EXIT)) ||
		    fn->code_offset != f->symbol.file_offset || fn->code_bytes != f->code_bytes)
			return false;
	}
	return true;
}

static bool load(struct planner *p, const char *cache_dir, struct plan_kept *kept)
{
	if (!cache_dir || plan_cache_load(p->plan, cache_dir, kept))
		return false;
	if (kept->found_nr == p->found.nr && is_of_found(p))
		return true;
	vec_done(&p->plan->functions);
	vec_done(&p->plan->sites);
	return false;
}

/* Whether the results of a search are known and still hold for the file. */
static bool is_searched(struct planner *p, const char *cache_dir, const struct plan_kept *kept)
{
	uint8_t calls[DIGEST_BYTES];

	if (!plan_cache_knows(cache_dir, kept) || !plan_calls_are_there(p, kept->found_nr))
		return false;
	plan_calls_digest(p, kept->found_nr, calls);
	return !memcmp(calls, kept->calls, DIGEST_BYTES);
}

static void keep(struct planner *p, const char *cache_dir, struct plan_kept *kept)
{
	uint8_t now[DIGEST_BYTES];

	/* If the file has changed meanwhile, the results belong to neither version. */
	if (elf_file__error(p->file) || elf_file__digest_identity(p->file, now) ||
	    memcmp(now, kept->file, DIGEST_BYTES) != 0)
		return;
	kept->found_nr = (uint32_t)p->found.nr;
	plan_calls_digest(p, p->found.nr, kept->calls);
	if (!plan_cache_store(p->plan, cache_dir, kept))
		(void)plan_cache_learn(cache_dir, kept);
}

static int plan_file(struct planner *p, const char *cache_dir)
{
	struct plan_kept kept = {0};
	bool loaded;
	int err = elf_file__stat(p->file, &p->plan->file);

	err = err ?: find_all(p);
	if (err || (!p->found.nr && !plan_calls_any(p)))
		return err;
	p->plan->old_strings = plan_calls_any(p) && plan_calls_use_old_strings(p);
	make_key(p, kept.key);
	if (elf_file__digest_identity(p->file, kept.file))
		cache_dir = NULL;
	loaded = load(p, cache_dir, &kept);
	if (!loaded || !is_searched(p, cache_dir, &kept)) {
		err = prepare_placing(p);
		if (loaded)
			leave_found(p);
		else
			err = err ?: place_found(p);
		err = err ?: search(p);
		if (!err && cache_dir)
			keep(p, cache_dir, &kept);
	}
	count_up(p->plan);
	return err;
}

int probe_plan__new(const char *path, const char *cache_dir, struct reason *why,
		    struct probe_plan **ret_plan)
{
	struct planner p = {0};
	int err = elf_file__open(path, why, &p.file);

	if (err)
		return err;
	p.plan = calloc(1, sizeof(*p.plan));
	if (p.plan)
		p.plan->texts = intern__new();
	err = p.plan && p.plan->texts ? plan_file(&p, cache_dir) : -ENOMEM;
	err = err ?: elf_file__error(p.file);
	if (err)
		probe_plan__free(p.plan);
	else
		*ret_plan = p.plan;
	code_decoder__free(p.decoder);
	op_names__done(&p.names);
	vec_done(&p.addresses);
	hash__done(&p.starts);
	hash__done(&p.tables);
	hash__done(&p.ops);
	hash__done(&p.ends);
	vec_done(&p.found);
	vec_done(&p.calls);
	elf_file__free(p.file);
	if (err)
		return reason_set(why, err, "cannot plan probes for '%s': %s", path,
				  strerror(-err));
	return 0;
}
