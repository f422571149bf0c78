# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The memory snapshot: PyTorch's own memory_viz reads and renders it, and it holds what was allocated.
"""

import json
import os
import pickle
import subprocess

import pytest

import harness

pytestmark = pytest.mark.versions

BLOCK = 64 << 10

# Runs beside the PyTorch under test.
VIEW = """
import inspect, json, pickle, sys
from torch.cuda import _memory_viz as viz
with open(sys.argv[1], "rb") as file:
    data = pickle.load(file)
if not hasattr(viz, "trace_plot"):
    print("{}")
    sys.exit()
told = {"trace": viz.trace(data), "segsum": viz.segsum(data)}
told["html"] = [len(viz.trace_plot(data)), len(viz.trace_plot(data, plot_segments=True)),
                len(viz.segment_plot(data))]
if "filter_freed" in inspect.signature(viz.trace_plot).parameters:
    told["html"].append(len(viz.trace_plot(data, filter_freed=True)))
lines = []
def keep(text, *args):
    lines.append(text)
    return text
viz.memory(data, format_flamegraph=keep)
viz.segments(data, format_flamegraph=keep)
told["lines"] = lines
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def snapshot(recordings):
    def orders():
        target.command("keep 4")
        target.step(1)
        target.command("refuse %d" % (2 << 30))

    path = recordings / "snapshot.gpuprof"
    with harness.Target("alloc") as target:
        capture = harness.attach(target, path, "--memory", "--stack", "python", orders=orders)
        target.leave()
    assert capture.status == harness.DONE, capture.told
    out = os.path.join(harness.inside().folder, "snapshot.pickle")
    done = harness.gpuprof("export", path, "--format", "snapshot", "-o", out)
    assert done.status == harness.DONE, done
    return out


def test_holds_what_was_allocated(snapshot):
    with open(snapshot, "rb") as file:
        data = pickle.load(file)
    trace = data["device_traces"][-1]
    assert len(data["device_traces"]) == 1
    sizes = [entry["size"] for entry in trace if entry["action"] == "alloc"]
    # Kept blocks, then those of one step.
    assert [size for size in sizes if size >= BLOCK] == [
        BLOCK] * 4 + [1024 << 10, 512 << 10, 256 << 10]
    requested = [entry["addr"] for entry in trace if entry["action"] == "free_requested"]
    completed = [entry["addr"] for entry in trace if entry["action"] == "free_completed"]
    assert requested == completed and len(requested) >= 3
    assert [entry["size"] for entry in trace if entry["action"] == "oom"] == [2 << 30]
    blocks = [block for segment in data["segments"] for block in segment["blocks"]]
    kept = [block for block in blocks if block["size"] == BLOCK]
    assert len(kept) == 4
    assert {block["state"] for block in blocks} == {"active_allocated"}
    for block in kept:
        assert block["frames"][0]["filename"].endswith("alloc.py")
        assert "command" in block["frames"][0]["name"]
    for segment in data["segments"]:
        assert segment["total_size"] == sum(block["size"] for block in segment["blocks"])
    times = [entry["time_us"] for entry in trace]
    assert times == sorted(times)


def test_memory_viz_renders_it(snapshot):
    inside = harness.Inside.inner(snapshot)
    prefix = ["chroot", harness.ROOT_DIR] if harness.ROOT_DIR else []
    done = subprocess.run([*prefix, harness.PYTHON, "-B", "-c", VIEW, inside], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=harness.LIMIT)
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout)
    if not told:
        # That of 1.13 knows neither traces nor plots.
        assert not harness.ROOT_DIR
        return
    assert "raise OutOfMemoryError # 2.0GiB requested" in told["trace"]
    assert "total_allocated: " in told["segsum"]
    assert "alloc.py" in told["lines"][0] and "active_allocated" in told["lines"][1]
    assert min(told["html"]) > 1000


def test_refused_without_memory(idle, tmp_path):
    capture = harness.attach(idle, tmp_path / "plain.gpuprof", orders=lambda: idle.step(1))
    done = harness.gpuprof("export", capture.recording.path, "--format", "snapshot", "-o",
                           tmp_path / "x.pickle")
    assert done.status == harness.FAILED
    assert "--memory" in done.stderr
