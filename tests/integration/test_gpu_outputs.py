# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is written of GPUs: the trace as Kineto has it, also of several processes, rows of the table."""

import collections
import json
import re

import pytest

import gpu_truth
import harness
from test_gpu import App, capture


def test_trace_as_kineto_writes_it(tmp_path):
    """Properties of devices, occupancy, graphs, ranges of annotations, overhead."""
    with App(FAKE_CUDA_DEVICES=2, FAKE_CUPTI_OVERHEAD=1) as app:
        done, recording = capture(app, tmp_path, "devices 1", "graph 2",
                                  lambda: app.wait_flushes(2))
        flushes = app.counted("overhead")
        app.leave()
    assert done.status == harness.DONE, done.told
    trace = done.recording.chrome()
    devices = trace["deviceProperties"]
    assert [device["id"] for device in devices] == [0, 1]
    assert devices[1]["name"] == "Simulated GPU 1" and devices[1]["numSms"] == 108
    assert devices[0]["totalGlobalMem"] == 16 << 30 and devices[0]["computeMajor"] == 8
    assert (trace["cupti_version"], trace["cuda_runtime_version"], trace["cuda_driver_version"]) == (
        26, 12060, 12080)
    events = trace["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert {event["pid"] for event in kernels} == {0, 1}
    on_devices = [event["args"] for event in kernels if event["args"]["block"] == [256, 1, 1]]
    # 9 blocks of 256 threads on 108 multiprocessors of 2048 threads.
    assert [(str(args["blocks per SM"]), str(args["warps per SM"]),
             args["est. achieved occupancy %"]) for args in on_devices] == [
                 ("0.083333", "0.666667", 1)] * 2
    nodes = [event["args"] for event in events if event.get("args", {}).get("graph id")]
    assert len(nodes) == 2 * 3 and len({args["graph node id"] for args in nodes}) == 3
    launches = [event["args"]["correlation"] for event in events
                if event.get("name") == "cudaGraphLaunch"]
    assert sorted(args["correlation"] for args in nodes) == sorted(3 * launches)
    overhead = [event for event in events if event.get("cat") == "overhead"]
    assert 1 <= len(overhead) <= flushes
    # The collector's own thread does the flushes.
    assert {(event["name"], event["pid"]) for event in overhead} == {("Instrumentation", -1)}


def test_ranges_of_annotations(tmp_path):
    """Around the work that each annotation has launched, one for each stream."""
    with harness.Target("bridge", "--fake", gpu_truth.FAKE) as target:
        done = harness.attach(target, tmp_path / "r", orders=lambda: target.step(3))
        target.leave()
    assert done.status == harness.DONE, done.told
    events = done.recording.chrome()["traceEvents"]
    ranges = [event for event in events if event.get("cat") == "gpu_user_annotation"]
    assert sorted(event["name"] for event in ranges) == sorted(
        3 * ["range %d.%d" % (stream, layer) for stream in (10, 20) for layer in range(3)])
    work = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy")]
    for one in ranges:
        inside = [event for event in work if event["tid"] == one["tid"]
                  and one["ts"] < event["ts"]
                  and event["ts"] + event["dur"] < one["ts"] + one["dur"]]
        assert [event["name"] for event in inside if event["cat"] == "kernel"] == [
            one["name"].replace("range", "kernel")]
        assert len(inside) == 2
    table = done.recording.table()
    rows = {row["name"]: row for row in table["rows"] if row["device"] == "CUDA" and row["is_user_annotation"]}
    assert set(rows) == {event["name"] for event in ranges}
    for name, row in rows.items():
        # Drawn, each is two nanoseconds longer.
        drawn = sum(event["dur"] for event in ranges if event["name"] == name)
        assert row["calls"] == 3
        assert float(row["self_cuda_us"]) == pytest.approx(float(drawn) - 3 * 0.002, abs=0.002)
        assert row["cuda_total_us"] == row["self_cuda_us"]
    # torch.profiler's sum is without them.
    text = harness.gpuprof("table", done.recording.path).stdout
    told = re.search(r"Self CUDA time total: ([0-9.]+)us", text)
    assert float(told[1]) == pytest.approx(sum(float(row["self_cuda_us"]) for row in table["rows"]
                                               if row["device"] == "CUDA" and
                                               not row["is_user_annotation"]), abs=0.01)


def test_totals_by_module(tmp_path):
    """What no operator launched counts there, too."""
    with App() as app:
        done, _ = capture(app, tmp_path, "graph 2", "work 1 5")
        app.leave()
    assert done.status == harness.DONE, done.told
    plain = [row for row in done.recording.table()["rows"] if not row["is_user_annotation"]]
    outside, = done.recording.table("--group-by", "module")["rows"]
    for key, device in (("self_cpu_us", "CPU"), ("self_cuda_us", "CUDA")):
        assert float(outside[key]) == pytest.approx(
            sum(float(row[key]) for row in plain if row["device"] == device), abs=0.1)
    assert outside["cpu_total_us"] == outside["self_cpu_us"]
    assert outside["cuda_total_us"] == outside["self_cuda_us"]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two processes with work on a GPU, the first of them in steps, as one recording."""
    folder = tmp_path_factory.mktemp("two")
    for number, steps in enumerate((3, 2)):
        with harness.Target("bridge", "--fake", gpu_truth.FAKE) as target:
            done = harness.attach(target, folder / str(number), orders=lambda: target.step(steps))
            target.leave()
        assert done.status == harness.DONE, done.told
    path = folder / "two.gpuprof"
    done = harness.gpuprof("merge", folder / "0", folder / "1", "-o", path)
    assert done.status == harness.DONE, done.stderr
    return harness.Recording(path)


def test_work_of_one_call_alone(two):
    """CUPTI's numbers count from 1 in each process; in a trace each is one call's."""
    events = two.chrome()["traceEvents"]
    calls = collections.Counter(event["args"]["correlation"] for event in events
                                if event.get("cat") in ("cuda_runtime", "cuda_driver"))
    assert len({event["pid"] for event in events if event.get("cat") == "cuda_runtime"}) == 2
    assert set(calls.values()) == {1}
    assert {event["args"]["correlation"] for event in events
            if event.get("cat") in ("kernel", "gpu_memcpy")} <= set(calls)


def test_gpus_of_two_processes(two):
    """Both use device 0, which may be two: each has its rows, the first as in a trace of its own."""
    events = two.chrome()["traceEvents"]
    of_call = {event["args"]["correlation"]: event["pid"] for event in events
               if event.get("cat") == "cuda_runtime"}
    rows = collections.defaultdict(set)
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            assert event["args"]["device"] == 0
            rows[of_call[event["args"]["correlation"]]].add(event["pid"])
    assert sorted(map(sorted, rows.values())) == [[0], [15000000]]
    assert {event["pid"] for event in events
            if event.get("cat") == "gpu_user_annotation"} == {0, 15000000}
    labels = {event["pid"]: event["args"]["labels"] for event in events
              if event["name"] == "process_labels"}
    assert {row: labels[row] for pids in rows.values() for row in pids} == {
        row: "GPU 0 of process %d" % pid for pid, (row,) in rows.items()}


def test_one_of_two_processes(two, tmp_path):
    """Its events alone, all of them, steps on the GPU too; numbers of GPUs are its own."""
    whole = two.chrome()["traceEvents"]
    pids = sorted({event["pid"] for event in whole if event.get("cat") == "cpu_op"})
    assert len(pids) == 2
    for pid in pids:
        done = harness.gpuprof("export", two.path, "--format", "chrome", "--pid", str(pid), "-o",
                               tmp_path / "one.json")
        assert done.status == harness.DONE, done.stderr
        events = json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]
        assert {event["pid"] for event in slices} == {pid, 0}
        row, = {event["pid"] for event in whole if event["ph"] == "X" and event["name"].startswith("kernel")
                and event["args"]["correlation"] in {
                    call["args"]["correlation"] for call in slices
                    if call["cat"] == "cuda_runtime"}}
        assert len(slices) == sum(event["ph"] == "X" and event["pid"] in (pid, row)
                                  for event in whole)
    done = harness.gpuprof("export", two.path, "--format", "chrome", "--pid", "1", "-o", tmp_path / "x")
    assert done.status == harness.USAGE and "has no process 1" in done.stderr, done


def test_tensorboard_has_one_process_alone(two, tmp_path):
    """In each file its own annotations, which are around operators that it has."""
    done = harness.gpuprof("export", two.path, "--format", "tensorboard", "-o", tmp_path / "tb")
    assert done.status == harness.DONE, done.stderr
    counts = []
    for path in (tmp_path / "tb").iterdir():
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        ids = {event["args"]["External id"] for event in events
               if event.get("cat") in ("cpu_op", "user_annotation")}
        ranges = [event for event in events if event.get("cat") == "gpu_user_annotation"]
        assert {event["args"]["External id"] for event in ranges} <= ids
        counts.append(len(ranges))
    assert sorted(counts) == [2 * 6, 3 * 6]
