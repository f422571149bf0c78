/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Checks what this machine, this user and a process allow. The kernel is asked for each feature
 * itself (kernel_checks.c); a process is only read, never changed.
 */
#include "inspect/program/capabilities.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/access/status.h"
#include "inspect/elf/elf.h"
#include "inspect/kernel/kernel_checks.h"
#include "inspect/process/rights.h"
#include "inspect/program/python_gc.h"
#include "inspect/program/versions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define RING_BYTES	(16u << 20) /* about what a capture requests */
#define RING_BYTES_LESS (64u << 10)

/* Paths of a process are copied as they are; whoever prints them escapes them. */
#define DETAIL(c, ...) (void)snprintf((c)->detail, sizeof((c)->detail), __VA_ARGS__)
#define ADVICE(c, ...) (void)snprintf((c)->advice, sizeof((c)->advice), __VA_ARGS__)

/* Advises after a refusal: what is missing, or what else may forbid it. */
static void advise_rights(struct capability *c, enum right right, int err)
{
	if (err == -ENOSYS)
		ADVICE(c, "this kernel was built without it; use a distribution's kernel");
	else
		rights_explain(right, c->advice, sizeof(c->advice));
}

static void check_bpf(struct capability *c)
{
	int err = kernel_try_program();

	c->required = true;
	c->answer = err ? CAPABILITY_NO : CAPABILITY_YES;
	if (!err) {
		DETAIL(c, "a program was loaded");
		return;
	}
	DETAIL(c, "a program of two instructions was refused: %s", strerror(-err));
	advise_rights(c, RIGHT_BPF, err);
}

static void check_btf(struct capability *c)
{
	CLEANUP(cleanup_fd) int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;
	unsigned char magic[2] = {0};

	c->required = true;
	if (!err && read(fd, magic, sizeof(magic)) == 2 && magic[0] == 0x9f && magic[1] == 0xeb) {
		c->answer = CAPABILITY_YES;
		DETAIL(c, "/sys/kernel/btf/vmlinux is there");
		return;
	}
	DETAIL(c, "/sys/kernel/btf/vmlinux: %s", err ? strerror(-err) : "no type information");
	rights_explain(RIGHT_SYS, c->advice, sizeof(c->advice));
}

static void check_uprobe_multi(struct capability *c)
{
	int err = kernel_try_uprobe_multi();
	int single;

	c->required = true;
	if (!err) {
		c->answer = CAPABILITY_YES;
		DETAIL(c, "a probe on gpuprof itself was set in one link");
		return;
	}
	single = kernel_try_uprobe();
	c->answer = single ? CAPABILITY_NO : CAPABILITY_PARTLY;
	if (!single) {
		DETAIL(c, "not here (%s); single uprobes are", strerror(-err));
		ADVICE(c, "Linux 6.6 or later sets all probes at once; here it takes longer to "
			  "attach and only functions in use are probed");
		return;
	}
	DETAIL(c, "neither in one link (%s) nor singly (%s)", strerror(-err), strerror(-single));
	advise_rights(c, RIGHT_BPF, single);
}

static void check_perf(struct capability *c)
{
	int err = kernel_try_perf_event(true);
	int own = err ? kernel_try_perf_event(false) : 0;

	c->answer = !err ? CAPABILITY_YES : !own ? CAPABILITY_PARTLY : CAPABILITY_NO;
	if (!err) {
		DETAIL(c, "a timer event was opened on a CPU");
		return;
	}
	if (!own)
		DETAIL(c, "only for gpuprof's own threads (of a whole CPU: %s)", strerror(-err));
	else
		DETAIL(c, "refused: %s", strerror(-own));
	if (err == -EACCES || err == -EPERM)
		rights_explain(RIGHT_PERF, c->advice, sizeof(c->advice));
	else
		ADVICE(c, "this kernel or container has no software events: no sampling here");
}

