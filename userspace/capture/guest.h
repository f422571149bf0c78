/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector inside one process, seen from gpuprof: put in, told what to collect, drained, and
 * taken out of action again.
 */
#ifndef GP_CAPTURE_GUEST_H
#define GP_CAPTURE_GUEST_H

#include "base/reason.h"
#include "target/process.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

struct guest;

/* Puts the collector in and waits until it does what `features` (enum gp_feature bits) ask or says
 * that it cannot; without shapes it stays all the same. 0 or -errno with a reason; the process is
 * then as before. */
int guest__new(const struct target_process *p, uint16_t process_index, uint32_t features,
	       struct reason *why, struct guest **ret_guest);

/* Bits of enum gp_feature in force now. */
uint32_t guest__active(const struct guest *g);

/* What the collector says of features that it cannot have. */
void guest__message(const struct guest *g, struct reason *ret_why);

/* Calls fn for each event that is there, GP_EV_NAME included; fn's non-zero result ends it and is
 * returned. Refreshes the heartbeat. */
int guest__drain(struct guest *g, int (*fn)(const void *event, size_t bytes, void *arg), void *arg);

/* Tells the collector to stop and waits until it has; events may still be drained after. `gone`:
 * the process has ended. */
void guest__stop(struct guest *g, bool gone);

/* It has stopped by itself (gpuprof was silent too long, or its ring made no sense): nothing more
 * comes. */
bool guest__has_left(const struct guest *g);

/* Adds what went missing. */
void guest__losses(const struct guest *g, uint64_t losses[GP_LOSS_NR]);

/* Takes the library out where that is safe, and frees. */
void guest__free(struct guest *g, const struct target_process *p, bool gone);

#endif /* GP_CAPTURE_GUEST_H */
