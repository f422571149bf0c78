# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Whether a process that was profiled is as fast as before, on a machine whose speed changes all the while: it takes its steps by turns
with a twin that is never profiled, some milliseconds each on the same CPU, and its CPU time is told in that of the twin; before and
after an attach and detach, before and after one to a third process that does nothing (the machine is as busy then), and before and
after nothing at all. Prints a table; asserts nothing, since a figure depends on the machine.

Environment: as bench.py.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402

WORK_STEPS = 200  # while attached


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp)")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--turns", type=int, default=20, help="of the process and its twin, in each part")
    parser.add_argument("--seconds", type=float, default=0.01, help="of one turn, about")
    parser.add_argument("--cpu", type=int, default=0, help="for the process and its twin")
    parser.add_argument("--variant", default="gpuprof", choices=tuple(bench.VARIANTS))
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp"]
    return args


def put_on(cpu, target):
    for thread in os.listdir("/proc/%d/task" % target.pid):
        os.sched_setaffinity(int(thread), {cpu})


def in_twins(target, twin, steps, turns):
    """The middle of the turns' CPU time in that of the twin's turn behind it."""
    return bench.quartiles([bench.spent_on(target, steps).cpu / bench.spent_on(twin, steps).cpu
                            for _ in range(turns)])[1]


def compare(args, spec, folder):
    path = os.path.join(folder, "after.gpuprof")

    def attach_to(whom):
        harness.attach(whom, path, *bench.VARIANTS[args.variant],
                       orders=lambda: target.step(min(steps, WORK_STEPS)))

    with bench.start(args, spec) as target, bench.start(args, spec) as twin, \
            bench.start(args, spec) as other:
        between = {"attached to it": lambda: attach_to(target),
                   "to another": lambda: attach_to(other),
                   "nothing": lambda: None}
        steps = bench.calibrate(target, args.seconds)
        for process in (target, twin, other):
            process.step(steps)
            put_on(args.cpu, process)
        attach_to(target)  # the first one waits for what is not in the page cache
        found = {name: [] for name in between}
        for _ in range(args.rounds):
            for name, what in between.items():
                before = in_twins(target, twin, steps, args.turns)
                what()
                found[name].append(in_twins(target, twin, steps, args.turns) / before)
        print("\n%s: PyTorch %s, %s, %d rounds of %d turns of %d steps; CPU time after, in that before" % (
            spec, target.facts["torch"], args.variant, args.rounds, args.turns, steps))
        for process in (target, twin, other):
            process.leave()
    for name, ratios in found.items():
        print("  %-16s %s  95 %% interval of the median %.3f .. %.3f" % (
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
