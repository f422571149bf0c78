/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A session's plans and names. Name ids are dense, begin at 1, and never change their meaning.
 */
#include "probe/session/session_plans.h"

#include "probe/plan/names.h"
#include "probe/plan/planned_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A cookie has 24 bits for the id. */
#define NAMES_MAX 0xffffff

static const char common_ops[] =
	"aten::add,aten::add_,aten::sub,aten::mul,aten::mul_,aten::div,aten::div_,aten::mm,"
	"aten::bmm,aten::addmm,aten::matmul,aten::linear,aten::conv[123]d,aten::convolution,"
	"aten::convolution_backward,aten::_convolution,aten::batch_norm,aten::native_batch_norm*,"
	"aten::layer_norm,aten::native_layer_norm*,aten::relu,aten::relu_,aten::gelu,"
	"aten::sigmoid,aten::tanh,aten::softmax,aten::_softmax,aten::log_softmax,"
	"aten::_log_softmax,aten::dropout,aten::embedding,aten::max_pool2d,aten::avg_pool2d,"
	"aten::lstm,aten::gru,aten::scaled_dot_product_attention,aten::nll_loss_forward,"
	"aten::cross_entropy_loss,aten::sum,aten::mean,aten::copy_,aten::to,aten::_to_copy,"
	"aten::cat,aten::index_select,aten::zero_,aten::fill_,aten::item,"
	"autograd::engine::evaluate_function*";

int session_plans__init(struct session_plans *s, const struct probe_options *options, bool few)
{
	const char *globs = options->ops_glob ?: few ? common_ops : NULL;

	s->options = options;
	s->few = few;
	s->chosen = globs != NULL;
	s->texts = intern__new();
	if (!s->texts)
		return -ENOMEM;
	return globs ? globs_compile(globs, &s->globs) : 0;
}

static void done_plan(struct session_plan *p)
{
	probe_plan__free(p->plan);
	free(p->name_ids);
	free(p->node_ids);
	free(p->wanted);
}

void session_plans__done(struct session_plans *s)
{
	for (size_t i = 0; i < s->items.nr; i++)
		done_plan(&s->items.items[i]);
	vec_done(&s->items);
	vec_done(&s->names);
	hash__done(&s->name_index);
	intern__free(s->texts);
}

/* Returns the name's id, a new one if it is not known yet. 0 or -errno. */
static int name_id(struct session_plans *s, const char *name, const char *overload,
		   uint32_t *ret_id)
{
	struct probe_name n = {.id = (uint32_t)s->names.nr + 1,
			       .name = intern__str(s->texts, name),
			       .overload = intern__str(s->texts, overload)};
	uint64_t key = hash_mix((uint64_t)(uintptr_t)n.name) ^ (uint64_t)(uintptr_t)n.overload;
	const uint64_t *known;

	if (!n.name || !n.overload)
		return -ENOMEM;
	known = hash__find(&s->name_index, key);
	if (known && s->names.items[*known - 1].name == n.name &&
	    s->names.items[*known - 1].overload == n.overload) {
		*ret_id = (uint32_t)*known;
		return 0;
	}
	if (s->names.nr == NAMES_MAX)
		return -E2BIG;
	if (vec_push(&s->names, n) || hash__set(&s->name_index, key, n.id))
		return -ENOMEM;
	*ret_id = n.id;
	return 0;
}

static int name_functions(struct session_plans *s, struct session_plan *p)
{
	size_t nr = p->plan->functions.nr;
	int err = 0;

	p->name_ids = calloc(nr + 1, sizeof(*p->name_ids));
	p->node_ids = calloc(p->plan->nodes.nr + 1, sizeof(*p->node_ids));
	p->wanted = calloc(nr + 1, sizeof(*p->wanted));
	if (!p->name_ids || !p->node_ids || !p->wanted)
		return -ENOMEM;
	for (size_t i = 0; i < nr && !err; i++) {
		const struct probe_function *fn = &p->plan->functions.items[i];

		if (!*fn->name)
			continue;
		p->wanted[i] = s->options->ops && (!s->chosen || globs_fit(&s->globs, fn->name));
		err = name_id(s, fn->name, fn->overload, &p->name_ids[i]);
		if (fn->kind == PROBE_NODE)
			p->name_ids[i] |= (uint32_t)GP_SCOPE_BACKWARD << 24;
		if (fn->kind == PROBE_API)
			p->name_ids[i] |= (uint32_t)fn->layout << 24;
	}
	for (size_t i = 0; i < p->plan->nodes.nr && !err; i++) {
		char name[NODE_NAME_BYTES + sizeof(NODE_EVENT)];

		(void)snprintf(name, sizeof(name), NODE_EVENT "%s", p->plan->nodes.items[i].name);
		err = name_id(s, name, "", &p->node_ids[i]);
	}
	return err;
}

/* Permission to read one file says nothing about other permissions. */
static int of_the_file(int err)
{
	return err == -EPERM ? -EACCES : err;
}

int session_plans__get(struct session_plans *s, const struct target_library *lib,
		       struct reason *why, uint32_t *ret_index)
{
	struct session_plan p = {0};
	int err = process_file_stat(lib->open_path, &p.file);

	if (err)
		return reason_set(why, of_the_file(err), "cannot look at '%s': %s", lib->path,
				  strerror(-err));
	for (size_t i = 0; i < s->items.nr; i++)
		if (planned_file_is_same(&s->items.items[i].file, &p.file)) {
			*ret_index = (uint32_t)i;
			return 0;
		}
	err = probe_plan__new(lib->open_path, s->options->cache_dir, why, &p.plan);
	if (err && err != -ENOEXEC)
		return of_the_file(err);
	/* The file may have been replaced since it was found: record the one that was planned. */
	if (!err) {
		p.file = p.plan->file;
		err = name_functions(s, &p);
	} else {
		err = 0;
	}
	if (!err)
		err = vec_push(&s->items, p);
	if (err) {
		done_plan(&p);
		return reason_set(why, err, "cannot plan probes for '%s': %s", lib->path,
				  strerror(-err));
	}
	*ret_index = (uint32_t)s->items.nr - 1;
	return 0;
}
