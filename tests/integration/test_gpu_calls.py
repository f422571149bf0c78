# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Calls of the CUDA API by uprobes, where there is no CUPTI, or before there is.
"""

import collections

import pytest

import gpu_truth
import harness
from test_gpu import App, KINDS, capture

# Calls that the catalogue leaves out: they come often and say nothing, or are no work.
LEFT_OUT = {"cudaGetDevice", "cudaGetDeviceCount", "cudaSetDevice"}
STREAM = 13  # the first one that the stand-in gives


def by_thread(events):
    """Thread -> its calls by start, without those that another one makes."""
    found = collections.defaultdict(list)
    for event in sorted(events, key=lambda event: (event.start, -event.end)):
        own = found[event.tid]
        if not own or own[-1].end < event.end:
            own.append(event)
    return found


def check_calls(recording, path):
    """Each true call was recorded once, around what it did."""
    true = by_thread(event for event, _ in gpu_truth.true_events(path, all_calls=True)
                     if event.kind == "call" and event.what[0] not in LEFT_OUT)
    seen = by_thread(recording.calls)
    assert {tid: [call.name for call in calls] for tid, calls in seen.items()} == {
        tid: [call.what[0] for call in calls] for tid, calls in true.items()}
    for tid, calls in seen.items():
        for call, truth in zip(calls, true[tid]):
            assert call.start <= truth.start and truth.end <= call.end, (call, truth)


def of_name(recording, name):
    (call,) = [call for call in recording.calls if call.name == name]
    return call


@pytest.mark.san
def test_every_call_with_its_arguments(tmp_path):
    with App() as app:
        done, recording = capture(app, tmp_path, "calls 1", options=("--no-inject",))
        app.do("truth %s" % (tmp_path / "truth"))
        app.leave()
    assert done.status == harness.DONE, done.told
    assert not recording.lost() and not recording.events
    check_calls(recording, tmp_path / "truth")
    launch = of_name(recording, "cudaLaunchKernel")
    assert launch[5:] == (STREAM, 0, "2,1,1", "64,1,1", 0, -1, "_Z10vector_addPKf")
    assert of_name(recording, "cudaLaunchKernelExC")[5:] == (
        STREAM, 0, "4,5,6", "7,8,9", 64, -1, "_Z10vector_addPKf")
    assert of_name(recording, "cuLaunchKernelEx")[5:-1] == (9, 0, "3,2,1", "96,1,1", 32, -1)
    assert of_name(recording, "cudaMemcpy2DAsync")[5:7] == (STREAM, 700)
    assert of_name(recording, "cudaMemcpy2DAsync").kind == 2
    assert of_name(recording, "cuMemsetD32Async")[5:7] == (9, 100)


@pytest.mark.san
def test_names_of_kernels_that_the_driver_launches(tmp_path):
    """By the handles that the program has asked for while it was recorded."""
    with App() as app:
        done, recording = capture(app, tmp_path, "driver 1", "named 3", options=("--no-inject",))
        app.leave()
    assert done.status == harness.DONE, done.told
    names = [call[-1] for call in recording.calls if call.name == "cuLaunchKernel"]
    assert names == [names[0]] + 6 * ["_Z6vectorPKfS0_Pfi"] and names[0] != names[1]
    assert [call.name for call in recording.calls].count("cuModuleGetFunction") == 1


@pytest.mark.san
def test_many_calls_on_threads(tmp_path):
    with App() as app:
        done, recording = capture(app, tmp_path, "work 4 100", "driver 20", "graph 3",
                                  options=("--no-inject",))
        app.do("truth %s" % (tmp_path / "truth"))
        app.leave()
    assert done.status == harness.DONE, done.told
    assert not recording.lost() and not recording.events
    check_calls(recording, tmp_path / "truth")
    copies = [call.bytes for call in recording.calls if call.name == "cudaMemcpyAsync"]
    assert sorted(set(copies)) == sorted(
        {4096} | {size // part for size in range(4096, 8096, 1000) for part in (1, 4)})
    rows = recording_rows(done)
    assert rows["cudaLaunchKernel"] == 4 * 300 + 2 and rows["cuLaunchKernel"] == 20
    assert rows["cudaGraphLaunch"] == 3 and "cuMemAlloc_v2" not in rows


def recording_rows(done):
    """Name -> calls, of the CPU; and no GPU time is made up."""
    table = done.recording.table()
    assert all(row["device"] == "CPU" and not row.get("cuda_total_us") for row in table["rows"])
    return {row["name"]: row["calls"] for row in table["rows"]}


@pytest.mark.parametrize("options", (("--no-inject",), ("--no-inject", "--ops", "aten::relu")),
                         ids=("all", "some"))
@pytest.mark.versions
def test_launches_inside_operators(options, tmp_path):
    """Each call has the instance of the very operator that made it."""
    steps = 10
    with harness.Target("bridge", "--fake", gpu_truth.fake_inside(), "--inside") as target:
        done = harness.attach(target, tmp_path / "r", *options,
                              orders=lambda: target.step(steps))
        target.leave()
    recording = gpu_truth.Recorded(tmp_path / "r")
    assert done.status == harness.DONE, done.told
    ops = {op.instance: op for op in recording.ops}
    launches = [call for call in recording.calls if call.name == "cudaLaunchKernel"]
    assert len(launches) == steps * 2 * 3 * 3
    names = collections.Counter()
    for call in launches:
        op = ops.get(call.instance)
        names[op and op.name] += 1
        assert op is None or (op.tid == call.tid and op.start <= call.start
                              and call.end <= op.end)
    each = steps * 2 * 3
    wanted = {"aten::relu": each, "aten::addmm": each, "aten::sum": each}
    if len(options) > 1:
        wanted = {"aten::relu": each, None: 2 * each}
    assert names == wanted
    trace = done.recording.chrome()["traceEvents"]
    numbers = {event["args"]["External id"]: event["name"] for event in trace
               if event.get("cat") == "cpu_op"}
    under = collections.Counter(numbers.get(event["args"].get("External id")) for event in trace
                                if event.get("name") == "cudaLaunchKernel")
    assert under == wanted
    assert not [event for event in trace if event.get("cat") in ("kernel", "gpu_memcpy")]


@pytest.mark.san
def test_cupti_comes_later(tmp_path):
    """A call that both see is one call, and what only the uprobe saw stays."""
    with App() as app:
        app.do("busy 1")

        def orders():
            app.do("work 2 50")
            app.do("busy 0")
            app.wait_counted("enabled", KINDS)
            # The probes are not needed any more.
            harness.wait_until("no probes", lambda: not any(
                "libcuda" in path for path in harness.text_differences(app.pid)))
            app.do("work 2 50")

        done, recording = capture(app, tmp_path, orders)
        app.leave()
    assert done.status == harness.DONE, done.told
    losses = done.recording.losses()
    assert not losses["api_unjoined"] and not losses["gpu_unmatched"], losses
    kernels = [event for event in recording.events if event.kind == "kernel"]
    assert len(kernels) == 300
    rows = {row["name"]: row["calls"] for row in done.recording.table()["rows"]
            if row["device"] == "CPU"}
    assert rows["cudaLaunchKernel"] == 600 and rows["cudaMemcpyAsync"] == 400
    assert rows["cudaMalloc"] == 200


def test_collector_leaves(tmp_path):
    """Its calls come by uprobes from then on."""
    with App() as app:
        with harness.Gpuprof("-v", "attach", "--pid", app.pid, "-o", tmp_path / "r") as profiler:
            profiler.wait_recording()
            app.do("work 1 10")
            profiler.signal(harness.signal.SIGSTOP)
            app.wait_counted("unsubscribed", 1)
            profiler.signal(harness.signal.SIGCONT)
            profiler.wait_line("stderr", lambda line: "in place of the collector" in line)
            assert any("libcudart" in path for path in harness.text_differences(app.pid))
            app.do("work 1 10")
            profiler.finish()
    recording = gpu_truth.Recorded(tmp_path / "r")
    assert [call.name for call in recording.calls].count("cudaLaunchKernel") == 30


def test_memory_that_cuda_gives(tmp_path):
    """Each allocation once, by the outermost call, with the size that was asked for."""
    with App() as app:
        done, recording = capture(app, tmp_path, "calls 1", options=("--memory",))
        app.leave()
    assert done.status == harness.DONE, done.told
    assert not recording.lost()
    given = {memory.name: (memory.bytes, memory.what) for memory in recording.memory
             if memory.bytes}
    assert given == {"cudaMallocManaged": (1000, 1), "cudaMallocHost": (2000, 2),
                     "cudaMallocAsync": (3000, 0), "cudaMallocPitch": (4 * 512, 0),
                     "cuMemAlloc_v2": (5000, 0), "cuMemCreate": (6000, 3)}
    taken = [memory for memory in recording.memory if not memory.bytes]
    assert {memory.name for memory in taken} == {"cudaFree", "cudaFreeHost", "cudaFreeAsync",
                                                 "cuMemFree_v2", "cuMemRelease"}
    assert len(recording.memory) == 12
    devices = memory_devices(tmp_path / "r.gpuprof")
    assert {name: device["peak"]["bytes"] for name, device in devices.items()} == {
        "cudaMalloc": 5000, "cudaMallocHost": 2000, "cuMemCreate": 6000}
    assert not any(device["end_bytes"] for device in devices.values())


def memory_devices(recording):
    path = str(recording) + ".json"
    done = harness.gpuprof("export", recording, "--format", "memory", "-o", path)
    assert done.status == harness.DONE, done
    with open(path, encoding="utf-8") as file:
        return {device["device"]: device for device in harness.parse_json(file.read())["devices"]}


@pytest.mark.versions
def test_memory_outside_pytorch(tmp_path):
    """What CUDA gives to others than PyTorch's allocator."""
    with harness.Target("bridge", "--fake", gpu_truth.fake_inside()) as target:
        done = harness.attach(target, tmp_path / "r", "--memory", "--ops", "none",
                              orders=lambda: [target.command(order) for order in (
                                  "take 100", "cache 1000", "take 700", "cache 2000", "take 50",
                                  "cache 4000")])
        target.leave()
    assert done.status == harness.DONE, done.told
    devices = memory_devices(tmp_path / "r")
    assert devices["cuda:0"]["reserved_bytes"] == [1000, 3000, 7000]
    assert devices["cuda:0"]["allocator_bytes"] == [500, 1500, 3500]
    calls = devices["cudaMalloc"]
    assert calls["bytes"] == [100, 1100, 1800, 3800, 3850, 7850]
    # Before PyTorch's first word, too: only what that is about is its own.
    assert calls["outside_pytorch_end_bytes"] == calls["outside_pytorch_peak_bytes"] == 850


def test_stacks_of_what_cuda_gives(tmp_path):
    """Operators' stacks come from the collector here, those of memory from the kernel."""
    with harness.Target("bridge", "--fake", gpu_truth.fake_inside()) as target:
        done = harness.attach(target, tmp_path / "r", "--memory", "--stack", "python",
                              orders=lambda: [target.step(2), target.command("take 100"),
                                              target.command("take 700")])
        target.leave()
    assert done.status == harness.DONE, done.told
    out = harness.gpuprof("export", tmp_path / "r", "--format", "stacks", "--metric",
                          "allocated_bytes", "-o", "-").stdout
    takes = [line for line in out.splitlines() if ":_Bridge.command;" in line]
    assert [line.split()[-1] for line in takes] == ["100", "700"], out
    assert all(":_Gpu.allocate" in line for line in takes), takes
