/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Attaches a session's probes. An attachment belongs to a process by its index and to a file by its
 * plan. Invariant: exits are attached before entries, so that an op whose start is seen is also
 * seen to end.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "gpuprof.skel.h"
#include "inspect/elf/elf.h"
#include "inspect/process/rights.h"
#include "probe/plan/planned_file.h"
#include "probe/session/session_private.h"
#include "probe/unwind/unwind_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

/* Whether the attachment is of this file, even if the file has been written to since: the kernel
 * keeps its inode while it is probed. */
static bool is_of_file(const struct probe_session *s, const struct attachment *a, uint32_t plan)
{
	const struct stat *its = &s->plans.items.items[a->plan].file;
	const struct stat *file = &s->plans.items.items[plan].file;

	return its->st_dev == file->st_dev && its->st_ino == file->st_ino;
}

/* Leaves in a->groups only those that no other attachment of the same file has. */
static void leave_out_attached(const struct probe_session *s, struct attachment *a)
{
	for (size_t i = 0; i < s->attachments.nr; i++) {
		const struct attachment *other = &s->attachments.items[i];

		if (other->process_index == a->process_index && is_of_file(s, other, a->plan))
			a->groups &= ~other->groups;
	}
}

static bool is_wanted(const struct probe_session *s, const struct session_plan *plan,
		      uint32_t function)
{
	enum probe_kind kind = plan->plan->functions.items[function].kind;

	if ((kind == PROBE_OP || kind == PROBE_NODE) && !plan->wanted[function])
		return false;
	return program_is_wanted(&s->options, &s->refused, kind);
}

/* Whether the function is wanted and this attachment is for it. */
static bool is_due(const struct probe_session *s, const struct session_plan *plan,
		   const struct attachment *a, uint32_t function)
{
	return (a->groups & program_group(&s->options, &plan->plan->functions.items[function])) &&
	       is_wanted(s, plan, function);
}

/* Whether the function is asked for and not probed: it has no site, the kernel refuses its program,
 * or probes are expensive and the operator is not a common one. */
static bool is_left_out(const struct probe_session *s, const struct session_plan *plan,
			const struct attachment *a, uint32_t function)
{
	const struct probe_function *fn = &plan->plan->functions.items[function];

	if (is_wanted(s, plan, function))
		return is_due(s, plan, a, function) && !fn->placed;
	if (s->refused.kinds & 1u << fn->kind)
		return (a->groups & program_group(&s->options, fn)) &&
		       program_is_asked_for(&s->options, fn->kind);
	return s->plans.few && !s->options.ops_glob && fn->kind == PROBE_OP &&
	       (a->groups & PROBE_GROUP_OPS) && s->options.ops;
}

/* Collects the plan's sites for one program, except those of functions with a refused site: an op
 * that begins and never ends is worse than no op. */
static size_t collect_sites(const struct probe_session *s, const struct session_plan *plan,
			    enum program program, const struct attachment *a, const bool *refused,
			    struct link_site *sites)
{
	size_t nr = 0;

	for (size_t i = 0; i < plan->plan->sites.nr; i++) {
		const struct probe_site *site = &plan->plan->sites.items[i];
		const struct probe_function *fn = &plan->plan->functions.items[site->function];

		if (program_for(fn, site) != program || !is_due(s, plan, a, site->function) ||
		    refused[site->function] || (program == PROGRAM_UNSEEN && site->is_exit))
			continue;
		sites[nr].offset = site->offset;
		sites[nr].function = site->function;
		sites[nr++].cookie =
			(uint64_t)a->process_index << 48 | (site->emulated ? 0 : COOKIE_STEPPED) |
			(plan->plan->old_strings ? COOKIE_OLD_STRINGS : 0) |
			(uint64_t)(uint16_t)site->sp_delta << 32 | plan->name_ids[site->function];
	}
	return nr;
}

