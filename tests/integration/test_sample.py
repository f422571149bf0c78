# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
--mode sample against a program that knows what its threads spend their CPU time on. A share found
in N samples may be off by what chance allows: six standard deviations of N draws, and, for the
program's own bookkeeping, a part of a percent.
"""

import csv
import io
import json
import math
import os
import re

import pytest

import harness
from test_trace import decoded

HZ = harness.SAMPLED_BY["timer"]
# By what samples are taken -> for how long.
SECONDS = {"timer": 1.0, "tick": 3.0}
SIGMAS = 6
SLACK = 0.01
FUNCTIONS = {"multiply": "aten::mm", "exponent": "aten::exp", "tangent": "aten::tanh"}
# No counter but these may be above zero: chance decides about them, or the machine's pace.
ALLOWED = {"sample_missed", "sample_moved", "sample_stackless", "sample_stack_cut", "unwind_table",
           "unwind_rule", "unwind_hard", "unwind_memory", "stack_incomplete",
           "sample_stack_searched"}
# Looks at a waiting thread of which the kernel gave no state: it has no memory at hand, or was about to
# give another thread's. Then it is asked again.
REFUSED_MAX = 2


def bound(samples, share):
    return SIGMAS * math.sqrt(max(share * (1 - share), 1 / samples) / samples) + SLACK


def rows_by(recording, *options):
    return {row["name"]: row for row in recording.table(*options)["rows"]}


def named(rows, end):
    found = [row for name, row in rows.items() if name.endswith(end)]
    assert len(found) == 1, (end, sorted(rows))
    return found[0]


def let_tables_come(target, path):
    """Unwind tables are made when the first stack comes to a file. CPU seconds by function, each."""
    spent = []
    for _ in range(4):
        size = os.path.getsize(path)
        spent.append(json.loads(target.command("spend 0.05")))
        harness.wait_until("more of the recording", lambda before=size:
                           os.path.getsize(path) > before)
    return spent


@pytest.fixture(name="spent", scope="module", params=SECONDS)
def spent_fixture(request, tmp_path_factory):
    """The capture, and the truth: CPU seconds by function, threads by what they wait for."""
    path = str(tmp_path_factory.mktemp("sample") / "sample.gpuprof")
    hz, seconds = harness.SAMPLED_BY[request.param], SECONDS[request.param]
    truth = []
    with harness.Target("sampled") as target:
        def orders():
            parts = [*let_tables_come(target, path),
                     json.loads(target.command("spend %s" % seconds))]
            truth.append({name: sum(part[name] for part in parts) for name in parts[0]})

        done = harness.attach(target, path, "--mode", "sample", "--hz", hz, orders=orders)
        tids = target.facts["tids"]
        target.leave()
    assert done.status == harness.DONE, done.told
    capture = done.recording.table()["capture"]
    assert capture["sampled_by"] == request.param and capture["sample_hz"] == hz
    # What is asked for is what happens, whatever it costs.
    assert {capture["sample_hz_" + which] for which in ("least", "most", "mean")} == {hz + ".00"}
    assert "sample_overhead_pct" not in capture
    return done, truth[0], tids


@pytest.mark.versions
def test_shares(spent):
    done, truth, _ = spent
    whole = sum(truth.values())
    table = done.recording.table("--group-by", "function")
    rows = rows_by(done.recording, "--group-by", "function")
    samples = table["samples"]
    assert samples > 100
    for name, seconds in truth.items():
        share = named(rows, ": " + name)["samples"] / samples
        assert abs(share - seconds / whole) <= bound(samples, seconds / whole), \
            (name, share, truth, samples)


@pytest.mark.versions
def test_operators(spent):
    """The operator of a sample is found in its stack: all that a function does is one operator."""
    done, truth, _ = spent
    whole = sum(truth.values())
    table = done.recording.table()
    rows = rows_by(done.recording)
    samples = table["samples"]
    for name, op in FUNCTIONS.items():
        share = rows[op]["self_samples"] / samples
        # Calling it takes a little of the time. Those without a stack are in no operator's.
        expected = truth[name] / whole
        unknown = rows["[not known]"]["self_samples"] / samples if "[not known]" in rows else 0
        assert abs(share - expected) <= bound(samples, expected) + 0.04 * expected + unknown, \
            (op, share, expected, samples, sorted(rows))
        assert rows[op]["samples"] >= rows[op]["self_samples"]
    assert rows["[no operator]"]["self_samples"] > 0


@pytest.mark.parametrize("by", SECONDS)
def test_a_thread_that_timers_wake(tmp_path, by):
    """It gets the samples that are due to it: an interrupt that wakes it up finds it asleep."""
    hz, took = harness.SAMPLED_BY[by], []
    with harness.Target("sampled") as target:
        done = harness.attach(target, tmp_path / "r.gpuprof", "--mode", "sample", "--hz", hz,
                              orders=lambda: took.append(float(target.command("pace 1"))))
        target.leave()
    assert done.status == harness.DONE, done.told
    table = done.recording.table()
    assert table["capture"]["sampled_by"] == by
    off = SIGMAS * math.sqrt(took[0] * int(hz)) / int(hz) + table["losses"]["sample_missed"] / int(hz)
    assert abs(table["cpu_us"] / 1e6 - took[0]) <= off + 0.1 * took[0], (table["cpu_us"], took, off)


def test_shared_cpus(tmp_path):
    """Where it is the tick that gives threads a CPU, and takes it, ticks do not find what wakes behind one and sleeps before the next:
    more than half of the samples would be missing here."""
    hz = 99
    with harness.busy(2 * os.cpu_count()), harness.Target("sampled") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", tmp_path / "r.gpuprof", "--mode",
                             "sample", "--hz", hz, "-vv") as profiler:
            profiler.wait_recording()
            spent = sum(json.loads(target.command("spend 2")).values())
            assert profiler.finish() == harness.DONE, profiler.told()
            told = profiler.text("stderr")
        target.leave()
    table = harness.Recording(tmp_path / "r.gpuprof").table()
    by = "tick" if hz <= int(harness.SAMPLED_BY["tick"]) else "timer"
    assert table["capture"]["sampled_by"] == by
    assert ("is shared: a timer takes its samples" in told) == (by == "tick")
    off = SIGMAS * math.sqrt(spent * hz) / hz + table["losses"]["sample_missed"] / hz
    assert abs(table["cpu_us"] / 1e6 - spent) <= off + 0.05 * spent, (table["cpu_us"], spent, off)


@pytest.mark.versions
def test_cpu_time(spent):
    """What the samples stand for is the CPU time that the program took, less what was missed."""
    done, truth, _ = spent
    table = done.recording.table()
    period = 1 / int(table["capture"]["sample_hz"])
    whole = sum(truth.values())
    chance = SIGMAS * math.sqrt(table["samples"]) * period
    estimate = table["cpu_us"] / 1e6
    missed = table["losses"]["sample_missed"] * period
    # The workload's bookkeeping and its waiting threads take CPU time too.
    assert estimate <= whole * 1.1 + chance, (estimate, whole, missed)
    assert estimate >= whole - missed - chance, (estimate, whole, missed)
    assert abs(table["cpu_us"] - sum(row["self_cpu_us"] for row in table["rows"])) < 1
    for row in table["rows"]:
        assert row["self_cpu_error_us"] > 0 and row["cpu_total_error_us"] > 0


@pytest.mark.versions
def test_waits(spent):
    """Of threads on no CPU: where in the program they wait, and for what."""
    done, _, tids = spent
    wall = done.recording.table()["wall_us"]
    rows = rows_by(done.recording, "--group-by", "function")
    threads = rows_by(done.recording, "--group-by", "thread")
    activities = rows_by(done.recording, "--group-by", "activity")
    for name, tid in tids.items():
        # It did next to nothing else, the whole time.
        row = named(rows, ": " + name)
        off = named(threads, "(%d)" % tid)["off_cpu_us"]
        assert off >= 0.8 * wall and row["off_cpu_us"] >= 0.8 * off, (name, off, wall, row)
        assert off <= 1.2 * wall + 1e5
    # Who sleeps has to wait for Python's lock and for a CPU too, how long is the machine's affair.
    for activity, least in (("waiting: sleep", 0), ("waiting: read", 0.7), ("waiting: futex", 0.7)):
        assert activities[activity]["off_cpu_us"] > least * wall, (activity, activities)


def test_many_threads(tmp_path):
    """However seldom they are looked at, each one's time is told, and no more."""
    path = str(tmp_path / "many.gpuprof")
    with harness.Target("server", "--workers", "48") as target:
        def until_told():
            while os.path.getsize(path) < 100000:
                target.step(5)

        done = harness.attach(target, path, "--mode", "sample", "--hz", "99", orders=until_told)
        target.leave()
    assert done.status == harness.DONE, done.told
    wall = done.recording.table()["wall_us"]
    threads = done.recording.table("--group-by", "thread", "--limit", "-1")["rows"]
    waited = [row["off_cpu_us"] for row in threads if row["off_cpu_us"] > 0]
    assert len(waited) >= 48, threads
    assert max(waited) <= 1.3 * wall + 1e6, (waited, wall)


