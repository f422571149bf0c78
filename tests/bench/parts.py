# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What one sample costs the thread that it interrupts, on a machine whose speed changes all the while. The workload notes its CPU time at
each part of its work (a step, a layer, a request); the part that a sample fell into, with what came right after, is compared with
the same parts just before and after in which there was none. A part that takes long is met by a sample more often, and samples may be
taken within the scheduler's tick, which comes anyway: so the same is done for times one tick after a sample, where none is, and
what comes out there (`none`) is taken off. Where a thread has gone to sleep by then that cannot be had: the tick is in the cost then.

Prints a table; asserts nothing, since a figure depends on the machine. The interval is 95 %, from samples drawn anew.
Environment: as bench.py.
"""

import argparse
import bisect
import collections
import os
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402
import sampling  # noqa: E402

CLOCK_MONOTONIC_COARSE = 6

# Of the scheduler.
TICK_NS = round(time.clock_getres(CLOCK_MONOTONIC_COARSE) * 1e9)
FROM_WARM = 0.2  # of the stamps, at the begin: the sampler's tables come to be


class Thread:
    """The parts of one thread's work, in order of time."""

    def __init__(self, stamps):
        self.begins = [stamp[0] for stamp in stamps]
        self.cpu = [stamp[1] for stamp in stamps]
        self.parts = [stamp[2] for stamp in stamps]
        self.places = collections.defaultdict(list)  # of each part, its indices

        for index, part in enumerate(self.parts):
            self.places[part].append(index)

    def at(self, when):
        """The index of the part that this time lies in, None: in none."""
        index = bisect.bisect_right(self.begins, when) - 1
        return index if 0 <= index < len(self.begins) - 1 else None

    def took(self, index, after):
        """CPU nanoseconds of a part and of so many behind it; None where they are not all there."""
        end = index + 1 + after
        return self.cpu[end] - self.cpu[index] if end < len(self.cpu) else None


def read_stamps(path):
    threads = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for line in file:
            tid, when, cpu, part = line.rstrip("\n").split(" ", 3)
            threads[int(tid)].append((int(when), int(cpu), part))
    return {tid: Thread(stamps) for tid, stamps in threads.items() if len(stamps) > 2}


def extras(thread, points, taken, after):
    """What the parts at these points took more than their neighbours, nanoseconds each."""
    found = []
    for point in points:
        index = thread.at(point)
        took = None if index is None else thread.took(index, after)
        if took is None:
            continue
        places = thread.places[thread.parts[index]]
        here = bisect.bisect_left(places, index)
        beside = []
        for step in (-1, 1):
            other = here + step
            # Its neighbours: beyond what counts with it, and beyond those with a sample in them or right before.
            while 0 <= other < len(places) and abs(other - here) < 20 and (
                    abs(places[other] - index) <= after or any(
                        places[other] + away in taken for away in range(-after, after + 1))):
                other += step
            if 0 <= other < len(places) and abs(other - here) < 20:
                beside.append(thread.took(places[other], after))
        if len(beside) == 2 and None not in beside:
            found.append(took - sum(beside) / 2)
    return found


class Found(typing.NamedTuple):
    """Microseconds of a sample and of none (each with its interval), the share of CPU time that samples
    take, in percent, and how many samples there were."""

    cost: pairs.Percent
    none: pairs.Percent
    share: pairs.Percent
    samples: int


def compare(threads, samples, after):
    """samples: tid -> times in order."""
    at, between, nr, cpu = [], [], 0, 0
    for tid, thread in threads.items():
        times = samples.get(tid, [])
        warm = thread.begins[int(len(thread.begins) * FROM_WARM)]
        times = [when for when in times if warm <= when <= thread.begins[-1]]
        cpu += thread.cpu[-1] - thread.cpu[int(len(thread.cpu) * FROM_WARM)]
        nr += len(times)
        taken = {thread.at(when) for when in times}
        at += extras(thread, times, taken, after)
        between += extras(thread, [point for point in (when + TICK_NS for when in times) if not any(
            (thread.at(point) or 0) + away in taken for away in range(-after, after + 1))],
                          taken, after)
    with_it, without = (pairs.percent([value / 1e3 for value in values]) if values else None
                        for values in (at, between))
    cost = with_it
    if without:
        bound = ((with_it.high - with_it.low) ** 2 + (without.high - without.low) ** 2) ** 0.5 / 2
        cost = with_it.value - without.value
        cost = pairs.Percent(cost, cost - bound, cost + bound)
    plain = cpu / 1e3 - nr * cost.value
    return Found(cost, without, pairs.Percent(*(100 * nr * value / plain for value in cost)), nr)


