# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--ops GLOB: only the operators that were asked for, however they are called, in their annotations."""

import pytest

import harness
from test_parity import nested

pytestmark = pytest.mark.versions


def calls(recording, annotations):
    return {row["name"]: row["calls"] for row in recording.table()["rows"]
            if row["is_user_annotation"] == annotations}


def test_operators_and_steps(idle, tmp_path):
    done = harness.attach(idle, tmp_path / "r.gpuprof", "--ops", "aten::addmm,aten::mm*",
                          orders=lambda: idle.step(5))
    operators = calls(done.recording, False)
    assert {"aten::addmm", "aten::mm"} <= set(operators)
    assert all(name == "aten::addmm" or name.startswith("aten::mm") for name in operators)
    assert operators["aten::addmm"] == 15
    # They are called several times in each step, and alike: it is annotations that tell steps.
    assert "by Optimizer.step#" in done.told, done.told


def test_operators_that_are_called_by_name(sample, tmp_path):
    """By torch.ops, and of a library of one's own: those are found in memory, in the kernel."""
    whole = sample("boxed").recording_of("probes")
    with harness.Target("boxed") as target:
        done = harness.attach(target, tmp_path / "r.gpuprof", "--ops",
                              "gpuprof_test::*,aten::mu[kl],aten::?m",
                              orders=lambda: target.step(sample("boxed").steps))
        target.leave()
    wanted = {name: count for name, count in calls(whole, False).items()
              if name.startswith("gpuprof_test::") or name in ("aten::mul", "aten::mm")}
    assert {"gpuprof_test::twice", "aten::mul", "aten::mm"} <= set(wanted)
    assert harness.differences(calls(done.recording, False), wanted) == {}
    # And what begins and ends annotations is not cut off with the operators around it.
    events, all_events = (one.chrome()["traceEvents"] for one in (done.recording, whole))
    assert nested(events, ["user_annotation"]) == nested(all_events, ["user_annotation"])
    around = [parents for name, parents in nested(events, None) if name == "gpuprof_test::twice"]
    assert around == [("outer", "inner", "gpuprof_test::a_name_that_is_not_short")]
    losses = done.recording.losses()
    assert losses["boxed_unseen"] == losses["open_at_start"] == losses["open_at_end"] == 0
    # Of those that were left by an error only what was asked for.
    assert losses["exception"] == whole.losses()["exception"]


def test_without_annotations(tmp_path):
    with harness.Target("boxed") as target:
        done = harness.attach(target, tmp_path / "r.gpuprof", "--ops", "gpuprof_test::twice",
                              "--no-annotations", orders=lambda: target.step(3))
        target.leave()
    assert calls(done.recording, False) == {"gpuprof_test::twice": 3}
    assert calls(done.recording, True) == {}
    losses = done.recording.losses()
    assert losses["boxed_unseen"] == losses["open_at_end"] == losses["exception"] == 0


def test_none_of_them_is_called(idle, tmp_path):
    done = harness.attach(idle, tmp_path / "r.gpuprof", "--ops", "aten::cosh*",
                          orders=lambda: idle.step(2))
    assert calls(done.recording, False) == {} and calls(done.recording, True)
    assert "no operators in it: none matched --ops 'aten::cosh*'" in done.told, done.told


def test_more_patterns_than_there_is_room_for(idle, tmp_path):
    done = harness.gpuprof("attach", "--pid", idle.pid, "--duration", "0.1", "-o",
                           tmp_path / "r.gpuprof", "--ops", ",".join(["aten::abcdefgh"] * 400))
    assert done.status == harness.FAILED
    assert "too many patterns of operators; give fewer" in done.stderr
