# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Whether samples tell the truth. Operators: their shares of the time of all operators, in themselves and with all that they call,
against an exact trace of the same run; sampler and tracer are attached together and on by turns, block by block. What the tracer's
callbacks take for an operator is in the time of the ones around it: the column "trace" has it, "less" is without it (table --compensate).
Where perf is there, it samples at the same rate in blocks of its own, with its own walk of the stacks: neither tracer nor
sampler is in those; of code without unwind information (oneDNN's) it has no operator. Python: shares of lines, summed by function, against a program that knows its own CPU time (tests/workloads/sampled.py).
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
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402

TOP = 10
PERF_STACKS = "dwarf,16384"
TRACED = 0.2  # of the steps of a sampled block: exact after few


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


def rows_of(recording, *options):
    return {row["name"]: row for row in recording.table("--limit", "-1", *options)["rows"]}


def shares(times, totals=None):
    """Of each operator, or of its total, in the sum over the times of all in themselves; and the sum."""
    whole = sum(value for name, value in times.items() if name.startswith("aten::"))
    return {name: value / whole for name, value in (totals or times).items()
            if name.startswith("aten::")}, whole


def column(rows, name):
    return {operator: row[name] for operator, row in rows.items()}


def by_turns(args, target, steps):
    """The rows of the sampler, of the tracer, and of the tracer without its callbacks; perf's samples by operator, in it and with
    all that it calls (None: no perf)."""
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(3)]
        watchers = [pairs.Attached(target, folders[0], "--mode", "sample", "--hz", args.hz),
                    pairs.Attached(target, folders[1])]
        blocks = [steps, steps if args.same_steps else max(1, round(steps * TRACED)), steps]
        for watcher in watchers:
            watcher.switch(False)
        if shutil.which("perf"):
            watchers.append(pairs.Perf(target, folders[2], args.hz, PERF_STACKS))
        for _ in range(args.blocks):
            for watcher, block in zip(watchers, blocks):
                on = watchers if args.same_steps else (watcher,)
                for each in on:
                    each.switch(True)
                target.step(block)
                for each in on:
                    each.switch(False)
        sampled, traced = (watcher.finish() for watcher in watchers[:2])
        rows = rows_of(sampled), rows_of(traced), rows_of(traced, "--compensate")
        judged = None
        for perf in watchers[2:]:
            judged = pairs.perf_operators(perf.finish(), rows[1])
        return *rows, judged


def operators(args, spec):
    with bench.start(args, spec) as target:
        sampled, *traced, judged = by_turns(args, target, bench.calibrate(target, args.seconds))
        target.leave()
    _, samples = shares(column(sampled, "self_samples"))
    _, perf_samples = shares(judged[0]) if judged else ({}, 0)
    print("\n%s: PyTorch %s, %d samples in operators, perf %d" % (
        spec, target.facts["torch"], samples, perf_samples))
    for title, self_or_all in (("in themselves", ("self_cpu_us", "self_samples")),
                               ("with all that they call", ("cpu_total_us", "samples"))):
        time, number = self_or_all
        exact, less = (shares(column(rows, "self_cpu_us"), column(rows, time))[0] for rows in traced)
        seen, _ = shares(column(sampled, "self_samples"), column(sampled, number))
        perf, _ = shares(judged[0], judged[number == "samples"]) if judged else ({}, 0)
        compare(title, samples, exact, less, seen, perf)


def compare(title, samples, exact, less, seen, perf):
    """Of the operators with the greatest shares of the exact trace."""
    print("  %-36s" % title + 7 * " %8s" % (
        "trace", "less", "samples", "points", "of less", "+/-", "perf"))
    off = []
    for name in sorted(exact, key=exact.get, reverse=True)[:TOP]:
        share = seen.get(name, 0)
        off.append((100 * (share - exact[name]), 100 * (share - less[name])))
        print("  %-36s" % name + 7 * " %8.2f" % (
            100 * exact[name], 100 * less[name], 100 * share, *off[-1], error(share, samples),
            100 * perf.get(name, 0) if perf else math.nan))
    print("  largest difference: %.2f points of the trace, %.2f of it without its callbacks" % tuple(
        max(map(abs, differences)) for differences in zip(*off)), flush=True)


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
        with harness.busy(args.busy):
            for spec in args.workload:
                operators(args, spec)
            lines(args)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
