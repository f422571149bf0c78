/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * When exact collection may be on so that all that gpuprof does costs no more than a share of the
 * target's CPU time: a bucket of CPU nanoseconds that the target's use of the CPU fills and costs
 * empty. Pure: times and costs in, decisions out; capture/control/budget_windows.c carries them
 * out.
 *
 * A window is a time in which collection is on. One opens where the bucket holds what a second
 * fills or, if that is more, what a window with one step is known to cost. How long it is to be, as
 * much as the bucket pays for, is set when it opens: one that ended because of what it saw would
 * see less of what is dear. It closes earlier only where that much more is owed than foreseen.
 */
#ifndef GP_CAPTURE_POLICY_BUDGET_H
#define GP_CAPTURE_POLICY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* All totals since the same moment, nanoseconds. */
struct budget_account {
	uint64_t now_ns;
	uint64_t cpu_ns;    /* used by the target, what gpuprof costs in it included */
	uint64_t inside_ns; /* that part of it */
	uint64_t cost_ns;   /* in the target and beside it */
};

struct budget {
	double share;	  /* of the target's CPU time that may be spent */
	double tokens_ns; /* earned and not spent; below 0: spent in advance */
	double rate;	  /* tokens earned in a nanosecond, lately */
	double rest_rate; /* spent in the target in a nanosecond while no window is open, lately */
	double step_ns;	  /* what a step costs, 0: not known */
	double burn;	  /* what a nanosecond in a window by time costs, 0: not known */
	double fixed_ns;  /* what a window costs beside that */
	double edge_ns;	  /* of the window at hand, in parts that were cut off */
	double plan;	  /* steps that the window at hand is to have, or nanoseconds; 0: no plan */
	double need_ns;	  /* least that is held when a window opens, after some had no whole step */
	double bar_ns;	  /* tokens at which the next window opens, with a bit of chance in it */
	struct budget_account begin, last;
	double spent_ns;  /* since the window opened */
	uint64_t rest_ns; /* for how long no window has been open, of the time that rest_rate knows
			   */
	uint32_t random;
	uint32_t hopeless_nr; /* so many windows will be by time: a step costs too much */
	bool open;
};

/* `percent` is above 0. */
void budget__init(struct budget *b, double percent, const struct budget_account *begin);

/* Time has gone on. */
void budget__account(struct budget *b, const struct budget_account *a);

/* The same where nothing was wanted meanwhile: nothing is earned in it, and nothing spent. */
void budget__skip(struct budget *b, const struct budget_account *a);

/* Whether a window may open now, and that it does: of steps, or by time. */
bool budget__may_open(const struct budget *b);
void budget__open(struct budget *b, bool by_time);

/* Whether the window is to end, which has had `done` whole steps, or nanoseconds; below 0: in the
 * middle of a step. Whether another one is paid for that follows at once. */
bool budget__is_over(const struct budget *b, double done);
bool budget__may_go_on(const struct budget *b);

/* The window has ended: it had `done` whole steps, or nanoseconds, and within_ns of its cost were
 * spent on those; the rest on opening and closing. budget__cut(): the next one follows at once. */
void budget__closed(struct budget *b, bool by_time, double done, double within_ns);
void budget__cut(struct budget *b, bool by_time, double done, double within_ns);

/* A step costs more than a minute gives: windows must be by time, for now. */
bool budget__is_hopeless(const struct budget *b);

/* Seeing the steps alone takes too much of the budget. */
bool budget__mute_over_budget(const struct budget *b);

#endif /* GP_CAPTURE_POLICY_BUDGET_H */
