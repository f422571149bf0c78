# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Steps: found in programs that name none, recorded by number and by torch.profiler's schedule. The
pace of the machine decides how many steps pass before gpuprof is ready for one, never what is in a
recording; so targets step until gpuprof has what it wants.
"""

import functools
import os

import pytest

import harness
from conftest import STEPS

SCHEDULE = "wait=1,warmup=1,active=3,repeat=2"
STEP = "ProfilerStep*"


# torch.profiler's own annotation ProfilerStep#N makes a tensor in each step on 1.13: three calls.
OWN = {"aten::empty": 2, "aten::zero_": 1, "aten::zeros": 1}


def step_until_over(target, profiler):
    """Steps one by one until gpuprof has ended by itself; its status."""
    for _ in range(100000):
        if not profiler.running():
            return profiler.wait()
        target.step(1)
    raise harness.HarnessError("gpuprof did not end\n" + profiler.told())


def record(target, path, *options):
    with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, *options) as profiler:
        profiler.wait_recording()
        status = step_until_over(target, profiler)
        assert status == harness.DONE, profiler.told()
        return profiler.told()


def star(rows):
    """torch.profiler's rows, where all steps have one name."""
    out = {}
    for name, row in rows.items():
        total = out.setdefault(STEP if name.startswith("ProfilerStep#") else name,
                               dict.fromkeys(row, 0))
        for key, value in row.items():
            total[key] += value
    return out


def shown_steps(recording):
    return [(int(event["name"].split("#")[1]), float(event["ts"]),
             float(event["ts"]) + float(event["dur"]))
            for event in recording.chrome()["traceEvents"]
            if event["ph"] == "X" and event["name"].startswith("ProfilerStep#")]


def own_alone(found, column):
    """Whether nothing differs but what torch.profiler itself does at each of three steps."""
    if column != "calls":
        # Of a step, too, in which it frees what it made in the one before.
        return set(found) <= {STEP, "aten::empty", "aten::zeros", "[memory]"}
    return found == {name: (ours, theirs) for name, (ours, theirs) in found.items()
                     if theirs - ours == 3 * OWN.get(name, 0)}


class Cycles:
    """The tutorial's schedule of one target, by gpuprof and by torch.profiler."""

    def __init__(self, name, folder):
        with harness.Target(name) as target:
            self.version = target.facts["torch"]
            self.told = record(target, folder / (name + ".cycles.gpuprof"), "--memory",
                               "--schedule", SCHEDULE)
            self.truth = target.truth(10, "cycles")["cycles"]
            target.leave()
        self.recordings = [harness.Recording(folder / ("%s.cycles.%d.gpuprof" % (name, cycle)))
                           for cycle in (1, 2)]
        assert not os.path.exists(folder / (name + ".cycles.gpuprof"))
        assert not os.path.exists(folder / (name + ".cycles.3.gpuprof"))


@pytest.fixture(scope="module")
def cycles(recordings):
    """Cycles(name), made when it is first asked for."""
    return functools.cache(lambda name: Cycles(name, recordings))


@pytest.mark.versions
@pytest.mark.parametrize("name", ["mlp", "lstm"])
@pytest.mark.parametrize("column", ["calls", "cpu_mem", "self_cpu_mem"])
def test_schedule_records_what_torch_profiler_records(cycles, name, column):
    one = cycles(name)
    assert len(one.truth) == 2
    for recording, theirs in zip(one.recordings, one.truth):
        ours = {row: value[column] for row, value in recording.rows().items()}
        theirs = {row: value[column] for row, value in star(theirs["rows"]).items()}
        if column == "calls":
            assert ours[STEP] == theirs[STEP] == 3
        found = harness.differences(ours, theirs)
        if column != "calls":
            # Of what was allocated before the first active step, torch.profiler knows no sizes
            # when it is freed; that happens outside of operators.
            found = {row: value for row, value in found.items() if row.startswith("aten::")}
        if one.version.startswith("1.13"):
            assert own_alone(found, column)
        else:
            assert found == {}


