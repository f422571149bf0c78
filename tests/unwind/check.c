/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Compares the kernel's walk of native stacks with libdw's unwinder, which shares nothing with it
 * but the reading of .eh_frame, on the very same stopped threads:
 *
 *   check [--time] PID SAMPLES SECONDS
 *
 * samples a running process, which each sample stops, and prints by the file of the innermost frame
 * how many stacks were equal, deeper than 256 frames, marked as not whole (the frames that are
 * there being right), wrong, or not comparable because the thread was not where the sample said or
 * libdw came to no end. With --time nothing stops or is compared: what a walk costs is printed, by
 * the number of frames.
 */
#include "base/cleanup.h"
#include "base/vec.h"
#include "inspect/elf/vdso.h"
#include "inspect/process/process.h"
#include "probe/unwind/unwind_maps.h"
#include "tests/unwind/sample.skel.h"
#include "wire.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

/* As sample.bpf.c has it. */
struct sample {
	uint64_t ip, sp, bp;
	uint32_t tid, nr, flags, reserved;
	uint64_t ns;
	uint64_t frames[GP_STACK_FRAMES];
};

struct truth {
	uint64_t frames[GP_STACK_FRAMES + 1];
	uint32_t nr;
};

struct live_totals {
	char name[64];
	uint64_t equal, truncated, marked, wrong, other;
};

/* Of one walk. */
struct cost {
	uint32_t frames_nr;
	uint32_t ns;
};

static struct {
	pid_t pid;
	struct target_process *process;
	struct sample_bpf *bpf;
	VEC(struct bpf_link *) timers;
	struct unwind_maps *maps;
	Dwfl *dwfl;
	struct user_regs_struct regs;
	struct sample sample;
	bool have_sample;
	VEC(struct live_totals) tallies;
	uint64_t ns, walked_frames, walks;
	bool time_only;
	VEC(struct cost) costs;
} check;

static void fail(const char *what)
{
	(void)fprintf(stderr, "check: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- the independent unwinder ---- */

static int no_elf(Dwfl_Module *m, void **data, const char *name, Dwarf_Addr base, char **file,
		  Elf **elf)
{
	return -1;
}

static int no_debuginfo(Dwfl_Module *m, void **data, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **debug_name)
{
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	if (*thread_arg)
		return 0;
	*thread_arg = &check;
	return (pid_t)check.sample.tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	*thread_arg = &check;
	return true;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret_word, void *arg)
{
	struct iovec to = {ret_word, sizeof(*ret_word)};
	struct iovec from = {(void *)(uintptr_t)address, sizeof(*ret_word)};

	return process_vm_readv(check.pid, &to, 1, &from, 1, 0) == sizeof(*ret_word);
}

static bool initial_registers(Dwfl_Thread *thread, void *arg)
{
	const struct user_regs_struct *r = &check.regs;
	Dwarf_Word words[17] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
				r->rbp, r->rsp, r->r8,	r->r9,	r->r10, r->r11,
				r->r12, r->r13, r->r14, r->r15, r->rip};

	return dwfl_thread_state_registers(thread, 0, 17, words);
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct truth *t = arg;
	bool activation;
	Dwarf_Addr pc;

	if (t->nr > GP_STACK_FRAMES || !dwfl_frame_pc(frame, &pc, &activation))
		return DWARF_CB_ABORT;
	t->frames[t->nr++] = pc - (activation ? 0 : 1);
	return DWARF_CB_OK;
}

static void report(const char *name, const char *path, uint64_t base)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && !dwfl_report_elf(check.dwfl, name, path, fd, base, true))
		(void)close(fd);
}

/* The image is the same in all processes. */
static void report_vdso(void)
{
	uint64_t start, end, base, base_end;
	int fd = memfd_create("vdso", MFD_CLOEXEC);

	if (fd < 0 || vdso_find(getpid(), &start, &end) || vdso_find(check.pid, &base, &base_end) ||
	    write(fd, (const void *)(uintptr_t)start, end - start) != (ssize_t)(end - start) ||
	    !dwfl_report_elf(check.dwfl, "[vdso]", "[vdso]", fd, base, true))
		fail("vDSO");
}

static void begin_truth(void)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = no_elf,
						 .find_debuginfo = no_debuginfo};
	static const Dwfl_Thread_Callbacks threads = {.next_thread = next_thread,
						      .get_thread = get_thread,
						      .memory_read = memory_read,
						      .set_initial_registers = initial_registers};

	check.dwfl = dwfl_begin(&callbacks);
	dwfl_report_begin(check.dwfl);
	for (size_t i = 0; i < check.process->libraries_nr; i++)
		report(check.process->libraries[i].path, check.process->libraries[i].open_path,
		       check.process->libraries[i].base);
	report_vdso();
	if (dwfl_report_end(check.dwfl, NULL, NULL) ||
	    !dwfl_attach_state(check.dwfl, NULL, check.pid, &threads, &check))
		fail("libdwfl");
}

