# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Where no BPF program can be loaded (a kernel or a container without): what the collector inside the
process tells is recorded, and what is missing is said.
"""

import json
import os

import pytest

import gpu_truth
import harness
from test_gpu import App

WITHOUT_BPF = ("setpriv", "--bounding-set", "-sys_admin,-bpf,-perfmon", "--inh-caps", "-all")


class Bare(harness.Child):
    def __init__(self, pid, path, *options):
        super().__init__([*WITHOUT_BPF, harness.GPUPROF, "attach", "--pid", str(pid), "-o",
                          str(path), *options], "gpuprof without BPF")
        self.wait_line("stderr", lambda line: line.startswith("recording"))

    def finish(self):
        self.signal(harness.signal.SIGINT)
        return self.wait()


def calls(recording):
    return {name: row["calls"] for name, row in recording.rows().items()}


def doctor(*args, prefix=()):
    done = harness.gpuprof("doctor", *args, "--json", prefix=prefix)
    told = json.loads(done.stdout)
    assert done.status == (harness.DONE if told["able"] else harness.FAILED), done
    return told["able"], {one["name"]: one for one in told["capabilities"]}


def test_doctor_knows(idle):
    """What attach can do without BPF, which is nothing in a process with neither PyTorch nor CUDA."""
    able, found = doctor("--pid", idle.pid, prefix=WITHOUT_BPF)
    assert able and found["bpf"]["answer"] == "no" and not found["bpf"]["required"]
    assert found["attach"]["answer"] == "partly" and "without probes" in found["attach"]["detail"]
    with harness.Child(["sleep", "1000"], "sleep") as other:
        able, found = doctor("--pid", other.pid, prefix=WITHOUT_BPF)
    assert not able and found["bpf"]["required"] and found["attach"]["answer"] == "no"
    able, found = doctor("--pid", idle.pid)
    assert able and found["attach"]["answer"] == "yes", found


@pytest.mark.parametrize("options", ((), ("--shapes", "--stack", "python", "--memory")), ids=("plain", "more"))
def test_operators(options, tmp_path):
    steps = 5
    with harness.Target("mlp") as target:
        with Bare(target.pid, tmp_path / "bare", *options) as profiler:
            target.step(steps)
            assert profiler.finish() == harness.DONE, profiler.told()
        whole = harness.attach(target, tmp_path / "whole", *options,
                               orders=lambda: target.step(steps))
        assert whole.status == harness.DONE, whole.told
        target.leave()
    bare = harness.Recording(tmp_path / "bare")
    assert "cannot load BPF programs" in profiler.text("stderr")
    assert calls(bare) == calls(whole.recording) != {}
    assert bare.table()["capture"]["probe_method"] == "none"
    assert bare.table("--group-by", "shape")["rows"] if options else True


def test_gpu(tmp_path):
    with App() as app:
        with Bare(app.pid, tmp_path / "bare") as profiler:
            app.do("work 2 20")
            assert profiler.finish() == harness.DONE, profiler.told()
        truth = app.truth(tmp_path)
        app.leave()
    recording = gpu_truth.Recorded(os.path.join(str(tmp_path), "bare"))
    recorded, _ = gpu_truth.check(recording, truth)
    assert [key[0] for key in recorded].count("kernel") == 2 * 20 * 3


def test_what_only_probes_tell_is_refused(tmp_path):
    with harness.Target("mlp") as target:
        for options in ("--no-inject",), ("--mode", "sample"), ("--ops", "aten::mm"), ("--stack", "native"):
            done = harness.gpuprof("attach", "--pid", target.pid, "--duration", "1", "-o",
                                   tmp_path / "r", *options, prefix=WITHOUT_BPF)
            assert done.status == harness.FAILED and "CAP_BPF" in done.stderr, done
        target.leave()