@pytest.mark.versions
def test_steps_are_numbered_and_meet(cycles):
    one = cycles("mlp")
    numbers = []
    for recording in one.recordings:
        late = recording.losses()["late_steps"]
        steps = shown_steps(recording)
        numbers.append([number - late for number, _, _ in steps])
        for (_, _, end), (_, start, _) in zip(steps, steps[1:]):
            assert abs(start - end) < 0.002
        facts = recording.table()["steps"]
        assert len(facts) == 1
        assert facts[0]["found_by"] == "optimizer" and facts[0]["count"] == 3
        assert facts[0]["min_us"] <= facts[0]["mean_us"] <= facts[0]["max_us"]
        assert abs(facts[0]["mean_us"] * 3 - recording.table()["wall_us"]) < 1
    # 0 waits, 1 warms up; then again.
    assert numbers[0] == [2, 3, 4]
    assert numbers[1] == [7, 8, 9]


def test_table_and_trace_agree(cycles):
    """Also where the steps stand among the operators."""
    import reference

    recording = cycles("lstm").recordings[0]
    theirs = star(reference.table(recording.chrome()["traceEvents"]))
    for name, row in recording.rows().items():
        if name == "[memory]":
            continue
        assert theirs[name]["calls"] == row["calls"]
        assert abs(theirs[name]["self_cpu_ns"] / 1000 - row["self_cpu_us"]) < 0.001 * row["calls"]


@pytest.mark.versions
def test_number_of_steps(tmp_path):
    with harness.Target("mlp") as target:
        told = record(target, tmp_path / "five.gpuprof", "--steps", "5", "--json")
        target.leave()
    recording = harness.Recording(tmp_path / "five.gpuprof")
    assert recording.rows()[STEP]["calls"] == 5
    assert recording.rows()["Optimizer.step#Adam.step"]["calls"] == 5
    assert "5 by Optimizer.step#Adam.step" in told


@pytest.mark.versions
@pytest.mark.parametrize("options", [(), ("--no-inject",)])
def test_inference_has_steps_too(tmp_path, options):
    """By the cycle of its operators; both while it is recorded and afterwards."""
    with harness.Target("resnet18_infer", "--size", "32", "--batch", "1") as target:
        record(target, tmp_path / "two.gpuprof", "--steps", "2", *options)
        plain = harness.attach(target, tmp_path / "plain.gpuprof", *options,
                               orders=lambda: target.step(5))
        target.leave()
    recording = harness.Recording(tmp_path / "two.gpuprof")
    assert recording.rows()[STEP]["calls"] == 2
    per_step = recording.rows()["aten::conv2d"]["calls"] / 2
    assert per_step == 20
    facts = plain.recording.table()["steps"][0]
    assert facts["found_by"] == "sequence" and facts["count"] in (4, 5)
    assert STEP in {row["name"] for row in plain.recording.table("--steps")["rows"]}
    assert STEP not in plain.recording.rows()


@pytest.mark.versions
def test_dataloader(tmp_path):
    with harness.Target("loader") as target:
        capture = harness.attach(target, tmp_path / "loader.gpuprof",
                                 orders=lambda: target.step(3))
        truth = target.truth(3)
        target.leave()
    facts = capture.recording.table()["steps"][0]
    assert facts["found_by"] == "dataloader"
    # Three batches a pass; the last one of all has no next.
    assert facts["count"] == 9
    waits = [name for name in truth["rows"] if name.startswith("enumerate(DataLoader)#")]
    for name in waits:
        assert capture.recording.rows()[name]["calls"] == truth["rows"][name]["calls"]
        assert capture.recording.rows()[name]["is_user_annotation"]
    assert len(waits) == 1


def test_no_steps_are_invented(tmp_path):
    with harness.Target("alloc") as target:
        capture = harness.attach(target, tmp_path / "one.gpuprof", orders=lambda: target.step(1))
        target.leave()
    assert capture.recording.table()["steps"] == []
    assert "steps: none found" in capture.stderr


