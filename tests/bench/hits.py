# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What a hit of each probe costs: nanoseconds of one run of its BPF program, by the kernel's own account of it (the kernel reads its
clock twice for that, which is in the figure). GPUPROF may name several binaries, with colons between them: they take turns at the
same process, in another order each round, and each is compared with the first one round by round. Medians with quartiles; of the
differences, the 95 % interval of the median. Prints tables; asserts nothing, since a figure depends on the machine.

Environment: as bench.py. Needs root.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import bench  # noqa: E402
import harness  # noqa: E402

# Fewer hits than this in a round say nothing.
HITS_MIN = 200


def accounts():
    """Program -> its runs and nanoseconds so far."""
    return {one["name"]: (one.get("run_cnt", 0), one.get("run_time_ns", 0)) for one in harness.programs()}


def ns_per_hit(binary, target, args, folder):
    """Program -> nanoseconds of one run, and runs."""
    found = {}

    def orders():
        # The first ones find what is new.
        target.step(args.steps // 4 + 1)
        before = accounts()
        target.step(args.steps)
        for name, (runs, ns) in accounts().items():
            hits = runs - before[name][0]
            if hits >= HITS_MIN:
                found[name] = ((ns - before[name][1]) / hits, hits)

    path = os.path.join(folder, "hits.gpuprof")
    harness.GPUPROF = binary
    capture = harness.attach(target, path, "--no-inject", "--memory", "--ring-bytes", str(1 << 26), *args.option, orders=orders)
    assert capture.status in (harness.DONE, harness.LOST), capture.told
    os.unlink(path)
    return found


def rounds(binaries, target, args, folder):
    """Of each binary what was found, in the order of the rounds."""
    found = {binary: [] for binary in binaries}
    for number in range(args.rounds):
        for binary in binaries if number % 2 == 0 else reversed(binaries):
            found[binary].append(ns_per_hit(binary, target, args, folder))
    return found


def show(workload, binaries, found):
    names = sorted(set.intersection(*(set(one) for each in found.values() for one in each)))
    print("\n%s: ns per hit, median (quartiles)" % workload)
    for name in names:
        ns = {binary: [one[name][0] for one in found[binary]] for binary in binaries}
        cells = [bench.spread(ns[binary], "%.0f") for binary in binaries]
        for binary in binaries[1:]:
            more = [new - old for old, new in zip(ns[binaries[0]], ns[binary])]
            cells.append("%+.1f (95 %%: %+.1f..%+.1f)" % (bench.quartiles(more)[1], *bench.interval(more)))
        print("    %-20s%8d hits" % (name, found[binaries[0]][0][name][1]) + "".join("%32s" % cell for cell in cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", help="repeatable (mlp, boxed)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--steps", type=int, default=300, help="of each round, and a quarter before them")
    parser.add_argument("--option", action="append", default=[], help="of gpuprof (--option=--shapes); repeatable")
    args = parser.parse_args()
    binaries = [os.path.abspath(path) for path in os.environ.get("GPUPROF", harness.GPUPROF).split(":")]
    print("binaries: " + ", ".join(os.path.relpath(path) for path in binaries))
    try:
        with harness.program_accounts(), tempfile.TemporaryDirectory(prefix="gpuprof-hits-") as folder:
            for workload in args.workload or ("mlp", "boxed"):
                with harness.Target(workload) as target:
                    show(workload, binaries, rounds(binaries, target, args, folder))
                    target.leave()
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