/* ---- samples ---- */

static int on_sample(void *arg, void *data, size_t bytes)
{
	if (bytes >= sizeof(check.sample)) {
		memcpy(&check.sample, data, sizeof(check.sample));
		check.have_sample = true;
	}
	return 0;
}

static int on_event(void *arg, void *data, size_t bytes)
{
	const struct gp_ev_unwind *e = data;

	if (bytes >= sizeof(*e) && e->head.kind == GP_EV_UNWIND)
		(void)unwind_maps__load(check.maps, e->head.process, e->address);
	unwind_maps__collect(check.maps, true);
	return 0;
}

static void open_timers(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 997000,
				       .exclude_kernel = 1};

	for (int cpu = 0; cpu < (int)sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
		int fd =
			(int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		struct bpf_link *link =
			fd < 0 ? NULL
			       : bpf_program__attach_perf_event(check.bpf->progs.take_sample, fd);

		if (!link || vec_push(&check.timers, link))
			fail("perf event");
	}
}

static bool is_stopped(uint32_t tid)
{
	char path[64], text[512], *after;
	FILE *f;
	bool stopped = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", (int)check.pid, tid);
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f) && (after = strrchr(text, ')')))
		stopped = after[2] == 'T' || after[2] == 't';
	if (f)
		(void)fclose(f);
	return stopped;
}

/* The registers of the stopped thread. False: they cannot be had. */
static bool read_registers(uint32_t tid)
{
	struct timespec pause = {.tv_nsec = 200000};
	int status;

	for (int i = 0; i < 5000 && !is_stopped(tid); i++)
		(void)nanosleep(&pause, NULL);
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ||
	    waitpid((pid_t)tid, &status, __WALL) != (pid_t)tid)
		return false;
	return !ptrace(PTRACE_GETREGS, tid, NULL, &check.regs);
}

static struct live_totals *totals_of(uint64_t address)
{
	const char *name = "elsewhere";
	struct live_totals fresh = {0};

	for (size_t i = 0; i < check.process->libraries_nr; i++) {
		const struct target_library *l = &check.process->libraries[i];

		if (l->start <= address && address < l->end)
			name = strrchr(l->path, '/') + 1;
	}
	for (size_t i = 0; i < check.tallies.nr; i++)
		if (!strncmp(check.tallies.items[i].name, name, sizeof(fresh.name) - 1))
			return &check.tallies.items[i];
	(void)snprintf(fresh.name, sizeof(fresh.name), "%s", name);
	if (vec_push(&check.tallies, fresh))
		fail("memory");
	return &check.tallies.items[check.tallies.nr - 1];
}

static void print_stack(const struct truth *t, int ended)
{
	const struct sample *s = &check.sample;

	(void)fprintf(stderr, "wrong: flags %u, libdw %s (%s)\n", s->flags,
		      ended ? "came to no end" : "came to its end", dwfl_errmsg(-1));
	for (uint32_t i = 0; i < s->nr || i < t->nr; i++) {
		uint64_t at = i < s->nr ? s->frames[i] : t->frames[i];
		Dwfl_Module *m = dwfl_addrmodule(check.dwfl, at);
		const char *name = m ? dwfl_module_addrname(m, at) : NULL;

		(void)fprintf(stderr, "  %16llx %16llx %s\n",
			      i < s->nr ? (unsigned long long)s->frames[i] : 0,
			      i < t->nr ? (unsigned long long)t->frames[i] : 0, name ? name : "?");
	}
}

static void compare(void)
{
	const struct sample *s = &check.sample;
	struct live_totals *tally = totals_of(s->ip);
	struct truth t = {0};
	uint32_t same = 0;
	int ended;

	if (!read_registers(s->tid) || check.regs.rip != s->ip || check.regs.rsp != s->sp ||
	    check.regs.rbp != s->bp) {
		tally->other++;
		return;
	}
	ended = dwfl_getthread_frames(check.dwfl, (pid_t)s->tid, take_frame, &t);
	while (same < s->nr && same < t.nr && s->frames[same] == t.frames[same])
		same++;
	if (s->flags == GP_STACK_TRUNCATED && same == s->nr) {
		tally->truncated++;
	} else if (s->flags && same == s->nr) {
		tally->marked++;
	} else if (!s->flags && same == s->nr && same == t.nr && !ended) {
		tally->equal++;
	} else if (same == t.nr && ended) {
		tally->other++;
	} else {
		tally->wrong++;
		print_stack(&t, ended);
	}
}

static void one_sample(struct ring_buffer *ring)
{
	check.have_sample = false;
	__atomic_store_n(&check.bpf->bss->sample_armed, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 100 && !check.have_sample; i++)
		(void)ring_buffer__poll(ring, 10);
	if (!check.have_sample)
		return;
	if (check.time_only) {
		struct cost cost = {check.sample.nr, (uint32_t)check.sample.ns};

		if (vec_push(&check.costs, cost))
			fail("memory");
		return;
	}
	check.ns += check.sample.ns;
	check.walked_frames += check.sample.nr;
	check.walks++;
	compare();
	(void)ptrace(PTRACE_DETACH, check.sample.tid, NULL, NULL);
	(void)kill(check.pid, SIGCONT);
}

