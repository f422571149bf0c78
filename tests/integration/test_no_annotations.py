# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Annotations left off: nothing of them is recorded, probed or called, and outputs say that they were
not recorded. The collector's callbacks are counted in test_collector_fake.py.
"""

import re

import pytest

import gpu_truth
import harness

WAYS = {"callback": (), "uprobes": ("--no-inject",)}
NODE = re.compile(r"^(torch::)?autograd::|Backward\d*$")
PROGRAMS = ("gp_node_entry", "gp_range", "gp_nvtx_push", "gp_nvtx_pop", "gp_nvtx_tool_push",
            "gp_nvtx_tool_pop")


def capture(name, path, order, *options, args=()):
    """What was recorded, how often the programs of annotations ran, and what gpuprof told."""
    with harness.program_accounts(), harness.Target(name, *args) as target:
        order(target)
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, *options) as profiler:
            profiler.wait_recording()
            order(target)
            # Those that can have nothing to do are not loaded.
            runs = {one["name"]: one.get("run_cnt", 0) for one in harness.programs()
                    if one["name"] in PROGRAMS}
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    return harness.Recording(path), runs, profiler.told()


def train(target):
    target.step(3)


def forward(target):
    target.step(2)


def mark(target):
    target.command("nvtx")


def annotated(row):
    return row["is_user_annotation"] or NODE.search(row["name"])


def shown(recording):
    """Calls by name, of operators and of annotations and nodes."""
    rows = recording.table()["rows"]
    return ({row["name"]: row["calls"] for row in rows if not annotated(row)},
            {row["name"]: row["calls"] for row in rows if annotated(row)})


@pytest.mark.versions
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("workload, order", [("mlp", train), ("masked", forward)],
                         ids=["train", "ranges"])
def test_left_off_they_cost_nothing(tmp_path, way, workload, order):
    with_them, runs_with, _ = capture(workload, tmp_path / "with.gpuprof", order, *WAYS[way])
    without, runs, told = capture(workload, tmp_path / "without.gpuprof", order, "--no-annotations",
                                  *WAYS[way])
    operators, annotations = shown(with_them)
    assert annotations
    assert set(runs_with) == set(PROGRAMS)
    assert way == "callback" or any(runs_with.values()), runs_with
    # The same operators, and nothing else.
    assert shown(without) == (operators, {})
    assert not any(runs.values()), runs
    assert not any(event.get("cat") == "user_annotation"
                   for event in without.chrome()["traceEvents"])
    losses = without.losses()
    assert not losses["open_at_start"] and not losses["nesting_repaired"]
    assert with_them.table()["capture"]["annotations"] == "1"
    assert without.table()["capture"]["annotations"] == "0"
    if order is train:
        assert "annotations, which tell those of training, were not recorded" in told


def test_ranges_of_nvtx_are_not_probed(tmp_path):
    args = ("--fake", gpu_truth.fake_inside())
    _, runs, _ = capture("bridge", tmp_path / "with.gpuprof", mark, "--no-inject", args=args)
    # The tool's run where NVTX has asked for it, see test_gpu_run.py.
    assert runs["gp_nvtx_push"] and runs["gp_nvtx_pop"], runs
    recording, runs, _ = capture("bridge", tmp_path / "r.gpuprof", mark, "--no-annotations",
                                 args=args)
    operators, annotations = shown(recording)
    assert operators["aten::sinh"] == 1 and not annotations
    assert not any(runs.values()), runs


@pytest.mark.parametrize("options, told", [
    (("--steps", "3"), "--steps and --schedule need steps"),
    (("--schedule", "wait=1,active=1"), "--steps and --schedule need steps"),
    (("--overhead", "1"), "--overhead needs steps"),
    (("--flight", "5s", "--trigger", "slow-step=2"), "--trigger slow-step needs steps"),
])
def test_what_needs_steps_is_refused(options, told):
    done = harness.gpuprof("attach", "--pid", "1", "--no-annotations", *options)
    assert done.status == harness.USAGE
    assert told in done.stderr and "leave out --no-annotations" in done.stderr


def test_memory_by_category_needs_them(tmp_path):
    _, _, told = capture("mlp", tmp_path / "r.gpuprof", train, "--no-annotations", "--memory",
                         "--shapes")
    assert "no memory categories: they are told by annotations" in told
