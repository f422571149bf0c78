# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The checks for a machine with a GPU (tests/gpu/check.py), on the simulated one: they run, find what
they look for, and say what they could not make.
"""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import gpu_truth
import harness

CHECK = os.path.join(harness.TESTS, "gpu", "check.py")
sys.path.insert(0, os.path.dirname(CHECK))
import assumptions  # noqa: E402
import beside  # noqa: E402
import programs  # noqa: E402
WORKLOAD = os.path.join(harness.TESTS, "workloads", "gpu_check.py")


def results(tmp_path):
    with open(tmp_path / "results.json", encoding="utf-8") as file:
        return json.load(file)


def check(tmp_path, **settings):
    """Its status, the facts, and passed by the name of the check."""
    env = dict(harness.environment(), GPU_CHECK_WORKLOAD=WORKLOAD, FAKE_GPU=gpu_truth.FAKE,
               FILL_BYTES="1048576", CUDART=os.path.join(gpu_truth.FAKE, "libcudart.so.12"),
               CUPTI=os.path.join(gpu_truth.FAKE, "libcupti.so.12"))
    env.update(settings)
    done = subprocess.run([harness.PYTHON, "-B", CHECK, harness.GPUPROF, str(tmp_path)], env=env,
                          stdout=subprocess.PIPE, timeout=harness.LIMIT)
    told = results(tmp_path)
    assert (tmp_path / "evidence.tar.gz").exists()
    return done.returncode, told["facts"], {one["check"]: one["passed"] for one in told["checks"]}


def test_what_they_find(tmp_path):
    status, facts, passed = check(tmp_path, GPU_CHECK_ONLY="first,run,nvtx,sampled", GPU_CHECK_SAMPLED_S="8")
    assert all(passed.values()), results(tmp_path)
    assert status == 0 and facts["gpu"] == "simulated" and len(passed) == 16


@pytest.mark.parametrize("version", (26, 130001))
def test_cupti_beside_calls(version, tmp_path):
    """Each variant is tried, and what died is told: the stand-in's end where there are graphs, before
    CUDA 13."""
    status, facts, passed = check(tmp_path, GPU_CHECK_ONLY="beside", GPU_CHECK_BESIDE_S="8",
                                  FAKE_CUPTI_VERSION=str(version),
                                  GPU_CHECK_BESIDE=os.path.join(os.path.dirname(harness.GPUPROF), "gpu", "beside"))
    told = {name.split(": ")[1]: text for name, text in facts.items() if name.startswith("CUPTI beside")}
    assert status == 0 and passed["CUPTI comes and goes while no thread is in CUDA"], results(tmp_path)
    assert len(told) == len(beside.VARIANTS)
    for variant in beside.VARIANTS:
        text = told["%s, %d threads make graphs, %d take memory" % variant[:3]]
        died = version < variant[3] == beside.CUDA_13_0
        assert ("signal 6 during cuptiFinalize" in text) == died, told
        assert text.startswith("0 of ") != died, told


def test_a_machine_without_pytorch(tmp_path):
    """CUPTI can still be asked."""
    status, _, passed = check(tmp_path, GPU_CHECK_WORKLOAD="/nowhere.py")
    assert status == 1 and passed["gpuprof starts"]
    assert [name for name, one in passed.items() if one is False] == ["pytorch: ran to its end"]
    assert sum(name.startswith("CUPTI: ") for name in passed) == len(assumptions.QUESTIONS)


def test_a_program_that_says_nothing(monkeypatch):
    """Does not take the time of what comes after it."""
    # Not what is left since this file was read.
    monkeypatch.setattr(programs, "_ends", [time.monotonic() + 1000])
    before = programs.left_s()
    with programs.at_most(0.1):
        silent = programs.Program(["sleep", "1000"], "stdout", os.devnull)
        with pytest.raises(programs.OutOfTime):
            silent.line("ready ")
    programs.Program.end_all()
    assert silent.process.returncode == -signal.SIGKILL and before > programs.left_s() > 0