@pytest.mark.versions
def test_same_operators_as_a_trace(tmp_path):
    """What the stacks say is called what a trace of the same steps says, and nothing else is."""
    sampled, traced = str(tmp_path / "sample.gpuprof"), str(tmp_path / "trace.gpuprof")
    with harness.Target("mlp") as target:
        exact = harness.attach(target, traced, "--no-inject", orders=lambda: target.step(30))

        def until_sampled():
            # However slow the machine is: until there are samples enough.
            while os.path.getsize(sampled) < 60000:
                target.step(50)

        done = harness.attach(target, sampled, "--mode", "sample", "--hz", HZ,
                              orders=until_sampled)
        target.leave()
    assert done.status == harness.DONE, done.told
    told = {row["name"] for row in exact.recording.table()["rows"]}
    told |= {name.rsplit(": ", 1)[-1] for name in told}
    found = {row["name"] for row in done.recording.table()["rows"] if row["samples"]}
    found -= {"[no operator]", "[not known]"}
    assert len(found) >= 5
    assert found <= told, sorted(found - told)


def test_lines(spent):
    """The line of Python that each function spends its time on."""
    done, truth, _ = spent
    lines = {}
    for name, row in rows_by(done.recording, "--group-by", "line").items():
        if ": " in name:
            lines.setdefault(name.rsplit(": ", 1)[1], []).append(row["self_samples"])
    samples = done.recording.table()["samples"]
    for name, seconds in truth.items():
        expected = seconds / sum(truth.values())
        share = sum(lines[name]) / samples
        assert abs(share - expected) <= bound(samples, expected) + 0.02, (name, share, expected)


