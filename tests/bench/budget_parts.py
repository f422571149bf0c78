# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What the windows of `--overhead` cost their target, by what it notes itself (parts.py), beside what gpuprof says: the CPU
time of the parts of work in which a window is, and of some before and behind it, less that of the same parts just before and
after those, and what was told of that (callbacks and probes, those from being asked for until a window begins and from its end until all
is off, too) and of all. The first seconds, in which it learns what things cost, are in a recording of their own. The same is done for as many parts half-way between windows, where nothing
is collected, and what comes out there (`none`) is taken off. Unlike budget.py this does not see what gpuprof costs between
windows, and is not disturbed by a machine whose speed changes. Prints a table; asserts nothing.

Environment: as bench.py.
"""

import argparse
import math
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402
import parts  # noqa: E402

EDGE_NS = 8000000  # at either end of a window, in which collection may be on already, or still
EDGE_MIN = 3  # parts
WARM = 12  # seconds
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


def cost(thread, first, end, covered):
    """CPU nanoseconds that these parts took more than as many beside them, None: too few are there."""
    beside = [thread.took(index, 0) for index in [*range(first - BESIDE, first),
                                                  *range(end, end + BESIDE)]
              if index not in covered and 0 <= index < len(thread.cpu) - 1 and
              thread.parts[index] == thread.parts[first + EDGE_MIN]]
    if first < 0 or end >= len(thread.cpu) or len(beside) < BESIDE:
        return None
    return thread.cpu[end] - thread.cpu[first] - (end - first) * statistics.fmean(beside)


def costs(thread, found):
    """What each window cost, and each of those half-way to the next one, where nothing is."""
    edge = max(EDGE_MIN, round(EDGE_NS * len(thread.begins) / (thread.begins[-1] - thread.begins[0])))
    wide = [(first - edge, end + edge) for first, end in found]
    covered = {index for first, end in wide for index in range(first, end)}
    none = []
    for (first, end), (after, _) in zip(wide, wide[1:]):
        begin = (end + after - (end - first)) // 2
        if begin - BESIDE >= end and begin + end - first + BESIDE <= after:
            none.append(cost(thread, begin, begin + end - first, covered))
    return [cost(thread, first, end, covered) for first, end in wide], none


def whole(values, nr):
    """Of so many like these that are known, a mean of which all but the outermost count."""
    values = [value for value in values if value is not None]
    return pairs.Percent(*(nr * value for value in pairs.percent(values))) if values else None


def added(first, second, sign):
    """With the interval of independent errors."""
    bound = math.hypot(first.high - first.low, second.high - second.low) / 2
    value = first.value + sign * second.value
    return pairs.Percent(value, value - bound, value + bound)


class Found:
    """Nanoseconds that the windows of all work took more, and as much work without one."""

    def __init__(self):
        self.windows = self.none = pairs.Percent(0, 0, 0)
        self.windows_nr = self.cpu = 0
        self.unseen_nr = 0  # windows that cannot be compared with anything

    def add(self, thread, starts):
        found = windows(thread, starts)
        extra, none = (whole(values, len(found)) for values in costs(thread, found))
        self.windows_nr += len(found)
        self.cpu += thread.cpu[-1] - thread.cpu[0]
        if not extra or not none:
            self.unseen_nr += len(found)
            return
        self.windows = added(self.windows, extra, 1)
        self.none = added(self.none, none, 1)

    def percent(self):
        """What windows cost beyond what none does, and none; CPU nanoseconds of the same work, not collected."""
        value = added(self.windows, self.none, -1)
        plain = self.cpu - value.value
        return *(pairs.Percent(*(100 * part / plain for part in each))
                 for each in (value, self.none)), plain


def measure(args, percent, folder):
    path, socket = (os.path.join(folder, "budget." + end) for end in ("gpuprof", "sock"))
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
            assert harness.gpuprof("ctl", "--socket", socket, "rotate").status == harness.DONE
            work(steps)
            if args.jump:
                assert target.command("ops %d" % JUMP) == "ops %d" % JUMP
                work(max(1, steps // JUMP))

        work(100)  # begins stamps
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--socket", socket, "--rotate", "5h",
                             "--overhead", "%g" % percent) as profiler:
            profiler.wait_recording()
            work(max(1, round(steps * WARM / args.seconds)))
            noted.clear()
            orders()
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    recording = harness.Recording(os.path.join(folder, "budget.2.gpuprof"))
    starts = parts.times(recording, lambda event: event.get("cat") == "cpu_op")
    found = Found()
    for threads in noted:
        for tid, thread in threads.items():
            found.add(thread, starts.get(tid, []))
    overhead = recording.table()["overhead"]
    inside = sum(overhead.get("cost_%s_ns" % name, 0) for name in ("callbacks", "probes", "collector"))
    there = overhead["cost_callbacks_ns"] - overhead["cost_rest_ns"] + overhead.get("cost_probes_ns", 0)
    value, none, plain = found.percent()
    print("  %8g %8d  %-24s %-24s %12.2f %8.2f %8.2f%s" % (
        percent, found.windows_nr, value, none, 100 * there / plain,
        100 * inside / (overhead["cost_cpu_ns"] - inside),
        100 * overhead["cost_own_ns"] / (overhead["cost_cpu_ns"] - inside),
        "  %d windows could not be compared" % found.unseen_nr if found.unseen_nr else ""), flush=True)


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
    print("\nthe tiny MLP%s: the target's CPU time, in percent\n  %8s %8s  %-24s %-24s %12s %8s %8s" % (
        ", ten times the operators from the middle on" if args.jump else "", "budget", "windows",
        "they cost (95 %)", "none", "told of them", "of all", "its own"))
    pairs.each_percent(args, measure)


if __name__ == "__main__":
    main()