static void check_ring(struct capability *c)
{
	int err = kernel_try_ring(RING_BYTES);
	int less = err ? kernel_try_ring(RING_BYTES_LESS) : 0;

	c->required = true;
	c->answer = !err ? CAPABILITY_YES : !less ? CAPABILITY_PARTLY : CAPABILITY_NO;
	if (!err) {
		DETAIL(c, "a ring of %u MiB was made", RING_BYTES >> 20);
	} else if (!less) {
		DETAIL(c, "a ring of %u MiB was refused (%s), one of %u KiB made", RING_BYTES >> 20,
		       strerror(-err), RING_BYTES_LESS >> 10);
		ADVICE(c, "raise the memory limit (ulimit -l, or the cgroup's), or events may be "
			  "lost at high rates");
	} else {
		DETAIL(c, "refused: %s", strerror(-less));
		if (less == -EINVAL)
			ADVICE(c, "BPF ring buffers need Linux 5.8 or later");
		else
			advise_rights(c, RIGHT_BPF, less);
	}
}

int capabilities_yama_scope(void)
{
	CLEANUP(cleanup_free) char *text = NULL;

	if (file_read("/proc/sys/kernel/yama/ptrace_scope", 64, &text, NULL))
		return 0;
	return atoi(text);
}

static void advise_ptrace(struct capability *c, int scope)
{
	if (scope == 3)
		ADVICE(c, "kernel.yama.ptrace_scope is 3: tracing is off until the next boot. "
			  "gpuprof works with uprobes only (--no-inject)");
	else if (!rights_have(RIGHTS_CAP_SYS_PTRACE))
		rights_explain(RIGHT_PTRACE, c->advice, sizeof(c->advice));
	else
		ADVICE(c, "a container or security module forbids it; gpuprof works with uprobes "
			  "only (--no-inject)");
}

/* Returns the process's tracer; 0: it has none that we can see. */
static int tracer_of(pid_t pid)
{
	long tracer = status_read_number(pid, 0, "TracerPid", 0);

	return tracer > 0 ? (int)tracer : 0;
}