static void print_tally(const struct live_totals *t)
{
	(void)printf("%s equal %llu truncated %llu marked %llu wrong %llu other %llu\n", t->name,
		     (unsigned long long)t->equal, (unsigned long long)t->truncated,
		     (unsigned long long)t->marked, (unsigned long long)t->wrong,
		     (unsigned long long)t->other);
}

static void print_tallies(void)
{
	struct live_totals sum = {.name = "all"};

	for (size_t i = 0; i < check.tallies.nr; i++) {
		const struct live_totals *t = &check.tallies.items[i];

		print_tally(t);
		sum.equal += t->equal;
		sum.truncated += t->truncated;
		sum.marked += t->marked;
		sum.wrong += t->wrong;
		sum.other += t->other;
	}
	print_tally(&sum);
	(void)printf("%llu walks of %.1f frames, %.0f ns each\n", (unsigned long long)check.walks,
		     (double)check.walked_frames / (double)(check.walks ? check.walks : 1),
		     (double)check.ns / (double)(check.walks ? check.walks : 1));
}

static int compare_costs(const void *a, const void *b)
{
	const struct cost *x = a, *y = b;

	if (x->frames_nr / 8 != y->frames_nr / 8)
		return x->frames_nr / 8 < y->frames_nr / 8 ? -1 : 1;
	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Medians, of eight depths each. */
static void print_costs(void)
{
	const struct cost *c = check.costs.items;
	size_t end;

	if (check.costs.nr)
		qsort(check.costs.items, check.costs.nr, sizeof(*c), compare_costs);
	for (size_t i = 0; i < check.costs.nr; i = end) {
		for (end = i; end < check.costs.nr && c[end].frames_nr / 8 == c[i].frames_nr / 8;)
			end++;
		(void)printf("%u to %u frames: %u ns (%zu walks)\n", c[i].frames_nr / 8 * 8,
			     c[i].frames_nr / 8 * 8 + 7, c[i + (end - i) / 2].ns, end - i);
	}
}

static void begin(void)
{
	struct reason why = {0};
	uint64_t start, end;

	if (target_process__new(check.pid, &why, &check.process)) {
		(void)fprintf(stderr, "check: %s\n", why.text);
		exit(2);
	}
	check.bpf = sample_bpf__open();
	if (!check.bpf)
		fail("bpf");
	check.bpf->rodata->sample_tgid = (uint32_t)check.pid;
	check.bpf->rodata->sample_stop = !check.time_only;
	if (sample_bpf__load(check.bpf))
		fail("bpf");
	check.maps = unwind_maps__new(bpf_map__fd(check.bpf->maps.unwind_ranges),
				      bpf_map__fd(check.bpf->maps.unwind_tables), NULL);
	if (!check.maps || unwind_maps__set_process(check.maps, 0, check.process))
		fail("maps");
	/* What is measured here is the walk, not when tables come. */
	for (size_t i = 0; i < check.process->libraries_nr; i++)
		(void)unwind_maps__load(check.maps, 0, check.process->libraries[i].start);
	if (!vdso_find(check.pid, &start, &end))
		(void)unwind_maps__load(check.maps, 0, start);
	unwind_maps__collect(check.maps, true);
	begin_truth();
}

int main(int argc, char **argv)
{
	struct ring_buffer *ring;
	time_t end;
	long samples;

	if (argc > 1 && !strcmp(argv[1], "--time")) {
		check.time_only = true;
		argc--;
		argv++;
	}
	if (argc != 4)
		return 2;
	check.pid = (pid_t)strtol(argv[1], NULL, 10);
	samples = strtol(argv[2], NULL, 10);
	end = time(NULL) + strtol(argv[3], NULL, 10);
	begin();
	ring = ring_buffer__new(bpf_map__fd(check.bpf->maps.samples), on_sample, NULL, NULL);
	if (!ring || ring_buffer__add(ring, bpf_map__fd(check.bpf->maps.ring), on_event, NULL))
		fail("ring");
	open_timers();
	for (long i = 0; i < samples && time(NULL) < end; i++)
		one_sample(ring);
	if (check.time_only)
		print_costs();
	else
		print_tallies();
	for (size_t i = 0; i < check.timers.nr; i++)
		(void)bpf_link__destroy(check.timers.items[i]);
	ring_buffer__free(ring);
	dwfl_end(check.dwfl);
	unwind_maps__free(check.maps);
	sample_bpf__destroy(check.bpf);
	target_process__free(check.process);
	vec_done(&check.timers);
	vec_done(&check.tallies);
	vec_done(&check.costs);
	return 0;
}
