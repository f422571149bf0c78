# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Compares what a recording holds of a GPU with what the simulated GPU says it did. Times must agree
within the bound that the recording itself gives: the readings of the two clocks around each.
"""

import bisect
import collections
import os
import shutil
import subprocess

import harness

FOLDER = os.path.dirname(harness.GPUPROF)
FAKE = os.path.join(FOLDER, "fake")
EVENTS = os.path.join(FOLDER, "tests", "fake", "events")
NOISY = {"cudaGetDevice"}
# Only the collector asks these of the stand-in, on its own thread.
COLLECTORS = {"cuDeviceGet", "cuDeviceGetAttribute", "cuDeviceGetCount", "cuDeviceGetName",
              "cuDeviceTotalMem_v2", "cuDriverGetVersion", "cudaRuntimeGetVersion"}
GPU_KINDS = ("kernel", "copy", "set")

Event = collections.namedtuple("Event", "kind correlation tid start end what")
# A call that a uprobe saw, with its arguments, and memory that CUDA gave (bytes) or took (0).
Call = collections.namedtuple(
    "Call", "name tid start end instance stream bytes grid block shared kind kernel")
Memory = collections.namedtuple("Memory", "address bytes what name")
Op = collections.namedtuple("Op", "name tid start end instance")
Clock = collections.namedtuple("Clock", "time gpu width")


def fake_inside():
    """The folder of the stand-ins as a workload sees it."""
    if not harness.ROOT_DIR:
        return FAKE
    folder = os.path.join(harness.inside().folder, "fake")
    shutil.copytree(FAKE, folder, dirs_exist_ok=True)
    return harness.Inside.inner(folder)


class Recorded:
    """The events of a recording."""

    def __init__(self, path):
        done = subprocess.run([EVENTS, str(path)], stdout=subprocess.PIPE, check=True,
                              timeout=harness.LIMIT)
        self.events, self.clocks, self.losses, self.ops = [], [], {}, []
        self.calls, self.memory = [], []
        for line in done.stdout.decode().splitlines():
            self._take(line.split("\t"))
        self.clocks.sort()
        self._times = [clock.time for clock in self.clocks]

    def _take(self, fields):
        kind = fields[0]
        if kind == "loss":
            self.losses[fields[1]] = int(fields[2])
            return
        start, end, _, tid = (int(text) for text in fields[1:5])
        rest = fields[6:]
        if kind == "clock":
            self.clocks.append(Clock(end, int(rest[0]), int(rest[1])))
        elif kind == "op":
            self.ops.append(Op(rest[0], tid, start, end, rest[1]))
        elif kind == "kernel":
            # stream, grid, block, device, graph, node, name
            what = (rest[1], rest[2], rest[3], rest[9], rest[6], rest[7], rest[8])
            self.events.append(Event(kind, int(rest[0]), None, start, end, what))
            assert rest[5] == "32", fields
        elif kind in ("copy", "set"):
            what = (rest[1], rest[2], rest[6], rest[4], rest[5])  # stream, bytes, device, ...
            self.events.append(Event(kind, int(rest[0]), None, start, end, what))
        elif kind == "memory":
            self.memory.append(Memory(rest[0], int(rest[1]), int(rest[2]), rest[3]))
        elif kind == "call" and len(rest) > 3:
            self.calls.append(Call(rest[2], tid, start, end, rest[3], int(rest[4]), int(rest[5]),
                                   rest[6], rest[7], int(rest[8]), int(rest[9]), rest[10]))
        elif kind == "call":
            self.events.append(Event(kind, int(rest[0]), tid, start, end, (rest[2],)))
        elif kind == "sync":
            self.events.append(Event(kind, int(rest[0]), None, start, end, (rest[1],)))

    def lost(self):
        """The losses that are not zero."""
        return {name: count for name, count in self.losses.items() if count}

    def bound(self, time):
        """How wrong a converted time may be: said by the readings around it."""
        at = bisect.bisect_right(self._times, time)
        assert 0 < at < len(self.clocks), "no readings on both sides of %d" % time
        before, after = self.clocks[at - 1], self.clocks[at]
        moved = abs((after.time - after.gpu) - (before.time - before.gpu))
        if moved > (after.time - before.time) // 1000 + before.width + after.width:
            moved = (after.time - before.time) // 1000  # the clock was set
        # And a nanosecond of rounding for each of the three numbers.
        return max(before.width, after.width) + moved + 3


def true_events(path, all_calls=False):
    """(event, fault) of all that was to be traced, noise left out; or of all calls instead."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            (kind, fault, traced, _, correlation, tid, start, end, stream, size, grid, block,
             device, node, name) = line.rstrip("\n").split("\t")
            if kind == "event" or traced != "1" and not (all_calls and kind == "call"):
                continue
            where = (device, *node.split(","))
            what = {"kernel": (stream, grid, block, *where, name), "copy": (stream, size, *where),
                    "set": (stream, size, *where), "sync": (stream,),
                    "call": (plain_name(name),)}[kind]
            if kind == "call" and what[0] in NOISY | COLLECTORS:
                continue
            found.append((Event(kind, int(correlation), int(tid) if kind == "call" else None,
                                int(start), int(end), what), fault))
    return found


def plain_name(name):
    """cudaLaunchKernel_v7000 as it is known."""
    stem, _, version = name.rpartition("_v")
    return stem if stem and version.isdigit() and len(version) >= 4 else name


def keyed(events):
    """By kind and correlation id, each of which comes once; of graphs once for each node."""
    found = {}
    for event in events:
        key = (event.kind, event.correlation)
        if event.kind in GPU_KINDS and event.what[-2 - (event.kind == "kernel")] != "0":
            key += (event.what[-1 - (event.kind == "kernel")],)
        assert key not in found, "twice: %s and %s" % (found[key], event)
        found[key] = event
    return found


def same(recorded, truth):
    """One event as recorded and as it was: all equal, the times within the bound."""
    assert recorded.what == truth.what and recorded.tid == truth.tid, (recorded, truth)


def check_event(recording, event, truth):
    same(event, truth)
    for ours, theirs in ((event.start, truth.start), (event.end, truth.end)):
        assert abs(ours - theirs) <= recording.bound(ours), (
            event, truth, ours - theirs, recording.bound(ours))


def check(recording, truth, complete=True):
    """Every recorded event is true; if complete, every true one without a fault is recorded."""
    recorded = keyed(recording.events)
    fine = keyed(event for event, fault in truth if fault == "fine")
    assert set(recorded) <= set(fine), sorted(set(recorded) - set(fine))[:5]
    if complete:
        assert set(recorded) == set(fine), sorted(set(fine) - set(recorded))[:5]
    for key, event in recorded.items():
        check_event(recording, event, fine[key])
    return recorded, fine
