/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Loads a BPF object in each configuration that gpuprof loads it in, and prints the kernel's
 * answers: a line each, tab-separated: configuration, program, "loaded" and how many instructions
 * the verifier followed, or "refused" and its last words. All programs of a configuration are
 * loaded at once, as gpuprof does; only where that fails each is loaded on its own. Of each task
 * storage an element is made: that a kernel makes the map does not tell that a thread gets one. Its
 * line has "map " before its name, and the bytes of an element.
 *
 * usage: load_programs OBJECT [PROGRAM [CONFIGURATION]]
 * exit status: 0 all was loaded, 1 not all, 2 the object cannot be read
 */
#include "base/cleanup.h"
#include "probe/session/link.h"
#include "probe/session/program_try.h"
#include "wire.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BOTH (GP_STACK_WANT_PYTHON | GP_STACK_WANT_NATIVE)

static const struct configuration {
	const char *name;
	unsigned int stacks;
	bool ops_alone; /* neither ranges nor autograd nodes */
	bool all;	/* chosen operators, CUDA's memory, `run`: what makes programs largest */
	bool by_tid;	/* no task storage, and a perf event for each probe */
	bool samples;	/* samples in place of probes; `tick`: within the scheduler's tick */
	bool tick;
} configurations[] = {
	{.name = "no stacks"},
	{.name = "ops alone", .ops_alone = true},
	{.name = "python", .stacks = GP_STACK_WANT_PYTHON, .all = true},
	{.name = "native", .stacks = GP_STACK_WANT_NATIVE},
	{.name = "both", .stacks = BOTH, .all = true},
	{.name = "no stacks by tid", .by_tid = true},
	{.name = "python by tid", .stacks = GP_STACK_WANT_PYTHON, .by_tid = true},
	{.name = "native by tid", .stacks = GP_STACK_WANT_NATIVE, .by_tid = true},
	{.name = "both by tid", .stacks = BOTH, .all = true, .by_tid = true},
	{.name = "samples in ticks", .stacks = BOTH, .samples = true, .tick = true},
	{.name = "samples by timer", .stacks = BOTH, .samples = true},
};

#define CONFIGURATIONS_NR (sizeof(configurations) / sizeof(*configurations))
#define PROGRAMS_MAX	  64

/* What a configuration is loaded from, and what has been refused in an earlier one. */
struct load {
	const char *path, *only; /* only this program; NULL: all */
	const struct configuration *configuration;
	const char *refused[PROGRAMS_MAX];
	size_t refused_nr;
	bool all; /* was loaded */
};

static bool verbose;

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return verbose ? vfprintf(stderr, fmt, ap) : 0;
}

/* Finds the constants in the object's own description of them: each compiler places them anew. */
static int set_constant(struct bpf_object *object, const char *name, __u64 value)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	const struct btf *btf = bpf_object__btf(object);
	const struct btf_type *section;
	size_t bytes = 0;
	char *data = map ? (char *)bpf_map__initial_value(map, &bytes) : NULL;
	int id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -1;

	if (!data || id < 0)
		return -1;
	section = btf__type_by_id(btf, (__u32)id);
	for (int i = 0; i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *v = btf_var_secinfos(section) + i;
		const struct btf_type *var = btf__type_by_id(btf, v->type);

		if (strcmp(btf__name_by_offset(btf, var->name_off), name) ||
		    v->size > sizeof(value) || v->offset + v->size > bytes)
			continue;
		memcpy(data + v->offset, &value, v->size);
		return 0;
	}
	return -1;
}

/* Whether programs may find a thread by its number. Looked up once: it takes a while in a guest. */
static bool may_find_tasks(void)
{
	static int may = -1;
	struct btf *btf = may < 0 ? btf__load_vmlinux_btf() : NULL;

	if (may < 0)
		may = btf && btf__find_by_name_kind(btf, "bpf_task_from_pid", BTF_KIND_FUNC) > 0;
	btf__free(btf);
	return may;
}

/* As session_load.c does. */
static int set_constants(struct bpf_object *object, const struct configuration *c)
{
	int err = set_constant(object, "gp_stacks", c->stacks);

	err = err ?: set_constant(object, "gp_task_storage", !c->by_tid);
	err = err ?: set_constant(object, "gp_ops_alone", c->ops_alone);
	err = err ?: set_constant(object, "gp_ops_chosen", c->all);
	err = err ?: set_constant(object, "gp_cuda_memory", c->all);
	err = err ?: set_constant(object, "gp_stop_at_load", c->all);
	err = err ?: set_constant(object, "gp_cpus_nr", 2);
	err = err ?: set_constant(object, "gp_tick_ns", c->tick ? 4000000 : 0);
	err = err ?: set_constant(object, "gp_tick_code", c->tick ? 0xffffffff81000000 : 0);
	err = err ?: set_constant(object, "gp_tick_function", c->tick ? 0xffffffff81001000 : 0);
	return err ?: set_constant(object, "gp_task_by_pid", may_find_tasks());
}

