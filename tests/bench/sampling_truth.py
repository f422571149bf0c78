# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Whether samples tell the truth. Operators: their shares of the time of all operators, against an exact trace of the same run; sampler
and tracer are attached together and on by turns, block by block. Python: shares of lines, summed by
function, against a program that knows its own CPU time (tests/workloads/sampled.py). Prints tables and the
largest difference in points beside the standard error of the samples; asserts nothing.

Environment: as bench.py.
"""

import argparse
import json
import math
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402

TOP = 10


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp, resnet18_train:8 and server)")
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1, help="of one block, about")
    parser.add_argument("--hz", type=int, default=997)
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp", "resnet18_train:8", "server"]
    return args


def shares(recording, column):
    """Of each operator in the sum over all, and the sum."""
    rows = {row["name"]: row[column] for row in recording.table("--limit", "-1")["rows"]
            if row["name"].startswith("aten::")}
    whole = sum(rows.values())
    return {name: value / whole for name, value in rows.items()}, whole


def by_turns(args, target, steps):
    """The recordings of the sampler and of the tracer."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        watchers = (pairs.Attached(target, one, "--mode", "sample", "--hz", args.hz),
                    pairs.Attached(target, other))
        for watcher in watchers:
            watcher.switch(False)
        for _ in range(args.blocks):
            for watcher in watchers:
                watcher.switch(True)
                target.step(steps)
                watcher.switch(False)
        sampled, traced = (watcher.finish() for watcher in watchers)
        return shares(sampled, "self_samples"), shares(traced, "self_cpu_us")


def operators(args, spec):
    with bench.start(args, spec) as target:
        steps = bench.calibrate(target, args.seconds)
        (sampled, samples), (exact, _) = by_turns(args, target, steps)
        target.leave()
    print("\n%s: PyTorch %s, %d samples in operators\n  %-44s %8s %8s %8s %8s" % (
        spec, target.facts["torch"], samples, "", "trace", "samples", "points", "+/-"))
    off = []
    for name in sorted(exact, key=exact.get, reverse=True)[:TOP]:
        share = sampled.get(name, 0)
        off.append(100 * (share - exact[name]))
        print("  %-44s %8.2f %8.2f %8.2f %8.2f" % (
            name, 100 * exact[name], 100 * share, off[-1],
            100 * math.sqrt(share * (1 - share) / samples)))
    print("  largest difference: %.2f points" % max(map(abs, off)), flush=True)


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
            100 * math.sqrt(share * (1 - share) / samples)))
    print("  largest difference: %.2f points" % max(map(abs, off)), flush=True)


def main():
    args = arguments()
    try:
        for spec in args.workload:
            operators(args, spec)
        lines(args)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
