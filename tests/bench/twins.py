# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What a process takes more while it is profiled, and whether it is as fast as before when that is over, on a machine whose speed
changes all the while: it takes its steps by turns with a twin that is never profiled, some milliseconds each on the same CPU, and its
CPU time is told in that of the twin. Told are ratios to what that was just before: under gpuprof and after it, under torch.profiler
(begun and ended in each turn, only the steps in between count) and after it, after an attach to a third process that does nothing (the
machine is as busy then), and after nothing at all. Prints a table; asserts nothing, since a figure depends on the machine.

All of them keep the memory that they free: glibc would give large blocks back, and take them again page by page, from whichever
pages the kernel has then. That costs ResNet half of its time, and makes one of two like processes a quarter slower, now this one, now
that. Memory that is kept makes them faster, so that what is added to them is a larger part, not a smaller one.

Environment: as bench.py.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402

KEEP_FREED_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
                     "MALLOC_TOP_PAD_": str(1 << 28)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp)")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--turns", type=int, default=20, help="of the process and its twin, in each part")
    parser.add_argument("--seconds", type=float, default=0.01, help="of one turn, about")
    parser.add_argument("--cpu", type=int, default=0, help="for the process and its twin")
    parser.add_argument("--variant", default="gpuprof", choices=tuple(bench.VARIANTS))
    parser.add_argument("--reference", default="torch.profiler", choices=tuple(bench.TORCH))
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp"]
    return args


def put_on(cpu, target):
    for thread in os.listdir("/proc/%d/task" % target.pid):
        os.sched_setaffinity(int(thread), {cpu})


class Pair:
    """A process and its twin on one CPU."""

    def __init__(self, args, target, twin):
        self.target = target
        self.twin = twin
        self.turns = args.turns
        self.steps = bench.calibrate(target, args.seconds)

    def plain(self):
        return bench.spent_on(self.target, self.steps).cpu

    def in_twins(self, one_turn=None):
        """The middle of the turns' CPU time in that of the twin's turn behind it."""
        one_turn = one_turn or self.plain
        return bench.quartiles([one_turn() / bench.spent_on(self.twin, self.steps).cpu
                                for _ in range(self.turns)])[1]


def looks(args, pair, other, path):
    """By name, what gives the CPU time in twins after something was done; "while": and meanwhile."""
    def under(whom):
        during = []
        harness.attach(whom, path, *bench.VARIANTS[args.variant],
                       orders=lambda: during.append(pair.in_twins()))
        return during[0]

    def under_torch():
        command = bench.TORCH[args.reference]
        return pair.in_twins(lambda: bench.under_torch(pair.target, pair.steps, command).cpu)

    return {args.variant: lambda: under(pair.target), args.reference: under_torch,
            "gpuprof at another": lambda: under(other), "nothing": pair.in_twins}


def compare(args, spec, folder):
    with bench.start(args, spec) as target, bench.start(args, spec) as twin, \
            bench.start(args, spec) as other:
        pair = Pair(args, target, twin)
        for process in (target, twin, other):
            process.step(pair.steps)
            put_on(args.cpu, process)
        during = looks(args, pair, other, os.path.join(folder, "twins.gpuprof"))
        for look in during.values():
            look()  # the first time waits for what is not in the page cache
        found = {name: [] for name in during}
        for _ in range(args.rounds):
            for name, look in during.items():
                before, meanwhile, after = pair.in_twins(), look(), pair.in_twins()
                found[name].append((meanwhile / before, after / before))
        print("\n%s: PyTorch %s, %d rounds of %d turns of %d steps; CPU time in that before" % (
            spec, target.facts["torch"], args.rounds, args.turns, pair.steps))
        for process in (target, twin, other):
            process.leave()
    for name, ratios in found.items():
        for when, values in zip(("while", "after"), zip(*ratios)):
            print("  %-5s %-18s %s  95 %% interval of the median %.3f .. %.3f" % (
                when, name, bench.spread(values, "%.3f"), *bench.interval(values)), flush=True)
    differences = [ours[0] - theirs[0] for ours, theirs in zip(found[args.variant],
                                                               found[args.reference])]
    print("  %s minus %s, paired: %s  95 %% interval of the median %.3f .. %.3f" % (
        args.variant, args.reference, bench.spread(differences, "%.3f"),
        *bench.interval(differences)), flush=True)


def main():
    args = arguments()
    os.environ.update(KEEP_FREED_MEMORY)
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
            for spec in args.workload:
                compare(args, spec, folder)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
