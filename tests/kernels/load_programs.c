/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Loads each program of a BPF object on its own, with each kind of stacks that gpuprof may load it
 * for, and prints the kernel's answers: a line each, tab-separated: configuration, program,
 * "loaded" and how many instructions the verifier followed, or "refused" and its last words.
 *
 * usage: load_programs OBJECT [PROGRAM [CONFIGURATION]]
 * exit status: 0 all were loaded, 1 not all, 2 the object cannot be read
 */
#include "base/cleanup.h"
#include "probe/program_try.h"
#include "target/uprobe_multi.h"
#include "wire.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

struct configuration {
	const char *name;
	unsigned int stacks;
	bool chosen, samples;
};

/* Programs differ with the stacks; the rest is what makes them largest. */
static const struct configuration configurations[] = {
	{"no stacks", 0, false, false},
	{"python", GP_STACK_WANT_PYTHON, true, true},
	{"both", GP_STACK_WANT_PYTHON | GP_STACK_WANT_NATIVE, true, true},
};

#define CONFIGURATIONS_NR (sizeof(configurations) / sizeof(*configurations))

static bool verbose;

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return verbose ? vfprintf(stderr, fmt, ap) : 0;
}

/* Finds the constants in the object's own description of them: each compiler places them anew. */
static int set_constant(struct bpf_object *object, const char *name, __u32 value)
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
		    v->offset + sizeof(value) > bytes)
			continue;
		memcpy(data + v->offset, &value, sizeof(value));
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

static int configure(struct bpf_object *object, const struct configuration *c)
{
	struct bpf_map *map;
	int err = set_constant(object, "gp_stacks", c->stacks);

	err = err ?: set_constant(object, "gp_ops_chosen", c->chosen);
	err = err ?: set_constant(object, "gp_cuda_memory", c->chosen);
	err = err ?: set_constant(object, "gp_stop_at_load", c->chosen);
	err = err ?: set_constant(object, "gp_cpus_nr", 2);
	err = err ?: set_constant(object, "gp_tick_ns", 4000000);
	err = err ?: set_constant(object, "gp_task_by_pid", may_find_tasks());
	bpf_object__for_each_map(map, object)
	{
		const char *name = bpf_map__name(map);

		if (!bpf_map__is_internal(map) &&
		    (strstr(name, "_by_tid") || strstr(name, "no_") == name))
			err = err ?: bpf_map__set_autocreate(map, false);
	}
	return err;
}

/* Those that look at threads which are not the current one take part in sampling only. */
static bool is_sampling(const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);

	return !strncmp(name, "gp_sample", 9) || !strncmp(name, "gp_look", 7) ||
	       !strncmp(name, "gp_tick", 7);
}

static unsigned int followed(const struct bpf_object *object, const char *name)
{
	struct bpf_prog_info info = {0};
	__u32 bytes = sizeof(info);
	const struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes))
		return 0;
	return info.verified_insns;
}

static bool try_one(const char *path, const char *name, const struct configuration *c)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct program_answer answer;

	if (!object || configure(object, c)) {
		printf("%s\t%s\trefused\tcannot be configured\n", c->name, name);
		bpf_object__close(object);
		return false;
	}
	program_try(object, name, &answer);
	if (answer.error)
		printf("%s\t%s\trefused\t%s\n", c->name, name,
		       answer.words[0] ? answer.words : strerror(-answer.error));
	else
		printf("%s\t%s\tloaded\t%u\n", c->name, name, followed(object, name));
	(void)fflush(stdout);
	bpf_object__close(object);
	return !answer.error;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct bpf_program *program;
	bool all = true;

	(void)libbpf_set_print(print_libbpf);
	verbose = getenv("LOAD_VERBOSE");
	object = argc > 1 ? bpf_object__open_file(argv[1], NULL) : NULL;
	if (!object) {
		(void)fprintf(stderr, "load_programs: cannot read '%s'\n", argc > 1 ? argv[1] : "");
		return 2;
	}
	bpf_object__for_each_program(
		program,
		object) for (size_t i = 0; i < CONFIGURATIONS_NR;
			     i++) if ((configurations[i].samples || !is_sampling(program)) &&
				      (argc < 3 || !strcmp(argv[2], bpf_program__name(program))) &&
				      (argc < 4 || !strcmp(argv[3], configurations[i].name))) all &=
		try_one(argv[1], bpf_program__name(program), &configurations[i]);
	bpf_object__close(object);
	return !all;
}
