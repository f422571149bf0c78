/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A process's collector reports what probes would otherwise see. This decides what it is asked for,
 * and puts probes in its place where it cannot report, or stops reporting.
 */
#include "capture/process/collector_policy.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "capture/process/probing.h"
#include "capture/process/schemas.h"
#include "capture/symbols/python_code.h"
#include "common/clock.h"

#include <errno.h>

/* How often, and at what distance, the collector is tried again where it could not be put in. */
#define COLLECTOR_TRIES	   5
#define COLLECTOR_AGAIN_NS 5000000000ULL
/* How often libraries are looked for where no event reports that they come. */
#define LOOK_OFTEN_NS 10000000ULL

/* Shapes were wanted and are not to be had. `why`: what collector_client__new() said. */
static void note_shapes(const struct traced_process *m, const struct reason *why)
{
	struct reason said = *why;

	if (traced_process__reports(m, GP_FEATURE_SHAPES))
		return;
	if (traced_process__reports(m, GP_FEATURE_OPS))
		collector_client__feature_error(m->collector, "shapes", &said);
	else if (!target_process__library(m->process, "libtorch_cpu.so"))
		(void)reason_set(&said, 0, "PyTorch is not loaded");
	log_warn("%d: no shapes: %s", (int)m->process->pid,
		 said.text[0] ? said.text : "the collector does not say why");
}

/* Categories of memory were wanted: what the operators may write, if their tensors are reported. */
static void note_tensors(struct process_set *s, struct traced_process *m)
{
	struct reason why = {0};

	if (s->options->ops_alone) {
		(void)reason_set(&why, 0, "they are told by annotations, which are left out");
	} else if (traced_process__reports(m, GP_FEATURE_TENSORS)) {
		if (!s->run->failed)
			capture_run__fail(s->run, traced_process__read_schemas(m, &why));
	} else if (traced_process__reports(m, GP_FEATURE_SHAPES)) {
		collector_client__feature_error(m->collector, "memory categories", &why);
	} else {
		(void)reason_set(&why, 0, "there are no shapes");
	}
	if (why.text[0])
		log_warn("%d: no memory categories: %s", (int)m->process->pid, why.text);
}

/* Calls were wanted, of modules or Python functions. */
static void note_calls(const struct traced_process *m, uint32_t feature, const char *what)
{
	struct reason why = {0};

	if (traced_process__reports(m, feature))
		return;
	if (traced_process__reports(m, GP_FEATURE_OPS) && m->python)
		collector_client__feature_error(m->collector, "stacks", &why);
	else
		(void)reason_set(&why, 0, "%s",
				 m->python ? "operators do not come by callback"
					   : "there is no Python whose frames can be read");
	log_warn("%d: no %s: %s", (int)m->process->pid, what, why.text);
}

/* Allocations were wanted; where they cannot be had they come by uprobes, and by those alone: the
 * collector is not to find a way later. */
static void note_memory(const struct process_set *s, struct traced_process *m)
{
	struct reason why = {0};

	if (!m->collector || !collector_client__requested(m->collector, GP_FEATURE_MEMORY))
		return;
	m->state.memory_by_callback = traced_process__reports(m, GP_FEATURE_MEMORY);
	if (m->state.memory_by_callback)
		return;
	collector_client__feature_error(m->collector, "memory", &why);
	collector_client__release(m->collector, GP_FEATURE_MEMORY);
	if (probe_session__no_bpf(s->probes))
		log_warn("%d: no memory: %s", (int)m->process->pid,
			 why.text[0] ? why.text : "the collector does not say why");
	else
		log_info("%d: allocations by uprobes, which cost more: %s", (int)m->process->pid,
			 why.text[0] ? why.text : "the collector does not say why");
}

