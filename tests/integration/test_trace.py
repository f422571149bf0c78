# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Chrome trace: the rules that keep every viewer and script happy, and sums equal the table's."""

import os
import re
import subprocess

import pytest

import harness
import reference
from conftest import MODES, STEPS

pytestmark = pytest.mark.versions

PROTO = os.path.join(os.path.dirname(harness.TESTS), "userspace", "output", "perfetto")

CATEGORIES = {"cpu_op", "user_annotation", "python_function", "cpu_instant_event", "Trace", "kernel",
              "cuda_runtime", "cuda_driver", "gpu_memcpy", "gpu_memset", "cuda_sync", "fwdbwd",
              "ac2g"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_fields(sample, mode, name):
    one = sample(name)
    events = one.recording_of(mode).chrome()["traceEvents"]
    assert any(event["ph"] == "X" for event in events)
    for event in events:
        for field in ("name", "ph", "pid", "tid", "ts"):
            assert field in event, event
        assert event["ts"] >= 0, event
        if event["ph"] == "X":
            assert event["cat"] in CATEGORIES and event["dur"] >= 0, event
            if event["cat"] == "cpu_op":
                assert event["pid"] == one.pid, event
    names = [event for event in events if event["ph"] == "M"]
    assert {"process_name", "thread_name"} <= {event["name"] for event in names}


@pytest.mark.parametrize("name", ["mlp"])
def test_form(sample, name):
    text = sample(name).recording.chrome_text()
    trace = sample(name).recording.chrome()
    keys = list(trace)
    assert keys[0] == "schemaVersion" and trace["schemaVersion"] == 1
    assert keys[-1] == "traceName"
    before = keys[:keys.index("traceEvents")]
    for key in ("deviceProperties", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds"):
        assert key in before
    assert '"traceEvents": [' in text
    assert re.search(r'"rank": \d', text)
    times = re.findall(r'"(?:ts|dur)":\s*([^,}\s]+)', text)
    assert times and all(re.fullmatch(r"\d+\.\d{3}", time) for time in times)
    # One event a line.
    lines = [line for line in text.splitlines() if '"ph"' in line]
    assert len(lines) == len(trace["traceEvents"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_slices_nest(sample, mode, name):
    events = sample(name).recording_of(mode).chrome()["traceEvents"]
    for slices in reference.slices_by_thread(events, ("cpu_op", "user_annotation")).values():
        reference.roots(slices)


@pytest.mark.parametrize("name", STEPS)
def test_flows_end_where_they_began(sample, name):
    events = sample(name).recording.chrome()["traceEvents"]
    begun = {(event["cat"], event["id"]) for event in events if event["ph"] == "s"}
    ended = {(event["cat"], event["id"]) for event in events if event["ph"] == "f"}
    assert ended <= begun


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_sums_equal_the_table(sample, mode, name):
    one = sample(name)
    expected = reference.table(one.recording_of(mode).chrome()["traceEvents"])
    rows = {row: value for row, value in one.recording_of(mode).rows().items() if row != "[memory]"}
    assert set(rows) == set(expected)
    for row, value in rows.items():
        assert value["calls"] == expected[row]["calls"], row
        if name == "raiser":
            # The end of an op that an exception left is a bound; the trace cuts it to its parent.
            continue
        for column in ("cpu_total", "self_cpu"):
            ours = round(value[column + "_us"] * 1000)
            assert abs(ours - expected[row][column + "_ns"]) <= value["calls"], (row, column)


@pytest.mark.parametrize("mode", MODES)
def test_memory_events(sample, mode):
    one = sample("alloc")
    events = [event for event in one.recording_of(mode).chrome()["traceEvents"]
              if event["name"] == "[memory]"]
    assert all(event["ph"] == "i" and event["s"] == "t" for event in events)
    grown = sum(event["args"]["Bytes"] for event in events if event["args"]["Bytes"] > 0)
    rows = one.recording_of(mode).rows()
    assert grown >= sum(rows[name]["self_cpu_mem"] for name in rows
                        if rows[name]["self_cpu_mem"] > 0)
    for event in events:
        assert event["args"]["Device Type"] == 0 and "Addr" in event["args"]


def decoded(path):
    """A Perfetto trace as text, by protobuf's own compiler."""
    with open(path, "rb") as trace:
        done = subprocess.run(["protoc", "--proto_path=" + PROTO, "--decode=perfetto.Trace",
                               "perfetto.proto"], stdin=trace, stdout=subprocess.PIPE, check=True,
                              timeout=harness.LIMIT)
    return done.stdout.decode("utf-8", "replace")


@pytest.mark.parametrize("name", ["mlp", "resnet18_train"])
def test_perfetto(sample, name, tmp_path):
    one = sample(name)
    path = tmp_path / "trace.pftrace"
    assert harness.gpuprof("export", one.recording.path, "--format", "perfetto", "-o",
                           path).status == harness.DONE
    text = decoded(path)
    events = one.recording.chrome()["traceEvents"]
    slices = [event for event in events if event["ph"] == "X" and event["cat"] != "Trace"]
    packets = text.split("\npacket {")
    begun = [packet for packet in packets if "\n    type: 1\n" in packet]
    assert len(begun) == len(slices) == text.count("\n    type: 2\n")
    assert text.count("counter_value:") == sum(event["name"] == "[memory]" for event in events)
    # Names, each told once, and how often each is used.
    names = dict(re.findall(r'event_names \{\s+iid: (\d+)\s+name: "([^"]*)"', text))
    assert len(set(names.values())) == len(names)
    counts = {}
    for packet in begun:
        called = names[re.search(r"\n    name_iid: (\d+)\n", packet).group(1)]
        counts[called] = counts.get(called, 0) + 1
    wanted = {}
    for event in slices:
        wanted[event["name"]] = wanted.get(event["name"], 0) + 1
    assert counts == wanted
    assert '  process_name: "' in text and "pid: %d" % one.pid in text


def test_lost_and_missing_stand_in_the_trace(sample):
    text = sample("mlp").recording.chrome_text()
    for loss in sample("mlp").recording.losses():
        assert loss in text, loss
