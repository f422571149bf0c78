# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What sampling costs its target, and what `perf record -F 99 -g` does, in pairs of short blocks with it on and off (pairs.py). Prints a
table; asserts nothing, since a figure depends on the machine. Beside the target's CPU time stand the clock's, the sampler's own CPU
time, and what the kernel says of the program that takes samples: its time in percent of the target's, and of one sample.

Environment: as bench.py.
"""

import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402

PROGRAM = "gp_sample_tick"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp, resnet18_train:8 and server)")
    parser.add_argument("--pairs", type=int, default=80)
    parser.add_argument("--seconds", type=float, default=0.05, help="of one part, about")
    parser.add_argument("--parts", type=int, default=10,
                        help="of a block; the half of them that took least counts: whatever else "
                        "the machine does only adds, and samples are in every part")
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    parser.add_argument("--no-perf", action="store_true", help="without the reference")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp", "resnet18_train:8", "server"]
    return args


def perf_refused():
    """Why perf cannot be the reference here, None: it can."""
    try:
        done = subprocess.run(["perf", "record", "-F", "99", "-g", "-o", "/dev/null", "--", "true"],
                              check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True)
    except OSError as error:
        return str(error)
    return done.stderr.strip() or "no reason given" if done.returncode else None


def row(name, found, own, programs):
    print("  %-24s %-26s %-26s %6.2f   %s" % (
        name, pairs.cost(found), pairs.cost(found, "wall"), own, programs), flush=True)


def under_gpuprof(args, target, work, folder):
    with harness.program_accounts():
        watcher = pairs.Attached(target, folder, "--mode", "sample")
        ns = []

        def counted():
            before = harness.program_account(PROGRAM)[1], pairs.cpu_seconds(target.pid)
            spent = work()
            if watcher.is_on:
                ns.append((harness.program_account(PROGRAM)[1] - before[0],
                           pairs.cpu_seconds(target.pid) - before[1]))
            return spent

        found = pairs.run(counted, watcher, args.pairs)
        samples = watcher.finish().table()["samples"]
    spent, cpu = (sum(column) for column in zip(*ns))
    row("gpuprof --mode sample", found, pairs.own_share(found), "%.2f %%, %.1f us" % (
        100 * spent / 1e9 / cpu, spent / 1e3 / max(1, samples)))


def under_perf(args, target, work, folder):
    watcher = pairs.Perf(target, folder)
    found = pairs.run(work, watcher, args.pairs)
    watcher.finish()
    row("perf record -F 99 -g", found, pairs.own_share(found), "-")


def measure(args, spec, has_perf):
    with bench.start(args, spec) as target, \
            tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
        steps = bench.calibrate(target, args.seconds)
        print("\n%s: PyTorch %s, Python %s, %d pairs of blocks of %d times %d steps" % (
            spec, target.facts["torch"], target.facts["python"], args.pairs, args.parts, steps))
        print("  %-24s %-26s %-26s %6s   %s" % ("", "CPU time, % (95 %)", "clock, % (95 %)",
                                              "own, %", "the program, a sample"), flush=True)

        def work():
            parts = sorted((bench.spent_on(target, steps) for _ in range(args.parts)),
                           key=lambda part: part.cpu)[:(args.parts + 1) // 2]
            return (sum(column) * args.parts / len(parts) for column in zip(*parts))

        under_gpuprof(args, target, work, folder)
        if has_perf:
            under_perf(args, target, work, folder)
        target.leave()


def measure_each(args, measure, why_no_perf):
    """measure(args, workload, whether perf is the reference) of each workload."""
    if why_no_perf:
        print("1 skipped: perf record (%s)" % why_no_perf)
    try:
        for spec in args.workload:
            measure(args, spec, not why_no_perf)
    finally:
        harness.kill_all()
        harness.close_inside()


def main():
    args = arguments()
    measure_each(args, measure, "not wanted" if args.no_perf else perf_refused())


if __name__ == "__main__":
    main()
