/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of CUPTI's binary interface that has stayed the same from CUDA 11.0 to 13.x: numbers,
 * and where the fields that we read lie in a record. Later versions only append to records.
 * tests/cupti/check.py compares all of it with NVIDIA's headers of each version. Building this
 * needs no CUDA.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_ABI_H
#define GP_COLLECTOR_CUPTI_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_PARAMETER = 1,
	CUPTI_LIMIT_REACHED = 12, /* what a second subscriber got in older versions */
	CUPTI_UNINITIALIZED = 15,
	CUPTI_UNSUPPORTED = 27,
	CUPTI_SECOND_SUBSCRIBER = 39,
};

/* The kinds of records that we switch on. */
enum cupti_kind {
	CUPTI_MEMCPY = 1,
	CUPTI_MEMSET = 2,
	CUPTI_DRIVER = 4,
	CUPTI_RUNTIME = 5,
	CUPTI_KERNEL = 10, /* CONCURRENT_KERNEL: the plain one makes kernels wait for each other */
	CUPTI_OVERHEAD = 17,
	CUPTI_PEER_COPY = 22, /* MEMCPY2 */
	CUPTI_EVENT = 36,     /* CUDA_EVENT; before CUDA 12.9 SYNC switches them on */
	CUPTI_SYNC = 38,
};

enum cupti_domain { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2 };
enum cupti_site { CUPTI_SITE_ENTER = 0, CUPTI_SITE_EXIT = 1 };
enum cupti_thread_id { CUPTI_THREAD_DEFAULT = 0, CUPTI_THREAD_SYSTEM = 1 };
enum cupti_flush { CUPTI_FLUSH_COMPLETED = 0, CUPTI_FLUSH_FORCED = 1 };

/* No record is shorter than its struct here, except where a comment says so. All are packed and lie
 * at multiples of 8 bytes. */
#define CUPTI_RECORD __attribute__((packed, aligned(8)))

struct CUPTI_RECORD cupti_record {
	uint32_t kind; /* enum cupti_kind or another */
};

/* CUpti_ActivityKernel5 (CUDA 11.0) and later. */
struct CUPTI_RECORD cupti_kernel {
	uint32_t kind;
	uint8_t cache_config;
	uint8_t shared_memory_config;
	uint16_t registers_per_thread;
	uint32_t partitioned_requested;
	uint32_t partitioned_executed;
	uint64_t start;
	uint64_t end;
	uint64_t completed;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	int32_t grid[3];
	int32_t block[3];
	int32_t static_shared_bytes;
	int32_t dynamic_shared_bytes;
	uint32_t local_bytes_per_thread;
	uint32_t local_bytes;
	uint32_t correlation_id;
	int64_t grid_id;
	const char *name; /* CUPTI's, for as long as the process */
	void *reserved0;
	uint64_t queued;
	uint64_t submitted;
	uint8_t launch_type;
	uint8_t carveout_requested;
	uint8_t carveout;
	uint8_t padding;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit;
	uint32_t graph;
};

/* CUpti_ActivityMemcpy4 (CUDA 11.1) and later; CUDA 11.0 has no graph. */
struct CUPTI_RECORD cupti_copy {
	uint32_t kind;
	uint8_t copy_kind;
	uint8_t src_kind;
	uint8_t dst_kind;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start;
	uint64_t end;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t correlation_id;
	uint32_t runtime_correlation_id;
	uint32_t pad;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t padding;
};

/* CUpti_ActivityMemcpyPtoP3 (CUDA 11.1) and later; CUDA 11.0 has no graph. */
struct CUPTI_RECORD cupti_peer_copy {
	uint32_t kind;
	uint8_t copy_kind;
	uint8_t src_kind;
	uint8_t dst_kind;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start;
	uint64_t end;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t src_device;
	uint32_t src_context;
	uint32_t dst_device;
	uint32_t dst_context;
	uint32_t correlation_id;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t padding;
};

/* CUpti_ActivityMemset3 (CUDA 11.1) and later; CUDA 11.0 has no graph. */
struct CUPTI_RECORD cupti_set {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes;
	uint64_t start;
	uint64_t end;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t correlation_id;
	uint16_t flags;
	uint16_t memory_kind;
	uint32_t pad;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t padding;
};

