/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Probes Python's garbage collections. libbpf reads the file's notes and has the kernel maintain
 * the semaphore that tells CPython that it is probed, even if gpuprof is killed.
 */
#include "base/log.h"
#include "gpuprof.skel.h"
#include "inspect/program/python_gc.h"
#include "inspect/program/versions.h"
#include "probe/session/session_private.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

int session_gc_choose(const struct probe_session *s, struct gpuprof_bpf *bpf)
{
	bool wanted = s->options.python_gc;
	int err = bpf_program__set_autoload(bpf->progs.gp_gc_start, wanted);

	err = err ?: bpf_program__set_autoload(bpf->progs.gp_gc_done, wanted);
	err = err ?: bpf_map__set_autocreate(bpf->maps.__bpf_usdt_specs, wanted);
	return err ?: bpf_map__set_autocreate(bpf->maps.__bpf_usdt_ip_to_spec_id, wanted);
}

static struct bpf_link *attach_one(struct bpf_program *program, const struct target_process *p,
				   const char *path, const char *name, uint16_t index)
{
	LIBBPF_OPTS(bpf_usdt_opts, opts, .usdt_cookie = (uint64_t)index << 48);
	struct bpf_link *link =
		bpf_program__attach_usdt(program, p->pid, path, PYTHON_GC_PROVIDER, name, &opts);

	if (!link)
		log_debug("no probe on %s in '%s': %s", name, path, strerror(errno));
	return link;
}

void session_gc_follow(struct probe_session *s, const struct target_process *p,
		       struct probed_process *known)
{
	const struct target_library *file = s->options.python_gc ? target_python_file(p) : NULL;
	struct gc_probes *gc = &known->gc;

	if (!file || (gc->inode == file->inode && gc->device == file->device))
		return;
	session_gc_drop(known);
	gc->device = file->device;
	gc->inode = file->inode;
	if (!target_python_marks_gc(file))
		return;
	/* The done probe comes first: a collection whose end is not seen is never recorded. */
	gc->done = attach_one(s->bpf->progs.gp_gc_done, p, file->open_path, PYTHON_GC_DONE,
			      known->index);
	if (gc->done)
		gc->start = attach_one(s->bpf->progs.gp_gc_start, p, file->open_path,
				       PYTHON_GC_START, known->index);
	if (!gc->start) {
		s->coverage.refused_nr++;
		log_info("%d: Python's garbage collections cannot be probed", (int)p->pid);
	}
}

void session_gc_drop(struct probed_process *known)
{
	(void)bpf_link__destroy(known->gc.start);
	(void)bpf_link__destroy(known->gc.done);
	known->gc = (struct gc_probes){0};
}
