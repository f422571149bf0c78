# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Whether samples tell the truth. Operators: their shares of the time of all operators, against an exact trace of the same run; sampler
and tracer are attached together and on by turns, block by block. What the tracer costs at the begin and the end of an operator is
partly in that operator's time and partly in that of the one around it: beside the trace's times stand those that are left when all of it
was in the latter ("net": what an operator costs, by the CPU time of both kinds of blocks, times the operators right within one), and how far samples
are beyond both. Then the same operators' times with all that they call. Where perf is there, it samples at the same rate in blocks of its own, with its own walk of the stacks: neither tracer nor
sampler is in those. Python: shares of lines, summed by function, against a program that knows its own CPU time (tests/workloads/sampled.py).
Prints tables and the largest difference in points beside the standard error of the samples; asserts nothing. The trace's times are
of the clock, samples of CPU time: a program with more threads than CPUs, such as the server, cannot be compared so. With --busy the CPUs
are shared with so many processes that compute all the while.

Environment: as bench.py.
"""

import argparse
import contextlib
import json
import math
import os
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402

TOP = 10
PERF_STACKS = "dwarf,16384"
TRACED = 0.2  # of the steps of a sampled block: exact after few
STRUCTURE_STEPS = 3


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp and resnet18_train:8)")
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1, help="of one block, about")
    parser.add_argument("--hz", type=int, default=997)
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    parser.add_argument("--same-steps", action="store_true", help="all on at once")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes beside it")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp", "resnet18_train:8"]
    return args


def rows_of(recording):
    return {row["name"]: row for row in recording.table("--limit", "-1")["rows"]}


def shares(times, totals=None):
    """Of each operator in the sum of the times in themselves over all, and the sum; with totals: of each one's total."""
    whole = sum(value for name, value in times.items() if name.startswith("aten::"))
    return {name: value / whole for name, value in (totals or times).items()
            if name.startswith("aten::")}, whole


def column(rows, name):
    return {operator: row[name] for operator, row in rows.items()}


def within(target, folder):
    """Of each operator, how many others are right within one of its calls."""
    path = os.path.join(folder, "structure.gpuprof")
    done = harness.attach(target, path, orders=lambda: target.step(STRUCTURE_STEPS))
    calls, children, around = {}, {}, {}
    events = [event for event in done.recording.chrome()["traceEvents"]
              if event["ph"] == "X" and event["cat"] in ("cpu_op", "user_annotation")]
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        name, stack = event["name"], around.setdefault(event["tid"], [])
        while stack and stack[-1][1] <= event["ts"]:
            stack.pop()
        if stack:
            children[stack[-1][0]] = children.get(stack[-1][0], 0) + 1
        stack.append((name, event["ts"] + event["dur"]))
        calls[name] = calls.get(name, 0) + 1
    return {name: children.get(name, 0) / number for name, number in calls.items()}


def less_cost(rows, each, inside):
    """Self times of operators without what the tracer costs for those in them, so much each."""
    return {name: max(0, row["self_cpu_us"] - each * inside.get(name, 0) * row["calls"])
            for name, row in rows.items() if name.startswith("aten::")}


def by_turns(args, target, steps):
    """The rows of the sampler and of the tracer, perf's samples by operator, in it and with all that it calls (none: no
    perf), and microseconds that a traced step takes more."""
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(3)]
        watchers = [pairs.Attached(target, folders[0], "--mode", "sample", "--hz", args.hz),
                    pairs.Attached(target, folders[1])]
        blocks = [steps, steps if args.same_steps else max(1, round(steps * TRACED)), steps]
        for watcher in watchers:
            watcher.switch(False)
        if shutil.which("perf"):
            watchers.append(pairs.Perf(target, folders[2], args.hz, PERF_STACKS))
        more = []
        for _ in range(args.blocks):
            took = []
            for watcher, block in zip(watchers, blocks):
                on = watchers if args.same_steps else (watcher,)
                for each in on:
                    each.switch(True)
                took.append(1e6 * bench.spent_on(target, block).cpu / block)
                for each in on:
                    each.switch(False)
            more.append(took[1] - took[0])
        sampled, traced = (rows_of(watcher.finish()) for watcher in watchers[:2])
        judged = None
        for perf in watchers[2:]:
            judged = pairs.perf_operators(perf.finish(), traced)
        return sampled, traced, judged, statistics.median(more) * args.blocks * blocks[1]


