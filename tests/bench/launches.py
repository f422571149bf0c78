# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What a launch costs while it is watched: 20,000 a second on the stand-ins for CUDA, plain, with
CUPTI's records through the collector, and by uprobes. What the stand-in for CUPTI takes itself is told
beside it, with the same records in the program's own hands, where nobody reads them; the rest of what
gpuprof adds, in pairs, is the collector's (the real CUPTI's records cost more, and as much for anybody). Then what `--mode sample` costs such a process, which has CUPTI's
records in windows: of launches in them, less those before and behind, beside what gpuprof says. Prints a table; asserts nothing.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402
import parts  # noqa: E402
from test_gpu import App  # noqa: E402

RECORDS = "CUPTI's records alone"
VARIANTS = {"gpuprof": (), "gpuprof --no-inject": ("--no-inject",)}
PERIOD_US = 50
PART = 500  # launches, when sampled: 25 ms
BESIDE = 6  # parts beyond a window, on either side, with which it is compared


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--launches", type=int, default=20000, metavar="N", help="a round")
    parser.add_argument("--overhead", action="append", type=float, metavar="PERCENT",
                        help="of --mode sample; repeatable (default: 1)")
    parser.add_argument("--seconds", type=float, default=60, help="under --mode sample; 0: not at all")
    return parser.parse_args()


def launch_ns(app, launches):
    return float(app.command("rate %d %d" % (launches, PERIOD_US)).split()[1])


def unread(app, launches):
    app.do("records 1")
    took = launch_ns(app, launches)
    app.do("records 0")
    return took


def attached(app, launches, options, folder):
    path = os.path.join(folder, "launches.gpuprof")
    took = []
    capture = harness.attach(app, path, *options,
                             orders=lambda: took.append(launch_ns(app, launches)))
    assert capture.status in (harness.DONE, harness.LOST), capture.told
    table = capture.recording.table()
    seen = sum(row["calls"] for row in table["rows"] if row["name"] == "cudaLaunchKernel")
    losses = capture.recording.losses()
    return took[0], launches - seen + losses["ring_full"] + losses["collector_full"] + losses["cupti_dropped"]


def extra(took, seen):
    """What the launches of each window cost more, and those half-way to the next one: nanoseconds a part's launch, added up."""
    wide = sorted({near for part in seen for near in (part - 1, part, part + 1) if 0 <= near < len(took)})
    groups = []
    for part in wide:
        if groups and part == groups[-1][-1] + 1:
            groups[-1].append(part)
        else:
            groups.append([part])
    none = [[(group[-1] + after[0]) // 2] for group, after in zip(groups, groups[1:])
            if after[0] - group[-1] > 2 * BESIDE]

    def cost(group):
        beside = [took[part] for part in [*range(group[0] - BESIDE, group[0]),
                                          *range(group[-1] + 1, group[-1] + 1 + BESIDE)]
                  if 0 <= part < len(took) and part not in wide]
        return sum(took[part] for part in group) - len(group) * statistics.fmean(beside) if beside else None

    return len(groups), *([value for value in map(cost, some) if value is not None] for some in (groups, none))


def sampled(seconds, percent, folder):
    """In percent of the time: launches in windows, and none; told of records and the collector, of samples; its own part."""
    path = os.path.join(folder, "sampled.gpuprof")
    begins, took = [], []
    with App() as app, harness.Gpuprof("attach", "--pid", app.pid, "-o", path, "--mode", "sample", "--overhead",
                                       "%g" % percent) as child:
        child.wait_recording()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begins.append(time.monotonic_ns())
            took.append(launch_ns(app, PART))
        begins.append(time.monotonic_ns())
        assert child.finish() == harness.DONE, child.told()
    recording = harness.Recording(path)
    part = parts.Thread([(when, 0, "") for when in begins])
    times = parts.times(recording, lambda event: event.get("cat") == "cuda_runtime")
    seen = {part.at(when) for when in sum(times.values(), [])} - {None}
    table = recording.table()
    cost = table["overhead"]
    cpu = cost["cost_cpu_ns"]
    nr, *values = extra(took, seen)
    windows, none = (pairs.percent(each) if each else pairs.Percent(0, 0, 0) for each in values)
    spent = (begins[-1] - begins[0]) / PART  # nanoseconds, as a part's launch
    row = next(row for row in table["gpu_rows"] if row["name"] == "cudaLaunchKernel")
    calls = row.get("estimated", {}).get("calls", {"value": row["calls"], "standard_error": 0})
    print("  %8g %8d  %-24s %-24s %8.2f %8.2f %8.2f %8.2f  %.0f +- %.0f of %d" % (
        percent, nr, pairs.Percent(*(100 * nr * value / spent for value in windows)),
        pairs.Percent(*(100 * nr * value / spent for value in none)),
        100 * cost["cost_gpu_ns"] / cpu, 100 * cost["cost_collector_ns"] / cpu,
        100 * (cost["cost_samples_ns"] + cost["cost_samples_around_ns"]) / cpu,
        100 * cost["cost_own_ns"] / cpu, calls["value"], calls["standard_error"], PART * len(took)), flush=True)


def main():
    args = arguments()
    added = {name: [] for name in (RECORDS, *VARIANTS)}
    lost = dict.fromkeys(VARIANTS, 0)
    plain = []
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder, App() as app:
            for _ in range(args.rounds):
                before = launch_ns(app, args.launches)
                plain.append(before)
                added[RECORDS].append(unread(app, args.launches) - before)
                for name, options in VARIANTS.items():
                    took, missed = attached(app, args.launches, options, folder)
                    added[name].append(took - before)
                    lost[name] += missed
    finally:
        harness.kill_all()
    print("\nlaunches: %d a second on the stand-ins, %d rounds of %d; a plain one takes %.0f ns" % (
        1000000 // PERIOD_US, args.rounds, args.launches, statistics.median(plain)))
    for name, values in added.items():
        print("  %-22s added ns per launch: %s, %.1f %% of the time%s" % (
            name, bench.spread(values, "%.0f"), statistics.median(values) / PERIOD_US / 10,
            "; %d lost" % lost[name] if name in lost else ""))
    print("  gpuprof less CUPTI's records, paired: %s ns per launch" % bench.spread(
        [whole - part for whole, part in zip(added["gpuprof"], added[RECORDS])], "%.0f"))
    if args.seconds:
        print("\n--mode sample, %.0f seconds: percent of the time, of CPU time where it is told\n"
              "  %8s %8s  %-24s %-24s %8s %8s %8s %8s  %s" % (
                  args.seconds, "budget", "windows", "they cost (95 %)", "none", "records", "thread", "samples", "its own",
                  "launches, estimated"), flush=True)
    with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
        for percent in (args.overhead or [1]) if args.seconds else ():
            sampled(args.seconds, percent, folder)


if __name__ == "__main__":
    main()
