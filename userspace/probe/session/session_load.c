/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Loads a session's programs. The kernel refuses an object at its first bad program with an errno
 * that says little. So after a refusal each program is tried on its own: those that the session can
 * do without are left out, and for the others the verifier's message is the reason.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "gpuprof.skel.h"
#include "inspect/kernel/kernel_checks.h"
#include "inspect/process/rights.h"
#include "probe/session/program_check.h"
#include "probe/session/session_private.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define KIND(kind) (1u << PROBE_##kind)

/* What each program is for, except those without which nothing is probed. */
static const struct feature {
	const char *program, *costs;
	uint32_t kinds;
	bool needed; /* a session that asks for it fails without it */
} features[] = {
	{"gp_node_entry", "autograd nodes", KIND(NODE), false},
#define BOXED	    "operators called through torch.ops or TorchScript, and ranges"
#define BOXED_KINDS (KIND(DISPATCH) | KIND(UNSEEN) | KIND(RANGE))
	{"gp_dispatch_entry", BOXED, BOXED_KINDS, false},
	{"gp_dispatch_exit", BOXED, BOXED_KINDS, false},
	{"gp_dispatch_unseen", BOXED, BOXED_KINDS, false},
	{"gp_range", BOXED, BOXED_KINDS, false},
#define NVTX	   "ranges of NVTX"
#define NVTX_KINDS (KIND(NVTX_PUSH) | KIND(NVTX_POP) | KIND(NVTX_TOOL_PUSH) | KIND(NVTX_TOOL_POP))
	{"gp_nvtx_push", NVTX, NVTX_KINDS, false},
	{"gp_nvtx_pop", NVTX, NVTX_KINDS, false},
	{"gp_nvtx_tool_push", NVTX, NVTX_KINDS, false},
	{"gp_nvtx_tool_pop", NVTX, NVTX_KINDS, false},
#define API "calls of CUDA and NCCL that probes would see"
	{"gp_api_entry", API, KIND(API), false},
	{"gp_api_exit", API, KIND(API), false},
#define MEMORY	     "memory"
#define MEMORY_KINDS (KIND(ALLOC) | KIND(FREE) | KIND(REPORT) | KIND(OOM) | KIND(CPU_OOM))
	{"gp_cpu_new", MEMORY, MEMORY_KINDS, false},
	{"gp_cpu_delete", MEMORY, MEMORY_KINDS, false},
	{"gp_report_memory", MEMORY, MEMORY_KINDS, false},
	{"gp_report_oom", "GPU memory that was refused", KIND(OOM), false},
	{"gp_cpu_oom", "CPU memory that was refused", KIND(CPU_OOM), false},
#define COLLECTIONS "Python's garbage collections"
	{"gp_gc_start", COLLECTIONS, 0, false},
	{"gp_gc_done", COLLECTIONS, 0, false},
	{"gp_code_freed", "Python stacks at their usual cost", 0, false},
#define PROCESSES "children, exec and exit as they happen"
	{"gp_process_exit", PROCESSES, 0, false},
	{"gp_process_exec", PROCESSES, 0, false},
	{"gp_process_fork", PROCESSES, 0, false},
	{"gp_look", "samples of threads that wait", 0, false},
	{"gp_sampled_exit", "samples", 0, true},
	{"gp_sample_timer", "samples", 0, true},
};

static const struct feature *feature_of(const char *program)
{
	for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++)
		if (!strcmp(features[i].program, program))
			return &features[i];
	return NULL;
}

