# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Python stacks in numbers: how many of a great many are right (--stacks N, each against what the
program knows of itself), and what one costs at a depth, in the target's CPU time, by callback and
by uprobe. Status 1 if a stack was wrong.

Environment: GPUPROF the binary; GPUPROF_ROOT_DIR the folder of another Debian (tests/matrix).
"""

import argparse
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import harness  # noqa: E402
import stack_truth  # noqa: E402

harness.LIMIT = 1800

WAYS = {"callbacks": (), "uprobes": ("--no-inject",)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", action="append", choices=tuple(WAYS), help="(default: both)")
    parser.add_argument("--stacks", type=int, default=100000, metavar="N", help="to check")
    parser.add_argument("--steps", type=int, default=100, help="of one capture")
    parser.add_argument("--rounds", type=int, default=9, help="of cost measurements (0: none)")
    parser.add_argument("--ops", type=int, default=20000, help="of one cost measurement")
    parser.add_argument("--depth", type=int, default=20)
    args = parser.parse_args()
    args.way = args.way or list(WAYS)
    return args


class Score:
    """Right, marked as not whole (and right as far as they go), and wrong."""

    def __init__(self):
        self.right = self.marked = self.wrong = 0

    def add(self, expected, mark, got):
        if mark is None and got == expected:
            self.right += 1
        elif mark and all(frame in (wanted, "?(0): ?") for frame, wanted in zip(got, expected)):
            self.marked += 1
        else:
            self.wrong += 1
            print("wrong: %s\nshould be %s" % ((mark, got), expected), flush=True)

    def all(self):
        return self.right + self.marked + self.wrong


def soak(args, way, folder):
    score = Score()
    with harness.Target("stacks") as target:
        target.step(1)
        while score.all() < args.stacks:
            stack_truth.told(target)
            done = harness.attach(target, folder + "/soak.gpuprof", "--stack", "python", *WAYS[way],
                                  orders=lambda: target.step(args.steps))
            assert done.status == harness.DONE, done.told
            expected, found = stack_truth.told(target), stack_truth.recorded(done.recording)
            for tid, stacks in expected.items():
                assert len(found[tid]) == len(stacks)
                for stack, (mark, got) in zip(stacks, found[tid]):
                    score.add(stack, mark, got)
        target.leave()
        print("%s, Python %s: %d stacks: %d right, %d marked as not whole, %d wrong" % (
            way, target.facts["python"], score.all(), score.right, score.marked, score.wrong),
            flush=True)
    return score.wrong == 0


def cost_of(target, args, folder, *options):
    answers = []
    done = harness.attach(target, folder + "/cost.gpuprof", *options, orders=lambda: answers.append(
        target.command("busy %d %d" % (args.ops, args.depth))))
    assert done.status in (harness.DONE, harness.LOST), done.told
    return float(answers[0].split()[1])


def cost(args, way, folder):
    """CPU nanoseconds that a stack adds to an operator, in interleaved rounds."""
    with harness.Target("stacks") as target:
        added = []
        for _ in range(args.rounds):
            without = cost_of(target, args, folder, *WAYS[way])
            added.append(cost_of(target, args, folder, "--stack", "python", *WAYS[way]) - without)
        target.leave()
        print("%s, Python %s: a stack of %d frames costs %.0f ns [%.0f .. %.0f]" % (
            way, target.facts["python"], args.depth, statistics.median(added), min(added),
            max(added)), flush=True)


def main():
    args = arguments()
    good = True
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
            for way in args.way:
                if args.rounds:
                    cost(args, way, folder)
                if args.stacks:
                    good = soak(args, way, folder) and good
    finally:
        harness.kill_all()
        harness.close_inside()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
