# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Whether --overhead keeps to its budget and tells the truth: the target's CPU time in pairs of blocks with the budget armed and paused
(pairs.py), and what gpuprof says that it cost in there. In each block of the load "jump" steps have ten times as many
operators from the middle on. What is paid once is apart: for how long a thread was borrowed, and what gpuprof took to set up. Prints
tables; asserts nothing, since a figure depends on the machine.

Environment: as bench.py.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402

JUMP = 10
# Of the account: what the target pays.
INSIDE = ("cost_callbacks_ns", "cost_probes_ns", "cost_collector_ns")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp, resnet18_train:8 and jump)")
    parser.add_argument("--percent", action="append", type=float,
                        help="repeatable (default: 1, 3 and 10)")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=2, help="of one block, about")
    parser.add_argument("--warm", type=int, default=5, help="pairs that do not count, before")
    parser.add_argument("--no-inject", action="store_true", help="operators by uprobes")
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp", "resnet18_train:8", "jump"]
    args.percent = args.percent or [1, 3, 10]
    return args


def spend(target, spec, steps):
    """Clock and CPU seconds of the steps; the jump has the same work in fewer, longer ones behind."""
    if spec != "jump":
        return bench.spent_on(target, steps)
    before = bench.spent_on(target, steps // 2)
    assert target.command("ops %d" % JUMP) == "ops %d" % JUMP
    after = bench.spent_on(target, max(1, steps // (2 * JUMP)))
    assert target.command("ops 1") == "ops 1"
    return bench.Spent(before.wall + after.wall, before.cpu + after.cpu)


class On:
    """CPU seconds of all blocks that were watched, of those too that do not count."""

    def __init__(self, work, watcher):
        self.work, self.watcher, self.cpu = work, watcher, 0

    def __call__(self):
        spent = self.work()
        self.cpu += spent.cpu if self.watcher.is_on else 0
        return spent


def measure(args, spec, percent, folder):
    options = ["--overhead", "%g" % percent] + (["--no-inject"] if args.no_inject else [])
    with bench.start(args, "mlp" if spec == "jump" else spec) as target:
        steps = bench.calibrate(target, args.seconds)
        watcher = pairs.Attached(target, folder, *options)
        work = On(lambda: spend(target, spec, steps), watcher)
        found = pairs.run(work, watcher, args.pairs, args.warm)
        table = watcher.finish().table()
        target.leave()
    overhead = table["overhead"]
    inside = sum(overhead.get(name, 0) for name in INSIDE) / 1e9
    print("  %-18s %8g  %-26s %8.2f %8.2f %8.0f %10.1f %10.0f" % (
        spec, percent, pairs.cost(found), 100 * inside / (work.cpu - inside),
        pairs.own_share(found), table.get("estimated", {}).get("windows", 0),
        overhead.get("cost_stops_ns", 0) / 1e6, overhead.get("cost_setup_ns", 0) / 1e6),
        flush=True)


def main():
    args = arguments()
    print("\n--overhead: the target's CPU time that it cost, measured and told, in percent; %d "
          "pairs of blocks of about %g s\n  %-18s %8s  %-26s %8s %8s %8s %10s %10s" % (
              args.pairs, args.seconds, "", "budget", "measured (95 %)", "told", "own",
              "windows", "stops, ms", "set-up, ms"))
    try:
        for spec in args.workload:
            for percent in args.percent:
                with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
                    measure(args, spec, percent, folder)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
