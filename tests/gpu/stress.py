# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a program has to live through: attaches without end, gpuprof killed, attaches at a bad time."""

import collections
import json
import os
import random
import statistics
import time

from attached import attach, begun, capture, died, end, events_of, kernels_of, note, start
from programs import left_s, limit

MEANWHILE_S = 14  # about
STORM_S = float(os.environ.get("GPU_CHECK_STORM_S", 25))  # until no more programs begin
STORM_WAVE_S = 20                                         # about, of the last of them
STORM_STEPS = 1000000
STORM_ATTACHES = 3  # to each program
STORM_PROGRAMS = int(os.environ.get("GPU_CHECK_STORM", 8))  # at once


def mapped(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        return sum("gpuprof" in line or "libcupti" in line for line in maps)


def check_cycles(results, gpuprof, target):
    """Ten attaches: what the first leaves does not grow, and none sees less than it."""
    pid, path = target.facts["pid"], results.path("cycle.gpuprof")
    seen, statuses, kernels, memory = [], [], [], []
    for _ in range(10):
        status, _ = capture(gpuprof, target, path, [], 2, os.devnull)
        statuses.append(status)
        kernels.append(sum(one["calls"] for one in kernels_of(events_of(gpuprof, path)).values()))
        seen.append((mapped(pid), len(os.listdir("/proc/%d/fd" % pid)),
                     len(os.listdir("/proc/%d/task" % pid))))
        memory.append((resident_mib(pid), free_mib(target)))
    results.check("attach and detach ten times",
                  all(status in (0, 3) for status in statuses) and len(set(seen[1:])) == 1 and
                  0 < max(kernels) * 0.9 <= min(kernels),
                  "status %s; mappings of ours, descriptors and threads %s; pieces of work %s" % (
                      statuses, seen, kernels))
    results.fact("attach and detach ten times: memory of the process, MiB, and free on the GPU",
                 memory)


def resident_mib(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmRSS"))


def free_mib(target):
    return json.loads(target.ask("memory", "memory").split(None, 1)[1])["free"] >> 20


def check_kill(results, gpuprof, target):
    """kill -9 of gpuprof in the middle: the program goes on, and can be attached to again."""
    for _ in range(5):
        profiler = attach(gpuprof, target, results.path("killed.gpuprof"))
        target.ask("step 2", "did")
        profiler.process.kill()
        profiler.process.wait()
        target.ask("step 2", "did")
    status, lines = capture(gpuprof, target, results.path("again.gpuprof"), [], 2, os.devnull)
    found = kernels_of(events_of(gpuprof, results.path("again.gpuprof")))
    results.check("killed five times: the program goes on and has GPU times again",
                  target.process.poll() is None and status in (0, 3) and found,
                  "status %d, %d names; said: %s" % (status, len(found), " / ".join(lines)[:800]))


def check_kills(results, gpuprof, target):
    """The same at random moments: while the collector is put in, while it records, as it leaves."""
    chance, moments = random.Random(1), []
    for index in range(20):
        profiler = start(gpuprof, target, results.path("killed.gpuprof"))
        moments.append(chance.uniform(0, 0.5 if index % 2 else 2))
        target.tell("step 20")
        time.sleep(moments[-1])
        profiler.kill()
        target.line("did")
    status, lines = capture(gpuprof, target, results.path("again.gpuprof"), [], 2, os.devnull)
    found = kernels_of(events_of(gpuprof, results.path("again.gpuprof")))
    results.check("killed at 20 random moments: the program goes on and has GPU times again",
                  target.process.poll() is None and status in (0, 3) and found,
                  "status %d, %d names, median moment %.2f s; said: %s" % (
                      status, len(found), statistics.median(moments), " / ".join(lines)[:800]))


def check_meanwhile(results, gpuprof, target, mode):
    """Attaches that come and go while the program does one step after another."""
    target.ask("mode " + mode, "mode")
    statuses, names = [], []
    took = float(target.ask("time 100", "took").split()[1]) / 100
    begin = time.monotonic()
    target.tell("time %d" % (MEANWHILE_S / took))
    for index in range(5):
        path = results.path("%s.%d.gpuprof" % (mode, index))
        profiler = attach(gpuprof, target, path)
        time.sleep(0.2)
        statuses.append(end(profiler))
        names.append(len(kernels_of(events_of(gpuprof, path))))
    left, still = time.monotonic() - begin, target.process.poll() is None
    took = float(target.line("took").split()[1])
    results.check("attached five times while the program is in mode %s: it goes on" % mode,
                  still and took > left and any(names) and
                  all(status in (0, 3) for status in statuses),
                  "%.1f s, the last had left after %.1f; statuses %s; names of kernels %s" % (took, left, statuses, names))


def captured_by(target):
    """It captures graphs from now on, without end."""
    target.facts = json.loads(target.ask("begin", "ready ")[len("ready "):])
    target.ask("mode capture", "mode")
    target.tell("time %d" % STORM_STEPS)


def living_of(targets, said, ended):
    """Those that live; of each other it is told how it ended."""
    gone = {target for target in targets if target.process.poll() is not None}
    ended += ["%s; gpuprof said: %s" % (died(target), said[target][-500:]) for target in gone]
    return [target for target in targets if target not in gone]


def check_storm(results, gpuprof, _target):
    """Programs that capture graphs, each fresh and attached to a few times; then others, until time is up."""
    chance, until = random.Random(2), time.monotonic() + min(STORM_S, left_s() - STORM_WAVE_S)
    statuses, begun_nr, ended, names, said = collections.Counter(), 0, [], [], {}
    waiting = [begun(results) for _ in range(STORM_PROGRAMS)]
    while waiting:
        living = waiting
        for target in living:
            captured_by(target)
        begun_nr += len(living)
        # They load while these are attached to.
        waiting = [begun(results) for _ in living] if time.monotonic() < until else []
        for _ in range(STORM_ATTACHES):
            profilers = [start(gpuprof, target, results.path("storm.%d.gpuprof" % index), "-d",
                               "%.2f" % chance.uniform(0.05, 0.5))
                         for index, target in enumerate(living)]
            for target, profiler in zip(living, profilers):
                with limit():
                    said[target] = profiler.stream.read()
                    statuses[profiler.process.wait()] += 1
                note(said[target].splitlines())
            living = living_of(living, said, ended)
        # What was spoilt may show later.
        time.sleep(1)
        living = living_of(living, said, ended)
        if living:
            last = results.path("storm.%d.gpuprof" % (len(living) - 1))
            names.append(len(kernels_of(events_of(gpuprof, last))))
        for target in living:
            target.kill()
    results.check("programs attached to while they capture graphs: they go on",
                  not ended and any(names) and statuses[0] > begun_nr,
                  "%d programs; attaches by their status %s; names of kernels in the last of each wave "
                  "%s; ended: %d %s" % (begun_nr, dict(statuses), names, len(ended), ended[:8]))


def check_waits(results, gpuprof, target):
    """Attached to while its only busy thread waits for a kernel that takes five seconds."""
    path, begin = results.path("waits.gpuprof"), time.monotonic()
    target.tell("wait 5")
    time.sleep(1)
    profiler = attach(gpuprof, target, path)
    recording = time.monotonic() - begin - 1
    target.line("wait")
    waited = time.monotonic() - begin
    # CUPTI comes now, within some milliseconds.
    for _ in range(20):
        target.ask("step 2", "did")
        time.sleep(0.05)
    status = end(profiler)
    found = kernels_of(events_of(gpuprof, path))
    results.check("attached to a process that waits for the GPU",
                  status in (0, 3) and recording < 3 and found,
                  "recording after %.2f s, the wait ended after %.1f s; %d names, %d pieces of work; said: %s" % (
                      recording, waited, len(found), sum(one["calls"] for one in found.values()),
                      " / ".join(profiler.lines)[:800]))