/* Tests the right to attach: opening /proc/PID/mem takes the same right and has no effect. */
static int may_trace(pid_t pid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	CLEANUP(cleanup_fd) int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

static void check_ptrace(struct capability *c, const struct target_process *p)
{
	int scope = capabilities_yama_scope(), err = kernel_try_ptrace(), tracer;

	if (err || scope == 3) {
		DETAIL(c, "tracing a child of gpuprof was refused: %s",
		       err ? strerror(-err) : "yama forbids all tracing");
		advise_ptrace(c, scope);
		return;
	}
	c->answer = CAPABILITY_YES;
	if (!p) {
		DETAIL(c, "a child can be traced; kernel.yama.ptrace_scope is %d", scope);
		if (scope && !rights_have(RIGHTS_CAP_SYS_PTRACE)) {
			c->answer = CAPABILITY_PARTLY;
			advise_ptrace(c, scope);
		}
		return;
	}
	err = may_trace(p->pid);
	tracer = tracer_of(p->pid);
	if (!err && !tracer) {
		DETAIL(c, "process %d may be traced", p->pid);
		return;
	}
	c->answer = CAPABILITY_NO;
	if (tracer) {
		DETAIL(c, "process %d is being traced by %d already", p->pid, tracer);
		ADVICE(c, "end the debugger or tracer (process %d), or use --no-inject", tracer);
		return;
	}
	DETAIL(c, "process %d may not be traced: %s", p->pid, strerror(-err));
	advise_ptrace(c, scope);
}

/* Counts at::_ops::NAME::call functions, where ops are probed. */
static int count_call(const struct elf_symbol *sym, void *arg)
{
	size_t *nr = arg;
	const char *call = strstr(sym->name, "4callE");

	*nr += call != NULL;
	return 0;
}

/* Counts the operators that the process's files define, and those files. */
static size_t count_operators(const struct target_process *p, size_t *ret_files_nr,
			      struct reason *why)
{
	size_t nr = 0, files_nr = 0;

	for (size_t i = 0; i < p->libraries_nr; i++) {
		const struct target_library *l = &p->libraries[i];
		const char *slash = strrchr(l->path, '/');
		size_t before = nr;
		struct elf_file *f;

		if (strncmp(slash ? slash : "", "/libtorch", 9) && strcmp(l->path, p->exe))
			continue;
		if (elf_file__open(l->open_path, why, &f))
			continue;
		(void)elf_file__each_symbol(f, "_ZN2at4_ops", count_call, &nr);
		files_nr += nr > before;
		elf_file__free(f);
	}
	*ret_files_nr = files_nr;
	return nr;
}

static void check_torch(struct capability *c, const struct target_process *p,
			const struct target_versions *v)
{
	struct reason why = {""};
	size_t files_nr, nr = count_operators(p, &files_nr, &why);

	c->answer = nr ? CAPABILITY_YES : CAPABILITY_NO;
	if (nr) {
		DETAIL(c, "PyTorch %s: %zu operators in %zu file%s", v->torch[0] ? v->torch : "?",
		       nr, files_nr, files_nr == 1 ? "" : "s");
	} else if (v->torch[0]) {
		DETAIL(c, "PyTorch %s, but no operator was found in its files%s%s", v->torch,
		       why.text[0] ? ": " : "", why.text);
		ADVICE(c, "a PyTorch without symbols cannot be probed by name");
	} else {
		DETAIL(c, "process has no PyTorch mapped");
		ADVICE(c, "nothing to do if it does not use PyTorch; if it will, it is probed when "
			  "it loads it");
	}
}

static void check_python_gc(struct capability *c, const struct target_process *p)
{
	const struct target_library *file = target_python_file(p);

	c->answer = file && target_python_marks_gc(file) ? CAPABILITY_YES : CAPABILITY_NO;
	if (c->answer == CAPABILITY_YES) {
		DETAIL(c, "its Python has probes for garbage collections");
	} else if (file) {
		DETAIL(c, "its Python has no probes for garbage collections");
		ADVICE(c, "nothing else is missing; a CPython that was built with --with-dtrace, "
			  "as Debian's is, tells");
	} else {
		DETAIL(c, "process has no Python mapped");
		ADVICE(c, "nothing to do");
	}
}

static void driver_version(char *to, size_t bytes)
{
	CLEANUP(cleanup_free) char *text = NULL;
	const char *at;

	to[0] = '\0';
	if (file_read("/proc/driver/nvidia/version", 4096, &text, NULL))
		return;
	at = strpbrk(text, "0123456789");
	while (at && !memchr(at, '.', strspn(at, "0123456789.")))
		at = strpbrk(at + strspn(at, "0123456789."), "0123456789");
	(void)snprintf(to, bytes, "%.*s", at ? (int)strspn(at, "0123456789.") : 1, at ? at : "?");
}

static void check_cuda(struct capability *c, const struct target_versions *v)
{
	char driver[32];

	driver_version(driver, sizeof(driver));
	if (v && v->cuda[0]) {
		c->answer = CAPABILITY_YES;
		DETAIL(c, "process has CUDA %s mapped; driver of this machine: %s", v->cuda,
		       driver[0] ? driver : "none");
		return;
	}
	c->answer = driver[0] && !v ? CAPABILITY_YES : CAPABILITY_NO;
	if (driver[0]) {
		DETAIL(c, "driver %s%s", driver, v ? ", but process has no CUDA mapped" : "");
		if (v)
			ADVICE(c, "nothing to do if it does not use a GPU; CUDA is loaded at first "
				  "use");
		return;
	}
	DETAIL(c, "no NVIDIA driver is loaded");
	ADVICE(c, "nothing to do on a machine without an NVIDIA GPU: CPU and memory are profiled");
}

static void check_cupti(struct capability *c, const struct target_versions *v)
{
	c->answer = v->cupti[0] ? CAPABILITY_YES : CAPABILITY_NO;
	if (v->cupti[0]) {
		DETAIL(c, "CUPTI %s, %s", v->cupti,
		       v->cupti_mapped ? "mapped in the process" : "beside its CUDA");
		return;
	}
	DETAIL(c, "%s",
	       v->cuda[0] ? "none mapped and none beside its CUDA" : "process has no CUDA mapped");
	if (v->cuda[0])
		ADVICE(c, "install CUPTI of the same CUDA version (it is in every CUDA toolkit; "
			  "the wheel is nvidia-cuda-cupti); without it there are no GPU times");
	else
		ADVICE(c, "nothing to do if it does not use a GPU");
}

/* NULL: it was not checked. */
static const struct capability *find(const struct capability *all, const char *name)
{
	while (all->name && strcmp(all->name, name))
		all++;
	return all->name ? all : NULL;
}

static bool is_no(const struct capability *all, const char *name)
{
	const struct capability *c = find(all, name);

	return c && c->answer == CAPABILITY_NO;
}

/* Whether the process has something that an injected collector can report. */
static bool has_reporter(const struct capability *all, const struct target_process *p)
{
	return !p || !is_no(all, "torch_symbols") || !is_no(all, "cuda");
}

/* Decides "attach" from all others. Where no BPF program can be loaded, the collector alone is
 * enough. */
static void check_attach(struct capability *all, size_t nr, const struct target_process *p)
{
	bool no_probes = is_no(all, "bpf") || is_no(all, "btf") || is_no(all, "ring_memory") ||
			 is_no(all, "programs");
	struct capability *c = &all[nr];

	if (no_probes && find(all, "ptrace")->answer == CAPABILITY_YES && has_reporter(all, p)) {
		for (size_t i = 0; i < nr; i++)
			all[i].required = false;
		c->answer = CAPABILITY_PARTLY;
		DETAIL(c, "without probes: an injected library reports from inside the process");
		ADVICE(c, "operators, shapes, Python stacks and GPU times, without libraries that "
			  "come later, exec, children and samples; for all of it see what is a no, "
			  "above");
		return;
	}
	c->answer = CAPABILITY_YES;
	for (size_t i = 0; i < nr; i++)
		if (all[i].required && all[i].answer == CAPABILITY_NO)
			c->answer = CAPABILITY_NO;
	if (c->answer == CAPABILITY_NO) {
		DETAIL(c, "a required capability is missing");
		ADVICE(c, "see what is marked as required, above");
	} else if (is_no(all, "ptrace")) {
		c->answer = CAPABILITY_PARTLY;
		DETAIL(c, "by probes only (--no-inject)");
		ADVICE(c,
		       "operators, memory, stacks and the calls of CUDA, without shapes, modules "
		       "and GPU times; for all of it see ptrace, above");
	} else {
		DETAIL(c, "by probes, and by an injected library");
	}
	c->required = true;
}

/* Appends the caller's results to the first `nr`, then "attach". Returns how many there are. */
static size_t finish(struct capability *all, size_t nr, const struct target_process *p,
		     const struct capability *later, size_t later_nr)
{
	for (size_t i = 0; i < later_nr && i < CAPABILITIES_LATER_MAX; i++)
		all[nr++] = later[i];
	check_attach(all, nr, p);
	all[nr].name = "attach";
	return nr + 1;
}

size_t capabilities_check(const struct target_process *p, const struct capability *later,
			  size_t later_nr, struct capability ret_capabilities[CAPABILITIES_MAX])
{
	static const char *const names[] = {
		"bpf",	  "btf",	   "uprobe_multi", "perf_event", "ring_memory",
		"ptrace", "torch_symbols", "cuda",	   "cupti",	 "python_gc"};
	const size_t machine_nr = 6;
	struct capability *c = ret_capabilities;
	struct target_versions v = {0};

	memset(c, 0, CAPABILITIES_MAX * sizeof(*c));
	for (size_t i = 0; i < (p ? sizeof(names) / sizeof(*names) : machine_nr); i++)
		c[i].name = names[i];
	check_bpf(&c[0]);
	check_btf(&c[1]);
	check_uprobe_multi(&c[2]);
	check_perf(&c[3]);
	check_ring(&c[4]);
	check_ptrace(&c[5], p);
	if (!p) {
		c[6].name = "cuda";
		check_cuda(&c[6], NULL);
		return finish(c, 7, NULL, later, later_nr);
	}
	target_versions_read(p, &v);
	check_torch(&c[6], p, &v);
	check_cuda(&c[7], &v);
	check_cupti(&c[8], &v);
	check_python_gc(&c[9], p);
	return finish(c, 10, p, later, later_nr);
}