def times(recording, wanted):
    """tid -> monotonic times, in order, of the trace's events that are wanted."""
    trace = recording.chrome()
    behind = time.time_ns() - time.monotonic_ns()
    base = int(trace.get("baseTimeNanoseconds", 0)) - behind
    found = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if wanted(event):
            found[event["tid"]].append(base + int(event["ts"] * 1000))
    return {tid: sorted(times) for tid, times in found.items()}


def sampled_by_gpuprof(recording):
    """tid -> monotonic times of the samples that found it on a CPU; those of waits have a length, or are of one look."""
    return times(recording, lambda event: event.get("cat") == "sample" and
                 not event["name"].startswith(("waiting", "stopped")))


def sampled_by_perf(path):
    told = subprocess.run(["perf", "script", "-i", path, "-F", "tid,time", "--ns", "-G"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          text=True).stdout
    found = collections.defaultdict(list)
    for line in told.splitlines():
        tid, when = line.split()[:2]
        seconds, _, ns = when.rstrip(":").partition(".")
        found[int(tid)].append(int(seconds) * 10 ** 9 + int(ns))
    return found


def under_gpuprof(target, work, folder, options):
    path = os.path.join(folder, "parts.gpuprof")
    with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, *options) as child:
        child.wait_recording()
        work()
        assert child.finish() in (harness.DONE, harness.LOST), child.told()
    return harness.Recording(path)


def under_perf(target, work, folder):
    path = os.path.join(folder, "perf.data")
    with harness.Child(["perf", "record", "-F", "99", "-g", "-k", "CLOCK_MONOTONIC", "-p",
                        str(target.pid), "-o", path], "perf") as child:
        time.sleep(1)
        work()
        child.signal(harness.signal.SIGINT)
        child.wait()
    return sampled_by_perf(path)


def show(name, found, program=None):
    print("  %-24s %8d  %-24s %-24s %-24s %s" % (
        name, found.samples, found.cost, found.none or "-", found.share, program or "-"), flush=True)


def program_time(recording):
    """Of the program that takes samples, as it measures itself; and how often it was to take one."""
    table = recording.table()
    return "%.1f at %s a second" % (int(table["overhead"]["cost_samples_ns"]) / 1e3 / max(1, table["samples"]),
                                    table["capture"]["sample_hz_mean"])


def apart(pid, cpu):
    """The process on this CPU, and we on the others."""
    for tid in os.listdir("/proc/%d/task" % pid):
        os.sched_setaffinity(int(tid), {cpu})
    os.sched_setaffinity(0, set(range(os.cpu_count())) - {cpu})


def measure(args, spec, has_perf):
    hz = ["--hz", str(args.hz)] if args.hz else []
    with bench.start(args, spec) as target, \
            tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
        if args.cpu is not None:
            apart(target.pid, args.cpu)
        steps = bench.calibrate(target, args.seconds)
        inner = "%s/stamps-%d" % (harness.inside().folder, target.pid)

        def work():
            told = target.command("stamps %d %s" % (steps, harness.inside().inner(inner)))
            assert told == "stamps %d" % steps, told

        print("\n%s: PyTorch %s, Python %s, %d steps\n  %-24s %8s  %-24s %-24s %-24s %s" % (
            spec, target.facts["torch"], target.facts["python"], steps, "", "samples",
            "us a sample (95 %)", "none, us", "% of CPU time (95 %)", "of that the program, us"), flush=True)
        work()  # begins stamps, warm
        recording = under_gpuprof(target, work, folder, ["--mode", "sample", *hz])
        samples = sampled_by_gpuprof(recording)
        show("gpuprof --mode sample", compare(read_stamps(inner), samples, args.after),
             program_time(recording))
        if has_perf:
            samples = under_perf(target, work, folder)
            show("perf record -F 99 -g", compare(read_stamps(inner), samples, args.after))
        target.leave()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", metavar="NAME[:BATCH]",
                        help="repeatable (default: mlp, resnet18_train:8 and server)")
    parser.add_argument("--seconds", type=float, default=60, help="under each sampler, about")
    parser.add_argument("--after", type=int, default=2,
                        help="parts behind the one with the sample that count with it")
    parser.add_argument("--cpu", type=int, help="for the workload alone; what measures it takes the others")
    parser.add_argument("--hz", type=int, help="just so many samples a second; by default what --overhead 1 allows")
    parser.add_argument("--no-perf", action="store_true", help="without the reference")
    parser.add_argument("--size", type=int, default=64, help="ResNet's pictures, pixels a side")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.workload = args.workload or ["mlp", "resnet18_train:8", "server"]
    return args


def main():
    args = arguments()
    sampling.measure_each(args, measure, "not wanted" if args.no_perf else sampling.perf_refused())


if __name__ == "__main__":
    main()
