# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
--stack both against a program that knows its Python stack at each operator: without the native
frames a stack is Python's, and the native ones lead from the operator to the program's beginning.
"""

import os
import re
import signal

import pytest

import harness
from test_stacks import FRAMES, recorded, told

STEPS = 10
PYTHON = re.compile(r"^[/<?].*\(\d+\): ")


def let_tables_come(target, path):
    """Until steps lead to no file whose unwind table is not there. What is written to the recording
    with the second step was counted after the first one."""
    missing = None
    while missing != (now := harness.Recording(path).losses()["unwind_table"]):
        missing = now
        for _ in range(2):
            size = os.path.getsize(path)
            target.step(1)
            harness.wait_until("more of the recording", lambda before=size:
                               os.path.getsize(path) > before)


@pytest.mark.versions
def test_both(tmp_path):
    path = str(tmp_path / "both.gpuprof")
    with harness.Target("stacks") as target:
        def orders():
            let_tables_come(target, path)
            told(target)
            target.step(STEPS)

        done = harness.attach(target, path, "--no-inject", "--stack", "both", "--memory",
                              orders=orders)
        expected = told(target)
        main = target.facts["tid"]
        target.leave()
    assert done.status == harness.DONE, done.told
    found = recorded(done.recording)
    whole = 0
    for tid, stacks in expected.items():
        assert len(found[tid]) >= len(stacks)
        for stack, (mark, frames) in zip(stacks, found[tid][-len(stacks):]):
            python = [frame for frame in frames if PYTHON.match(frame)]
            if len(stack) > FRAMES:
                assert mark and python == stack[:FRAMES]
                continue
            # A stack with native frames may be longer than is kept.
            assert mark in (None, "[truncated]"), frames
            assert python == stack, (python, frames)
            assert "at::_ops::sinh::call" in frames[0], frames
            if mark is None and tid == main:
                assert frames[-1].endswith("_start"), frames
            whole += mark is None
    assert whole >= 0.9 * sum(map(len, expected.values()))


@pytest.mark.versions
def test_native(tmp_path):
    path = str(tmp_path / "native.gpuprof")
    with harness.Target("mlp") as target:
        def orders():
            let_tables_come(target, path)
            target.step(STEPS)

        done = harness.attach(target, path, "--stack", "native", orders=orders)
        target.leave()
    assert done.status == harness.DONE, done.told
    losses = done.recording.losses()
    assert losses["unwind_memory"] == 0 and losses["unwind_hard"] == 0
    mapped = 0
    for event in done.recording.chrome()["traceEvents"]:
        frames = event.get("args", {}).get("Call stack", "").split(";")[:-1]
        if event["ph"] != "X" or not frames or not event["name"].startswith("aten::"):
            continue
        assert not any(PYTHON.match(frame) for frame in frames), frames
        assert "at::_ops::" in frames[-1], frames
        mapped += frames[0].endswith("_start")
    assert mapped


def test_one_that_was_away_meanwhile(tmp_path):
    """It lies where it lay at the last look, but in between another one did."""
    path = str(tmp_path / "plugins.gpuprof")
    build = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "unwind")

    def call(name, operator, command):
        return target.command("%s %s/%s.so %s_calls %s" % (command, build, name, name, operator))

    with harness.Target("plugins") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--no-inject", "--stack",
                             "native") as profiler:
            profiler.wait_recording()
            let_tables_come(target, path)
            place = call("first", "sin", "stay")
            let_tables_come(target, path)
            profiler.signal(signal.SIGSTOP)
            call("first", "tanh", "leave")
            assert call("second", "sinh", "through") == call("first", "tan", "stay") == place
            profiler.signal(signal.SIGCONT)
            let_tables_come(target, path)
            call("first", "cos", "through")
            assert profiler.finish() == harness.DONE, profiler.told()
        call("first", "tan", "leave")
        target.leave()
    stacks = {event["name"]: event["args"].get("Call stack", "") for event in
              harness.Recording(path).chrome()["traceEvents"]
              if event["ph"] == "X" and event["name"].startswith("aten::")}
    assert "first_calls" in stacks["aten::cos"]
    assert "aten::sinh" in stacks and "first_calls" not in stacks["aten::sinh"]


def test_while_others_come(tmp_path):
    """What has not been away stays known: the loader says that it has removed only one."""
    path = str(tmp_path / "plugins.gpuprof")
    build = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "unwind")

    def call(name, operator, command):
        return target.command("%s %s/%s.so %s_calls %s" % (command, build, name, name, operator))

    with harness.Target("plugins") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--no-inject", "--stack",
                             "native") as profiler:
            profiler.wait_recording()
            let_tables_come(target, path)
            profiler.signal(signal.SIGSTOP)
            call("first", "tanh", "through")
            call("second", "tan", "stay")
            call("first", "cos", "stay")
            profiler.signal(signal.SIGCONT)
            let_tables_come(target, path)
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    stacks = {event["name"]: event["args"].get("Call stack", "") for event in
              harness.Recording(path).chrome()["traceEvents"]
              if event["ph"] == "X" and event["name"].startswith("aten::")}
    for name in ("tanh", "tan", "cos"):
        assert "at::_ops::%s::call" % name in stacks["aten::" + name], stacks


def test_libraries_that_go(tmp_path):
    """Code at an address where other code lay a moment ago never has the other's name."""
    path = str(tmp_path / "plugins.gpuprof")
    build = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "unwind")

    def call(name, operator, command="through"):
        return target.command("%s %s/%s.so %s_calls %s" % (command, build, name, name, operator))

    with harness.Target("plugins") as target:
        def orders():
            let_tables_come(target, path)
            assert len({call(name, "sinh") for name in ("first", "second") * 20}) == 1
            # Two that stay for a while, and so are known by and by.
            for name, operator in (("first", "tanh"), ("second", "tan")):
                call(name, operator, "stay")
                for _ in range(3):
                    size = os.path.getsize(path)
                    call(name, operator)
                    harness.wait_until("more of the recording", lambda before=size:
                                       os.path.getsize(path) > before)
                call(name, operator, "leave")

        done = harness.attach(target, path, "--no-inject", "--stack", "native", orders=orders)
        target.leave()
    assert done.status == harness.DONE, done.told
    stacks = {"aten::sinh": [], "aten::tanh": [], "aten::tan": []}
    for event in done.recording.chrome()["traceEvents"]:
        if event["ph"] == "X" and event["name"] in stacks:
            stacks[event["name"]].append((event["ts"], event["args"].get("Call stack", "")))
    through = [stack for _, stack in sorted(stacks["aten::sinh"])]
    assert len(through) == 40
    assert not any("second_calls" in stack for stack in through[::2])
    assert not any("first_calls" in stack for stack in through[1::2])
    for operator, name in (("aten::tanh", "first_calls"), ("aten::tan", "second_calls")):
        named = [stack for _, stack in stacks[operator] if "_calls" in stack]
        assert named and all(name in stack for stack in named)
