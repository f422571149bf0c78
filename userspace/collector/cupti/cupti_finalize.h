/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How CUPTI is given back: unsubscribed only, or finalized, too (cuptiFinalize()). If it is only
 * unsubscribed, CUDA calls stay slower for as long as the process lives: on an H200 with CUDA 13.0
 * an operator that launches one kernel took 9.6 to 11.1 us instead of 7.6 us. Finalizing is allowed
 * at the exit of a CUDA call only, so the collector's thread makes one of its own.
 *
 * It is safe only while no other thread is in a CUDA call (runtime/quiesce.h), because
 * cuptiFinalize() frees what those use. With callbacks on, in four threads that call CUDA all the
 * time, the heap was corrupt within 2 to 130 rounds; in one process of 13 even without callbacks.
 *
 * CUPTI before CUDA 13.0 is not finalized if CUDA graphs are in use: PyTorch's developers saw
 * crashes, and it was not tried here. It is only unsubscribed if calls that work on graphs have
 * come, or may have come, while CUPTI was ours. A capture that began before that and has not ended
 * cannot be seen. With 13.0 (13.0.1, driver 580) and threads held outside of CUDA, none of 63
 * processes whose threads create graphs died in 1,329 rounds, and none of 44 that keep and launch
 * them in 840.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_FINALIZE_H
#define GP_COLLECTOR_CUPTI_CUPTI_FINALIZE_H

#include "collector/cupti/cupti_library.h"
#include "wire.h"

#include <stdbool.h>

/* The callback of our subscription: finalizes CUPTI at the exit of our own CUDA call. */
void cupti_finalize__on_call(void *arg, uint32_t domain, uint32_t cbid, const void *data);

/* Begins a subscription with cupti_finalize__on_call(). */
void cupti_finalize__begin(const struct cupti_library *l, void *subscriber);

/* Notes that a CUDA graph was among the records, or may have come unseen. On any thread. */
void cupti_finalize__note_graphs(void);

/* Gives CUPTI back on the collector's thread, and returns how that was done. `held`: GP_CUPTI_DOWN
 * if no other thread is in a CUDA call or can enter one; else why not. */
enum gp_cupti_end cupti_finalize__give_back(enum gp_cupti_end held);

/* Forgets a request in a fork's child. */
void cupti_finalize__forget(void);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_FINALIZE_H */
