# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What CUPTI survives while other threads are in calls of CUDA (beside.c): why the collector has them
held as it comes and goes. Many processes, a few at once, each for a second or two.
"""

import collections
import contextlib
import ctypes
import os
import re
import subprocess
import tempfile
import time

import assumptions
from programs import KILLED_S, left_s

HERE = os.path.dirname(os.path.abspath(__file__))
BESIDE = os.environ.get("GPU_CHECK_BESIDE", os.path.join(HERE, "beside"))
SECONDS = float(os.environ.get("GPU_CHECK_BESIDE_S", 60))
# Variants by their names, comma between; empty: all.
ONLY = [name for name in os.environ.get("GPU_CHECK_BESIDE_ONLY", "").split(",") if name]
EACH_S, SPARE_S, AT_ONCE = 1.5, 4, 7
# How it comes and goes, threads that make graphs, threads that take memory; from which version of
# CUPTI on the collector does so, and it must be survived.
NEVER, ALWAYS, CUDA_13_0 = float("inf"), 0, 130000
VARIANTS = (
    ("held-go", 2, 2, ALWAYS), ("held-down", 0, 4, ALWAYS), ("free-go", 2, 2, NEVER),
    ("free-down", 0, 4, NEVER), ("held-down", 2, 2, CUDA_13_0), ("held-down-kept", 3, 1, CUDA_13_0),
    ("free-first", 3, 2, NEVER), ("free-first-calls", 3, 2, NEVER),
    ("held-first-calls", 3, 2, ALWAYS))


class Row:
    def __init__(self):
        self.processes = self.died = self.refused = self.stuck = self.rounds = self.not_down = 0
        self.where = collections.Counter()

    def take(self, said):
        self.processes += 1
        ended = re.search(r"survived (\d+) rounds, taken down in (\d+)|"
                          r"died of (signal \d+) in round (\d+) during (.*):", said)
        if not ended:
            self.refused += "refused" in said
            self.died += "refused" not in said
            self.where[said.strip()[-120:] or "without a word"] += 1
            return
        if ended[1]:
            self.rounds += int(ended[1])
            self.not_down += int(ended[1]) - int(ended[2])
        else:
            self.rounds += int(ended[4])
            self.died += 1
            self.where["%s during %s" % (ended[3], ended[5])] += 1

    def __str__(self):
        return "%d of %d processes died, %d rounds, not taken down in %d%s%s %s" % (
            self.died, self.processes, self.rounds, self.not_down,
            ", %d refused" % self.refused if self.refused else "",
            ", %d did not end" % self.stuck if self.stuck else "", dict(self.where) or "")


def start(variant, seed):
    name, graphs, memories, _ = variant
    said = tempfile.TemporaryFile()
    argv = [BESIDE, name, str(EACH_S), str(graphs), str(memories), str(seed),
            assumptions.find("CUDART", "libcudart.so."), assumptions.find("CUPTI", "libcupti.so.")]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT), said


def run(variants, seconds):
    """A row for each variant, by "name, graph threads + memory threads"."""
    end, seed, running = time.monotonic() + seconds, 0, []
    rows = {variant: Row() for variant in variants}
    while running or time.monotonic() < end:
        while len(running) < AT_ONCE and time.monotonic() < end:
            variant = variants[seed % len(variants)]
            seed += 1
            running.append((variant, time.monotonic(), *start(variant, seed)))
        for one in list(running):
            variant, begun, process, said = one
            if process.poll() is None and time.monotonic() < begun + 10 * EACH_S + SPARE_S:
                continue
            running.remove(one)
            if process.poll() is None:
                rows[variant].processes += 1
                rows[variant].stuck += 1
                process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(KILLED_S)
                continue
            said.seek(0)
            rows[variant].take(said.read().decode(errors="replace"))
        time.sleep(0.01)
    return rows


def check_beside(results):
    if not os.path.exists(BESIDE):
        results.check("CUPTI beside calls", None, "there is no %s" % BESIDE)
        return
    variants = [variant for variant in VARIANTS if not ONLY or variant[0] in ONLY]
    rows = run(variants, min(SECONDS, left_s() - SPARE_S))
    for variant, row in rows.items():
        results.fact("CUPTI beside calls: %s, %d threads make graphs, %d take memory" % variant[:3],
                     str(row))
    version = ctypes.c_uint32()
    ctypes.CDLL(assumptions.find("CUPTI", "libcupti.so.")).cuptiGetVersion(ctypes.byref(version))
    musts = [row for variant, row in rows.items() if variant[3] <= version.value]
    down = [row for variant, row in rows.items() if variant[3] <= version.value and "down" in variant[0]]
    results.check("CUPTI comes and goes while no thread is in CUDA",
                  musts and all(row.processes and not row.died + row.refused + row.stuck for row in musts) and
                  not any(row.not_down for row in down),
                  "; ".join(map(str, musts)))
