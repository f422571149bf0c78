# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Collectives on the stand-in for NCCL: by uprobes, beside what CUPTI tells of their kernels.
"""

import pytest

import gpu_truth
import harness

KINETO = ("Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype")
CALLS = {
    "ncclAllReduce": ("allreduce", 1000, 1000, 4, "Float"),
    "ncclReduce": ("reduce", 1000, 1000, 4, "Half"),
    "ncclAllGather": ("_allgather_base", 1000, 4000, 4, "Half"),
    "ncclSend": ("send", 1000, 1000, 4, "Float"),
}


def collectives(tmp_path, *options):
    with harness.Target("bridge", "--fake", gpu_truth.fake_inside()) as target:
        # Loaded before the capture: the probes are there from the first call on.
        target.command("collectives")
        done = harness.attach(target, tmp_path / "r", *options,
                              orders=lambda: target.command("collectives"))
        target.leave()
    assert done.status == harness.DONE, done.told
    events = done.recording.chrome()["traceEvents"]
    calls = {event["name"]: event["args"] for event in events if event.get("cat") == "nccl"}
    assert set(calls) == set(CALLS) | {"ncclCommInitRank"}
    for name, expected in CALLS.items():
        assert tuple(calls[name].get(key) for key in KINETO) == expected
        assert calls[name]["communicator"] == calls["ncclCommInitRank"]["communicator"]
        assert calls[name]["stream handle"] == "0x1e" and calls[name]["count"] == 1000
    assert calls["ncclAllReduce"]["reduction"] == "sum"
    assert calls["ncclReduce"]["reduction"] == "max" and calls["ncclReduce"]["peer or root"] == 3
    assert calls["ncclSend"]["peer or root"] == 1
    return [event for event in events if event.get("cat") == "kernel"]


@pytest.mark.versions
def test_collectives_and_their_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    kernels = collectives(tmp_path)
    assert harness.Recording(tmp_path / "r").chrome()["distributedInfo"] == {
        "backend": "nccl", "rank": 1, "world_size": 4, "nccl_version": "2.17.1"}
    assert [tuple(kernel["args"].get(key) for key in KINETO) for kernel in kernels] == list(
        CALLS.values())


def test_collectives_without_cupti(tmp_path):
    assert not collectives(tmp_path, "--no-inject")