static void add_to_summary(struct probe_session *s, const struct session_plan *plan,
			   const struct attachment *a)
{
	for (size_t i = 0; i < plan->plan->functions.nr; i++)
		if (is_left_out(s, plan, a, (uint32_t)i))
			s->coverage.summary.not_placed_nr++;
		else if (is_due(s, plan, a, (uint32_t)i))
			s->coverage.summary.functions_nr++;
	for (size_t i = 0; i < plan->plan->sites.nr; i++)
		if (is_due(s, plan, a, plan->plan->sites.items[i].function)) {
			s->coverage.summary.sites_nr++;
			s->coverage.summary.single_stepped_nr +=
				!plan->plan->sites.items[i].emulated;
		}
}

/* Counts the functions with a refused site. */
static uint32_t count_refused(const struct link_site *sites, size_t nr, bool *refused)
{
	uint32_t refused_nr = 0;

	for (size_t i = 0; i < nr; i++) {
		refused_nr += sites[i].refused && !refused[sites[i].function];
		refused[sites[i].function] |= sites[i].refused;
	}
	return refused_nr;
}

/* Attaches all programs by the path, if it still leads to the planned file. */
static int attach_programs(struct probe_session *s, struct attachment *a,
			   const struct session_plan *plan, pid_t pid, const char *path)
{
	CLEANUP(cleanup_free)
	struct link_site *sites = calloc(plan->plan->sites.nr + 1, sizeof(*sites));
	CLEANUP(cleanup_free)
	bool *refused = calloc(plan->plan->functions.nr + 1, sizeof(*refused));
	CLEANUP(planned_file__done) struct planned_file file = {.fd = -1};
	int attached = sites && refused ? planned_file__open(path, &plan->file, &file) : -ENOMEM;

	for (enum program i = 0; i < PROGRAMS_NR && attached >= 0; i++) {
		struct link_set *links = i == PROGRAM_LOADER ? &a->kept : &a->links;
		size_t nr = a->lifted && i == PROGRAM_LOADER
				    ? 0
				    : collect_sites(s, plan, i, a, refused, sites);

		attached = link_attach(links, s->method, bpf_program__fd(program_of(s->bpf, i)),
				       pid, file.path, sites, nr);
		if (attached < 0)
			break;
		a->sites_nr += (uint32_t)attached;
		a->refused_nr += count_refused(sites, nr, refused);
	}
	return attached < 0 ? attached : 0;
}

/* If the file is the loader, registers where this process's loader keeps its state. */
static void find_loader_state(struct probe_session *s, const struct session_plan *plan,
			      const struct target_library *lib, uint16_t process_index)
{
	__u64 *state = &s->bpf->bss->gp_loader_state[process_index];
	struct elf_symbol symbol;
	struct elf_file *f;

	if (*state >= lib->start && *state < lib->end)
		return;
	for (size_t i = 0; i < plan->plan->functions.nr; i++) {
		if (plan->plan->functions.items[i].kind != PROBE_LOADER)
			continue;
		if (elf_file__open(lib->open_path, NULL, &f))
			return;
		if (!elf_file__symbol(f, "_r_debug", &symbol))
			*state = lib->base + symbol.address + offsetof(struct r_debug, r_state);
		elf_file__free(f);
		return;
	}
}

/* Whether the file has anything for this attachment. */
static bool has_any(const struct probe_session *s, const struct session_plan *plan,
		    const struct attachment *a)
{
	for (size_t i = 0; i < plan->plan->functions.nr; i++)
		if (a->groups & program_group(&s->options, &plan->plan->functions.items[i]))
			return true;
	return (a->groups & PROBE_GROUP_OPS) && plan->plan->nodes.nr;
}

/* Whether the process or its library is gone, so that nothing can be missed. */
static bool has_gone(int err)
{
	return err == -ENOENT || err == -ESRCH || err == -ENOTDIR;
}

/* Whether the error is not about one library: the next one would fail too. */
static bool is_general(int err)
{
	return err == -ENOMEM || err == -ESRCH || err == -EPERM || err == -EMFILE || err == -ENFILE;
}

/* Counts what is not probed of a library, as far as it is known, once per process. */
static void count_missed(struct probe_session *s, const struct target_library *lib,
			 const struct attachment *a, const struct session_plan *plan)
{
	struct missed_library missed = {.process_index = a->process_index, .base = lib->base};
	size_t nr = 0;

	for (size_t i = 0; i < s->coverage.missed.nr; i++)
		if (s->coverage.missed.items[i].process_index == missed.process_index &&
		    s->coverage.missed.items[i].base == missed.base)
			return;
	/* On failure it is only counted again. */
	(void)vec_push(&s->coverage.missed, missed);
	for (size_t i = 0; plan && i < plan->plan->functions.nr; i++)
		nr += is_due(s, plan, a, (uint32_t)i);
	s->coverage.refused_nr += nr ?: 1;
}

