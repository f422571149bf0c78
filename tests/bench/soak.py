# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Python stacks of many operators, each compared with what the program itself knew at that moment
(tests/workloads/stacks.py). Prints how many were right, marked as not whole, and wrong, of three
sorts of stacks: ordinary ones, those deeper than can be kept, and those with code that is made and
freed at run time. Status 1 if one was wrong. Needs root.

Environment: GPUPROF the binary; GPUPROF_ROOT_DIR the folder of another Debian (tests/matrix).
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import harness  # noqa: E402
from stack_truth import FRAMES, recorded, told  # noqa: E402

KINDS = ("right", "marked", "wrong")
SORTS = ("ordinary", "deep", "made at run time")


def sort_of(expected):
    if len(expected) > FRAMES:
        return "deep"
    return "made at run time" if any(frame.startswith("<made") for frame in expected) else "ordinary"


def kind_of(expected, mark, got):
    """A stack deeper than can be kept is right as far as it goes, and marked."""
    if mark is None:
        return "right" if got == expected else "wrong"
    cut = expected[:FRAMES]
    same = len(got) == len(cut) and all(frame in (wanted, "?(0): ?")
                                        for frame, wanted in zip(got, cut))
    return "marked" if same else "wrong"


def one_round(target, args, path, counts):
    def orders():
        target.step(args.steps)
        target.command("dynamic %d" % args.made)

    options = () if args.inject else ("--no-inject",)
    done = harness.attach(target, path, "--stack", "python", *options, orders=orders)
    assert done.status in (harness.DONE, harness.LOST), done.told
    expected, found = told(target), recorded(done.recording)
    os.unlink(path)
    assert {tid: len(stacks) for tid, stacks in expected.items()} == \
        {tid: len(stacks) for tid, stacks in found.items()}, "operators were lost"
    for tid, stacks in expected.items():
        for stack, (mark, got) in zip(stacks, found[tid]):
            kind = kind_of(stack, mark, got)
            counts[sort_of(stack), kind] += 1
            if kind == "wrong":
                print("wrong: %s\nshould be %s" % ((mark, got), stack), flush=True)


def soak(python, args):
    counts = {(sort, kind): 0 for sort in SORTS for kind in KINDS}
    with harness.Target("stacks", python=python) as target, \
            tempfile.TemporaryDirectory(prefix="gpuprof-soak-") as folder:
        told(target)
        while sum(counts.values()) < args.stacks:
            one_round(target, args, os.path.join(folder, "soak.gpuprof"), counts)
        facts = target.facts
        target.leave()
    print("CPython %s, PyTorch %s: %d stacks" % (
        facts["python"], facts["torch"], sum(counts.values())))
    for sort in SORTS:
        print("  %-18s%s" % (sort, ", ".join("%d %s" % (counts[sort, kind], kind)
                                             for kind in KINDS)), flush=True)
    return sum(counts[sort, "wrong"] for sort in SORTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stacks", type=int, default=100000)
    parser.add_argument("--steps", type=int, default=40, help="of one capture")
    parser.add_argument("--made", type=int, default=400, help="made-up codes in one capture")
    parser.add_argument("--minor", type=int, action="append",
                        help="a CPython 3 on the stand-in for PyTorch (default: real PyTorch)")
    parser.add_argument("--inject", action="store_true", help="operators by callback, if they can")
    args = parser.parse_args()
    try:
        found = harness.pythons() if args.minor else {}
        return int(any([soak(found[minor] if minor else None, args)
                        for minor in args.minor or [None]]))
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    sys.exit(main())