/* For the recording: `why`, unless the collector knows better, or there is no lack. */
static void note_lack(struct process_set *s, const struct traced_process *m, const char *why)
{
	struct reason said = {0};

	if (traced_process__reports(m, GP_FEATURE_CUPTI))
		return;
	if (m->collector &&
	    collector_client__failed_features(m->collector, GP_FEATURE_CUPTI, &said))
		why = said.text;
	else if (m->collector)
		why = "CUDA had not let CUPTI in";
	gpu_unavailable__note(&s->gpu_unavailable, m->process->pid, why);
}

/* What CUDA does is known only with the collector. No safe moment for it, or another gpuprof in its
 * place: neither need last. */
static void note_refusal(struct process_set *s, struct traced_process *m, int err,
			 const struct reason *why)
{
	bool may_pass = (err == -EAGAIN || err == -EBUSY) && m->state.tries < COLLECTOR_TRIES;

	note_lack(s, m, why->text);
	m->state.again_ns = may_pass ? clock_now_ns() + COLLECTOR_AGAIN_NS : 0;
	log_at(m->state.tries ? LOG_INFO : LOG_WARN, "%d: %s%s", (int)m->process->pid, why->text,
	       may_pass ? "; it is tried again" : "");
}

/* What is done while a collector is waited for: the others are drained. */
static struct collector_meanwhile meanwhile(const struct process_set *s)
{
	return (struct collector_meanwhile){s->drain.drain, s->drain.take, s->drain.arg};
}

void collector_policy_inject(struct process_set *s, struct traced_process *m, uint32_t features)
{
	const uint32_t of_inputs = GP_FEATURE_SHAPES | GP_FEATURE_TENSORS;
	const uint32_t ops = GP_FEATURE_OPS | GP_FEATURE_STACKS | GP_FEATURE_MODULES |
			     GP_FEATURE_CALLS | GP_FEATURE_MEMORY | of_inputs;
	const struct gp_python *python = m->python ? &python_codes__python(m->python)->walk : NULL;
	bool shapes = s->options->shapes && (features & GP_FEATURE_SHAPES);
	struct reason why = {0};
	int err = 0;

	/* Native stacks are walked at an op's entry, which only a uprobe sees in the kernel. */
	if (!s->options->ops || s->options->ops_glob ||
	    (s->options->stacks & GP_STACK_WANT_NATIVE) || (s->options->stacks && !python) ||
	    !target_process__library(m->process, "libtorch_cpu.so"))
		features &= ~ops;
	if (!shapes)
		features &= ~of_inputs;
	if (!s->options->memory || s->options->ops_alone)
		features &= ~(uint32_t)GP_FEATURE_TENSORS;
	if (!s->options->memory)
		features &= ~(uint32_t)GP_FEATURE_MEMORY;
	if (!(s->options->stacks & GP_STACK_WANT_PYTHON))
		features &= ~(uint32_t)GP_FEATURE_STACKS;
	if (!s->options->modules || !python)
		features &= ~(uint32_t)GP_FEATURE_MODULES;
	if (!s->options->calls || !(features & GP_FEATURE_STACKS))
		features &= ~(uint32_t)GP_FEATURE_CALLS;
	if (s->options->ops_alone && (features & GP_FEATURE_OPS))
		features |= GP_FEATURE_OPS_ALONE;
	if (!s->options->gpu || !traced_process__has_cuda(m))
		features &= ~(uint32_t)GP_FEATURE_CUPTI;
	if (!s->options->inject)
		return;
	if (features)
		err = collector_client__new(m->process, m->index, features, s->options->any_cupti,
					    python, meanwhile(s), &why, &m->collector);
	m->state.err = err;
	m->state.why = why;
	if (m->collector)
		s->stops_ns += collector_client__take_held_ns(m->collector);
	if ((err || why.text[0]) && (features & GP_FEATURE_CUPTI))
		note_refusal(s, m, err, &why);
	else if (err && !probe_session__no_bpf(s->probes))
		log_warn("%d: operators by uprobes, which cost more: %s", (int)m->process->pid,
			 why.text);
	if (features & GP_FEATURE_MEMORY)
		note_memory(s, m);
	if (shapes)
		note_shapes(m, &why);
	if (shapes && s->options->memory)
		note_tensors(s, m);
	if (s->options->modules)
		note_calls(m, GP_FEATURE_MODULES, "modules");
	if (s->options->calls)
		note_calls(m, GP_FEATURE_CALLS, "Python functions");
}

