/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Controllers, asked one after another.
 */
#include "capture/control/controller.h"

#include <errno.h>

int controllers__add(struct controllers *c, const struct controller_ops *ops, void *self)
{
	if (!self)
		return -ENOMEM;
	c->items[c->nr++] = (struct controller){ops, self};
	c->hears_events |= ops->on_event != NULL;
	c->chooses_ops |= ops->wants_op != NULL;
	c->hears_ops |= ops->on_op != NULL;
	return 0;
}

void controllers__done(struct controllers *c)
{
	while (c->nr) {
		const struct controller *last = &c->items[--c->nr];

		if (last->ops->free)
			last->ops->free(last->self);
	}
}

void controllers__prepare(struct controllers *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->prepare)
			k->ops->prepare(k->self);
	}
}

int controllers__start(struct controllers *c)
{
	int err = 0;

	for (size_t i = 0; i < c->nr && !err; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->start)
			err = k->ops->start(k->self);
	}
	return err;
}

int controllers__on_event(struct controllers *c, const void *event)
{
	int err = 0;

	for (size_t i = 0; i < c->nr && !err; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->on_event)
			err = k->ops->on_event(k->self, event);
	}
	return err;
}

bool controllers__want_op(const struct controllers *c, const struct gp_ev_op *op)
{
	for (size_t i = 0; i < c->nr; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->wants_op && !k->ops->wants_op(k->self, op))
			return false;
	}
	return true;
}

int controllers__on_op(struct controllers *c, const struct gp_ev_op *op, const char *name)
{
	int err = 0;

	for (size_t i = 0; i < c->nr && !err; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->on_op)
			err = k->ops->on_op(k->self, op, name);
	}
	return err;
}

int controllers__timeout_ms(const struct controllers *c, int timeout_ms)
{
	for (size_t i = 0; i < c->nr; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->timeout_ms)
			timeout_ms = k->ops->timeout_ms(k->self, timeout_ms);
	}
	return timeout_ms;
}

void controllers__poll(struct controllers *c, const int *failed)
{
	for (size_t i = 0; i < c->nr && !*failed; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->poll)
			k->ops->poll(k->self);
	}
}

void controllers__polled(struct controllers *c, uint64_t cpu_ns)
{
	for (size_t i = 0; i < c->nr; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->polled)
			k->ops->polled(k->self, cpu_ns);
	}
}

int controllers__split(struct controllers *c, uint64_t now_ns)
{
	int err = 0;

	for (size_t i = 0; i < c->nr; i++) {
		const struct controller *k = &c->items[i];
		int e = k->ops->split ? k->ops->split(k->self, now_ns) : 0;

		err = err ? err : e;
	}
	return err;
}

int controllers__flush(struct controllers *c, uint64_t now_ns)
{
	int err = 0;

	for (size_t i = 0; i < c->nr && !err; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->flush)
			err = k->ops->flush(k->self, now_ns);
	}
	return err;
}

int controllers__end(struct controllers *c)
{
	int err = 0;

	for (size_t i = 0; i < c->nr && !err; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->end)
			err = k->ops->end(k->self);
	}
	return err;
}

int controllers__may_flush(const struct controllers *c, struct reason *why)
{
	int err = 0;

	for (size_t i = 0; i < c->nr && !err; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->may_flush)
			err = k->ops->may_flush(k->self, why);
	}
	return err;
}

void controllers__status(const struct controllers *c, uint64_t now_ns,
			 struct capture_status *status)
{
	for (size_t i = 0; i < c->nr; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->status)
			k->ops->status(k->self, now_ns, status);
	}
}

int controllers__switch(struct controllers *c, uint32_t sides, bool on, struct reason *why)
{
	for (size_t i = 0; i < c->nr; i++) {
		const struct controller *k = &c->items[i];

		if (k->ops->switch_sides)
			return k->ops->switch_sides(k->self, sides, on, why);
	}
	return reason_set(why, -ENOTSUP, "this capture cannot be switched");
}
