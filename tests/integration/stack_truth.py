# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What the workload "stacks" knows of its own Python stacks, against what a recording says.
"""

import json

import harness

FRAMES = 256
MARKS = ("[truncated]", "[incomplete]")


def told(target):
    """tid -> the stacks that the program knows of, innermost first."""
    path = "%s/told-%d.json" % (harness.inside().folder, target.pid)
    assert target.command("told " + harness.inside().inner(path)) == "told"
    with open(path, encoding="utf-8") as file:
        return {int(tid): stacks for tid, stacks in json.load(file).items()}


def recorded(recording):
    """tid -> (mark or None, stack innermost first) of each aten::sinh, in order."""
    found = {}
    for event in recording.chrome()["traceEvents"]:
        if event["ph"] != "X" or event["name"] != "aten::sinh":
            continue
        frames = event["args"].get("Call stack", "").split(";")[:-1]
        mark = frames.pop(0) if frames and frames[0] in MARKS else None
        found.setdefault(int(event["tid"]), []).append((event["ts"], mark, frames[::-1]))
    return {tid: [entry[1:] for entry in sorted(entries, key=lambda entry: entry[0])]
            for tid, entries in found.items()}


def right(expected, mark, stack):
    if len(expected) > FRAMES:
        return mark == "[truncated]" and stack == expected[:FRAMES]
    return mark is None and stack == expected


def compare(expected, found):
    """How many stacks there are; every one must be right."""
    assert {tid: len(stacks) for tid, stacks in expected.items()} == \
        {tid: len(stacks) for tid, stacks in found.items()}
    for tid, stacks in expected.items():
        for stack, (mark, got) in zip(stacks, found[tid]):
            assert right(stack, mark, got), "%s\nshould be\n%s" % ((mark, got), stack)
    return sum(len(stacks) for stacks in expected.values())
