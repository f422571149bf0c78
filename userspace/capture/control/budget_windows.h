/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A capture within a budget: collection is on in windows alone, of whole steps of the first process
 * where annotations tell them, else of some time. In between the collectors tell the ends of those
 * annotations, or nothing where that is too dear, and no probe is placed. capture/policy/budget.h
 * decides when.
 */
#ifndef GP_CAPTURE_CONTROL_BUDGET_WINDOWS_H
#define GP_CAPTURE_CONTROL_BUDGET_WINDOWS_H

#include "capture/private.h"

struct budget_windows;

/* NULL: out of memory. */
struct budget_windows *budget_windows__new(void);
void budget_windows__free(struct budget_windows *w);

/* The capture starts. 0 or -errno. */
int budget_windows_start(struct capture *c);

/* How long to wait for events, if it is to be at most timeout_ms. */
int budget_windows_timeout(const struct capture *c, int timeout_ms);

/* Whether an op is to be recorded. */
bool budget_windows_want(const struct capture *c, const struct gp_ev_op *op);

/* One op, in the recording's numbers, is seen to have finished; the CPU time of a thread. */
void budget_windows_op(struct capture *c, uint32_t source_process, const struct gp_ev_op *op);
void budget_windows_cpu_time(struct capture *c, const struct gp_ev_cpu_time *ev);

/* Between two drains: opens and closes. */
void budget_windows_poll(struct capture *c);

/* As capture__switch(). */
int budget_windows_switch(struct capture *c, uint32_t sides, bool on, struct reason *why);

/* The recording in progress ends here, and the next one begins. 0 or -errno. */
int budget_windows_split(struct capture *c, uint64_t now_ns);

/* The capture stops; every event has been taken. 0 or -errno. */
int budget_windows_end(struct capture *c);

/* Fills in what capture_status says of steps and of the budget. */
void budget_windows_status(const struct capture *c, struct capture_status *status);

#endif /* GP_CAPTURE_CONTROL_BUDGET_WINDOWS_H */