static bool is_named(const char *name, const char *const *among, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(name, among[i], strlen(among[i])))
			return true;
	return false;
}

enum map_need {
	FOR_PYTHON = 1,
	FOR_NATIVE = 2,
	FOR_STORAGE = 4,
	FOR_TID = 8,
	FOR_SAMPLES = 16,
};

/* What maps are for that are not always made. */
static const struct {
	const char *name;
	unsigned int needs;
} maps[] = {
	{"threads", FOR_STORAGE},
	{"threads_by_tid", FOR_TID},
	{"no_thread", FOR_TID},
	{"pythons", FOR_PYTHON},
	{"quick_stacks", FOR_PYTHON},
	{"python_threads", FOR_PYTHON | FOR_STORAGE},
	{"python_threads_by_tid", FOR_PYTHON | FOR_TID},
	{"no_python_thread", FOR_PYTHON | FOR_TID},
	{"python_windows", FOR_PYTHON | FOR_STORAGE},
	{"python_windows_by_tid", FOR_PYTHON | FOR_TID},
	{"no_python_windows", FOR_PYTHON | FOR_TID},
	{"unwind_ranges", FOR_NATIVE},
	{"unwind_tables", FOR_NATIVE},
	{"native_threads", FOR_NATIVE | FOR_STORAGE},
	{"native_threads_by_tid", FOR_NATIVE | FOR_TID},
	{"no_native_thread", FOR_NATIVE | FOR_TID},
	{"sample_walks", FOR_SAMPLES},
	{"sampled_threads", FOR_SAMPLES},
	{"sampled_cpus", FOR_SAMPLES},
};

/* As session_load.c chooses. */
static bool is_map_wanted(const struct bpf_map *map, const struct configuration *c)
{
	unsigned int has = (c->stacks & GP_STACK_WANT_PYTHON ? FOR_PYTHON : 0) |
			   (c->stacks & GP_STACK_WANT_NATIVE ? FOR_NATIVE : 0) |
			   (c->by_tid ? FOR_TID : FOR_STORAGE) | (c->samples ? FOR_SAMPLES : 0);

	if (!strcmp(bpf_map__name(map), "stacks"))
		return c->stacks;
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		if (!strcmp(bpf_map__name(map), maps[i].name))
			return !(maps[i].needs & ~has);
	return true;
}

/* Of those that take samples a session has no others, but for those that follow the process. */
static bool is_program_wanted(const struct bpf_program *program, const struct configuration *c)
{
	static const char *const samples[] = {"gp_sample", "gp_look"};
	static const char *const always[] = {"gp_process", "gp_loader"};
	const char *name = bpf_program__name(program);
	bool is_sampling = is_named(name, samples, sizeof(samples) / sizeof(*samples));

	/* Loaded on its own, before samples are taken in ticks. */
	if (!strcmp(name, "gp_tick_check") || !strcmp(name, "gp_sample_tick"))
		return c->tick;
	if (!strcmp(name, "gp_code_freed"))
		return c->stacks & GP_STACK_WANT_PYTHON;
	return is_sampling == c->samples ||
	       is_named(name, always, sizeof(always) / sizeof(*always));
}

static int configure(struct bpf_object *object, const struct configuration *c)
{
	enum link_method method = c->by_tid ? LINK_PERF_EVENT : link_method_probe();
	struct bpf_program *program;
	struct bpf_map *map;
	int err = set_constants(object, c);

	bpf_object__for_each_map(map, object)
	{
		err = err ?: bpf_map__set_autocreate(map, is_map_wanted(map, c));
	}
	bpf_object__for_each_program(program, object)
	{
		err = err ?: bpf_program__set_autoload(program, is_program_wanted(program, c));
		if (!strcmp(bpf_program__section_name(program), "uprobe"))
			(void)bpf_program__set_expected_attach_type(
				program, (enum bpf_attach_type)link_attach_type(method));
	}
	return err;
}

static unsigned int followed(const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	__u32 bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes))
		return 0;
	return info.verified_insns;
}

