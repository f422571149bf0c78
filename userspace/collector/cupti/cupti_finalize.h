/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How CUPTI is given back. One that is only let go of leaves calls of CUDA slower for as long as
 * the process lives (on an H200 with CUDA 13.0 an operator that launches one kernel took 9.6
 * to 11.1 instead of 7.6 us); one that is taken down does not. That may only be done at the exit of
 * a call of CUDA: the collector's thread makes one, of its own.
 *
 * And only while no other thread is in one (hold.h): cuptiFinalize() frees what they use. With
 * callbacks on in four threads that call CUDA without end the heap was corrupt within 2 to 130
 * rounds, and in one process of 13 even without.
 *
 * Before CUDA 13.0 it is not done where CUDA graphs are in play: PyTorch's developers saw crashes,
 * and it was not tried here. If calls that have to do with graphs have come, or may have come,
 * while CUPTI was ours, it is let go of; a capture that has begun before CUPTI was ours and is not
 * over yet cannot be seen. With 13.0 (13.0.1, driver 580), threads kept out of CUDA, none of 63
 * processes whose threads make graphs died of 1,329 rounds, and none of 44 that keep and launch
 * them of 840.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_FINALIZE_H
#define GP_COLLECTOR_CUPTI_CUPTI_FINALIZE_H

#include "collector/cupti/cupti_library.h"
#include "wire.h"

#include <stdbool.h>

/* What CUPTI calls for a subscriber of ours, in the call by which it is taken down. */
void cupti_finalize__on_call(void *arg, uint32_t domain, uint32_t cbid, const void *data);

/* CUPTI is ours, by a subscription with cupti_finalize__on_call(). */
void cupti_finalize__begin(const struct cupti_library *l, void *subscriber);

/* A call or work of graphs was among the records, or may have come unseen. Any thread. */
void cupti_finalize__note_graphs(void);

/* Gives CUPTI back, by the collector's thread, and says how. `held`: GP_CUPTI_DOWN where no other
 * thread is in a call of CUDA and none can come into one; else why that could not be had. */
enum gp_cupti_end cupti_finalize__give_back(enum gp_cupti_end held);

/* In a fork's child. */
void cupti_finalize__forget(void);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_FINALIZE_H */
