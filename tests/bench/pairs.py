# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What being watched costs, to less than a percent on a machine that others use too: one process, watched all the while,
does short blocks of the same work with the watcher on and off by turns. Two blocks of a pair are a moment apart, so what the machine
does besides falls out; the order turns with each pair, so that what drifts does too.
"""

import collections
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import harness  # noqa: E402

OPERATOR = re.compile(r"at::_ops::(\w+)::(?:call|redispatch)\b")
CUT = 0.1  # of the pairs, at either end: something else happened in them


class Block(typing.NamedTuple):
    """Seconds: on the clock, of the target's CPU time, and of the watcher's own."""

    wall: float
    cpu: float
    own: float


def cpu_seconds(pid):
    """CPU time of a process, by its clock (see clock_getcpuclockid)."""
    return time.clock_gettime(~pid << 3 | 2)


class Attached:
    """gpuprof, switched by `gpuprof ctl`."""

    def __init__(self, target, folder, *options):
        self.path, self.socket = (os.path.join(folder, "pairs." + end)
                                  for end in ("gpuprof", "sock"))
        self.child = harness.Gpuprof("attach", "--pid", target.pid, "--socket", self.socket, "-o",
                                     self.path, *options)
        self.child.wait_recording()
        self.is_on = True

    @property
    def pid(self):
        return self.child.pid

    def switch(self, on):
        done = harness.gpuprof("ctl", "--socket", self.socket, "start" if on else "stop")
        assert done.status == harness.DONE, done
        self.is_on = on

    def finish(self):
        """The recording."""
        status = self.child.finish()
        assert status in (harness.DONE, harness.LOST), self.child.told()
        self.child.kill()
        return harness.Recording(self.path)


class Perf:
    """`perf record` with stacks, switched by its control pipes."""

    def __init__(self, target, folder, hz=99, stacks="fp"):
        self.path = os.path.join(folder, "perf.data")
        pipes = [os.path.join(folder, name) for name in ("control", "ack")]
        for pipe in pipes:
            os.mkfifo(pipe)
        self.control, self.ack = (os.open(pipe, os.O_RDWR) for pipe in pipes)
        self.child = harness.Child(
            ["perf", "record", "-F", str(hz), "--call-graph", stacks, "-p", str(target.pid), "-o",
             self.path, "-D", "-1", "--control", "fifo:" + ",".join(pipes)], "perf")
        self.switch(False)

    @property
    def pid(self):
        return self.child.pid

    def switch(self, on):
        os.write(self.control, b"enable\n" if on else b"disable\n")
        assert os.read(self.ack, 16).startswith(b"ack"), self.child.told()

    def finish(self):
        """The path of what it wrote."""
        self.child.signal(harness.signal.SIGINT)
        self.child.wait()
        self.child.kill()
        os.close(self.control)
        os.close(self.ack)
        return self.path


def perf_operators(path, names):
    """How many samples of perf each operator is in itself, and how many it is in with all that it calls: by the frames
    of at::_ops::NAME_OVERLOAD::call and redispatch. The longest of `names` (aten::NAME) that fits is meant."""
    told = subprocess.run(["perf", "script", "-i", path, "--no-inline", "-F", "ip,sym", "--max-stack", "127"],
                          capture_output=True, text=True, check=True).stdout
    known, inside, whole = {}, collections.Counter(), collections.Counter()

    def name_of(symbol):
        if symbol not in known:
            fits = [name for name in names if (symbol + "_").startswith(name[len("aten::"):] + "_")]
            known[symbol] = max(fits, key=len, default="aten::" + symbol)
        return known[symbol]

    for sample in told.split("\n\n"):
        stack = [name_of(symbol) for symbol in OPERATOR.findall(sample)]
        inside.update(stack[:1])
        whole.update(set(stack))
    return inside, whole


def run(work, watcher, number, warm=3):
    """Pairs of blocks, on and off. work() does one and returns its clock and CPU seconds."""
    pairs, is_on = [], None
    for index in range(-warm, number):
        took = {}
        for on in ((True, False) if index % 2 else (False, True)):
            if on != is_on:
                watcher.switch(on)
                is_on = on
            own = cpu_seconds(watcher.pid)
            wall, cpu = work()
            took[on] = Block(wall, cpu, cpu_seconds(watcher.pid) - own)
        if index >= 0:
            pairs.append((took[True], took[False]))
    return pairs


def middle(values):
    """The mean of all but the outermost."""
    cut = int(CUT * len(values))
    return statistics.fmean(sorted(values)[cut:len(values) - cut])


class Percent(typing.NamedTuple):
    """With its 95 % interval, from pairs drawn anew."""

    value: float
    low: float
    high: float

    def __str__(self):
        return "%6.2f (%.2f .. %.2f)" % self


def percent(values, resamples=2000):
    draw = random.Random(0)
    drawn = sorted(middle(draw.choices(values, k=len(values))) for _ in range(resamples))
    return Percent(middle(values), drawn[round(resamples * 0.025)],
                   drawn[round(resamples * 0.975) - 1])


def cost(pairs, what="cpu"):
    """What the target takes more while it is watched, in percent of what it takes plain."""
    return percent([100 * (getattr(on, what) / getattr(off, what) - 1) for on, off in pairs])


def own_share(pairs):
    """What the watcher itself takes while it is on, in percent of the target's plain CPU time."""
    return 100 * sum(on.own for on, _ in pairs) / sum(off.cpu for _, off in pairs)


def each_percent(args, measure):
    """measure(args, percent, folder) of each budget that is asked for; nothing is left behind."""
    try:
        for percent in args.percent:
            with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
                measure(args, percent, folder)
    finally:
        harness.kill_all()
        harness.close_inside()
