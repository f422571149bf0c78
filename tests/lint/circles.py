# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
No circles of calls between .c files: who reads one of them would have to read all. What two files need is a third one that
calls neither. And no call against the order of rooms and sub-rooms.
"""

import calls
import layers


def against_order(edges):
    for name, to_all in edges.items():
        room, sub = layers.place_of(name)
        for to, functions in to_all.items():
            other, other_sub = layers.place_of(to)
            order = layers.ORDER.get(room)
            if order and other == room and order.index(other_sub) > order.index(sub):
                yield "%s calls %s of the later %s" % (name, ", ".join(functions), to)


def check(root):
    """Complaints, each as text."""
    edges = calls.graph(root)
    bad = list(against_order(edges))
    for circle in calls.circles(edges):
        lines = ["a circle of %d files: %s" % (len(circle), ", ".join(circle))]
        for name in circle:
            lines += ["  %s -> %s: %s" % (name, to, ", ".join(functions))
                      for to, functions in edges[name].items() if to in circle]
        bad.append("\n".join(lines))
    return bad
