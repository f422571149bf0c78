/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of PyTorch's C++ interface that the collector uses from C: the exported functions behind
 * at::RecordFunction, and where two members of that class lie. Nothing is guessed:
 * torch_api__bind() makes a record of its own, in a scope that nobody uses, and compares what its
 * callback gets with what it put in.
 */
#ifndef GP_COLLECTOR_TORCH_TORCH_H
#define GP_COLLECTOR_TORCH_TORCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Start callback: std::unique_ptr<ObserverContext> (*)(const RecordFunction &). The result is
 * stored in the caller's memory; its address is the first argument and is returned.
 */
typedef void *(*torch_start_fn)(void **ret_context, const void *record);
/* End callback: void (*)(const RecordFunction &, ObserverContext *). */
typedef void (*torch_end_fn)(const void *record, void *context);

/* at::RecordFunctionCallback, which is passed by value on the stack. PyTorch's has 40 bytes; if it
 * grows, zeros will mean "not wanted". */
struct torch_callback {
	torch_start_fn start;
	torch_end_fn end;
	double probability;
	uint8_t scopes[10];
	uint8_t needs_inputs, needs_outputs, needs_ids;
	uint8_t reserved[27];
};

struct torch_api {
	void *library; /* held while the functions are in use */
	uint64_t (*add_global_callback)(struct torch_callback callback);
	void (*remove_callback)(uint64_t handle);
	const char *(*record_name)(const void *record);
	uint64_t (*current_thread)(void);
	size_t sequence_offset;	      /* int64_t sequence_nr_ */
	size_t forward_thread_offset; /* uint64_t fwd_thread_id_ */
	bool verified;
};

enum torch_result {
	TORCH_BOUND = 0,
	TORCH_ABSENT = 1,  /* not loaded (yet) */
	TORCH_REFUSED = 2, /* loaded, but not as expected */
};

/* Finds libtorch_cpu in this process and holds it; verifies its layout once per process. why_text
 * is set unless TORCH_BOUND. */
enum torch_result torch_api__bind(struct torch_api *t, const char **why_text);
/* Adds a callback to PyTorch's list and returns its handle, or removes one. No fork begins
 * meanwhile. */
uint64_t torch_api__add(const struct torch_api *t, struct torch_callback callback);
void torch_api__remove(const struct torch_api *t, uint64_t handle);
/* Releases the library. Fine when not bound. */
void torch_api__release(struct torch_api *t);

#endif /* GP_COLLECTOR_TORCH_TORCH_H */
