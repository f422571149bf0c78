# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What being watched costs: steps/s plain, under gpuprof and under torch.profiler, in interleaved
rounds of one process; and the time from the stop to a printed table and a written trace for many
events, for both. Prints tables; asserts nothing, since a figure depends on the machine.

Environment: GPUPROF the binary; GPUPROF_ROOT_DIR the folder of another Debian (tests/matrix).
"""

import argparse
import os
import platform
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import harness  # noqa: E402

harness.LIMIT = 1800

# name -> options of `gpuprof attach`
VARIANTS = {
    "gpuprof": (),
    "gpuprof --no-inject": ("--no-inject",),
    "gpuprof, all": ("--stack", "python", "--shapes", "--memory"),
}
# Of torch.profiler, the workload's command; "all": with_stack, record_shapes and profile_memory.
TORCH = {"torch.profiler": "profile", "torch.profiler, all": "profile_all"}


def torch_like(variant):
    """The torch.profiler that a variant is compared with."""
    return "torch.profiler, all" if variant.endswith(", all") else "torch.profiler"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp and resnet18_train:8)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one measurement, about")
    parser.add_argument("--events", type=int, default=1000000, metavar="N",
                        help="for the time from stop to output (0: skip)")
    parser.add_argument("--variant", action="append", choices=tuple(VARIANTS),
                        help="repeatable (default: all; 'gpuprof, all' takes Python stacks, "
                        "shapes and memory)")
    parser.add_argument("--size", type=int, default=224, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    parser.add_argument("--cpu-time", action="store_true",
                        help="the target's CPU time, not what passes: for a busy machine")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp", "resnet18_train:8"]
    args.variant = args.variant or list(VARIANTS)
    return args


def start(args, spec):
    name, _, batch = spec.partition(":")
    options = ["--threads", str(args.threads)] + ["--cpu-time"] * args.cpu_time
    if batch:
        options += ["--batch", batch]
    if name.startswith("resnet"):
        options += ["--size", str(args.size)]
    return harness.Target(name, *options)


def seconds_of(target, steps):
    answer = target.command("time %d" % steps).split()
    assert answer[0] == "took", answer
    return float(answer[1])


def calibrate(target, wanted):
    """Steps that take about so many seconds plain."""
    steps = 1
    while True:
        took = seconds_of(target, steps)
        if took >= wanted / 4:
            return max(1, round(steps * wanted / took))
        steps *= 2


def under_gpuprof(target, steps, options, folder):
    """Seconds for the steps while attached."""
    path = os.path.join(folder, "bench.gpuprof")
    took = []
    capture = harness.attach(target, path, *options,
                             orders=lambda: took.append(seconds_of(target, steps)))
    assert capture.status in (harness.DONE, harness.LOST), capture.told
    losses = capture.recording.losses()
    lost = losses["ring_full"] + losses["collector_full"]
    os.unlink(path)
    return took[0], lost


def under_torch(target, steps, command):
    answer = target.command("%s %d" % (command, steps)).split()
    assert answer[0] == "profiled", answer
    return float(answer[1])


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def spread(values, form):
    low, middle, high = quartiles(values)
    return "%s [%s .. %s]" % (form % middle, form % low, form % high)


def one_round(target, steps, variants, folder, lost):
    """Name -> seconds; plain before and after the others."""
    took = {"plain": seconds_of(target, steps)}
    for variant in variants:
        took[variant], missed = under_gpuprof(target, steps, VARIANTS[variant], folder)
        lost[variant] = lost.get(variant, 0) + missed
    took["plain after"] = seconds_of(target, steps)
    for name in sorted({torch_like(variant) for variant in variants}):
        took[name] = under_torch(target, steps, TORCH[name])
    return took


def row(cells):
    print("  %-22s %-26s %-26s %-30s %s" % tuple(cells))


def compare(args, spec, folder):
    with start(args, spec) as target:
        steps = calibrate(target, args.seconds)
        print("\n%s: PyTorch %s, Python %s, %d rounds of %d steps, median [quartiles]" % (
            spec, target.facts["torch"], target.facts["python"], args.rounds, steps), flush=True)
        lost = {}
        rounds = [one_round(target, steps, args.variant, folder, lost)
                  for _ in range(args.rounds)]
        target.leave()
    row(("", "steps/s", "ratio to plain", "added us per step", "events lost"))
    for name in rounds[0]:
        rates = [steps / one[name] for one in rounds]
        ratios = [one["plain"] / one[name] for one in rounds]
        added = [(one[name] - one["plain"]) / steps * 1e6 for one in rounds]
        row((name, spread(rates, "%.1f"), spread(ratios, "%.3f"), spread(added, "%.1f"),
             lost.get(name, "-")))
    for variant in args.variant:
        other = torch_like(variant)
        paired = [(one[variant] - one[other]) / steps * 1e6 for one in rounds]
        print("  %s minus %s, us per step, paired: %s" % (variant, other, spread(paired, "%.1f")))
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
        for variant in args.variant:
            took, events, lost, sizes = after_the_stop(target, steps, VARIANTS[variant], folder)
            print("  %-22s stop to table and trace: %.2f s; %d events, %d lost; recording %.1f MB,"
                  " trace %.1f MB" % (variant, took, events, lost, *sizes), flush=True)
        inner = os.path.join(harness.inside().folder, "torch.json")
        answer = target.command("profile %d %s" % (steps, harness.inside().inner(inner))).split()
        stop, table, trace = (float(text) for text in answer[2:])
        print("  %-22s stop %.2f s, table %.2f s, trace %.2f s: %.2f s; trace %.1f MB" % (
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