static void follow_cuda(struct process_set *s, struct traced_process *m)
{
	if (!s->options->gpu || !s->options->inject || !traced_process__has_cuda(m))
		return;
	if (m->collector)
		collector_client__request(m->collector, GP_FEATURE_CUPTI);
	else if (!m->state.refused)
		collector_policy_inject(s, m, GP_FEATURE_CUPTI);
	m->state.refused = m->state.refused || !m->collector;
}

bool collector_policy_was_all(const struct process_set *s, const struct traced_process *m,
			      struct reason *why)
{
	if (!probe_session__no_bpf(s->probes) || m->collector || !m->state.err)
		return false;
	(void)reason_set(why, m->state.err, "cannot attach to %d by the collector alone: %s",
			 (int)m->process->pid, m->state.why.text);
	return true;
}

/* PyTorch has come, and there are no probes: the collector reports everything. While it is being
 * loaded, which may take minutes, there may be no safe moment for that. */
static void follow_torch(struct process_set *s, struct traced_process *m)
{
	struct reason why = {0};
	bool may_pass;

	if (m->collector || m->state.refused || m->state.again_ns > clock_now_ns())
		return;
	collector_policy_inject(s, m, COLLECTOR_POLICY_ALL);
	if (m->collector)
		log_info("%d: the collector is in it", (int)m->process->pid);
	if (m->collector || !m->state.err || traced_process__has_exited(m))
		return;
	may_pass = m->state.err == -EAGAIN || m->state.err == -EBUSY;
	m->state.refused = !may_pass;
	m->state.again_ns = clock_now_ns() + SECOND_NS;
	if ((m->state.refused || ++m->state.tries == COLLECTOR_TRIES) &&
	    collector_policy_was_all(s, m, &why))
		log_warn("%s%s", why.text, may_pass ? "; it is tried again" : "");
}

void collector_policy_follow_libraries(struct process_set *s, struct traced_process *m)
{
	if (probe_session__no_bpf(s->probes))
		follow_torch(s, m);
	follow_cuda(s, m);
}

uint64_t collector_policy_drain_deadline_ns(const struct process_set *s,
					    const struct traced_process *m)
{
	return probe_session__no_bpf(s->probes) && !m->collector && !m->state.refused
		       ? LOOK_OFTEN_NS
		       : SECOND_NS;
}

static void try_again(struct process_set *s, struct traced_process *m)
{
	m->state.again_ns = 0;
	m->state.tries++;
	collector_policy_inject(s, m, GP_FEATURE_CUPTI);
	if (m->collector)
		log_info("%d: the collector is in it after all", (int)m->process->pid);
}

/* NULL: events are not taken any more. */
static collector_event_fn event_fn(const struct process_set *s)
{
	return s->run->failed ? NULL : s->drain.on_event;
}

void collector_policy_stop(struct process_set *s, struct collector_client *g, bool gone)
{
	collector_client__stop(g, gone, event_fn(s), s->drain.arg);
	s->stops_ns += collector_client__take_held_ns(g);
}

void collector_policy_drop(struct process_set *s, struct traced_process *m, bool gone)
{
	m->state.had = true;
	m->state.memory_by_callback = false;
	probe_session__set_stack_tops(s->probes, m->index, 0);
	collector_policy_stop(s, m->collector, gone);
	if (!s->run->failed)
		(void)collector_client__drain(m->collector, s->drain.on_event, s->drain.arg);
	collector_client__losses(m->collector, s->counts.losses);
	collector_client__timed(m->collector, &s->counts.timed);
	collector_client__free(TAKE(m->collector), m->process, gone);
}

