# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Python stacks against a program that knows its own at each operator. A stack is right, or marked as
not whole; there is no third.
"""

import json
import os
import pickle
import subprocess

import pytest

import harness
from stack_truth import FRAMES, compare, recorded, right, told

STEPS = 20


# How operators, and with them their stacks, come.
WAYS = {"callback": ("--shapes",), "uprobes": ("--no-inject",)}


@pytest.fixture(scope="module", params=tuple(WAYS))
def capture(request, tmp_path_factory):
    """A capture with stacks, and what the program knows of them."""
    folder = tmp_path_factory.mktemp("stacks")
    with harness.Target("stacks") as target:
        target.step(1)
        told(target)
        done = harness.attach(target, folder / "stacks.gpuprof", "--stack", "python", "--memory",
                              *WAYS[request.param], orders=lambda: target.step(STEPS))
        expected = told(target)
        target.leave()
    assert done.status == harness.DONE, done.told
    assert ("operators by callback" in done.stderr) == (request.param == "callback")
    return done, expected


@pytest.mark.versions
@pytest.mark.san
def test_every_stack_is_right(capture):
    done, expected = capture
    assert compare(expected, recorded(done.recording)) > 100 * STEPS


@pytest.mark.versions
def test_what_is_not_whole_is_counted(capture):
    done, expected = capture
    deep = sum(len(stack) > FRAMES for stacks in expected.values() for stack in stacks)
    assert deep == STEPS
    # Each of them allocates its result too, and that has the same stack.
    assert done.recording.losses()["stack_incomplete"] >= 2 * deep
    assert done.recording.losses()["stack_room"] == 0


def test_without_task_storage(tmp_path):
    """Where threads are kept by number, so is the memory that their stacks are walked in."""
    path = tmp_path / "r.gpuprof"
    env = dict(harness.environment(), GPUPROF_NO_TASK_STORAGE="1")
    with harness.Target("stacks") as target:
        target.step(1)
        told(target)
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--no-inject", "--stack",
                             "python", "-vv", env=env) as one:
            one.wait_recording()
            target.step(1)
            assert one.finish() == harness.DONE, one.told()
        expected = told(target)
        target.leave()
    for name in ("threads", "python_threads", "python_windows"):
        assert "map '%s_by_tid': created" % name in one.text("stderr")
        assert "map '%s': created" % name not in one.text("stderr")
    recording = harness.Recording(path)
    assert compare(expected, recorded(recording)) > 100
    assert recording.losses()["stack_room"] == 0


@pytest.mark.versions
@pytest.mark.parametrize("way", WAYS)
def test_made_up_code_is_never_wrong(way, tmp_path):
    """Code objects that are freed at once, each at the address of the one before."""
    with harness.Target("stacks") as target:
        told(target)
        done = harness.attach(target, tmp_path / "made.gpuprof", "--stack", "python", *WAYS[way],
                              orders=lambda: target.command("dynamic 400"))
        (stacks,) = told(target).values()
        target.leave()
    (found,) = recorded(done.recording).values()
    assert len(found) == len(stacks) == 400
    for expected, (mark, stack) in zip(stacks, found):
        assert len(stack) == len(expected)
        for wanted, got in zip(expected, stack):
            assert got == wanted or (got == "?(0): ?" and mark == "[incomplete]"), (wanted, got)


@pytest.mark.versions
@pytest.mark.parametrize("way", WAYS)
def test_annotations_are_where_they_are_written(way, tmp_path):
    """Where times are added up: not in PyTorch's own lines that begin them."""
    with harness.Target("functions") as target:
        done = harness.attach(target, tmp_path / "f.gpuprof", "--stack", "python", *WAYS[way],
                              orders=lambda: target.step(2))
        target.leave()
    rows = done.recording.table("--group-by", "stack:1", "--limit", "-1")["rows"]
    found = {row["name"]: row["stack"][0] for row in rows if row["is_user_annotation"]}
    assert "functions.py(" in found["label"] and found["label"].endswith(": labelled"), found
    assert not any("torch/_ops.py" in frame for frame in found.values())
    folded = tmp_path / "folded.txt"
    assert harness.gpuprof("export", done.recording.path, "--format", "stacks", "-o",
                           folded).status == harness.DONE
    assert ":_labelled " in folded.read_text()


