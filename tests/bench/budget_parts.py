# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What the windows of `--overhead` cost their target, by what it notes itself (parts.py), beside what gpuprof says: the CPU
time of the parts of work in which a window is, and of some before and behind it, less that of the same parts just before and
after those, and what was told of the windows and of all. Unlike budget.py this does not see what gpuprof costs between windows, and is not disturbed by a
machine whose speed changes. Prints a table; asserts nothing.

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
import parts  # noqa: E402

EDGE = 20  # parts at either end of a window in which collection may be on already, or still
BESIDE = 20  # parts beyond, on either side, with which they are compared
JUMP = 10


def windows(thread, starts):
    """First part of each window and the one behind its last, of operators that started at these times."""
    seen = sorted({index for index in map(thread.at, starts) if index is not None})
    found = []
    for index in seen:
        if found and index <= found[-1][1]:
            found[-1][1] = index + 1
        else:
            found.append([index, index + 1])
    return found


def costs(thread, found):
    """CPU nanoseconds that each window took more than as many parts beside it."""
    covered = {index for first, end in found for index in range(first - EDGE, end + EDGE)}
    extra = []
    for first, end in found:
        first, end = first - EDGE, end + EDGE
        beside = [thread.took(index, 0) for index in [*range(first - BESIDE, first),
                                                      *range(end, end + BESIDE)]
                  if index not in covered and 0 <= index < len(thread.cpu) - 1 and
                  thread.parts[index] == thread.parts[first + EDGE]]
        if first >= 0 and end < len(thread.cpu) and len(beside) >= BESIDE:
            extra.append(thread.cpu[end] - thread.cpu[first] -
                         (end - first) * pairs.middle(beside))
        else:
            extra.append(None)
    return extra


def measure(args, percent, folder):
    path = os.path.join(folder, "budget.gpuprof")
    with bench.start(args, "mlp") as target:
        if args.cpu is not None:
            parts.apart(target.pid, args.cpu)
        steps = bench.calibrate(target, args.seconds / 2 if args.jump else args.seconds)
        inner = "%s/stamps-%d" % (harness.inside().folder, target.pid)
        noted = []

        def work(steps):
            told = target.command("stamps %d %s" % (steps, harness.inside().inner(inner)))
            assert told == "stamps %d" % steps, told
            noted.append(parts.read_stamps(inner))

        def orders():
            work(steps)
            if args.jump:
                assert target.command("ops %d" % JUMP) == "ops %d" % JUMP
                work(max(1, steps // JUMP))

        work(100)  # begins stamps
        noted.clear()
        done = harness.attach(target, path, "--overhead", "%g" % percent, orders=orders)
        target.leave()
    starts = parts.times(done.recording, lambda event: event.get("cat") == "cpu_op")
    extra, cpu = [], 0
    for threads in noted:
        for tid, thread in threads.items():
            extra += costs(thread, windows(thread, starts.get(tid, [])))
            cpu += thread.cpu[-1] - thread.cpu[0]
    known = [value for value in extra if value is not None]
    overhead = done.recording.table()["overhead"]
    estimated = done.recording.table()["estimated"]
    inside = sum(overhead.get("cost_%s_ns" % name, 0) for name in ("callbacks", "probes", "collector"))
    whole = sum(known) * len(extra) / max(1, len(known))
    spread = pairs.percent(known) if known else None
    scale = len(extra) / (cpu - whole) if known else 0
    print("  %8g %8d  %6.2f (%.2f .. %.2f) %12.2f %8.2f" % (
        percent, len(extra), 100 * whole / (cpu - whole),
        100 * spread.low * scale if known else 0, 100 * spread.high * scale if known else 0,
        100 * estimated["inside_us"] * 1e3 / (cpu - whole),
        100 * inside / (overhead["cost_cpu_ns"] - inside)), flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--percent", action="append", type=float,
                        help="repeatable (default: 1, 3 and 10)")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--jump", action="store_true",
                        help="from the middle on a step has ten times as many operators")
    parser.add_argument("--cpu", type=int, help="for the workload alone; what measures it takes the others")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.percent = args.percent or [1, 3, 10]
    return args


def main():
    args = arguments()
    print("\nthe tiny MLP%s: the target's CPU time, in percent\n  %8s %8s  %-26s %5s %8s" % (
        ", ten times the operators from the middle on" if args.jump else "", "budget", "windows",
        "windows cost (95 %)", "told of them", "of all"))
    try:
        for percent in args.percent:
            with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
                measure(args, percent, folder)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
