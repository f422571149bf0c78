# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Python's garbage collections, where they are asked for: as gc.callbacks are told of them, and what
is left of the probes in the process.
"""

import json
import re
import subprocess

import pytest

import harness
from test_python_functions import assert_nested
from test_trace import decoded

WAYS = {"callback": (), "uprobes": ("--no-inject",)}
LITTER = 1000


def tells(pid):
    """Whether the Python of the process has the probes; Debian's has it all in one file."""
    with open("/proc/%d/exe" % pid, "rb") as file:
        return b"python\0gc__start\0" in file.read()


def words(pid):
    """The words by which Python knows that somebody looks at its collections."""
    path = "/proc/%d/exe" % pid
    notes = subprocess.run(["readelf", "--wide", "--notes", "--file-header", path], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    bias = 0
    if "DYN (" in notes:
        with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
            bias = int(maps.readline().split("-")[0], 16)
    places = re.findall(r"Name: gc__\w+\n.*Semaphore: (0x[0-9a-f]+)", notes)
    assert len(places) >= 2
    found = []
    with open("/proc/%d/mem" % pid, "rb") as memory:
        for place in places:
            memory.seek(int(place, 16) + bias)
            found.append(int.from_bytes(memory.read(2), "little"))
    return found


def collect(target):
    return json.loads(target.command("collect %d" % LITTER).split(" ", 1)[1])


def slices(recording):
    return sorted((event for event in recording.chrome()["traceEvents"]
                   if event.get("name") == "Python GC"), key=lambda event: event["ts"])


@pytest.mark.versions
@pytest.mark.parametrize("way", WAYS)
def test_collections_are_told(tmp_path, way):
    truth = []
    with harness.Target("garbage") as target:
        assert tells(target.pid)
        # Before the capture: not in it.
        collect(target)
        done = harness.attach(target, tmp_path / "r.gpuprof", "--python-gc",
                              *WAYS[way], orders=lambda: truth.extend(collect(target)))
        target.leave()
    assert done.status == harness.DONE, done.told
    found = slices(done.recording)
    assert [(one["args"]["Generation"], one["args"]["Collected"], one["tid"]) for one in found] == \
        [(one["generation"], one["collected"] + one["uncollectable"], one["tid"]) for one in truth]
    assert len({one["tid"] for one in found}) == 2
    for ours, theirs in zip(found, truth):
        # Python tells others right before and after.
        assert 0 < ours["dur"] * 1000 <= theirs["ns"]
        assert ours["cat"] == "python_function" and ours["ph"] == "X"
    told = done.recording.table()["python_gc"]
    assert told["count"] == len(truth) == 4
    assert told["collected"] == sum(one["collected"] + one["uncollectable"] for one in truth)
    assert round(told["sum_us"], 3) == float(sum(one["dur"] for one in found))
    assert [(one["generation"], one["count"]) for one in told["generations"]] == \
        [(0, 1), (1, 1), (2, 2)]
    assert "Python's garbage collector: 4 times, " in done.stderr
    path = tmp_path / "r.pftrace"
    harness.gpuprof("export", done.recording.path, "--format", "perfetto", "-o", path)
    text = decoded(path)
    iid = re.search(r'event_names \{\s+iid: (\d+)\s+name: "Python GC"', text).group(1)
    assert len(re.findall(r"\n    name_iid: %s\n" % iid, text)) == 4


@pytest.mark.versions
def test_functions_hold_the_collections_in_them(tmp_path):
    """Of which a finalizer's operators are the last ones that they have, or the first."""
    with harness.Target("garbage") as target:
        done = harness.attach(target, tmp_path / "r.gpuprof", "--python-gc", "--python-functions",
                              orders=lambda: target.command("finalize"))
        target.leave()
    assert done.status == harness.DONE, done.told
    events = [event for event in done.recording.chrome()["traceEvents"] if event["ph"] == "X" and
              event["cat"] in ("cpu_op", "user_annotation", "python_function")]
    assert_nested(events)

    def named(name):
        return sorted(((event["ts"], event["ts"] + event["dur"]) for event in events
                       if event["name"].endswith(name)))

    collections, finalizers = named("Python GC"), named("__del__")
    around = named("ends_in_a_collection") + named("begins_in_a_collection")
    assert len(collections) == len(finalizers) == len(around) == 2
    for (begin, end), own, outer in zip(collections, finalizers, around):
        assert begin < own[0] < own[1] < end
        assert outer[0] <= begin and end <= outer[1]
    assert around[0][1] == collections[0][1] and around[1][0] == collections[1][0]


@pytest.mark.versions
def test_nothing_is_left_of_the_probes(tmp_path):
    with harness.Target("garbage") as target:
        assert not any(words(target.pid))
        with harness.Gpuprof("attach", "--pid", target.pid, "--python-gc",
                             "-o", tmp_path / "r.gpuprof") as one:
            one.wait_recording()
            assert set(words(target.pid)) == {1}
            collect(target)
            assert one.finish() == harness.DONE, one.told()
        assert not any(words(target.pid))
        with harness.Gpuprof("attach", "--pid", target.pid, "--python-gc",
                             "-o", tmp_path / "k.gpuprof") as one:
            one.wait_recording()
            one.kill()
        harness.wait_until("the probes go", lambda: not any(words(target.pid)))
        assert collect(target)
        target.leave()


def test_unasked_nothing_is_loaded(tmp_path):
    with harness.Target("garbage") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", tmp_path / "r.gpuprof") as one:
            one.wait_recording()
            loaded = {program["name"] for program in harness.programs()}
            assert not any(words(target.pid))
            assert collect(target)
            assert one.finish() == harness.DONE, one.told()
        target.leave()
    assert "gp_dispatch_entry" in loaded and not loaded & {"gp_gc_start", "gp_gc_done"}
    recording = harness.Recording(tmp_path / "r.gpuprof")
    assert "python_gc" not in recording.table() and not slices(recording)


@pytest.mark.parametrize("options, told", [
    (("attach", "--pid", "1", "--ops", "none"), "--python-gc and --ops none exclude each other"),
    (("attach", "--pid", "1", "--mode", "sample"),
     "--python-gc and --mode sample exclude each other"),
    (("daemon", "--no-ops"), "--python-gc and --no-ops exclude each other"),
    (("daemon", "--mode", "sample"), "--python-gc and --mode sample exclude each other"),
])
def test_without_operators_it_is_refused(options, told):
    done = harness.gpuprof(*options, "--python-gc")
    assert done.status == harness.USAGE
    assert told in done.stderr


def test_without_collections_nothing_is_said(tmp_path):
    with harness.Target("garbage") as target:
        done = harness.attach(target, tmp_path / "r.gpuprof", "--python-gc",
                              orders=lambda: target.step(2))
        target.leave()
    assert "python_gc" not in done.recording.table()
    assert "garbage" not in done.stderr and not slices(done.recording)


@pytest.mark.versions
def test_doctor_says_whether_python_tells(idle):
    done = harness.gpuprof("doctor", "--pid", idle.pid, "--json")
    said = {one["name"]: one["answer"] for one in harness.parse_json(done.stdout)["capabilities"]}
    assert (said["python_gc"] == "yes") == tells(idle.pid)