/* CUpti_ActivityAPI. */
struct CUPTI_RECORD cupti_api_call {
	uint32_t kind;
	uint32_t cbid;
	uint64_t start;
	uint64_t end;
	uint32_t process;
	uint32_t thread;
	uint32_t correlation_id;
	uint32_t result;
};

#define CUPTI_NO_VALUE UINT32_MAX /* no stream or no event, in cupti_sync */

/* CUpti_ActivitySynchronization2 (CUDA 12.8) and later; before, there is no record_id. */
struct CUPTI_RECORD cupti_sync {
	uint32_t kind;
	uint32_t type;
	uint64_t start;
	uint64_t end;
	uint32_t correlation_id;
	uint32_t context;
	uint32_t stream;
	uint32_t event;
	uint64_t record_id; /* that of the cupti_event which is waited for */
};

/* CUpti_ActivityCudaEvent2 (CUDA 12.8) and later; before, it ends with the padding. */
struct CUPTI_RECORD cupti_event {
	uint32_t kind;
	uint32_t correlation_id;
	uint32_t context;
	uint32_t stream;
	uint32_t event;
	uint32_t pad;
	uint32_t device;
	uint32_t pad2;
	void *reserved0;
	uint64_t device_time; /* 0: not asked for */
	uint64_t record_id;
};

enum cupti_object { CUPTI_OBJECT_THREAD = 2 };

/* CUpti_ActivityOverhead and later. */
struct CUPTI_RECORD cupti_overhead {
	uint32_t kind;
	uint32_t what;
	uint32_t object_kind; /* enum cupti_object or another */
	uint32_t process;     /* the thread's; other kinds of objects use these three otherwise */
	uint32_t thread;
	uint32_t pad;
	uint64_t start;
	uint64_t end;
};

/* The beginning of CUpti_CallbackData. */
struct cupti_callback_data {
	uint32_t site; /* enum cupti_site */
	uint32_t pad;
	const char *function_name; /* "cudaLaunchKernel"; CUPTI owns it */
};

typedef void (*cupti_request_fn)(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records_max);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
				  size_t valid_bytes);
typedef void (*cupti_callback_fn)(void *arg, uint32_t domain, uint32_t cbid, const void *data);

/* CUPTI's functions, by their exported names; each returns enum cupti_result. */
struct cupti_functions {
	/* needed */
	int (*cuptiGetVersion)(uint32_t *ret_version);
	int (*cuptiGetTimestamp)(uint64_t *ret_ns);
	int (*cuptiSubscribe)(void **ret_subscriber, cupti_callback_fn fn, void *arg);
	int (*cuptiUnsubscribe)(void *subscriber);
	int (*cuptiEnableDomain)(uint32_t enable, void *subscriber, uint32_t domain);
	int (*cuptiActivityRegisterCallbacks)(cupti_request_fn request, cupti_complete_fn complete);
	int (*cuptiActivityEnable)(uint32_t kind);
	int (*cuptiActivityDisable)(uint32_t kind);
	int (*cuptiActivityFlushAll)(uint32_t flags);
	int (*cuptiActivityGetNextRecord)(uint8_t *buffer, size_t valid_bytes, void **record);
	int (*cuptiActivityGetNumDroppedRecords)(void *context, uint32_t stream, size_t *ret_nr);
	int (*cuptiGetCallbackName)(uint32_t domain, uint32_t cbid, const char **ret_name);
	int (*cuptiGetResultString)(int result, const char **ret_text);
	int (*cuptiGetThreadIdType)(uint32_t *ret_type);
	int (*cuptiSetThreadIdType)(uint32_t type);
	int (*cuptiFinalize)(void);
	/* may be NULL: newer than CUDA 11.0 */
	int (*cuptiActivityEnableRuntimeApi)(uint32_t cbid, uint8_t enable);
	int (*cuptiActivityEnableDriverApi)(uint32_t cbid, uint8_t enable);
	int (*cuptiActivityEnableCudaEventDeviceTimestamps)(uint8_t enable);
};

#endif /* GP_COLLECTOR_CUPTI_CUPTI_ABI_H */
