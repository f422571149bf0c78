# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Whether a process that was profiled is as fast as before: the same steps just before and just after an attach and detach, and, by turns
with that, before and after a pause as long as that took, since a process that has waited finds its caches cold. Prints a table;
asserts nothing, since a figure depends on the machine.

Environment: as bench.py.
"""

import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402

WORK_STEPS = 200  # while attached


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp)")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=1, help="of each part, about")
    parser.add_argument("--variant", default="gpuprof", choices=tuple(bench.VARIANTS))
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp"]
    return args


def around(target, steps, between):
    """CPU time after in that before, and seconds that `between` took."""
    before = bench.spent_on(target, steps)
    begin = time.monotonic()
    between()
    took = time.monotonic() - begin
    return bench.spent_on(target, steps).cpu / before.cpu, took


def compare(args, spec, folder):
    path = os.path.join(folder, "after.gpuprof")
    profiled, paused = [], []

    def attach():
        harness.attach(target, path, *bench.VARIANTS[args.variant],
                       orders=lambda: target.step(min(steps, WORK_STEPS)))

    with bench.start(args, spec) as target:
        steps = bench.calibrate(target, args.seconds)
        around(target, steps, attach)  # the first one waits for what is not in the page cache
        for _ in range(args.rounds):
            ratio, took = around(target, steps, attach)
            profiled.append(ratio)
            paused.append(around(target, steps, lambda: time.sleep(took))[0])  # noqa: B023
        print("\n%s: PyTorch %s, %s, %d rounds of %d steps; CPU time after, in that before" % (
            spec, target.facts["torch"], args.variant, args.rounds, steps))
        target.leave()
    for name, ratios in (("attach and detach", profiled), ("a pause", paused)):
        print("  %-20s %s  95 %% interval of the median %.3f .. %.3f" % (
            name, bench.spread(ratios, "%.3f"), *bench.interval(ratios)), flush=True)


def main():
    args = arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
            for spec in args.workload:
                compare(args, spec, folder)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
