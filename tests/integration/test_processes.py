# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Several processes in one recording, told apart in every kind of table."""

import pytest

import harness

STEPS = {"first": 3, "second": 5}


def together(path, options, name="modules", command=None):
    """Two processes that do different numbers of steps. Their recording and pids."""
    with harness.Target(name) as first, harness.Target(name) as second:
        with harness.Gpuprof("attach", "--pid", "%d,%d" % (first.pid, second.pid), "-o", path,
                             *options) as profiler:
            profiler.wait_recording()
            for target, steps in zip((first, second), STEPS.values()):
                if command:
                    target.command(command)
                else:
                    target.step(steps)
            assert profiler.finish() == harness.DONE, profiler.told()
        first.leave()
        second.leave()
    return harness.Recording(path), dict(zip(STEPS, (first.pid, second.pid)))


@pytest.fixture(scope="module")
def two(recordings):
    return together(recordings / "two.gpuprof", ("--modules", "--stack", "python", "--memory"))


def rows(recording, *options):
    return recording.table("--limit", "-1", *options)["rows"]


def by_name(some, key="calls"):
    return {row["name"]: row[key] for row in some}


def test_a_row_for_each_process(two):
    recording, pids = two
    grouped, whole = rows(recording, "--group-by", "process"), rows(recording)
    for column in ("calls", "self_cpu_us", "cpu_total_us", "self_cpu_mem"):
        sums = {}
        for row in grouped:
            sums[row["name"]] = sums.get(row["name"], 0) + row[column]
        assert sums == pytest.approx(by_name(whole, column), abs=0.01), column
    linear = {row["pid"]: row["calls"] for row in grouped if row["name"] == "aten::linear"}
    each = linear[pids["first"]] // STEPS["first"]
    assert linear == {pids[name]: each * steps for name, steps in STEPS.items()}
    text = harness.gpuprof("table", recording.path, "--group-by", "process").stdout.splitlines()
    assert text[1].split()[:2] == ["Name", "PID"]
    said = harness.gpuprof("table", recording.path, "--group-by", "process", "--csv").stdout
    assert said.startswith("name,pid,device,calls,")


def test_one_process_alone(two):
    recording, pids = two
    grouped = rows(recording, "--group-by", "process")
    for pid in pids.values():
        alone = rows(recording, "--pid", pid)
        assert by_name(alone) == by_name(row for row in grouped if row["pid"] == pid)
        assert by_name(alone, "self_cpu_us") == by_name((row for row in grouped
                                                         if row["pid"] == pid), "self_cpu_us")


@pytest.mark.parametrize("group", ["module", "module-tree", "between", "stack:3"])
def test_one_process_in_other_groups(two, group):
    recording, pids = two
    parts = [rows(recording, "--group-by", group, "--pid", pid) for pid in pids.values()]
    whole = rows(recording, "--group-by", group)
    calls = [sum(row["calls"] for row in part) for part in parts]
    assert calls[0] + calls[1] == sum(row["calls"] for row in whole)
    # Steps are alike, those between operators but for the time between orders.
    slack = 5 if group == "between" else 0
    assert abs(calls[0] * STEPS["second"] - calls[1] * STEPS["first"]) <= \
        slack * (calls[0] + calls[1]) / 100


def test_modules_of_another_process_have_no_row(tmp_path):
    path = tmp_path / "other.gpuprof"
    with harness.Target("modules") as first, harness.Target("mlp") as second:
        with harness.Gpuprof("attach", "--pid", "%d,%d" % (first.pid, second.pid), "--modules",
                             "-o", path) as profiler:
            profiler.wait_recording()
            first.step(1)
            second.step(1)
            assert profiler.finish() == harness.DONE, profiler.told()
        first.leave()
        second.leave()
    recording = harness.Recording(path)
    names = {pid: set(by_name(rows(recording, "--group-by", "module", "--pid", pid)))
             for pid in (first.pid, second.pid)}
    whole = set(by_name(rows(recording, "--group-by", "module")))
    assert names[first.pid] | names[second.pid] == whole
    assert any("Gate" in name for name in names[first.pid])
    assert not any("Gate" in name for name in names[second.pid])


def test_samples(tmp_path):
    recording, pids = together(tmp_path / "s.gpuprof", ("--mode", "sample", "--hz", "499"),
                               "in_kernel", "spend 0.3")
    grouped = rows(recording, "--group-by", "process")
    numbers = {int(row["name"].rsplit("(", 1)[1].rstrip(")")): row["samples"] for row in grouped}
    assert set(numbers) == set(pids.values())
    assert sum(numbers.values()) == recording.table()["samples"]
    for pid in pids.values():
        table = recording.table("--pid", pid)
        assert table["samples"] == numbers[pid] > 0


def test_there_is_none(two, sample):
    recording, _ = two
    done = harness.gpuprof("table", recording.path, "--pid", 1)
    assert done.status == harness.FAILED and done.stdout == ""
    assert "has no process 1; gpuprof table --group-by process shows which it has" in done.stderr
    done = harness.gpuprof("table", recording.path, "--rank", 3)
    assert done.status == harness.FAILED and "no rank 3" in done.stderr