/* Attaches a planned file. The nodes and the loader's state are registered each time: the library
 * may have been mapped again elsewhere. */
static int attach_planned(struct probe_session *s, struct attachment *a,
			  const struct session_plan *plan, const struct target_process *p,
			  const struct target_library *lib, struct reason *why)
{
	int err = a->groups & PROBE_GROUP_OPS ? session_name_nodes(s, plan, lib, a->process_index)
					      : 0;

	if (err)
		return reason_set(why, err, "cannot name what '%s' defines: %s", lib->path,
				  strerror(-err));
	find_loader_state(s, plan, lib, a->process_index);
	leave_out_attached(s, a);
	if (!has_any(s, plan, a))
		return 0;
	err = vec_reserve(&s->attachments, 1);
	if (!err)
		err = attach_programs(s, a, plan, p->pid, lib->open_path);
	if (err) {
		session_attachment_done(s, a);
		return reason_set(why, err, "cannot probe '%s' in process %d: %s", lib->path,
				  (int)p->pid, strerror(-err));
	}
	s->coverage.refused_nr += a->refused_nr;
	s->attachments.items[s->attachments.nr++] = *a;
	add_to_summary(s, plan, a);
	return (int)a->sites_nr;
}

/* Attaches one file. Returns how many sites were attached, or -errno. */
static int attach_library(struct probe_session *s, const struct target_process *p,
			  const struct target_library *lib, uint16_t process_index, uint32_t groups,
			  struct reason *why)
{
	struct attachment a = {.process_index = process_index, .groups = groups, .base = lib->base};
	const struct session_plan *plan = NULL;
	int nr = session_plans__get(&s->plans, lib, why, &a.plan);

	if (!nr) {
		plan = &s->plans.items.items[a.plan];
		nr = plan->plan ? attach_planned(s, &a, plan, p, lib, why) : 0;
	}
	if (nr < 0 && !has_gone(nr))
		count_missed(s, lib, &a, plan);
	return nr;
}

static int know_process(struct probe_session *s, pid_t pid, uint16_t process_index)
{
	struct probed_process known = {.index = process_index, .pid = (uint32_t)pid};
	uint32_t index = process_index;
	int err;

	if (session_process(s, process_index))
		return 0;
	if (vec_reserve(&s->processes, 1))
		return -ENOMEM;
	err = session_sample_add(s, pid);
	/* In another PID namespace this number is some other process's, and so would the events be.
	 */
	if (!err && rights_in_first_pid_namespace() > 0)
		err = bpf_map__update_elem(s->bpf->maps.processes, &known.pid, sizeof(known.pid),
					   &index, sizeof(index), BPF_ANY);
	if (err) {
		session_sample_drop(s, pid);
		return err;
	}
	s->processes.items[s->processes.nr++] = known;
	return 0;
}

/* The probes of the CUDA API get an attachment of their own: see probe_session__detach_api(). */
static int attach_groups(struct probe_session *s, const struct target_process *p,
			 const struct target_library *lib, uint16_t process_index, uint32_t groups,
			 struct reason *why)
{
	int nr = attach_library(s, p, lib, process_index,
				(groups & ~(uint32_t)PROBE_GROUP_API) | GROUP_OTHER, why);
	int api = 0;

	if (nr >= 0 && (groups & PROBE_GROUP_API))
		api = attach_library(s, p, lib, process_index, PROBE_GROUP_API, why);
	return nr < 0 ? nr : api < 0 ? api : nr + api;
}

static int attach_libraries(struct probe_session *s, const struct target_process *p,
			    uint16_t process_index, uint32_t groups, struct reason *why)
{
	int total = 0;

	for (size_t i = 0; i < p->libraries_nr; i++) {
		struct reason inner = {""};
		int one = attach_groups(s, p, &p->libraries[i], process_index, groups, &inner);

		if (is_general(one))
			return reason_set(why, one, "%s", inner.text);
		if (one < 0)
			log_at(has_gone(one) ? LOG_DEBUG : LOG_WARN, "%s", inner.text);
		else
			total += one;
	}
	return total;
}

