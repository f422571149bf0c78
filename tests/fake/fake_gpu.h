/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The simulated GPU behind our stand-ins for CUDA: libcuda.so.1 holds it, libcudart.so.12 gives it
 * work, libcupti.so.12 reports what it did. It knows the truth and writes it to a file. Nothing
 * here is NVIDIA's. The exported names are those of the interfaces that programs link to, and
 * fake_gpu_marker, by which a test sees that it runs on the stand-ins.
 *
 * Environment:
 *
 *     FAKE_CUPTI_FAULT       "zero=N,backwards=N,drop=N": the record of every Nth piece of GPU work
 *                            has no start, ends before its start, or is missing
 *     FAKE_CUPTI_LATE        the number of flushes that a record waits for
 *     FAKE_CUPTI_BUFFER      the number of bytes of a buffer that are used
 *     FAKE_CUPTI_VERSION     CUPTI's version
 *     FAKE_CUPTI_OVERHEAD    1: each flush leaves a record of its cost
 *     FAKE_CUPTI_LAST        1: so does finalizing CUPTI, which then returns the buffer
 *     FAKE_CUPTI_DRIFT_PPM   the drift of CUPTI's clock
 *     FAKE_CUPTI_OFFSET_NS   the offset of CUPTI's clock
 *     FAKE_CUPTI_SETTLE      1: CUPTI uses another clock until the GPU has its first work
 *     FAKE_CUDA_CORRELATION  the first correlation id
 *     FAKE_CUDA_PINNED_MS    how long it takes to allocate pinned memory
 *     FAKE_CUDA_THREAD       1: the driver has a thread of its own, which waits for ever
 *     FAKE_CUDA_DRIVER       the driver's version
 *     FAKE_CUDA_DEVICES      the number of devices
 */
#ifndef GP_FAKE_FAKE_GPU_H
#define GP_FAKE_FAKE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_GPU_PUBLIC __attribute__((visibility("default")))

enum fake_kind { FAKE_KERNEL, FAKE_COPY, FAKE_SET, FAKE_CALL, FAKE_SYNC, FAKE_EVENT };
enum fake_fault { FAKE_FINE, FAKE_ZERO, FAKE_BACKWARDS, FAKE_DROP };

/* One thing that happened. Times are CLOCK_MONOTONIC. */
struct fake_event {
	enum fake_kind kind;
	enum fake_fault fault;
	bool traced;	/* CUPTI was to tell of it */
	bool delivered; /* ... and has */
	bool driver;	/* calls: of the driver's interface */
	uint32_t correlation_id, tid, pthread_id, stream, cbid;
	uint64_t start_ns, end_ns, bytes;
	uint32_t grid[3], block[3], shared_bytes;
	uint8_t copy_kind;
	uint32_t device, peer_device; /* peer: one more than it; 0: no copy between devices */
	uint32_t graph, graph_node;   /* 0: none */
	uint32_t sync;		      /* CUpti_ActivitySynchronizationType */
	uint32_t event;		      /* recorded or waited for; UINT32_MAX: none */
	uint64_t record_id;	      /* of that very record */
	uint32_t flushes_left;
	const char *name; /* for ever */
};

/* What libcupti hooks in. */
struct fake_hooks {
	/* After each call, with no lock held. */
	void (*call_exit)(bool driver, uint32_t cbid);
};

extern FAKE_GPU_PUBLIC const char fake_gpu_marker[];

FAKE_GPU_PUBLIC uint64_t fake_gpu_now_ns(void);
/* A number from the environment, or `otherwise`. */
FAKE_GPU_PUBLIC uint64_t fake_gpu_setting(const char *name, uint64_t otherwise);
/* CUPTI's clock at a moment. */
FAKE_GPU_PUBLIC uint64_t fake_gpu_cupti_ns(uint64_t monotonic_ns);

/* A call of the interface: begin() gives its correlation id, end() records it. */
FAKE_GPU_PUBLIC uint32_t fake_gpu_begin(uint64_t *ret_start_ns);
FAKE_GPU_PUBLIC void fake_gpu_end(uint32_t correlation_id, uint64_t start_ns, const char *name,
				  bool driver, uint32_t cbid);
/* Queues work: kind, bytes, grid, block, name, stream and correlation id are given. */
FAKE_GPU_PUBLIC void fake_gpu_submit(const struct fake_event *work);
/* A synchronisation: waits until end_ns, 0: until all work of the stream (UINT32_MAX: of all
 * streams) is done. */
FAKE_GPU_PUBLIC void fake_gpu_wait(const struct fake_event *sync);
/* The stream goes on no earlier than end_ns; the call does not wait. */
FAKE_GPU_PUBLIC void fake_gpu_hold(const struct fake_event *sync);
/* An event is recorded behind the stream's work: when the GPU comes to it. record_id is its own. */
FAKE_GPU_PUBLIC uint64_t fake_gpu_record(struct fake_event *event);
/* Whether the stream has work that is not done. */
FAKE_GPU_PUBLIC bool fake_gpu_works(uint32_t stream);

/* The device that the calling thread works on. */
FAKE_GPU_PUBLIC uint32_t fake_gpu_device(void);
FAKE_GPU_PUBLIC void fake_gpu_set_device(uint32_t device);

/* For libcupti. `mask`: bits 1 << enum fake_kind that are traced from now on. */
FAKE_GPU_PUBLIC void fake_gpu_trace(uint32_t mask, const struct fake_hooks *hooks);
/* Calls fn for each traced event that is over and not delivered yet, streams one after the other
 * and so out of order; at a flush the late ones get nearer. */
FAKE_GPU_PUBLIC void fake_gpu_deliver(bool flush, void (*fn)(const struct fake_event *e));
/* How many await delivery, about. */
FAKE_GPU_PUBLIC size_t fake_gpu_pending(void);
FAKE_GPU_PUBLIC bool fake_gpu_is_busy(void);

/* For programs. Not 0: CUPTI is in someone else's hands. */
FAKE_GPU_PUBLIC void fake_gpu_set_busy(int busy);
/* Sets CUPTI's clock forward or back, now. */
FAKE_GPU_PUBLIC void fake_gpu_jump(int64_t ns);
/* Writes all that happened; 0 or -1. */
FAKE_GPU_PUBLIC int fake_gpu_truth(const char *path);
/* Counts what happened to CUPTI, by name. */
FAKE_GPU_PUBLIC void fake_gpu_count(const char *what);
FAKE_GPU_PUBLIC unsigned fake_gpu_counted(const char *what);
/* Counts something that the real CUPTI does not always survive while another thread is in a call:
 * "beside calls", or "alone". */
FAKE_GPU_PUBLIC void fake_gpu_count_beside(void);

#endif /* GP_FAKE_FAKE_GPU_H */
