# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
--overhead in --mode sample: the rate follows what sampling costs, and whatever it is, the samples stand for the time that there was.
"""

import json
import math
import os
import re

import pytest

import harness

SIGMAS = 6
SHARED = "is shared: a timer takes its samples"
RATE = re.compile(r"([\d.]+) samples a second of each CPU")
# By what samples are taken -> what is asked for, what it is to cost, and how many samples there are to be at most.
ASKED = {"tick": ((), "1", "99"), "timer": (("--overhead", "0.4", "--hz", "49"), "0.4", "49")}


def rates(profiler):
    """Those that were put in force, a second of each CPU."""
    return [float(rate) for rate in RATE.findall(profiler.text("stderr"))]


def spend_until(target, what, done):
    """CPU seconds of the target until then."""
    spent = 0

    def work():
        nonlocal spent
        spent += sum(json.loads(target.command("spend 0.1")).values())
        return done()

    harness.wait_until(what, work)
    return spent


def moments(recording):
    """What each sample of a thread on a CPU stands for, seconds."""
    return [float(event["args"]["Estimated us"]) / 1e6 for event in recording.chrome()["traceEvents"]
            if event.get("cat") == "sample" and not event["name"].startswith(("waiting", "stopped"))]


@pytest.mark.parametrize("by", ASKED)
def test_rate_follows(tmp_path, by):
    """At its least while nothing runs, then more by steps, until there is time for what it costs."""
    options, percent, most = ASKED[by]
    path = tmp_path / "r.gpuprof"
    env = dict(harness.environment(), GPUPROF_NO_TICK="1" if by == "timer" else "0")
    with harness.Target("sampled") as target, \
            harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--mode", "sample", "-vv",
                            *options, env=env) as profiler:
        profiler.wait_recording()
        harness.wait_until("the least rate", lambda: 1.0 in rates(profiler))
        floor = len(rates(profiler))
        spent = spend_until(target, "more than that twice",
                            lambda: len(rates(profiler)) >= floor + 2)
        # And some time of it.
        size = os.path.getsize(path)
        spent += spend_until(target, "samples", lambda: os.path.getsize(path) > size + 8000)
        assert profiler.finish() == harness.DONE, profiler.told()
        told, notes = rates(profiler), profiler.text("stderr").splitlines()
        target.leave()
    recording = harness.Recording(path)
    table = recording.table()
    capture = table["capture"]
    # The scheduler's tick of some kernels comes too seldom for 99 samples a second.
    assert capture["sampled_by"] == (by if int(most) <= int(harness.SAMPLED_BY["tick"]) else "timer")
    assert capture["sample_overhead_pct"] == percent and capture["sample_hz"] == most
    assert "overhead_pct" not in capture
    # What was put in force is what is told, and no faster than it may be.
    assert 0.99 < float(capture["sample_hz_least"]) <= 1.01
    assert abs(float(capture["sample_hz_most"]) - max(told)) < 0.02
    assert max(told) <= int(most) + 0.01
    assert 1 <= float(capture["sample_hz_mean"]) <= max(told)
    weights = moments(recording)
    assert len(weights) == table["samples"]
    assert len({round(weight, 4) for weight in weights}) > 1
    assert 1 / max(told) - 1e-4 <= min(weights)
    # A timer's first sample with a new period stands for all the time since the last one with the old.
    timers = capture["sampled_by"] == "timer" or any(SHARED in line for line in notes)
    assert timers or max(weights) <= 1.001
    # Their sum is the time that there was, by the error that it is told with.
    assert abs(table["cpu_us"] / 1e6 - sum(weights)) < 0.01
    error = math.sqrt(sum(weight ** 2 for weight in weights))
    assert abs(table["cpu_error_us"] / 1e6 - error) < 0.01 * error
    missed = table["losses"]["sample_missed"] * max(weights)
    assert abs(sum(weights) - spent) <= SIGMAS * error + missed + 0.1 * spent


def test_small_budget(tmp_path):
    """A tenth of a percent pays for no more than some samples a second; what they cost is told, what is measured of it apart."""
    path = tmp_path / "r.gpuprof"
    with harness.Target("sampled") as target, \
            harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--mode", "sample",
                            "--overhead", "0.1") as profiler:
        profiler.wait_recording()
        size = os.path.getsize(path)
        spent = spend_until(target, "samples", lambda: os.path.getsize(path) > size + 2000)
        assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    table = harness.Recording(path).table()
    most = float(table["capture"]["sample_hz_most"])
    assert most <= 99 / 3
    assert table["samples"] <= spent * most + SIGMAS * math.sqrt(spent * most) + 2
    overhead = table["overhead"]
    assert overhead["cost_samples_ns"] > 0
    assert overhead["cost_samples_around_ns"] > 0
    inside = overhead["cost_samples_ns"] + overhead["cost_samples_around_ns"]
    assert overhead["share_of_cpu_inside"] >= 0.99 * inside / overhead["cost_cpu_ns"]
