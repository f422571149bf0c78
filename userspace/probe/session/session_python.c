/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Tells the kernel's walk about a process's Python. Invariant: the probe that counts freed code
 * objects is in place before the first walk that trusts the count.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "common/clock.h"
#include "gpuprof.skel.h"
#include "probe/plan/code.h"
#include "probe/plan/planned_file.h"
#include "probe/session/session_private.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <time.h>

/* Bytes of a function's beginning that are needed to place its entry probe. */
#define ENTRY_BYTES 64

static void cleanup_decoder(struct code_decoder **d)
{
	code_decoder__free(*d);
}

static const struct target_library *library_at(const struct target_process *p, uint64_t address)
{
	for (size_t i = 0; i < p->libraries_nr; i++)
		if (address >= p->libraries[i].start && address < p->libraries[i].end)
			return &p->libraries[i];
	return NULL;
}

/* Finds the function's entry site in the file. 0 or -errno. */
static int place_entry(const struct target_library *lib, const char *path, uint64_t address,
		       uint64_t *ret_offset)
{
	CLEANUP(cleanup_elf) struct elf_file *file = NULL;
	CLEANUP(cleanup_decoder) struct code_decoder *decoder = code_decoder__new();
	const unsigned char *code;
	struct code_insn insn;
	uint64_t offset;
	size_t nr;
	int err;

	err = decoder ? elf_file__open(path, NULL, &file) : -ENOMEM;
	if (err)
		return err;
	if (!elf_file__offset_of(file, address - lib->base, &offset))
		return -ENOENT;
	code = elf_file__code(file, offset, ENTRY_BYTES, &nr);
	if (!code || code_entry(decoder, code, nr, &insn))
		return -EINVAL;
	*ret_offset = offset + insn.offset;
	return 0;
}

/* Probes the function that frees code objects. 0 or -errno. */
static int watch_codes(struct probe_session *s, const struct target_process *p,
		       struct probed_process *known, uint64_t code_dealloc)
{
	const struct target_library *lib = library_at(p, code_dealloc);
	struct link_site site = {.cookie = (uint64_t)known->index << 48};
	CLEANUP(planned_file__done) struct planned_file file = {.fd = -1};
	int nr, err;

	link_set__done(&known->code_freed);
	err = lib ? planned_file__open(lib->open_path, NULL, &file) : -ENOENT;
	err = err ?: place_entry(lib, file.path, code_dealloc, &site.offset);
	if (err)
		return err;
	nr = link_attach(&known->code_freed, s->method,
			 bpf_program__fd(s->bpf->progs.gp_code_freed), p->pid, file.path, &site, 1);
	return nr < 0 ? nr : nr == 1 ? 0 : -EINVAL;
}

/* Whether the C++ runtime's __cxa_begin_catch is probed in the process. */
static bool sees_catches(const struct probe_session *s, uint16_t process_index)
{
	for (size_t i = 0; i < s->attachments.nr; i++) {
		const struct attachment *a = &s->attachments.items[i];
		const struct probe_plan *plan = s->plans.items.items[a->plan].plan;

		if (a->process_index != process_index || !(a->groups & PROBE_GROUP_OPS) ||
		    a->refused_nr)
			continue;
		for (size_t k = 0; k < plan->functions.nr; k++)
			if (plan->functions.items[k].kind == PROBE_CATCH &&
			    plan->functions.items[k].placed)
				return true;
	}
	return false;
}

void session_forget_python(struct probe_session *s, uint16_t index)
{
	const struct gp_python none = {.is_known = 0};
	uint32_t key = index;

	if (s->options.stacks & GP_STACK_WANT_PYTHON)
		(void)bpf_map__update_elem(s->bpf->maps.pythons, &key, sizeof(key), &none,
					   sizeof(none), BPF_ANY);
}

/* Returns a number that no earlier process or program had; counting continues from it. */
static uint64_t first_generation(void)
{
	return clock_now_ns();
}

void probe_session__set_stack_tops(struct probe_session *s, uint16_t process_index,
				   uint64_t address)
{
	if (s->bpf && process_index < sizeof(s->bpf->bss->gp_stack_tops) / sizeof(__u64))
		__atomic_store_n(&s->bpf->bss->gp_stack_tops[process_index], address,
				 __ATOMIC_RELEASE);
}

int probe_session__set_python(struct probe_session *s, const struct target_process *p,
			      uint16_t process_index, const struct gp_python *python,
			      uint64_t code_dealloc)
{
	struct probed_process *known = session_process(s, process_index);
	struct gp_python here = *python;
	uint32_t key = process_index;
	int err;

	if (!(s->options.stacks & GP_STACK_WANT_PYTHON) || !known)
		return -EINVAL;
	err = watch_codes(s, p, known, code_dealloc);
	if (err)
		log_info("%d: the freeing of code objects cannot be probed (%s): Python stacks "
			 "cost more",
			 (int)p->pid, strerror(-err));
	here.generation = err ? 0 : first_generation();
	err = 0;
	here.sees_catches = sees_catches(s, process_index);
	/* Readers may see an update half done, so `is_known` is set by a second one. */
	for (here.is_known = 0; !err && here.is_known <= 1; here.is_known++)
		err = bpf_map__update_elem(s->bpf->maps.pythons, &key, sizeof(key), &here,
					   sizeof(here), BPF_ANY);
	return err;
}