def test_capture_that_ends_too_early(tmp_path):
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", tmp_path / "none.gpuprof",
                             "--steps", "5") as profiler:
            profiler.wait_recording()
            assert profiler.finish() == harness.FAILED
            assert "no steps were found" in profiler.text("stderr")
        target.leave()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("options, reason", [
    (["--steps", "0"], "--steps"),
    (["--steps", "3", "--schedule", "active=3"], "exclude each other"),
    (["--schedule", "wait=1"], "of which active must be given"),
    (["--schedule", "active=3,often=1"], "of which active must be given"),
    (["--schedule", "active=-3"], "of which active must be given"),
])
def test_refused(options, reason):
    done = harness.gpuprof("attach", "--pid", str(os.getpid()), *options)
    assert done.status == harness.USAGE, done
    assert reason in done.stderr


@pytest.mark.versions
def test_resnet18_sorted_by_self_memory(recordings):
    """The tutorial's table, row by row."""
    with harness.Target("resnet18_infer") as target:
        steps = STEPS["resnet18_infer"]
        capture = harness.attach(target, recordings / "resnet-memory.gpuprof", "--memory",
                                 orders=lambda: target.step(steps))
        truth = target.truth(steps)
        target.leave()
    ours = [(row["name"], row["calls"], row["self_cpu_mem"], row["cpu_mem"]) for row in
            capture.recording.table("--sort", "self_cpu_memory_usage")["rows"]]
    theirs = [(name, row["calls"], row["self_cpu_mem"], row["cpu_mem"])
              for name, row in truth["rows"].items()]
    assert sorted(ours) == sorted(theirs)
    assert [row[2] for row in ours] == sorted((row[2] for row in theirs), reverse=True)
    by_time = capture.recording.table("--sort", "self_cpu_time_total")["rows"]
    assert {row["name"] for row in by_time} == set(truth["rows"])
    assert by_time[0]["self_cpu_us"] == max(row["self_cpu_us"] for row in by_time)


def test_waiting_costs_no_operators(tmp_path):
    """While the schedule waits, annotations are seen and nothing else."""
    path = str(tmp_path / "wait.sock")

    def told():
        done = harness.gpuprof("ctl", "--socket", path, "status")
        assert done.status == harness.DONE, done
        words = dict(line.split(None, 1) for line in done.stdout.splitlines())
        return int(words["events"]), int(words.get("steps", 0))

    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path, "--memory", "-o",
                             tmp_path / "wait.gpuprof", "--schedule",
                             "wait=1000000,active=1") as profiler:
            profiler.wait_recording()

            def rests():
                before = told()[0]
                target.step(1)
                return told()[1] and told()[0] - before <= 4

            harness.wait_until("operators are off", rests)
            events, steps = told()
            target.step(20)
            harness.wait_until("all steps are seen", lambda: told()[1] == steps + 20)
            # optimizer.step and zero_grad.
            assert told()[0] - events <= 20 * 2 + 4
            assert profiler.finish() == harness.FAILED
        target.leave()
    assert [name for name in os.listdir(tmp_path) if name.endswith(".gpuprof")] == []


@pytest.mark.versions
@pytest.mark.parametrize("stack, more", [("python", ["--shapes"]), ("both", [])])
def test_each_cycle_has_its_stacks(tmp_path, stack, more):
    """And what else is told once in a capture."""
    with harness.Target("mlp") as target:
        record(target, tmp_path / "c.gpuprof", "--schedule", "wait=1,warmup=1,active=2,repeat=2",
               "--stack", stack, "--memory", *more)
        target.leave()
    shown = []
    for cycle in (1, 2):
        recording = harness.Recording(tmp_path / ("c.%d.gpuprof" % cycle))
        rows = recording.table("--group-by", "stack:256")["rows"]
        shown.append({(row["name"], tuple(row["stack"])) for row in rows if row.get("stack")})
        losses = recording.losses()
        assert not losses["names"] and not losses.get("schemas_missing")
    assert shown[0] == shown[1]
    assert any("mlp.py" in frame for _, stack in shown[1] for frame in stack)