/* Creates only the maps that a program uses: they take memory, and old kernels lack some kinds. */
static int choose_stack_maps(struct gpuprof_bpf *bpf, uint32_t stacks, bool task_storage)
{
	bool python = stacks & GP_STACK_WANT_PYTHON, native = stacks & GP_STACK_WANT_NATIVE;
	const struct {
		struct bpf_map *map;
		bool wanted;
	} maps[] = {
		{bpf->maps.stacks, python || native},
		{bpf->maps.pythons, python},
		{bpf->maps.quick_stacks, python},
		{bpf->maps.python_threads, python && task_storage},
		{bpf->maps.python_threads_by_tid, python && !task_storage},
		{bpf->maps.no_python_thread, python && !task_storage},
		{bpf->maps.python_windows, python && task_storage},
		{bpf->maps.python_windows_by_tid, python && !task_storage},
		{bpf->maps.no_python_windows, python && !task_storage},
		{bpf->maps.unwind_ranges, native},
		{bpf->maps.unwind_tables, native},
		{bpf->maps.native_threads, native && task_storage},
		{bpf->maps.native_threads_by_tid, native && !task_storage},
		{bpf->maps.no_native_thread, native && !task_storage},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]) && !err; i++)
		err = bpf_map__set_autocreate(maps[i].map, maps[i].wanted);
	return err;
}

/* Sets the programs' constants. */
static void set_constants(const struct probe_session *s, struct gpuprof_bpf *bpf, bool task_storage)
{
	bpf->rodata->gp_task_storage = task_storage;
	bpf->rodata->gp_stop_at_load = s->options.stop_at_load;
	bpf->rodata->gp_stacks = s->options.stacks;
	bpf->rodata->gp_ops_alone = s->options.ops_alone;
	bpf->rodata->gp_ops_chosen = s->options.ops_glob != NULL;
	memcpy(bpf->rodata->gp_glob_sets, s->plans.globs.sets, sizeof(s->plans.globs.sets));
	memcpy(bpf->rodata->gp_glob_tokens, s->plans.globs.tokens, sizeof(s->plans.globs.tokens));
	bpf->rodata->gp_cuda_memory = s->options.gpu && s->options.memory;
	bpf->rodata->gp_wakeup_bytes = s->options.ring_bytes / 4;
}

/* Leaves out what no option asks for and what the kernel is known to refuse. 0 or -errno. */
static int choose(const struct probe_session *s, struct gpuprof_bpf *bpf, bool task_storage)
{
	int err = bpf_map__set_max_entries(bpf->maps.ring, s->options.ring_bytes);

	for (enum program i = 0; i < PROGRAMS_NR; i++)
		(void)bpf_program__set_expected_attach_type(
			program_of(bpf, i), (enum bpf_attach_type)link_attach_type(s->method));
	err = err
		      ?: bpf_map__set_autocreate(task_storage ? bpf->maps.threads_by_tid
							      : bpf->maps.threads,
						 false);
	if (!err && task_storage)
		err = bpf_map__set_autocreate(bpf->maps.no_thread, false);
	err = err ?: choose_stack_maps(bpf, s->options.stacks, task_storage);
	err = err ?: programs_choose(&s->options, &s->refused, bpf);
	err = err ?: session_sample_choose(s, bpf);
	err = err ?: session_gc_choose(s, bpf);
	for (size_t i = 0; i < s->refused.names.nr && !err; i++)
		err = bpf_program__set_autoload(
			bpf_object__find_program_by_name(bpf->obj, s->refused.names.items[i]),
			false);
	return err;
}

/* Opens the object with the session's choice of programs and maps. 0 or -errno. */
static int open_chosen(const struct probe_session *s, bool task_storage,
		       struct gpuprof_bpf **ret_bpf)
{
	struct gpuprof_bpf *bpf = gpuprof_bpf__open();
	int err;

	if (!bpf)
		return -errno;
	set_constants(s, bpf, task_storage);
	err = choose(s, bpf, task_storage);
	if (err)
		gpuprof_bpf__destroy(bpf);
	else
		*ret_bpf = bpf;
	return err;
}

static int load(struct probe_session *s, bool task_storage)
{
	struct gpuprof_bpf *bpf;
	int err = open_chosen(s, task_storage, &bpf);

	if (err)
		return err;
	err = gpuprof_bpf__load(bpf);
	if (err)
		gpuprof_bpf__destroy(bpf);
	else
		s->bpf = bpf;
	return err;
}

