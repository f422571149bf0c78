# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Whether --overhead keeps to its budget and tells the truth: CPU time per step of the target (user and system, all of its threads), attached
against plain, in interleaved pairs of one process; and what gpuprof says that it cost in there. The load "jump" has steps of ten
times as many operators in the second half of what is measured. Prints tables; asserts nothing, since a figure depends on the machine.

Environment: as bench.py.
"""

import argparse
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402

JUMP = 10


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp, resnet18_train:8 and jump)")
    parser.add_argument("--percent", action="append", type=float,
                        help="repeatable (default: 1, 3 and 10)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20, help="of one measurement, about")
    parser.add_argument("--no-inject", action="store_true", help="operators by uprobes")
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp", "resnet18_train:8", "jump"]
    args.percent = args.percent or [1, 3, 10]
    return args


def spend(target, spec, steps):
    """CPU seconds of the steps; the jump has the same work in fewer, longer ones behind."""
    if spec != "jump":
        return bench.spent_on(target, steps).cpu
    before = bench.spent_on(target, steps // 2).cpu
    assert target.command("ops %d" % JUMP) == "ops %d" % JUMP
    after = bench.spent_on(target, max(1, steps // (2 * JUMP))).cpu
    assert target.command("ops 1") == "ops 1"
    return before + after


def attached(target, spec, steps, options, folder):
    """CPU seconds, and the recording's table."""
    path, took = os.path.join(folder, "budget.gpuprof"), []
    capture = harness.attach(target, path, *options,
                             orders=lambda: took.append(spend(target, spec, steps)))
    assert capture.status in (harness.DONE, harness.LOST), capture.told
    table = capture.recording.table()
    os.unlink(path)
    return took[0], table


def measure(args, spec, percent, folder):
    options = ["--overhead", "%g" % percent] + (["--no-inject"] if args.no_inject else [])
    started = bench.start(args, "mlp" if spec == "jump" else spec)
    costs, told, whole, windows = [], [], [], []
    with started as target:
        steps = bench.calibrate(target, args.seconds)
        before = spend(target, spec, steps)
        for _ in range(args.rounds):
            cpu, table = attached(target, spec, steps, options, folder)
            after = spend(target, spec, steps)
            costs.append(100 * (2 * cpu / (before + after) - 1))
            overhead = table["overhead"]
            told.append(100 * overhead.get("share_of_cpu_inside", float("nan")))
            whole.append(100 * overhead.get("share_of_cpu", float("nan")))
            windows.append(table.get("estimated", {}).get("windows", 0))
            before = after
        target.leave()
    low, high = bench.interval(costs)
    print("  %-18s %8g %8.2f %7.2f .. %-7.2f %8.2f %10.2f %8.0f" % (
        spec, percent, statistics.median(costs), low, high, statistics.median(told),
        statistics.median(whole), statistics.median(windows)), flush=True)


def main():
    args = arguments()
    print("\n--overhead: CPU time that it cost the target, measured and told, %d rounds of about "
          "%g s\n  %-18s %8s %8s %18s %8s %10s %8s" % (
              args.rounds, args.seconds, "", "budget %", "measured", "95 % interval", "told",
              "with own", "windows"))
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
            for spec in args.workload:
                for percent in args.percent:
                    measure(args, spec, percent, folder)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
