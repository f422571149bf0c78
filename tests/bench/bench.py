# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What being watched costs: steps/s and CPU time (user and system, all threads of the target) plain, under gpuprof and under torch.profiler, in interleaved
rounds of one process; and the time from the stop to a printed table and a written trace for many
events, for both. Prints tables; asserts nothing, since a figure depends on the machine.

Environment: GPUPROF the binary; GPUPROF_ROOT_DIR the folder of another Debian (tests/matrix).
"""

import argparse
import os
import platform
import random
import signal
import statistics
import sys
import tempfile
import time
import typing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import harness  # noqa: E402

harness.LIMIT = 1800

# name -> options of `gpuprof attach`
VARIANTS = {
    "gpuprof": (),
    "gpuprof --no-inject": ("--no-inject",),
    "gpuprof --mode sample": ("--mode", "sample"),
    "gpuprof --shapes": ("--shapes",),
    "gpuprof --no-annotations": ("--no-annotations",),
    "gpuprof --stack python": ("--stack", "python"),
    "gpuprof --python-functions": ("--python-functions",),
    "gpuprof, all": ("--stack", "python", "--shapes", "--memory"),
}
# What is measured where nothing is asked for.
USUAL = ("gpuprof", "gpuprof --no-inject", "gpuprof --mode sample", "gpuprof, all")
# Of torch.profiler, the workload's command; "all": with_stack, record_shapes and profile_memory.
TORCH = {"torch.profiler": "profile", "torch.profiler, shapes": "profile_shapes",
         "torch.profiler, all": "profile_all"}
# torch.profiler with stacks keeps so much in the process that more steps of it fill 24 GB.
STEPS_MAX_ALL = 400


def records_operators(variant):
    """Whether a variant's recording has operators, rather than samples of them."""
    return "--mode" not in VARIANTS[variant]