static bool may_use_task_storage(void)
{
	const char *no = getenv("GPUPROF_NO_TASK_STORAGE");

	return !no || !*no || !strcmp(no, "0");
}

/* Whether the error may have a cause other than a program, which affects all of them. */
static bool is_general(int err)
{
	return err == -EPERM || err == -ENOMEM;
}

/* Tries one program as the session would load it. False: the kernel accepts it. */
static bool is_refused(const struct probe_session *s, bool task_storage, const char *name,
		       struct program_refusal *ret_refusal)
{
	struct program_answer *answer = &ret_refusal->answer;
	const struct feature *feature = feature_of(name);
	struct gpuprof_bpf *bpf;

	*ret_refusal = (struct program_refusal){
		.costs = feature ? feature->costs : "anything by probes",
		.required = !feature || feature->needed,
		.all = !feature,
		.kinds = feature ? feature->kinds : 0,
	};
	(void)snprintf(ret_refusal->program, sizeof(ret_refusal->program), "%s", name);
	answer->error = open_chosen(s, task_storage, &bpf);
	if (answer->error)
		return true;
	program_try(bpf->obj, name, answer);
	gpuprof_bpf__destroy(bpf);
	return answer->error;
}

/* Tries each program that the session asks for. Returns how many, or -errno. */
static int check_each(const struct probe_session *s, bool task_storage,
		      void (*fn)(const struct program_refusal *refusal, void *arg), void *arg)
{
	struct program_refusal refusal;
	struct bpf_program *program;
	struct gpuprof_bpf *bpf;
	int nr = 0, err = open_chosen(s, task_storage, &bpf);

	if (err)
		return err;
	bpf_object__for_each_program(program, bpf->obj)
	{
		if (!bpf_program__autoload(program))
			continue;
		nr++;
		if (is_refused(s, task_storage, bpf_program__name(program), &refusal))
			fn(&refusal, arg);
	}
	gpuprof_bpf__destroy(bpf);
	return nr;
}

const char *program_check_kernel(char *to, size_t bytes)
{
	struct utsname name;

	(void)snprintf(to, bytes, "Linux %s", uname(&name) ? "?" : name.release);
	return to;
}

/* Whether programs may call bpf_loop(), which nearly all of ours do. */
static bool kernel_has_loops(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL) != 0;
}

static int explain_rights(struct reason *why, int err, enum right right)
{
	char text[512];

	rights_explain(right, text, sizeof(text));
	return reason_set(why, err, "cannot load BPF programs: %s", text);
}

/* Explains an errno when no program was found to be the cause. */
static int explain_errno(struct reason *why, int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		return explain_rights(why, err, RIGHT_BPF);
	case -ENOMEM:
		return reason_set(why, err,
				  "cannot load BPF programs: out of memory; try a smaller ring");
	case -ESRCH:
	case -ENOENT:
		return explain_rights(why, err, RIGHT_SYS);
	default:
		return reason_set(why, err, "cannot load BPF programs: %s; try 'gpuprof doctor'",
				  strerror(-err));
	}
}

/* The results of trying each program. */
struct refusals {
	struct probe_session *s;
	struct program_refusal first; /* the first that is required */
	const char *reported;	      /* the last `costs` that was logged */
	int err;
};

/* Counts as a refusal of one program only what the verifier says, or what that program alone lacks.
 */
