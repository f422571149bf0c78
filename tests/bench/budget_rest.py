# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What `--overhead` costs its target between windows, where the ends of annotations alone are told: while the workload notes its CPU time at
each step, the budget is armed and paused by turns, and the steps of each armed stretch outside windows are compared with those of the
paused ones before and after. Where the budget is so small that annotations are not even told then, there is nothing to see. Prints a table; asserts nothing.

Environment: as bench.py.
"""

import argparse
import bisect
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402
import parts  # noqa: E402

AFTER_NS = 30000000  # behind a switch, in which caches are still those of whatever ran then
NEAR_NS = 20000000  # on either side of an operator that was told
LEAST = 20  # steps of a stretch


class Turns(threading.Thread):
    """Arms and pauses the watcher until it is to stop; `stretches` has the (begin, end, armed) of what is between."""

    def __init__(self, watcher, seconds):
        super().__init__()
        self.watcher, self.seconds = watcher, seconds
        self.stopped = threading.Event()
        self.stretches = []

    def run(self):
        begin = time.monotonic_ns()
        while not self.stopped.wait(self.seconds):
            armed, end = self.watcher.is_on, time.monotonic_ns()
            self.watcher.switch(not armed)
            self.stretches.append((begin + AFTER_NS, end, armed))
            begin = time.monotonic_ns()

    def stop(self):
        self.stopped.set()
        self.join()


def step_ns(thread, begin, end, operators):
    """CPU nanoseconds of a step of the stretch, None: too few are outside windows."""
    first, last = (bisect.bisect_left(thread.begins, when) for when in (begin, end))
    took = []
    for index in range(first, min(last, len(thread.begins)) - 1):
        near = bisect.bisect_left(operators, thread.begins[index] - NEAR_NS)
        if near == len(operators) or operators[near] > thread.begins[index + 1] + NEAR_NS:
            took.append(thread.took(index, 0))
    return pairs.middle(took) if len(took) >= LEAST else None


def compare(thread, stretches, operators):
    """Percent that each armed stretch took more than those beside it."""
    took = [(step_ns(thread, begin, end, operators), armed) for begin, end, armed in stretches]
    return [100 * (2 * here / (before + after) - 1)
            for (before, _), (here, armed), (after, _) in zip(took, took[1:], took[2:])
            if armed and None not in (before, here, after)]


def measure(args, percent, folder):
    with bench.start(args, args.workload) as target:
        if args.cpu is not None:
            parts.apart(target.pid, args.cpu)
        steps = bench.calibrate(target, args.seconds)
        inner = "%s/stamps-%d" % (harness.inside().folder, target.pid)
        watcher = pairs.Attached(target, folder, "--overhead", "%g" % percent)
        turns = Turns(watcher, args.stretch)
        turns.start()
        told = target.command("stamps %d %s" % (steps, harness.inside().inner(inner)))
        assert told == "stamps %d" % steps, told
        turns.stop()
        noted = parts.read_stamps(inner)
        recording = watcher.finish()
        target.leave()
    starts = parts.times(recording, lambda event: event.get("cat") == "cpu_op")
    table = recording.table()
    armed = sum(end - begin + AFTER_NS for begin, end, on in turns.stretches if on)
    share = (armed - table["wall_us"] * 1e3) / sum(end - begin + AFTER_NS for begin, end, _ in turns.stretches)
    told = 100 * table["overhead"]["cost_rest_ns"] / (table["overhead"]["cost_cpu_ns"] * share)
    found = [value for tid, thread in noted.items()
             for value in compare(thread, turns.stretches, starts.get(tid, []))]
    cost = pairs.percent(found) if found else "too few steps apart"
    print("  %8g %10d  %-26s %.2f" % (percent, len(found), cost, told), flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", default="mlp", metavar="NAME[:BATCH]")
    parser.add_argument("--percent", action="append", type=float,
                        help="repeatable (default: 10)")
    parser.add_argument("--seconds", type=float, default=60, help="about")
    parser.add_argument("--stretch", type=float, default=0.15, help="seconds armed, or paused, at a time")
    parser.add_argument("--cpu", type=int, help="for the workload alone; what measures it takes the others")
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.percent = args.percent or [10]
    return args


def main():
    args = arguments()
    print("\n%s: what it costs between windows, in percent of the target's CPU time\n  %8s %10s  %-26s %s" % (
        args.workload, "budget", "stretches", "cost (95 %)", "told"))
    pairs.each_percent(args, measure)


if __name__ == "__main__":
    main()