@pytest.mark.versions
def test_annotations_and_nodes_have_stacks(capture):
    """An annotation's stack ends where it is entered, a node's where backward() is called."""
    done, _ = capture
    by_name = {}
    for event in done.recording.chrome()["traceEvents"]:
        if event["ph"] == "X" and "Call stack" in event.get("args", {}):
            by_name.setdefault(event["name"], []).append(event["args"]["Call stack"])
    stacks = by_name["autograd::engine::evaluate_function: SumBackward0"]
    assert len(stacks) == STEPS
    assert all("/stacks.py(" in stack and ": backward;" in stack for stack in stacks)
    if "operators by callback" not in done.stderr:
        return
    assert len(by_name["told"]) == STEPS
    assert all(": annotated;" in stack for stack in by_name["told"])


@pytest.mark.versions
@pytest.mark.parametrize("way", WAYS)
def test_allocations_are_where_they_are_made(way, tmp_path):
    """In operators, between them, and in Python that an operator calls."""
    told_path = os.path.join(harness.inside().folder, "sizes.json")
    out = os.path.join(harness.inside().folder, "sizes.pickle")
    with harness.Target("stacks") as target:
        done = harness.attach(
            target, tmp_path / "sizes.gpuprof", "--stack", "python", "--memory", *WAYS[way],
            orders=lambda: target.command("sizes 20 " + harness.inside().inner(told_path)))
        target.leave()
    assert done.status == harness.DONE, done.told
    with open(told_path, encoding="utf-8") as file:
        expected = {int(size): stack for size, stack in json.load(file).items()}
    assert harness.gpuprof("export", done.recording.path, "--format", "snapshot", "-o",
                           out).status == harness.DONE
    with open(out, "rb") as file:
        (trace,) = pickle.load(file)["device_traces"]
    found = {entry["size"]: ["%s(%d): %s" % (frame["filename"], frame["line"], frame["name"])
                             for frame in entry["frames"]]
             for entry in trace if entry["action"] == "alloc" and entry["size"] in expected}
    assert len(expected) == 20 * 19
    assert found == expected
    assert done.recording.losses()["stack_incomplete"] == 0


def test_stacks_after_a_pause(tmp_path):
    """Whether or not the collector counts its stacks anew, none is taken for another."""
    socket = str(tmp_path / "ctl.sock")
    with harness.Target("stacks") as target:
        told(target)
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", socket, "--stack", "python",
                             "-o", tmp_path / "pause.gpuprof") as profiler:
            profiler.wait_recording()
            target.step(1)
            for command in ("stop", "start"):
                done = harness.gpuprof("ctl", "--socket", socket, command)
                assert done.status == harness.DONE, done
            # Other stacks first.
            target.command("sizes 1 /dev/null")
            target.step(1)
            assert profiler.finish() == harness.DONE, profiler.told()
        expected = told(target)
        target.leave()
    assert compare(expected, recorded(harness.Recording(tmp_path / "pause.gpuprof")))


def test_refused_reads_mean_uprobes(tmp_path):
    """Where the first walks cannot be checked the kernel walks, whenever that turns out."""
    with harness.Target("stacks") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--stack", "python", "-o",
                             tmp_path / "denied.gpuprof") as profiler:
            profiler.wait_recording()
            target.step(1)
            target.command("deny 310")  # process_vm_readv
            target.step(1)
            profiler.wait_line("stderr", lambda line: "by uprobes from now on" in line)
            told(target)
            target.step(2)
            assert profiler.finish() in (harness.DONE, harness.LOST), profiler.told()
        expected = told(target)
        recording = harness.Recording(tmp_path / "denied.gpuprof")
        found = recorded(recording)
        assert recording.losses()["collector_left"] == 1
        assert compare(expected, {tid: found[tid][-len(stacks):]
                                  for tid, stacks in expected.items()})
        later = harness.attach(target, tmp_path / "later.gpuprof", "-v", "--stack", "python",
                               orders=lambda: target.step(1))
        assert compare(told(target), recorded(later.recording))
        assert "process_vm_readv is not allowed" in later.stderr
        target.leave()