static void take_refusal(const struct program_refusal *refusal, void *arg)
{
	struct refusals *r = arg;
	char kernel[80];

	if (!refusal->answer.verified && is_general(refusal->answer.error))
		return;
	if (refusal->required) {
		if (!r->first.program[0])
			r->first = *refusal;
		return;
	}
	r->s->refused.kinds |= refusal->kinds;
	r->err = r->err ?: vec_push(&r->s->refused.names, feature_of(refusal->program)->program);
	if (r->reported == refusal->costs)
		return;
	r->reported = refusal->costs;
	log_warn("%s refuses the BPF program %s ('%s'): %s cannot be recorded; please "
		 "report it, with what 'gpuprof doctor' says",
		 program_check_kernel(kernel, sizeof(kernel)), refusal->program,
		 refusal->answer.words[0] ? refusal->answer.words
					  : strerror(-refusal->answer.error),
		 refusal->costs);
}

static int explain_refusal(struct reason *why, int err, const struct program_refusal *refusal)
{
	char kernel[80];

	(void)program_check_kernel(kernel, sizeof(kernel));
	return reason_set(why, err,
			  "cannot load BPF programs: %s refuses %s ('%s'); please report it, with "
			  "what 'gpuprof doctor' says",
			  kernel, refusal->program, refusal->answer.words);
}

/* After a load that failed with `err`: finds the cause and loads the rest. 0, or -errno with a
 * reason. */
static int load_rest(struct probe_session *s, bool task_storage, int err, struct reason *why)
{
	struct refusals r = {.s = s};
	char kernel[80];
	int nr;

	if (!kernel_has_loops())
		return reason_set(
			why, err,
			"cannot load BPF programs: %s has no bpf_loop() (Linux 5.17 has it)",
			program_check_kernel(kernel, sizeof(kernel)));
	/* Under this lockdown programs cannot call what nearly all of ours need. */
	if (!strcmp(rights_lockdown(), "confidentiality"))
		return reason_set(why, err,
				  "cannot load BPF programs: kernel lockdown (confidentiality) "
				  "forbids programs that read the kernel's memory; boot with "
				  "lockdown=integrity, or without");
	nr = check_each(s, task_storage, take_refusal, &r);
	if (nr < 0)
		return explain_errno(why, nr);
	if (r.err)
		return explain_errno(why, r.err);
	if (r.first.program[0] && r.first.answer.verified)
		return explain_refusal(why, err, &r.first);
	if (r.first.program[0] || !s->refused.names.nr)
		return explain_errno(why, err);
	err = load(s, task_storage);
	return err ? explain_errno(why, err) : 0;
}

int session_load(struct probe_session *s, struct reason *why)
{
	bool task_storage = may_use_task_storage();
	int first = load(s, task_storage), err = first;

	if (err && !is_general(err) && s->options.sample_hz && !s->refused.no_tick) {
		log_debug("cannot sample within the scheduler's tick");
		s->refused.no_tick = true;
		err = load(s, task_storage);
	}
	if (err && !is_general(err) && task_storage && !load(s, false)) {
		log_debug("no task storage for uprobe programs: threads are kept by number");
		return 0;
	}
	if (!err)
		return 0;
	return is_general(err) ? explain_errno(why, err) : load_rest(s, task_storage, first, why);
}

int program_check_all(void (*fn)(const struct program_refusal *refusal, void *arg), void *arg)
{
	struct probe_session s = {
		.options = {.ring_bytes = 65536,
			    .ops = true,
			    .ops_glob = "*",
			    .python_gc = true,
			    .memory = true,
			    .gpu = true,
			    .stacks = GP_STACK_WANT_PYTHON | GP_STACK_WANT_NATIVE,
			    .stop_at_load = true},
		.method = link_method_probe(),
		.refused.no_tick = true,
	};
	int nr = kernel_try_program(), sampled;

	/* If no program at all can be loaded, this says nothing about ours. */
	nr = nr ? nr : check_each(&s, true, fn, arg);
	if (nr < 0)
		return nr;
	/* Sampling excludes the other programs, so it is tried separately. */
	s.options = (struct probe_options){
		.ring_bytes = s.options.ring_bytes, .sample_hz = 100, .stacks = s.options.stacks};
	sampled = check_each(&s, true, fn, arg);
	return sampled < 0 ? sampled : nr + sampled;
}
