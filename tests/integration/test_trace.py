# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Chrome trace: the rules that keep every viewer and script happy, and sums equal the table's."""

import re

import pytest

import reference
from conftest import MODES, STEPS

pytestmark = pytest.mark.versions

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


def test_lost_and_missing_stand_in_the_trace(sample):
    text = sample("mlp").recording.chrome_text()
    for loss in sample("mlp").recording.losses():
        assert loss in text, loss