static struct bpf_object *open_configured(const struct load *l)
{
	struct bpf_object *object = bpf_object__open_file(l->path, NULL);

	if (object && !configure(object, l->configuration))
		return object;
	bpf_object__close(object);
	return NULL;
}

static void refuse(struct load *l, const char *what, const char *words)
{
	printf("%s\t%s\trefused\t%s\n", l->configuration->name, what, words);
	l->all = false;
}

/* Makes an element of each task storage, for this thread. */
static void make_elements(struct load *l, const struct bpf_object *object)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		CLEANUP(cleanup_free) void *value = calloc(1, bpf_map__value_size(map));
		char name[80];

		if (bpf_map__type(map) != BPF_MAP_TYPE_TASK_STORAGE || !bpf_map__autocreate(map))
			continue;
		(void)snprintf(name, sizeof(name), "map %s", bpf_map__name(map));
		if (!value || bpf_map_update_elem(bpf_map__fd(map), &self, value, BPF_NOEXIST))
			refuse(l, name, strerror(errno));
		else
			printf("%s\t%s\tloaded\t%u\n", l->configuration->name, name,
			       bpf_map__value_size(map));
	}
	(void)close(self);
}

/* Whether the program is to be tried in the configuration. */
static bool is_due(const struct load *l, const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);

	for (size_t i = 0; i < l->refused_nr; i++)
		if (!strcmp(l->refused[i], name))
			return false;
	return bpf_program__autoload(program) && (!l->only || !strcmp(l->only, name));
}

/* All that are due at once. False: the kernel refuses it. */
static bool load_together(struct load *l)
{
	struct bpf_object *object = open_configured(l);
	struct bpf_program *program;
	bool are_loaded;
	size_t nr = 0;

	if (!object)
		return false;
	bpf_object__for_each_program(program, object)
	{
		bool due = is_due(l, program);

		(void)bpf_program__set_autoload(program, due);
		nr += due;
	}
	are_loaded = !nr || !bpf_object__load(object);
	bpf_object__for_each_program(program, object)
	{
		if (are_loaded && bpf_program__autoload(program))
			printf("%s\t%s\tloaded\t%u\n", l->configuration->name,
			       bpf_program__name(program), followed(program));
	}
	if (are_loaded && nr)
		make_elements(l, object);
	bpf_object__close(object);
	return are_loaded;
}

/* The one program. `name` lives on. */
static void load_one(struct load *l, const char *name)
{
	struct bpf_object *object = open_configured(l);
	struct program_answer answer = {.error = -EINVAL};

	if (object)
		program_try(object, name, &answer);
	if (answer.error) {
		refuse(l, name, answer.words[0] ? answer.words : strerror(-answer.error));
		if (l->refused_nr < PROGRAMS_MAX)
			l->refused[l->refused_nr++] = name;
	} else {
		printf("%s\t%s\tloaded\t%u\n", l->configuration->name, name,
		       followed(bpf_object__find_program_by_name(object, name)));
	}
	bpf_object__close(object);
}

/* `known` is the object, for its programs' names. */
static void load_configuration(struct load *l, const struct bpf_object *known)
{
	struct bpf_program *program;
	struct bpf_object *object;

	if (load_together(l))
		return;
	object = open_configured(l);
	if (!object)
		refuse(l, "all", "cannot be configured");
	bpf_object__for_each_program(program, known)
	{
		const char *name = bpf_program__name(program);

		if (object && is_due(l, bpf_object__find_program_by_name(object, name)))
			load_one(l, name);
	}
	bpf_object__close(object);
}

int main(int argc, char **argv)
{
	struct load load = {.all = true};
	struct bpf_object *known;

	(void)libbpf_set_print(print_libbpf);
	verbose = getenv("LOAD_VERBOSE");
	known = argc > 1 ? bpf_object__open_file(argv[1], NULL) : NULL;
	if (!known) {
		(void)fprintf(stderr, "load_programs: cannot read '%s'\n", argc > 1 ? argv[1] : "");
		return 2;
	}
	load.path = argv[1];
	load.only = argc > 2 ? argv[2] : NULL;
	for (size_t i = 0; i < CONFIGURATIONS_NR; i++) {
		load.configuration = &configurations[i];
		if (argc > 3 && strcmp(argv[3], configurations[i].name) != 0)
			continue;
		load_configuration(&load, known);
		(void)fflush(stdout);
	}
	bpf_object__close(known);
	return !load.all;
}
