# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
torch.profiler's table worked out anew from a Chrome trace, to compare gpuprof's own with: a tree
per thread by containment, the collapse of same-name only children, sums. All times are integer
nanoseconds. Raises AssertionError where slices of one thread cross.
"""


def nanoseconds(microseconds):
    """Of a decimal number; one with more than three decimals is an error."""
    value = microseconds * 1000
    assert value == int(value), "%s has more than 3 decimals" % microseconds
    return int(value)


class Slice:
    """One X event."""

    __slots__ = ("name", "start", "end", "children")

    def __init__(self, name, start, end):
        self.name = name
        self.start = start
        self.end = end
        self.children = []


def slices_by_thread(events, categories=None):
    """(pid, tid) -> slices in order of (start, -end)."""
    threads = {}
    for event in events:
        if event["ph"] != "X" or (categories and event["cat"] not in categories):
            continue
        start = nanoseconds(event["ts"])
        one = Slice(event["name"], start, start + nanoseconds(event["dur"]))
        threads.setdefault((event["pid"], event["tid"]), []).append(one)
    for slices in threads.values():
        slices.sort(key=lambda one: (one.start, -one.end))
    return threads


def roots(slices):
    """The tree of one thread's slices; they nest or do not touch."""
    top, stack = [], []
    for one in slices:
        while stack and one.start >= stack[-1].end and not (
                one.start == one.end == stack[-1].end):
            stack.pop()
        if stack:
            assert one.end <= stack[-1].end, "%s [%d, %d] crosses %s [%d, %d]" % (
                one.name, one.start, one.end, stack[-1].name, stack[-1].start, stack[-1].end)
        (stack[-1].children if stack else top).append(one)
        stack.append(one)
    return top


def collapse(one):
    """Removes only children of the same name, again and again."""
    while len(one.children) == 1 and one.children[0].name == one.name:
        one.children = one.children[0].children
    for child in one.children:
        collapse(child)


def add_up(one, rows):
    row = rows.setdefault(one.name, {"calls": 0, "cpu_total_ns": 0, "self_cpu_ns": 0})
    row["calls"] += 1
    row["cpu_total_ns"] += one.end - one.start
    row["self_cpu_ns"] += one.end - one.start - sum(c.end - c.start for c in one.children)
    for child in one.children:
        add_up(child, rows)


def table(events, categories=("cpu_op", "user_annotation")):
    """name -> calls, cpu_total_ns, self_cpu_ns, as key_averages() counts them."""
    rows = {}
    for slices in slices_by_thread(events, categories).values():
        for one in roots(slices):
            collapse(one)
            add_up(one, rows)
    return rows


def calls(events, categories=("cpu_op",)):
    """name -> number of slices, before any collapse."""
    counts = {}
    for event in events:
        if event["ph"] == "X" and event["cat"] in categories:
            counts[event["name"]] = counts.get(event["name"], 0) + 1
    return counts