def operators(args, spec, folder):
    with bench.start(args, spec) as target:
        steps = bench.calibrate(target, args.seconds)
        inside = within(target, folder)
        sampled, traced, judged, more = by_turns(args, target, steps)
        target.leave()
    each = more / sum(row["calls"] for row in traced.values())
    exact, _ = shares(column(traced, "self_cpu_us"))
    net, _ = shares(less_cost(traced, each, inside))
    seen, samples = shares(column(sampled, "self_samples"))
    perf, perf_samples = shares(judged[0]) if judged else ({}, 0)
    print("\n%s: PyTorch %s, %d samples in operators, perf %d; the tracer cost %.2f us each\n  %-36s" % (
        spec, target.facts["torch"], samples, perf_samples, each, "") + 7 * " %8s" % (
            "trace", "net", "samples", "points", "beyond", "+/-", "perf"))
    off = []
    for name in biggest(exact):
        share, low, high = seen.get(name, 0), *sorted((exact[name], net[name]))
        off.append((100 * (share - exact[name]), 100 * (share - min(max(share, low), high))))
        print("  %-36s" % name + 7 * " %8.2f" % (
            100 * exact[name], 100 * net[name], 100 * share, *off[-1], error(share, samples),
            100 * perf.get(name, 0) if judged else math.nan))
    print("  largest difference: %.2f points of the trace, %.2f beyond it and what is left without "
          "its cost" % tuple(max(map(abs, differences)) for differences in zip(*off)))
    totals(sampled, traced, judged)


def totals(sampled, traced, judged):
    """The same of operators with all that they call."""
    exact, _ = shares(column(traced, "self_cpu_us"), column(traced, "cpu_total_us"))
    seen, samples = shares(column(sampled, "self_samples"), column(sampled, "samples"))
    perf, _ = shares(*judged) if judged else ({}, 0)
    print("\n  %-36s" % "with all that they call" + 5 * " %8s" % (
        "trace", "samples", "points", "+/-", "perf"))
    off = []
    for name in biggest(exact):
        share = seen.get(name, 0)
        off.append(100 * (share - exact[name]))
        print("  %-36s" % name + 5 * " %8.2f" % (
            100 * exact[name], 100 * share, off[-1], error(share, samples),
            100 * perf.get(name, 0) if judged else math.nan))
    print("  largest difference: %.2f points of the trace" % max(map(abs, off)), flush=True)


def biggest(parts):
    return sorted(parts, key=parts.get, reverse=True)[:TOP]


def error(share, samples):
    """The standard error of a share, in points."""
    return 100 * math.sqrt(share * (1 - share) / samples)


def lines(args):
    with harness.Target("sampled") as target, tempfile.TemporaryDirectory() as folder:
        truth = []
        done = harness.attach(target, os.path.join(folder, "lines.gpuprof"), "--mode", "sample",
                              "--hz", args.hz, orders=lambda: truth.append(json.loads(
                                  target.command("spend %g" % (args.blocks * args.seconds / 4)))))
        rows = done.recording.table("--group-by", "line", "--limit", "-1")
        target.leave()
    whole, samples = sum(truth[0].values()), rows["samples"]
    print("\nlines of Python: %d samples\n  %-44s %8s %8s %8s %8s" % (
        samples, "", "truth", "samples", "points", "+/-"))
    off = []
    for name, seconds in truth[0].items():
        share = sum(row["self_samples"] for row in rows["rows"]
                    if row["name"].endswith(": " + name)) / samples
        off.append(100 * (share - seconds / whole))
        print("  %-44s %8.2f %8.2f %8.2f %8.2f" % (
            name, 100 * seconds / whole, 100 * share, off[-1],
            error(share, samples)))
    print("  largest difference: %.2f points" % max(map(abs, off)), flush=True)


def main():
    args = arguments()
    try:
        with harness.busy(args.busy), tempfile.TemporaryDirectory() as folder:
            for spec in args.workload:
                operators(args, spec, folder)
            lines(args)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