def torch_like(variant):
    """The torch.profiler that a variant is compared with."""
    if variant.endswith(", all"):
        return "torch.profiler, all"
    return "torch.profiler, shapes" if variant.endswith("--shapes") else "torch.profiler"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp, resnet18_train:8 and server)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one measurement, about")
    parser.add_argument("--events", type=int, default=1000000, metavar="N",
                        help="for the time from stop to output (0: skip)")
    parser.add_argument("--variant", action="append", choices=tuple(VARIANTS),
                        help="repeatable (default: %s; 'gpuprof, all' takes Python stacks, "
                        "shapes and memory)" % ", ".join(USUAL))
    parser.add_argument("--size", type=int, default=224, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp", "resnet18_train:8", "server"]
    args.variant = args.variant or list(USUAL)
    return args


def start(args, spec):
    name, _, batch = spec.partition(":")
    options = ["--threads", str(args.threads)]
    if batch:
        options += ["--batch", batch]
    if name.startswith("resnet"):
        options += ["--size", str(args.size)]
    return harness.Target(name, *options)


class Spent(typing.NamedTuple):
    """Seconds on the clock, and of the CPU."""

    wall: float
    cpu: float


def spent_on(target, steps):
    answer = target.command("time %d" % steps).split()
    assert answer[0] == "took", answer
    return Spent(float(answer[1]), float(answer[2]))


def calibrate(target, wanted):
    """Steps that take about so many seconds plain."""
    steps = 1
    while True:
        took = spent_on(target, steps).wall
        if took >= wanted / 4:
            return max(1, round(steps * wanted / took))
        steps *= 2


def under_gpuprof(target, steps, options, folder):
    """What the steps take while attached, and events lost."""
    path = os.path.join(folder, "bench.gpuprof")
    took = []
    capture = harness.attach(target, path, *options,
                             orders=lambda: took.append(spent_on(target, steps)))
    assert capture.status in (harness.DONE, harness.LOST), capture.told
    losses = capture.recording.losses()
    lost = losses["ring_full"] + losses["collector_full"]
    os.unlink(path)
    return took[0], lost


def under_torch(target, steps, command):
    answer = target.command("%s %d" % (command, steps)).split()
    assert answer[0] == "profiled", answer
    return Spent(float(answer[1]), float(answer[2]))


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def spread(values, form):
    low, middle, high = quartiles(values)
    return "%s [%s .. %s]" % (form % middle, form % low, form % high)


def one_round(target, steps, variants, folder, lost):
    """Name -> Spent; plain before and after the others."""
    took = {"plain": spent_on(target, steps)}
    for variant in variants:
        took[variant], missed = under_gpuprof(target, steps, VARIANTS[variant], folder)
        lost[variant] = lost.get(variant, 0) + missed
    took["plain after"] = spent_on(target, steps)
    for name in sorted({torch_like(variant) for variant in variants}):
        took[name] = under_torch(target, steps, TORCH[name])
    return took


def interval(values, resamples=10000):
    """Of the median: the middle 95 % of the medians of samples drawn anew from the values."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(values, k=len(values)))
                     for _ in range(resamples))
    return medians[round(resamples * 0.025)], medians[round(resamples * 0.975) - 1]


def compare_cpu(rounds, steps):
    """CPU time is not stretched by whatever else the machine does. Each round's ratio is to the
    plain runs before and after."""
    print("  CPU time of the target, ratio to plain in the same round:")
    for name in rounds[0]:
        if name.startswith("plain"):
            continue
        ratios = [2 * one[name].cpu / (one["plain"].cpu + one["plain after"].cpu)
                  for one in rounds]
        each = [one[name].cpu / steps * 1e6 for one in rounds]
        print("  %-24s %-26s 95 %% interval of the median %.3f .. %.3f; us per step %s" % (
            name, spread(ratios, "%.3f"), *interval(ratios), spread(each, "%.1f")))
    drift = [one["plain after"].cpu / one["plain"].cpu for one in rounds]
    print("  %-24s %-26s 95 %% interval of the median %.3f .. %.3f" % (
        "plain after / before", spread(drift, "%.3f"), *interval(drift)))


def row(cells):
    print("  %-24s %-26s %-26s %-30s %s" % tuple(cells))


def compare(args, spec, folder):
    with start(args, spec) as target:
        steps = calibrate(target, args.seconds)
        if any(torch_like(variant) == "torch.profiler, all" for variant in args.variant):
            steps = min(steps, STEPS_MAX_ALL)
        print("\n%s: PyTorch %s, Python %s, %d rounds of %d steps, median [quartiles]" % (
            spec, target.facts["torch"], target.facts["python"], args.rounds, steps), flush=True)
        lost = {}
        rounds = [one_round(target, steps, args.variant, folder, lost)
                  for _ in range(args.rounds)]
        target.leave()
    row(("", "steps/s", "ratio to plain", "added us per step", "events lost"))
    for name in rounds[0]:
        rates = [steps / one[name].wall for one in rounds]
        ratios = [one["plain"].wall / one[name].wall for one in rounds]
        added = [(one[name].wall - one["plain"].wall) / steps * 1e6 for one in rounds]
        row((name, spread(rates, "%.1f"), spread(ratios, "%.3f"), spread(added, "%.1f"),
             lost.get(name, "-")))
    for variant in args.variant:
        other = torch_like(variant)
        paired = [(one[variant].wall - one[other].wall) / steps * 1e6 for one in rounds]
        print("  %s minus %s, us per step, paired: %s" % (variant, other, spread(paired, "%.1f")))
    compare_cpu(rounds, steps)
    sys.stdout.flush()


def ops_per_step(target, folder):
    path = os.path.join(folder, "count.gpuprof")
    capture = harness.attach(target, path, orders=lambda: target.step(10))
    return sum(line["calls"] for line in capture.recording.table()["rows"]) / 10


def after_the_stop(target, steps, options, folder):
    """Seconds from the stop to the printed table and the written trace; sizes; events lost."""
    path, trace = (os.path.join(folder, name) for name in ("many.gpuprof", "many.json"))
    with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--trace", trace,
                         *options) as profiler:
        profiler.wait_recording()
        target.step(steps)
        begin = time.monotonic()
        profiler.signal(signal.SIGINT)
        status = profiler.wait()
        took = time.monotonic() - begin
        assert status in (harness.DONE, harness.LOST), profiler.told()
        assert os.path.getsize(trace) and profiler.text("stdout"), profiler.told()
    recording = harness.Recording(path)
    events = sum(line["calls"] for line in recording.table()["rows"])
    lost = recording.losses()["ring_full"] + recording.losses()["collector_full"]
    sizes = os.path.getsize(path) / 1e6, os.path.getsize(trace) / 1e6
    os.unlink(path)
    os.unlink(trace)
    return took, events, lost, sizes


def many_events(args, folder):
    with start(args, "mlp") as target:
        per_step = ops_per_step(target, folder)
        steps = round(args.events / per_step)
        print("\nafter the stop: mlp, PyTorch %s, %d steps of %.0f events" % (
            target.facts["torch"], steps, per_step), flush=True)
        for variant in filter(records_operators, args.variant):
            took, events, lost, sizes = after_the_stop(target, steps, VARIANTS[variant], folder)
            print("  %-24s stop to table and trace: %.2f s; %d events, %d lost; recording %.1f MB,"
                  " trace %.1f MB" % (variant, took, events, lost, *sizes), flush=True)
        inner = os.path.join(harness.inside().folder, "torch.json")
        answer = target.command("profile %d %s" % (steps, harness.inside().inner(inner))).split()
        stop, table, trace = (float(text) for text in answer[3:])
        print("  %-24s stop %.2f s, table %.2f s, trace %.2f s: %.2f s; trace %.1f MB" % (
            "torch.profiler", stop, table, trace, stop + table + trace, os.path.getsize(inner) / 1e6))
        target.leave()


def main():
    args = arguments()
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next((line.split(":")[1].strip() for line in info if "model name" in line), "?")
    print("%s, %d cores, Linux %s, %d intra-op threads" % (
        model, os.cpu_count(), platform.release(), args.threads))
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
            for spec in args.workload:
                compare(args, spec, folder)
            if args.events:
                many_events(args, folder)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
