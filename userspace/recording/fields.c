/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "recording/fields.h"

#include "recording/recording.h"

#define AT(type, field) offsetof(struct type, field)

static const struct event_fields op = {
	.times = {AT(gp_ev_op, start_ns)},
	.instances = {AT(gp_ev_op, instance), AT(gp_ev_op, parent)},
	.names = {AT(gp_ev_op, name_id)},
	.stack = AT(gp_ev_op, stack_id),
	.inputs = AT(gp_ev_op_inputs, inputs_id),
};
static const struct event_fields memory = {
	.instances = {AT(gp_ev_memory, instance)},
	.stack = AT(gp_ev_memory, stack_id),
};
static const struct event_fields api = {
	.times = {AT(gp_ev_api, start_ns)},
	.instances = {AT(gp_ev_api, instance)},
	.names = {AT(gp_ev_api, name_id), AT(gp_ev_api_call, kernel_name_id)},
	.stack = AT(gp_ev_api, stack_id),
};
static const struct event_fields cuda_memory = {
	.instances = {AT(gp_ev_cuda_memory, instance)},
	.names = {AT(gp_ev_cuda_memory, name_id)},
	.stack = AT(gp_ev_cuda_memory, stack_id),
};
static const struct event_fields collective = {
	.times = {AT(gp_ev_collective, start_ns)},
	.instances = {AT(gp_ev_collective, instance)},
	.names = {AT(gp_ev_collective, name_id)},
};
static const struct event_fields overhead = {.times = {AT(gp_ev_overhead, start_ns)}};
static const struct event_fields kernel = {
	.times = {AT(gp_ev_kernel, start_ns), AT(gp_ev_kernel, queued_ns)},
	.names = {AT(gp_ev_kernel, name_id)},
};
static const struct event_fields gpu_memory = {.times = {AT(gp_ev_gpu_memory, start_ns)}};
static const struct event_fields pause_fields = {.times = {AT(gp_ev_pause, start_ns)}};
static const struct event_fields window = {.times = {AT(gp_ev_window, start_ns)}};
static const struct event_fields sync = {.times = {AT(gp_ev_sync, start_ns)}};
static const struct event_fields inputs = {.inputs = AT(gp_ev_inputs, inputs_id)};
static const struct event_fields tensors = {.instances = {AT(gp_ev_tensors, instance)}};
static const struct event_fields sample = {
	.times = {AT(gp_ev_sample, start_ns)},
	.stack = AT(gp_ev_sample, stack_id),
};
static const struct event_fields trigger = {.times = {AT(gp_ev_trigger, start_ns)}};
static const struct event_fields thread_stack = {.stack = AT(gp_ev_thread_stack, stack_id)};
static const struct event_fields module_call = {
	.times = {AT(gp_ev_module_call, start_ns)},
	.instances = {AT(gp_ev_module_call, first), AT(gp_ev_module_call, last)},
	.names = {AT(gp_ev_module_call, name_id)},
};
static const struct event_fields python_gc = {.times = {AT(gp_ev_python_gc, start_ns)}};
static const struct event_fields none;

const struct event_fields *recording_event_fields(uint8_t kind)
{
	switch (kind) {
	case GP_EV_OP:
		return &op;
	case GP_EV_MEMORY:
		return &memory;
	case GP_EV_API:
		return &api;
	case GP_EV_CUDA_MEMORY:
		return &cuda_memory;
	case GP_EV_COLLECTIVE:
		return &collective;
	case GP_EV_OVERHEAD:
		return &overhead;
	case GP_EV_TRIGGER:
		return &trigger;
	case GP_EV_THREAD_STACK:
		return &thread_stack;
	case GP_EV_KERNEL:
		return &kernel;
	case GP_EV_GPU_MEMORY:
		return &gpu_memory;
	case GP_EV_SYNC:
		return &sync;
	case GP_EV_PAUSE:
		return &pause_fields;
	case GP_EV_WINDOW:
		return &window;
	case GP_EV_INPUTS:
		return &inputs;
	case GP_EV_TENSORS:
		return &tensors;
	case GP_EV_SAMPLE:
		return &sample;
	case GP_EV_MODULE_CALL:
		return &module_call;
	case GP_EV_PYTHON_GC:
		return &python_gc;
	default:
		return recording_event_bytes(kind) ? &none : NULL;
	}
}