def test_nothing_uncounted(spent):
    """Each sample without a stack, or with half of one, is counted; nothing else is missing."""
    done, truth, _ = spent
    losses = done.recording.losses()
    assert losses["thread"] <= REFUSED_MAX
    assert not {name: count for name, count in losses.items()
                if count and name not in ALLOWED | {"thread"}}
    table = done.recording.table()
    rows = rows_by(done.recording)
    unknown = rows.get("[not known]", {"samples": 0, "off_cpu_samples": 0})
    assert unknown["samples"] + unknown["off_cpu_samples"] <= \
        losses["sample_stackless"] + losses["sample_stack_cut"]
    assert unknown["samples"] <= 0.1 * table["samples"], losses
    assert table["capture"]["mode"] == "sample"
    assert 0 < int(table["overhead"]["cost_samples_ns"]) < 1e9 * sum(truth.values())
    assert int(table["capture"]["sampler_ns"]) > 0


def test_outputs(spent, tmp_path):
    """The same samples in every form."""
    done, _, _ = spent
    table = done.recording.table()
    said = harness.gpuprof("table", done.recording.path, "--csv", "--limit", "-1").stdout
    rows = list(csv.DictReader(io.StringIO(said)))
    assert [row["name"] for row in rows] == [row["name"] for row in table["rows"]]
    assert [int(row["samples"]) for row in rows] == [row["samples"] for row in table["rows"]]
    text = harness.gpuprof("table", done.recording.path).stdout
    assert "+-" in text and "Estimated from %d samples" % table["samples"] in text
    assert "# of Calls" not in text
    folded = tmp_path / "folded.txt"
    harness.gpuprof("export", done.recording.path, "--format", "stacks", "--metric", "samples",
                    "-o", folded)
    lines = folded.read_text().splitlines()
    counted = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    stackless = table["losses"]["sample_stackless"]
    assert table["samples"] - stackless <= counted <= table["samples"]
    speedscope = tmp_path / "speedscope.json"
    harness.gpuprof("export", done.recording.path, "--format", "speedscope", "--metric",
                    "off_cpu_time_total", "-o", speedscope)
    assert json.loads(speedscope.read_text())["profiles"][0]["name"] == "off-CPU time"


def test_chrome(spent):
    """Moments on a CPU, waits as long as they were seen, each with its stack."""
    done, _, tids = spent
    events = [event for event in done.recording.chrome()["traceEvents"]
              if event.get("cat") == "sample"]
    moments = [event for event in events if event["ph"] == "i"]
    waits = [event for event in events if event["ph"] == "X"]
    assert sum(event["name"] == "aten::mm" for event in moments) > 10
    assert all("Call stack" in event["args"] for event in moments if event["name"] == "aten::mm")
    pipe = [event for event in waits if event["tid"] == tids["waits_for_pipe"]]
    assert {event["name"] for event in pipe} == {"waiting: read"}
    for before, after in zip(pipe, pipe[1:]):
        assert before["ts"] + before["dur"] <= after["ts"]


