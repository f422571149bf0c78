# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
CUPTI's records within a budget: in windows, from which the whole is estimated. Between windows CUPTI stays taken.
"""

import os
import time

import pytest

import harness
import test_pprof
from test_gpu import APP, KINDS, App
from test_gpu_run import Run
from test_rotate import ctl, numbers, rotating

DONE = 0
RATE = "rate 10000 50"  # launches, one each 50 us
WINDOWS_NR = 6  # from which an estimate is made that is looked at
KERNEL = "vector_add(float const*)"


def row_of(table, name=KERNEL):
    return next((row for row in table.get("gpu_rows", table["rows"]) if row["name"] == name), None)


def estimated(table):
    """What windows there are, if there are any."""
    return table.get("estimated" if table["capture"]["mode"] == "trace" else "gpu_estimated", {})


def table_of(path):
    """As of now."""
    ctl(path + ".sock", "dump")
    return harness.Recording(path).table()


def assert_estimate(row, launches):
    """Few windows, and a process that waits between orders."""
    calls = row["estimated"]["calls"]
    assert abs(calls["value"] - launches) < 6 * calls["standard_error"] + launches / 3


def launch_until_seen(app, path):
    harness.wait_until("a launch in a window", lambda: app.command(RATE) and row_of(table_of(path)))


def watched(app, path, *options, besides=()):
    """Launches until some windows have been, with something in them, and time between them. The table at the end and
    how many launches there were."""
    launches = 0
    with harness.Gpuprof("attach", "--pid", app.pid, "--socket", path + ".sock", "-o", path,
                         *options) as profiler:
        profiler.wait_recording()

        def enough():
            nonlocal launches
            app.command(RATE)
            launches += int(RATE.split()[1])
            for order in besides:
                app.do(order)
            table = table_of(path)
            found = estimated(table)
            return row_of(table) and found.get("windows", 0) >= 3 and found["share_of_time"] < 0.8

        harness.wait_until("some windows", enough)
        assert app.counted("subscribed") == 1 and not app.counted("unsubscribed")
        assert profiler.finish() == DONE, profiler.told()
    return harness.Recording(path).table(), launches


def test_graphs_between_windows(tmp_path):
    """Nothing tells of those that come while the records are off: CUPTI is let go of, not taken down,
    which the stand-in would abort at."""
    with App() as app:
        app.do("keep 1")
        path = str(tmp_path / "r.gpuprof")
        watched(app, path, "--mode", "sample", besides=["graph 1"])
        app.wait_counted("unsubscribed", 1)
        assert not app.counted("finalized")
        app.do("keep 0")
        app.leave()


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    with App() as app:
        path = str(tmp_path_factory.mktemp("sampled") / "r.gpuprof")
        table, launches = watched(app, path, "--mode", "sample")
        app.leave()
    return path, table, launches


def test_too_many_records_for_the_budget(sampled):
    _, table, launches = sampled
    assert table["gpu_estimated"]["windows"] >= 3
    assert 0 < table["gpu_estimated"]["share_of_time"] < 0.9
    assert table["losses"]["launch_unmatched"] == 0
    row = row_of(table)
    assert 0 < row["calls"] < launches
    assert_estimate(row, launches)
    calls = row["estimated"]["calls"]
    cuda = row["estimated"]["self_cuda_us"]
    each = row["self_cuda_us"] / row["calls"]
    assert cuda["value"] == pytest.approx(calls["value"] * each, rel=0.01)


def test_what_records_cost_is_told(sampled):
    cost = sampled[1]["overhead"]
    assert cost["cost_gpu_ns"] > 0
    inside = sum(cost["cost_%s_ns" % name] for name in ("callbacks", "gpu", "probes", "collector", "samples",
                                                          "samples_around"))
    assert cost["share_of_cpu_inside"] == pytest.approx(inside / (cost["cost_cpu_ns"] - inside), abs=1e-6)


def test_weights_in_other_outputs(sampled, tmp_path):
    """What stands for the whole does so everywhere."""
    path, table, _ = sampled
    whole = row_of(table)["estimated"]["self_cuda_us"]["value"]
    profile = tmp_path / "gpu.pb.gz"
    done = harness.gpuprof("export", path, "--format", "pprof", "-o", profile)
    assert done.status == DONE, done
    assert test_pprof.total(test_pprof.top(profile, "cuda", "nanoseconds")) / 1e3 == \
        pytest.approx(whole, rel=0.02)


def test_just_so_many_samples_have_all_records(tmp_path):
    with App() as app:
        recording = harness.attach(app, tmp_path / "r.gpuprof", "--mode", "sample", "--hz", "50",
                                   orders=lambda: app.command(RATE)).recording
        app.leave()
    table = recording.table()
    assert row_of(table)["calls"] == int(RATE.split()[1])
    assert "gpu_estimated" not in table and "estimated" not in row_of(table)


def test_rotated(tmp_path):
    """Each recording has its own windows, and is told of them alone; one without any says so."""
    parts, each = [], 5 * int(RATE.split()[1])
    with App() as app:
        with rotating(app, tmp_path, "--mode", "sample", "--rotate", "5h") as (profiler, path):
            while sum("gpu_estimated" in part for part in parts) < 2:
                assert len(parts) < 30
                for _ in range(5):
                    app.command(RATE)
                ctl(path, "rotate")
                harness.wait_until("the recording", lambda: len(numbers(tmp_path)) > len(parts))
                parts = [harness.Recording(tmp_path / ("r.%d.gpuprof" % number)).table()
                         for number in numbers(tmp_path)[:len(parts) + 1]]
            assert profiler.finish() == DONE, profiler.told()
        app.leave()
    for part in parts:
        assert part["losses"]["launch_unmatched"] == 0
        row, found = row_of(part), part.get("gpu_estimated")
        assert bool(found) != bool(part.get("gpu_unseen")) and not (row and not found)
        if found:
            seen = part["wall_us"] - sum(pause["us"] for pause in part["pauses"] if pause["gpu"])
            assert found["share_of_time"] == pytest.approx(seen / part["wall_us"], rel=0.01)
        if row:
            assert 0 < row["calls"] <= each and row["estimated"]["calls"]["value"] >= row["calls"]


def test_cuda_comes_late(tmp_path):
    """What was before it is not thought to have been like what came after."""
    path = str(tmp_path / "r.gpuprof")
    with App("lazy") as app:
        with harness.Gpuprof("attach", "--pid", app.pid, "--socket", path + ".sock", "-o", path, "--mode",
                             "sample") as profiler:
            profiler.wait_recording()
            time.sleep(4)
            app.do("work 1 1")
            app.wait_counted("enabled", KINDS)
            launch_until_seen(app, path)
            assert profiler.finish() == DONE, profiler.told()
        app.leave()
    table = harness.Recording(path).table()
    seen = table["wall_us"] - sum(pause["us"] for pause in table["pauses"] if pause["gpu"])
    assert seen / table["gpu_estimated"]["share_of_time"] < table["wall_us"] - 4e6


def test_cupti_in_use_by_another(tmp_path):
    """The time in which it is refused is in no window."""
    path = str(tmp_path / "r.gpuprof")
    with App() as app:
        app.do("keep 1")
        with harness.Gpuprof("attach", "--pid", app.pid, "--socket", path + ".sock", "-o", path, "--mode",
                             "sample") as profiler:
            profiler.wait_recording()
            app.do("work 1 1")
            ctl(path + ".sock", "stop", "gpu")
            app.wait_counted("unsubscribed", 1)
            app.do("busy 1")
            begin = time.monotonic()
            ctl(path + ".sock", "start", "gpu")
            app.wait_counted("turned away", 3)
            refused = time.monotonic() - begin
            app.do("busy 0")
            app.wait_counted("subscribed", 2)
            launch_until_seen(app, path)
            assert profiler.finish() == DONE, profiler.told()
        app.do("keep 0")
        app.leave()
    pauses = [pause for pause in harness.Recording(path).table()["pauses"] if pause["gpu"]]
    assert sum(pause["us"] for pause in pauses) > refused * 1e6


def test_run(tmp_path):
    """Records of a collector that CUDA has loaded go on and off, too."""
    launches = 0
    socket = os.path.join(str(tmp_path), "run.gpuprof.sock")
    with Run(tmp_path, APP, options=("--mode", "sample", "--socket", socket)) as run:

        def enough():
            nonlocal launches
            run.command(RATE)
            launches += int(RATE.split()[1])
            return estimated(table_of(run.path)).get("windows", 0) >= WINDOWS_NR

        harness.wait_until("some windows", enough)
        told = run.orders("count disabled")
        assert run.status == DONE, run.told()
    assert int(told[-1].split()[1]) >= KINDS
    table = harness.Recording(run.path).table()
    row = row_of(table)
    assert table["gpu_estimated"]["share_of_time"] < 1
    assert row["calls"] < launches
    assert_estimate(row, launches)


def test_switched_off(sampled, tmp_path):
    """CUPTI is given back meanwhile, and taken again."""
    path = str(tmp_path / "r.gpuprof")
    with App() as app:
        app.do("keep 1")  # calls of CUDA, at which CUPTI is taken down
        with harness.Gpuprof("attach", "--pid", app.pid, "--socket", path + ".sock", "-o", path, "--mode",
                             "sample") as profiler:
            profiler.wait_recording()
            app.command(RATE)
            ctl(path + ".sock", "stop", "gpu")
            app.wait_counted("unsubscribed", 1)
            app.command(RATE)
            ctl(path + ".sock", "start", "gpu")
            app.wait_counted("subscribed", 2)
            launch_until_seen(app, path)
            assert profiler.finish() == DONE, profiler.told()
        app.do("keep 0")
        app.leave()


def test_cupti_is_kept_between_windows_of_everything(tmp_path):
    """See watched()."""
    with App() as app:
        watched(app, str(tmp_path / "r.gpuprof"), "--overhead", "2")
        app.leave()