def test_run_finds_python_when_it_comes(tmp_path):
    path = str(tmp_path / "run.gpuprof")
    with harness.Gpuprof("run", "--stack", "python", "-o", path, "--",
                         *harness.inside().argv("stacks")) as profiler:
        line, at = profiler.wait_line("stdout", lambda text: text.startswith("ready "))
        facts = json.loads(line[len("ready "):])
        for order in ("told /dev/null", "step 2", "told " + str(tmp_path / "told")):
            profiler.send(order)
            _, at = profiler.wait_line("stdout", lambda text: True, at)
        size = os.path.getsize(path)
        # What is written from here on was read after all of that.
        profiler.send("step 1")
        profiler.wait_line("stdout", lambda text: text == "did 1", at)
        harness.wait_until("more of the recording", lambda: os.path.getsize(path) > size)
        profiler.send("exit")
        status = profiler.wait()
    assert status == harness.DONE, profiler.told()
    with open(tmp_path / "told", encoding="utf-8") as file:
        expected = {int(tid): stacks for tid, stacks in json.load(file).items()}
    found = recorded(harness.Recording(path))
    main = facts["tid"]
    # Warm-up and the first command's steps come before, one step after.
    wanted, got = expected[main], found[main]
    first = len(got) * 3 // 6
    assert len(got) == len(wanted) * 3
    for stack, (mark, frames) in zip(wanted, got[first:first + len(wanted)]):
        assert right(stack, mark, frames), (stack, mark, frames)


def test_table_by_stack(capture):
    done, expected = capture
    rows = [row for row in done.recording.table("--group-by", "stack:2")["rows"]
            if row["name"] == "aten::sinh"]
    counts = {}
    for stacks in expected.values():
        for stack in stacks:
            counts[tuple(stack[:2])] = counts.get(tuple(stack[:2]), 0) + 1
    assert {tuple(row["stack"]): row["calls"] for row in rows} == counts
    text = harness.gpuprof("table", done.recording.path, "--group-by", "stack:2").stdout
    assert "  Source Location  " in text


def test_folded_stacks(capture, tmp_path):
    done, _ = capture
    for metric in ("self_cpu_time_total", "allocated_bytes"):
        path = tmp_path / metric
        assert harness.gpuprof("export", done.recording.path, "--format", "stacks", "--metric",
                               metric, "-o", path).status == harness.DONE
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines
        for line in lines:
            stack, number = line.rsplit(" ", 1)
            assert int(number) > 0 and " " not in stack and all(stack.split(";"))
    # Every sinh makes a tensor: its 16 (or 8) bytes are at a stack that ends where it is called.
    assert sum(line.endswith("_plain 16") for line in lines) >= 3 * STEPS


def test_speedscope(capture, tmp_path):
    done, _ = capture
    path = tmp_path / "profile.json"
    assert harness.gpuprof("export", done.recording.path, "--format", "speedscope", "-o",
                           path).status == harness.DONE
    profile = harness.parse_json(path.read_text(encoding="utf-8"))
    one = profile["profiles"][0]
    assert len(one["samples"]) == len(one["weights"]) > 0
    assert sum(one["weights"]) == one["endValue"]
    assert max(max(sample) for sample in one["samples"]) < len(profile["shared"]["frames"])


def test_no_python_no_stacks(tmp_path):
    """What cannot be walked is refused, and says why."""
    with subprocess.Popen(["sleep", "1000"]) as child:
        try:
            done = harness.gpuprof("attach", "--pid", child.pid, "--wait", "--stack", "python", "-o",
                                   tmp_path / "no.gpuprof")
        finally:
            child.kill()
    assert done.status == harness.FAILED
    assert "no CPython" in done.stderr
    assert not (tmp_path / "no.gpuprof").exists()


def test_recording_without_stacks(sample, tmp_path):
    done = harness.gpuprof("export", sample("mlp").recording.path, "--format", "stacks", "-o",
                           tmp_path / "none")
    assert done.status == harness.FAILED
    assert "--stack python" in done.stderr