/* The collector has left by itself: operators by uprobes from here on. What it lost meanwhile is
 * not known. */
static void replace_collector(struct process_set *s, struct traced_process *m)
{
	struct reason why = {0};
	int nr;

	log_warn("%d: the collector has left, because gpuprof was stopped for seconds or its ring "
		 "was damaged: operators are missing for that time%s%s%s",
		 (int)m->process->pid,
		 probe_session__no_bpf(s->probes) ? "" : " and come by uprobes from now on",
		 s->options->shapes && !probe_session__no_bpf(s->probes) ? ", without shapes" : "",
		 traced_process__has_cuda(m) ? "; what GPUs do is missing" : "");
	m->state.refused = !probe_session__no_bpf(s->probes);
	s->counts.left_nr++;
	if (collector_client__supports(m->collector, GP_FEATURE_CUPTI))
		gpu_unavailable__note(&s->gpu_unavailable, m->process->pid,
				      "the collector has left it");
	collector_policy_drop(s, m, false);
	nr = probing_attach(s, m, &why);
	if (nr < 0)
		log_warn("%d: cannot be probed: %s", (int)m->process->pid, why.text);
	else
		log_info("%d: %d probes more, in place of the collector", (int)m->process->pid, nr);
}

static bool lacks_stacks(const struct process_set *s, const struct traced_process *m)
{
	return (s->options->stacks & GP_STACK_WANT_PYTHON) && !m->state.callbacks_replaced &&
	       !probe_session__no_bpf(s->probes) && traced_process__reports(m, GP_FEATURE_OPS) &&
	       !traced_process__reports(m, GP_FEATURE_STACKS);
}

/* The collector takes no stacks any more: operators by uprobes from here on, whose stacks the
 * kernel walks. */
static void replace_callbacks(struct process_set *s, struct traced_process *m)
{
	struct reason stacks = {0}, why = {0};
	int nr;

	m->state.callbacks_replaced = true;
	m->state.memory_by_callback = false;
	s->counts.left_nr++;
	collector_client__feature_error(m->collector, "stacks", &stacks);
	probe_session__set_stack_tops(s->probes, m->index, 0);
	collector_client__retain(m->collector, GP_FEATURE_CUPTI, event_fn(s), s->drain.arg);
	nr = probing_attach(s, m, &why);
	if (nr < 0)
		log_warn("%d: cannot be probed: %s", (int)m->process->pid, why.text);
	log_warn("%d: stacks can no longer be taken within the process (%s): operators come by "
		 "uprobes from now on%s",
		 (int)m->process->pid, stacks.text, s->options->shapes ? ", without shapes" : "");
}

static void emit_no_gpu(struct process_set *s, const struct traced_process *m, const char *why)
{
	gpu_unavailable__note(&s->gpu_unavailable, m->process->pid, why);
	log_warn("%d: no GPU times: %s", (int)m->process->pid, why);
}

/* CUDA has loaded the collector, perhaps only just. */
static bool is_expected(const struct process_set *s, const struct traced_process *m)
{
	return s->options->invited && !m->collector && !m->state.refused &&
	       target_process__library(m->process, "libgpuprof-cupti");
}

static void adopt(struct process_set *s, struct traced_process *m)
{
	struct reason why = {0};
	int err = collector_client__adopt(m->process, m->index, s->options->any_cupti, meanwhile(s),
					  &why, &m->collector);

	if (!err)
		log_info("%d: collector put in by CUDA", (int)m->process->pid);
	if (!err || err == -EAGAIN || err == -ENOENT)
		return;
	m->state.refused = true;
	emit_no_gpu(s, m, why.text);
}