def test_perfetto(spent, tmp_path):
    """Each sample of a thread on a CPU, with frames that have names; waits as slices."""
    done, _, _ = spent
    path = tmp_path / "t.pftrace"
    assert harness.gpuprof("export", done.recording.path, "--format", "perfetto", "-o",
                           path).status == harness.DONE
    text = decoded(path)
    events = [event for event in done.recording.chrome()["traceEvents"]
              if event.get("cat") == "sample"]
    assert text.count("  perf_sample {") == done.recording.table()["samples"]
    assert text.count("\n    type: 1\n") == sum(event["ph"] == "X" for event in events)
    assert 'str: "at::_ops::mm::call' in text
    assert "frequency: %s" % done.recording.table()["capture"]["sample_hz"] in text
    used = set(re.findall(r"callstack_iid: (\d+)", text))
    told = re.findall(r"callstacks \{\s+iid: (\d+)", text)
    assert used == set(told) and len(told) == len(set(told)) > 1


def test_without_task_storage(tmp_path):
    path = tmp_path / "r.gpuprof"
    with harness.Target("sampled") as target, \
            harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--mode", "sample", "--hz",
                            "99", "-vv", env=dict(harness.environment(), GPUPROF_NO_TASK_STORAGE="1")) as one:
        one.wait_recording()
        let_tables_come(target, path)
        assert one.finish() == harness.DONE, one.told()
        target.leave()
    assert "map 'threads_by_tid': created" in one.text("stderr")
    assert "map 'threads': created" not in one.text("stderr")
    table = harness.Recording(path).table()
    assert table["samples"] and table["capture"]["annotations"] == "0"


def test_rotated(tmp_path):
    """Each recording has the stacks, operators and waits of its own time; merged they are one."""
    path = str(tmp_path / "r.sock")

    def ctl(word):
        assert harness.gpuprof("ctl", "--socket", path, word).status == harness.DONE

    with harness.Target("sampled") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path, "-o",
                             tmp_path / "r.gpuprof", "--mode", "sample", "--hz", HZ,
                             "--rotate", "5h") as profiler:
            profiler.wait_recording()
            let_tables_come(target, str(tmp_path / "r.1.gpuprof"))
            target.command("spend 0.2")
            for number in range(2, 6):
                ctl("rotate")
                harness.wait_until("the next recording", lambda nr=number:
                                   os.path.exists(tmp_path / ("r.%d.gpuprof" % nr)))
                target.command("spend 0.2")
            assert profiler.finish() == harness.DONE, profiler.told()
        tids = target.facts["tids"]
        target.leave()
    parts = [harness.Recording(tmp_path / ("r.%d.gpuprof" % number)) for number in range(1, 6)]
    tables = [part.table() for part in parts]
    for part, table in zip(parts, tables):
        rows = rows_by(part)
        for op in FUNCTIONS.values():
            assert rows[op]["self_samples"] > 0, sorted(rows)
        threads = rows_by(part, "--group-by", "thread")
        functions = rows_by(part, "--group-by", "function")
        for name, tid in tids.items():
            assert named(threads, "(%d)" % tid)["off_cpu_us"] >= 0.5 * table["wall_us"]
            assert named(functions, ": " + name)["off_cpu_us"] >= 0.4 * table["wall_us"]
    done = harness.gpuprof("merge", *(part.path for part in parts), "-o",
                           tmp_path / "all.gpuprof")
    assert done.status == harness.DONE, done
    together = rows_by(harness.Recording(tmp_path / "all.gpuprof"), "--limit", "-1")
    for name in set().union(*(set(rows_by(part, "--limit", "-1")) for part in parts)):
        for count in ("samples", "self_samples", "off_cpu_samples"):
            assert together[name][count] == sum(rows_by(part, "--limit", "-1").get(name, {})
                                                .get(count, 0) for part in parts), (name, count)


@pytest.mark.parametrize("options", (("--memory",), ("--shapes",), ("--flops",), ("--steps", "3"),
                                     ("--ops", "aten::mm"), ("--stack", "python"),
                                     ("--modules",),
                                     ("--trigger", "hang=5", "--flight", "30")))
def test_refused(options):
    done = harness.gpuprof("attach", "--pid", os.getpid(), "--mode", "sample", *options)
    assert done.status == harness.USAGE and options[0] in done.stderr, done


def test_hz_alone():
    done = harness.gpuprof("attach", "--pid", os.getpid(), "--hz", "50")
    assert done.status == harness.USAGE and "--mode sample" in done.stderr, done