/* Whether any library of the process is probed for one of these groups. */
static bool is_probed(const struct probe_session *s, uint16_t process_index, uint32_t groups)
{
	for (size_t i = 0; i < s->attachments.nr; i++)
		if (s->attachments.items[i].process_index == process_index &&
		    (s->attachments.items[i].groups & groups))
			return true;
	return false;
}

int probe_session__attach(struct probe_session *s, const struct target_process *p,
			  uint16_t process_index, uint32_t groups, struct reason *why)
{
	const uint32_t reported = PROBE_GROUP_OPS | PROBE_GROUP_MEMORY;
	int total, err = s->bpf ? know_process(s, p->pid, process_index) : 0;
	bool first;

	if (!s->bpf)
		return 0;
	if (err)
		return reason_set(why, err, "cannot follow process %d: %s", (int)p->pid,
				  strerror(-err));
	/* Nobody calls a library that is mapped later while it is being probed. */
	first = (groups & reported) && !is_probed(s, process_index, reported);
	if (first)
		session_set_process_bit(s->bpf->bss->gp_placing, process_index, true);
	if ((groups & PROBE_GROUP_API) && !is_probed(s, process_index, PROBE_GROUP_API))
		session_set_process_bit(s->bpf->bss->gp_api_off, process_index, true);
	total = attach_libraries(s, p, process_index, groups, why);
	if (first)
		session_set_process_bit(s->bpf->bss->gp_placing, process_index, false);
	if (groups & PROBE_GROUP_API)
		session_set_process_bit(s->bpf->bss->gp_api_off, process_index, false);
	if (total < 0)
		return total;
	session_gc_follow(s, p, session_process(s, process_index));
	return total;
}

/* Adds an attachment's probes again, by the current plan of the file. */
static void place_again(struct probe_session *s, struct attachment *a,
			const struct target_process *p, const struct target_library *lib,
			uint32_t plan)
{
	uint32_t sites_nr = a->sites_nr, refused_nr = a->refused_nr;

	a->plan = plan;
	a->sites_nr = a->refused_nr = 0;
	if (attach_programs(s, a, &s->plans.items.items[plan], p->pid, lib->open_path))
		log_debug("'%s' cannot be probed again in process %d", lib->path, (int)p->pid);
	a->lifted = false;
	if (a->sites_nr < sites_nr)
		s->coverage.refused_nr += sites_nr - a->sites_nr;
	a->sites_nr = sites_nr;
	a->refused_nr = refused_nr;
}

/* Counts the sites of attachments that stay lifted; the next try may succeed. */
static void count_lifted(struct probe_session *s, uint16_t process_index, uint64_t base)
{
	for (size_t i = 0; i < s->attachments.nr; i++) {
		const struct attachment *a = &s->attachments.items[i];

		if (a->lifted && a->process_index == process_index && a->base == base)
			s->coverage.refused_nr += a->sites_nr;
	}
}

static void place_library(struct probe_session *s, const struct target_process *p,
			  const struct target_library *lib, uint16_t process_index)
{
	struct reason why;
	uint32_t plan;
	int err = session_plans__get(&s->plans, lib, &why, &plan);

	if (err && !has_gone(err))
		count_lifted(s, process_index, lib->base);
	if (err || !s->plans.items.items[plan].plan)
		return;
	for (size_t i = 0; i < s->attachments.nr; i++) {
		struct attachment *a = &s->attachments.items[i];

		if (a->lifted && a->process_index == process_index && is_of_file(s, a, plan))
			place_again(s, a, p, lib, plan);
	}
}

void probe_session__place(struct probe_session *s, const struct target_process *p,
			  uint16_t process_index)
{
	bool lifted = false;

	for (size_t i = 0; i < s->attachments.nr; i++)
		lifted |= s->attachments.items[i].lifted &&
			  s->attachments.items[i].process_index == process_index;
	for (size_t i = 0; i < p->libraries_nr && lifted; i++)
		place_library(s, p, &p->libraries[i], process_index);
}