void collector_policy_poll(struct process_set *s, struct traced_process *m)
{
	if (is_expected(s, m))
		adopt(s, m);
	else if (m->collector && collector_client__has_exited(m->collector))
		replace_collector(s, m);
	else if (lacks_stacks(s, m))
		replace_callbacks(s, m);
	else if (!m->collector && m->state.again_ns && clock_now_ns() >= m->state.again_ns &&
		 !probe_session__no_bpf(s->probes))
		try_again(s, m);
}

/* Why the program has not brought its collector along; NULL: it was not to, or has. */
static const char *missing_why(const struct process_set *s, const struct traced_process *m)
{
	if (m->collector || m->state.refused || !traced_process__has_cuda(m))
		return NULL;
	if (s->options->invited)
		return "CUDA did not load the collector; attach to the process while it runs";
	return s->options->uninvited_why;
}

void collector_policy_emit_missing(struct process_set *s, const struct traced_process *m)
{
	const char *why = missing_why(s, m);

	if (why)
		emit_no_gpu(s, m, why);
}

void collector_policy_note_missing(struct process_set *s, const struct traced_process *m)
{
	const char *why = missing_why(s, m);

	if (why)
		gpu_unavailable__note(&s->gpu_unavailable, m->process->pid, why);
}

static void emit_lack(struct traced_process *m)
{
	struct reason why = {0};

	if (m->state.lack_logged ||
	    !collector_client__failed_features(m->collector, GP_FEATURE_CUPTI, &why))
		return;
	m->state.lack_logged = true;
	log_warn("%d: %s", (int)m->process->pid, why.text);
}

void collector_policy_follow_cupti(struct process_set *s, struct traced_process *m)
{
	bool active = traced_process__reports(m, GP_FEATURE_CUPTI);
	struct reason why = {0};
	int nr;

	if (active)
		gpu_unavailable__forget(&s->gpu_unavailable, m->process->pid);
	else if (collector_client__requested(m->collector, GP_FEATURE_CUPTI) &&
		 collector_client__failed_features(m->collector, GP_FEATURE_CUPTI, &why))
		gpu_unavailable__note(&s->gpu_unavailable, m->process->pid, why.text);
	if (s->options->invited)
		emit_lack(m);
	if (!s->options->gpu || active == m->state.api_by_cupti ||
	    !collector_client__requested(m->collector, GP_FEATURE_CUPTI) ||
	    !collector_client__follows(m->collector))
		return;
	m->state.api_by_cupti = active;
	nr = active ? (int)probe_session__detach_api(s->probes, m->index)
		    : probing_attach(s, m, &why);
	if (nr < 0)
		log_warn("%d: cannot be probed: %s", (int)m->process->pid, why.text);
	else
		log_info("%d: calls of CUDA come by %s: %d probes %s", (int)m->process->pid,
			 active ? "CUPTI" : "uprobes", nr, active ? "fewer" : "more");
}

void collector_policy_follow_memory(struct process_set *s, struct traced_process *m)
{
	const uint32_t both = GP_FEATURE_OPS | GP_FEATURE_MEMORY;
	struct reason memory = {0}, why = {0};
	int nr;

	if (!m->state.memory_by_callback || !collector_client__requested(m->collector, both) ||
	    !collector_client__follows(m->collector) ||
	    (collector_client__active(m->collector) & both) != GP_FEATURE_OPS)
		return;
	m->state.memory_by_callback = false;
	s->counts.left_nr++;
	collector_client__feature_error(m->collector, "memory", &memory);
	collector_client__release(m->collector, GP_FEATURE_MEMORY);
	nr = probing_attach(s, m, &why);
	if (nr < 0)
		log_warn("%d: cannot be probed: %s", (int)m->process->pid, why.text);
	log_warn(
		"%d: allocations can no longer be told within the process (%s): some are missing%s",
		(int)m->process->pid, memory.text,
		probe_session__no_bpf(s->probes) ? " from now on"
						 : ", and they come by uprobes from now on");
}
