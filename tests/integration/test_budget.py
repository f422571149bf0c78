# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--overhead: windows of whole steps within a budget, and what is estimated from them. Nothing here looks at how fast anything went:
steps are done until what is waited for is there."""

import csv
import io
import os
import re
import time

import pytest

import harness

STEP_OPS = {"aten::mse_loss": 1, "aten::addmm": 3}
STEPS_AT_ONCE = 1000


def windows_of(path):
    """How many there have been. One that is placing probes may be too busy to say."""
    done = harness.gpuprof("ctl", "--socket", path, "status")
    said = dict(line.split(None, 1) for line in done.stdout.splitlines() if " " in line)
    return int(said.get("windows", 0))


def windows_now(path):
    """The same, once it does say."""
    harness.wait_until("an answer", lambda: harness.gpuprof("ctl", "--socket", path,
                                                            "status").status == harness.DONE)
    return windows_of(path)


def has_steps(path):
    """Whether what was done in a step lies in windows: those by time may be while the target waits for orders."""
    done = harness.gpuprof("ctl", "--socket", path + ".sock", "dump")
    return done.status == harness.DONE and set(STEP_OPS) <= set(harness.Recording(path).rows())


def steps_until(target, profiler, path, windows, steps=20):
    """Steps until so many windows have been, and something of steps in them. How many it did. More at a time each
    time, because each look costs gpuprof CPU time, which is paid out of the same budget."""
    done, end = 0, time.monotonic() + harness.LIMIT
    while windows_of(path + ".sock") < windows or not has_steps(path):
        assert profiler.running() and time.monotonic() < end, profiler.told()
        target.step(steps)
        done += steps
        steps = min(steps * 2, STEPS_AT_ONCE)
    return done


def captured(folder, name, *options, windows=3, steps=20):
    """Steps until so many windows have been. The recording, all steps, and what was told."""
    path = os.path.join(str(folder), name)
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path + ".sock", "-o", path,
                             *options) as profiler:
            profiler.wait_recording()
            done = steps_until(target, profiler, path, windows, steps)
            assert profiler.finish() == harness.DONE, profiler.told()
            told = profiler.text("stdout")
        target.step(1)
        target.leave()
    return harness.Recording(path), done, told


def compared_in_the_dark(told):
    """How many windows more could be compared with steps beside them since annotations are too dear."""
    numbers = [int(number) for number in
               re.findall(r"(\d+) windows say", told[max(0, told.find(", dark:")):])]
    return numbers[-1] - numbers[0] if ", dark:" in told and numbers else 0


@pytest.fixture(scope="module")
def budgeted(recordings):
    return captured(recordings, "budget.gpuprof", "--overhead", "10")


@pytest.mark.versions
def test_windows_are_of_whole_steps(budgeted):
    recording, done, _ = budgeted
    estimated = recording.table()["estimated"]
    rows = recording.rows()
    assert estimated["windows"] >= 3 and 0 < estimated["share_of_time"] < 1
    assert 0 < estimated["inside_us"] * 1000 < recording.table()["overhead"]["cost_cpu_ns"]
    assert estimated["inside_us"] < estimated["us"] < recording.table()["wall_us"] * 1.01
    calls = rows["aten::mse_loss"]["calls"]
    assert 0 < calls < done
    for name, each in STEP_OPS.items():
        assert rows[name]["calls"] == each * calls, name
    if "steps" in estimated:
        assert estimated["steps"] == calls and estimated["all_steps"] <= done


@pytest.mark.versions
def test_estimates_hold(budgeted):
    """The calls of the whole are known: so many in each step."""
    recording, done, _ = budgeted
    estimated = recording.table()["estimated"]
    for name, each in STEP_OPS.items():
        calls = recording.rows()[name]["estimated"]["calls"]
        if "all_steps" not in estimated:
            continue
        # In whole steps they are alike in every window: nothing is left to chance.
        assert calls["value"] == pytest.approx(each * estimated["all_steps"])
        assert calls["standard_error"] == 0
    row = recording.rows()["aten::addmm"]
    assert row["estimated"]["self_cpu_us"]["value"] > row["self_cpu_us"]
    assert row["estimated"]["self_cpu_us"]["standard_error"] > 0


def test_table_says_what_is_estimated(budgeted):
    recording, _, told = budgeted
    lines = told.splitlines()
    assert lines[0].startswith("Estimated from ") and "standard error" in lines[0]
    estimated = recording.table()["estimated"]
    assert "would have been %.0f %% shorter" % (100 * estimated["inside_us"] /
                                                estimated["us"]) in lines[1]
    assert "est Self CPU" in told and "+/-" in told and "Self CPU time total, estimated" in told


def test_csv_has_the_estimates(budgeted):
    recording = budgeted[0]
    done = harness.gpuprof("table", recording.path, "--csv", "--limit", "-1")
    found = {row["name"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    for name in STEP_OPS:
        for what, estimate in recording.rows()[name]["estimated"].items():
            assert float(found[name]["estimated_" + what]) == estimate["value"]
            assert float(found[name]["estimated_%s_error" % what]) == estimate["standard_error"]


@pytest.mark.parametrize("options", ((), ("--memory",)), ids=("alone", "memory"))
def test_no_window_is_said(options, tmp_path):
    """And not that the process called no operator; whatever is seen all the time."""
    path = str(tmp_path / "none.gpuprof")
    with harness.Target("mlp") as target:
        done = harness.attach(target, path, "--overhead", "0.001", *options,
                              orders=lambda: target.step(20))
        target.leave()
    assert {row["name"] for row in done.recording.table()["rows"]} <= {"[memory]"}
    assert "--overhead 0.001 did not pay for a single window" in done.told


def test_gaps_are_no_time(budgeted):
    table = budgeted[0].table()
    whole = table["wall_us"] + sum(pause["us"] for pause in table["pauses"])
    assert table["wall_us"] / whole == pytest.approx(table["estimated"]["share_of_time"], rel=0.01)


def test_cost_is_told_and_within_budget(budgeted):
    cost = budgeted[0].table()["overhead"]
    for name in ("cpu", "callbacks", "probes", "collector", "own", "setup", "stops"):
        assert cost["cost_%s_ns" % name] >= 0
    assert 0 < cost["share_of_cpu_inside"] <= cost["share_of_cpu"]


def test_annotations_between_windows_cost_something(tmp_path):
    """Also those that tell no step, and so are not told."""
    path = str(tmp_path / "rest.gpuprof")
    with harness.Target("collected") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--overhead", "0.01", "-o",
                             path) as profiler:
            profiler.wait_recording()
            # Not as deep as is told of: a window may be open.
            for _ in range(200):
                assert target.command("nest 90") == "nest 90"
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    cost = harness.Recording(path).table()["overhead"]
    # Of 18,000 at least 500 were after the start, and none takes less than some nanoseconds.
    assert cost["cost_rest_ns"] > 500 * 20
    assert cost["cost_callbacks_ns"] >= cost["cost_rest_ns"]


def test_steps_are_compared_where_annotations_are_too_dear(tmp_path):
    """Between windows nothing is told then, but right before and after one is what a step takes. Annotations
    cost a percent; what gpuprof costs besides is half a percent on some machines."""
    path = str(tmp_path / "dear.gpuprof")
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "-v", "-v", "--pid", target.pid, "--overhead", "1.5", "-o",
                             path) as profiler:
            profiler.wait_recording()
            end = time.monotonic() + harness.LIMIT
            while compared_in_the_dark(profiler.text("stderr")) < 2:
                assert profiler.running() and time.monotonic() < end, profiler.told()
                target.step(200)
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    assert "all_steps" not in harness.Recording(path).table()["estimated"]


@pytest.mark.versions
def test_by_uprobes(tmp_path):
    """Probes are there in windows alone, which are by time."""
    recording, _, _ = captured(tmp_path, "probes.gpuprof", "--overhead", "50", "--no-inject",
                               windows=2)
    table = recording.table()
    assert table["estimated"]["windows"] >= 2 and "steps" not in table["estimated"]
    assert table["overhead"]["probe_hits"] > 0
    assert table["overhead"]["share_of_cpu_inside"] > 0
    assert recording.rows()["aten::addmm"]["calls"] > 0


def test_nothing_is_probed_between_windows(tmp_path):
    """A target that does nothing earns no window: after the start its text is as it was."""
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--no-inject", "--overhead", "1", "-o",
                             tmp_path / "idle.gpuprof") as profiler:
            profiler.wait_recording()
            harness.wait_until("no probes in libtorch", lambda: not any(
                "libtorch" in name for name in harness.text_differences(target.pid)))
            profiler.finish()
        target.step(1)
        target.leave()


def ctl(path, word):
    done = harness.gpuprof("ctl", "--socket", path, word)
    assert done.status == harness.DONE, done


def test_switched_off_for_a_while(tmp_path):
    """Meanwhile no window opens, and no estimate is of what was done then."""
    path = str(tmp_path / "switched.gpuprof")
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--overhead", "50", "--socket",
                             path + ".sock", "-o", path) as profiler:
            profiler.wait_recording()
            done = steps_until(target, profiler, path, 2)
            ctl(path + ".sock", "stop")
            before = windows_now(path + ".sock")
            for _ in range(20):
                target.step(20)
            assert windows_now(path + ".sock") == before
            ctl(path + ".sock", "start")
            done += steps_until(target, profiler, path, before + 2)
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    estimated = harness.Recording(path).table()["estimated"]
    assert estimated["windows"] >= before + 2
    # Of the step in which it goes on the end is seen.
    assert estimated.get("all_steps", 0) <= done + 1
    assert 0 < estimated["share_of_time"] <= 1


def test_by_uprobes_steps_are_not_known(tmp_path):
    """Those in windows are seen, also that they are steps; those between are not: so windows stay by time."""
    path = str(tmp_path / "probes.gpuprof")
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--no-inject", "--overhead", "100", "--socket",
                             path + ".sock", "-o", path) as profiler:
            profiler.wait_recording()
            windows, end = 0, time.monotonic() + harness.LIMIT
            for _ in range(2):
                while windows_of(path + ".sock") < windows + 2:
                    assert profiler.running() and time.monotonic() < end, profiler.told()
                    target.step(20)
                target.step(100)
                windows = windows_of(path + ".sock")
                ctl(path + ".sock", "stop")
                target.step(20)
                ctl(path + ".sock", "start")
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    estimated = harness.Recording(path).table()["estimated"]
    assert estimated["windows"] >= 4
    assert "steps" not in estimated and "all_steps" not in estimated


def test_killed_in_a_window(tmp_path):
    """What it leaves can be read, and the target goes on. No side of it could be switched before."""
    path = tmp_path / "killed.gpuprof"
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--overhead", "50", "--socket",
                             str(path) + ".sock", "-o", path) as profiler:
            profiler.wait_recording()
            end = time.monotonic() + harness.LIMIT
            while windows_of(str(path) + ".sock") < 1:
                assert profiler.running() and time.monotonic() < end, profiler.told()
                target.step(20)
            done = harness.gpuprof("ctl", "--socket", str(path) + ".sock", "stop", "cpu")
            assert done.status == harness.FAILED and "one side" in done.stderr
            profiler.process.kill()
            profiler.process.wait()
        target.step(5)
        target.leave()
    assert harness.Recording(path).table()["capture"]["overhead_pct"] == "50"


@pytest.mark.parametrize("words", [["--overhead", "0"], ["--overhead", "101"],
                                   ["--overhead", "x"], ["--overhead", "1", "--steps", "3"]])
def test_usage(words):
    assert harness.gpuprof("attach", "--pid", "1", *words).status == harness.USAGE
