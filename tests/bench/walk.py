# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What a Python stack costs: nanoseconds that the program at operators' entries takes longer with
`--stack python` than without, by the kernel's own account of it, by version of CPython and depth of
the stack. Interleaved rounds, medians with quartiles. Operators are those of the stand-in for
PyTorch (tests/fake/torch.c), so any CPython will do: see harness.pythons(); or those of PyTorch in
GPUPROF_ROOT_DIR. Needs root.
"""

import argparse
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import harness  # noqa: E402

PROGRAM = "gp_op_entry"


def ns_per_run(target, depths, count, options, folder):
    """Depth -> nanoseconds of one run of the program."""
    found = {}

    def orders():
        for depth in depths:
            # The first ones find what is new.
            target.command("deep %d 1000" % depth)
            runs, ns = harness.program_account(PROGRAM)
            target.command("deep %d %d" % (depth, count))
            more, more_ns = harness.program_account(PROGRAM)
            assert more - runs >= count, "the operators were not seen"
            found[depth] = (more_ns - ns) / (more - runs)

    path = os.path.join(folder, "walk.gpuprof")
    capture = harness.attach(target, path, "--no-inject", "--ring-bytes", str(1 << 26), *options, orders=orders)
    assert capture.status in (harness.DONE, harness.LOST), capture.told
    os.unlink(path)
    return found


def measure(python, args, folder):
    with harness.Target("stacks", python=python) as target:
        rounds = []
        for _ in range(args.rounds):
            rounds.append([ns_per_run(target, args.depth, args.count, options, folder)
                           for options in ((), ("--stack", "python"))])
        target.leave()
    return {depth: [with_stack[depth] - without[depth] for without, with_stack in rounds]
            for depth in args.depth}


def cell(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return "%6.0f (%.0f..%.0f)" % (middle, low, high)


def pythons(args):
    """Minor version and path of each, path None: that of GPUPROF_ROOT_DIR, with its PyTorch."""
    if harness.ROOT_DIR:
        with harness.Target("stacks") as target:
            return [(int(target.facts["python"].split(".")[1]), None)]
    return [(minor, path) for minor, path in sorted(harness.pythons().items())
            if minor >= harness.FIRST_PYTHON and (not args.minor or minor in args.minor)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, action="append", help="repeatable (5, 20, 60)")
    parser.add_argument("--minor", type=int, action="append", help="of CPython 3 (all there are)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=20000, help="operators of one measurement")
    args = parser.parse_args()
    args.depth = args.depth or [5, 20, 60]
    print("ns per stack, median (quartiles)\n%-16s" % "CPython" +
          "".join("%24s" % ("depth %d" % depth) for depth in args.depth))
    try:
        with harness.program_accounts(), \
                tempfile.TemporaryDirectory(prefix="gpuprof-walk-") as folder:
            for minor, python in pythons(args):
                took = measure(python, args, folder)
                print("%-16s" % ("3.%d" % minor) +
                      "".join("%24s" % cell(took[depth]) for depth in args.depth), flush=True)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
