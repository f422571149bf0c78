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


def call(target, name, operator, command="through"):
    """An operator under a library of its own, see workloads/plugins.py. Where that lay."""
    build = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "unwind")
    return target.command("%s %s/%s.so %s_calls %s" % (command, build, name, name, operator))


def stacks_of(recording):
    """name -> stacks of its calls in the order of time, "" for none."""
    stacks = {}
    for event in sorted(recording.chrome()["traceEvents"], key=lambda event: event.get("ts", 0)):
        if event["ph"] == "X":
            stacks.setdefault(event["name"], []).append(event["args"].get("Call stack", ""))
    return stacks


def unseen(target, path, calls):
    """Stacks of a capture in which gpuprof does not look while these calls are made."""
    with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--no-inject", "--stack",
                         "native") as profiler:
        profiler.wait_recording()
        let_tables_come(target, path)
        place = call(target, "first", "sin", "stay")
        let_tables_come(target, path)
        profiler.signal(signal.SIGSTOP)
        places = [call(target, *one) for one in calls]
        profiler.signal(signal.SIGCONT)
        let_tables_come(target, path)
        assert profiler.finish() == harness.DONE, profiler.told()
    return stacks_of(harness.Recording(path)), [one == place for one in places]


def test_one_that_was_away_meanwhile(tmp_path):
    """It lies where it lay at the last look, but in between another one did."""
    with harness.Target("plugins") as target:
        stacks, same = unseen(target, str(tmp_path / "plugins.gpuprof"), [
            ("first", "tanh", "leave"), ("second", "sinh"), ("first", "tan", "stay")])
        target.leave()
    assert same == [True] * 3
    assert "first_calls" not in stacks["aten::sinh"][0]


def test_while_others_come(tmp_path):
    """What has not been away stays known: the loader says that it has removed only one."""
    with harness.Target("plugins") as target:
        stacks, _ = unseen(target, str(tmp_path / "plugins.gpuprof"), [
            ("first", "tanh", "leave"), ("second", "tan", "stay"), ("first", "cos", "stay")])
        target.leave()
    for name in ("tanh", "tan", "cos"):
        assert "at::_ops::%s::call" % name in stacks["aten::" + name][0], stacks


def test_libraries_that_go(tmp_path):
    """Code at an address where other code lay a moment ago never has the other's name."""
    path = str(tmp_path / "plugins.gpuprof")
    with harness.Target("plugins") as target:
        def orders():
            let_tables_come(target, path)
            assert len({call(target, name, "sinh") for name in ("first", "second") * 20}) == 1
            # Two that stay for a while, and so are known by and by.
            for name, operator in (("first", "tanh"), ("second", "tan")):
                call(target, name, operator, "stay")
                for _ in range(3):
                    size = os.path.getsize(path)
                    call(target, name, operator)
                    harness.wait_until("more of the recording", lambda before=size:
                                       os.path.getsize(path) > before)
                call(target, name, operator, "leave")

        done = harness.attach(target, path, "--no-inject", "--stack", "native", orders=orders)
        target.leave()
    assert done.status == harness.DONE, done.told
    stacks = stacks_of(done.recording)
    through = stacks["aten::sinh"]
    assert len(through) == 40
    assert not any("second_calls" in stack for stack in through[::2])
    assert not any("first_calls" in stack for stack in through[1::2])
    for operator, name in (("aten::tanh", "first_calls"), ("aten::tan", "second_calls")):
        named = [stack for stack in stacks[operator] if "_calls" in stack]
        assert named and all(name in stack for stack in named)
