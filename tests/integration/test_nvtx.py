# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Ranges of NVTX, on the stand-ins for its library and for what its header makes: user annotations,
whichever way operators come.
"""

import pytest

import gpu_truth
import harness

RANGES = ["outer", "inner \u00e9"]


def holding(events, name):
    """Names of the annotations around the operator, outermost first."""
    op = next(event for event in events if event["name"] == name)
    held = [event for event in events if event["cat"] == "user_annotation" and
            event["tid"] == op["tid"] and event["ts"] <= op["ts"] and
            event["ts"] + event["dur"] >= op["ts"] + op["dur"]]
    return [event["name"] for event in sorted(held, key=lambda event: event["ts"])]


@pytest.mark.versions
@pytest.mark.parametrize("options", [(), ("--no-inject",)], ids=["default", "probes"])
@pytest.mark.parametrize("command", ["nvtx", "nvtx_built_in"])
def test_ranges_are_annotations(tmp_path, command, options):
    with harness.Target("bridge", "--fake", gpu_truth.fake_inside()) as target:
        # Loaded before the capture: the probes are there from the first call on, and NVTX has
        # asked for a tool already.
        target.command(command)
        done = harness.attach(target, tmp_path / "r", *options,
                              orders=lambda: target.command(command))
        target.leave()
    assert done.status == harness.DONE, done.told
    assert all(done.recording.rows()[name]["calls"] == 1 for name in RANGES)
    events = [event for event in done.recording.chrome()["traceEvents"] if event["ph"] == "X"]
    assert holding(events, "aten::sinh") == ["outer"]
    assert holding(events, "aten::cosh") == ["outer", "between", "inner \u00e9"]
    assert done.recording.losses()["nesting_repaired"] == 0


def test_a_range_that_was_open_is_counted(tmp_path):
    with harness.Target("bridge", "--fake", gpu_truth.fake_inside()) as target:
        target.command("nvtx")
        target.command("push")
        done = harness.attach(target, tmp_path / "r", orders=lambda: target.command("pop"))
        target.leave()
    assert "left open" not in done.recording.rows()
    assert done.recording.losses()["open_at_start"] == 1
