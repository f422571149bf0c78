# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What happens to the target and to the capture when either side begins, ends, dies, forks, execs or
falls behind. The target must outlive gpuprof in every case.
"""

import os
import re
import signal

import pytest

import reference
from harness import (DONE, FAILED, LOST, PYTHON, WORKLOADS, Gpuprof, Recording, Target,
                     anonymous_kib, attach, descriptors, gpuprof, parse_json, text_differences,
                     wait_until)


def calls_of(recording, name):
    row = recording.rows().get(name)
    return row["calls"] if row else 0


def test_attach_writes_everything_at_once(idle, tmp_path):
    """One capture that prints JSON, a trace, a memory page and the counters."""
    trace, page, rec = (tmp_path / name for name in ("t.json", "m.html", "r.gpuprof"))
    capture = attach(idle, rec, "--memory", "--json", "--sort", "count", "--limit", "4",
                     "--trace", trace, "--memory-timeline", page, orders=lambda: idle.step(3))
    assert capture.status == DONE, capture.told
    rows = parse_json(capture.stdout)["rows"]
    assert len(rows) == 4
    assert [row["calls"] for row in rows] == sorted((row["calls"] for row in rows), reverse=True)
    assert parse_json(trace.read_text())["traceEvents"]
    assert "<html" in page.read_text().lower()
    for loss in capture.recording.losses():
        assert loss.replace("_", " ") in capture.stderr.replace("_", " "), loss
    assert sorted(os.listdir(tmp_path)) == ["m.html", "r.gpuprof", "t.json"]


def test_default_name_of_the_recording(idle, tmp_path):
    with Gpuprof("attach", "--pid", idle.pid, cwd=tmp_path) as profiler:
        profiler.wait_recording()
        idle.step(1)
        assert profiler.finish() == DONE, profiler.told()
        assert "aten::addmm" in profiler.text("stdout")
    names = os.listdir(tmp_path)
    assert len(names) == 1 and names[0].startswith("gpuprof-%d-" % idle.pid)
    assert names[0].endswith(".gpuprof")


def test_duration_ends_it(idle, tmp_path):
    with Gpuprof("attach", "--pid", idle.pid, "-o", tmp_path / "r.gpuprof", "--duration",
                 "1") as profiler:
        assert profiler.wait() == DONE, profiler.told()


def test_chosen_ops_only(idle, tmp_path):
    capture = attach(idle, tmp_path / "r.gpuprof", "--ops", "aten::addmm,aten::mm*",
                     orders=lambda: idle.step(5))
    names = {name for name in capture.recording.rows() if name.startswith("aten::")}
    assert {"aten::addmm", "aten::mm"} <= names
    assert all(name == "aten::addmm" or name.startswith("aten::mm") for name in names), names
    assert calls_of(capture.recording, "aten::addmm") == 15


def test_run_from_the_first_instruction(tmp_path):
    """The set-up's ops are there too, and the command's output comes through."""
    path = tmp_path / "r.gpuprof"
    done = gpuprof("run", "-o", path, "--", PYTHON, "-B", WORKLOADS + "/mlp.py", "--steps", "6")
    assert done.status == DONE, done
    assert "did 6" in done.stdout.splitlines()
    recording = Recording(path)
    # Three layers: as many initialised, and called once a step each.
    assert calls_of(recording, "aten::addmm") == 3 * 6
    assert calls_of(recording, "aten::uniform_") == 6
    assert calls_of(recording, "aten::randn") == 2


def test_run_of_something_that_is_not_there(tmp_path):
    done = gpuprof("run", "-o", tmp_path / "r.gpuprof", "--", "/no/such/program")
    assert done.status == FAILED and "/no/such/program" in done.stderr, done
    assert os.listdir(tmp_path) == []


def test_threads_count_for_themselves(tmp_path):
    with Target("threads") as target:
        capture = attach(target, tmp_path / "r.gpuprof", orders=lambda: target.step(10))
        assert capture.status == DONE, capture.told
        events = capture.recording.chrome()["traceEvents"]
        for tid, per_step in target.facts["workers"].items():
            mine = reference.calls([event for event in events if event["tid"] == int(tid)])
            for name, count in per_step.items():
                assert mine[name] == 10 * count, (tid, name)
        adds = sum(w["aten::add"] for w in target.facts["workers"].values())
        assert calls_of(capture.recording, "aten::add") == 10 * adds
        target.leave()


def test_short_threads(tmp_path):
    """Each lives for one op: thread exit and reuse of its state."""
    with Target("threads", "--workers", "1") as target:
        capture = attach(target, tmp_path / "r.gpuprof", orders=lambda: target.command("brief 300"))
        assert capture.status == DONE, capture.told
        assert calls_of(capture.recording, "aten::sigmoid") == 300
        tids = {event["tid"] for event in capture.recording.chrome()["traceEvents"]
                if event["name"] == "aten::sigmoid"}
        assert len(tids) > 1
        target.leave()


def test_fork(tmp_path):
    """The child is not part of the capture and is not harmed."""
    def orders():
        target.step(2)
        assert target.command("fork 5").endswith("status 0")
        target.step(2)

    with Target("forker") as target:
        capture = attach(target, tmp_path / "r.gpuprof", orders=orders)
        assert capture.status == DONE, capture.told
        assert calls_of(capture.recording, "aten::add") == 40
        assert calls_of(capture.recording, "aten::sigmoid") == 0
        target.leave()


@pytest.mark.parametrize("how, words", [("exit", ("exit", "ended")), ("kill", ("kill", "signal"))])
def test_target_goes_away(tmp_path, how, words):
    """gpuprof ends by itself, says so and prints what it has."""
    path = tmp_path / "r.gpuprof"
    with Target("mlp") as target, Gpuprof("attach", "--pid", target.pid, "-o", path) as profiler:
        profiler.wait_recording()
        target.step(7)
        if how == "exit":
            target.leave()
        else:
            target.signal(signal.SIGKILL)
            target.wait()
        assert profiler.wait() == DONE, profiler.told()
        assert any(word in profiler.text("stderr").lower() for word in words), profiler.told()
        assert "aten::addmm" in profiler.text("stdout")
    assert calls_of(Recording(path), "aten::addmm") == 3 * 7


def test_target_execs(tmp_path):
    path = tmp_path / "r.gpuprof"
    with Target("execer") as target, Gpuprof("attach", "--pid", target.pid, "-o", path) as profiler:
        profiler.wait_recording()
        target.step(3)
        assert target.command("exec") == "becoming cat"
        # Once cat has answered with what it is told, the exec is done.
        assert target.command("are you cat?") == "are you cat?"
        status = profiler.finish()
        assert status == DONE, profiler.told()
        assert "exec" in profiler.text("stderr").lower(), profiler.told()
        assert "aten::add" in profiler.text("stdout")
        target.process.stdin.close()
        assert target.wait() == 0
    assert calls_of(Recording(path), "aten::add") == 30


@pytest.mark.versions
def test_cycles_leave_no_trace(tmp_path, request):
    """Attach and detach again and again: no probe, descriptor or memory is left behind."""
    cycles = request.config.getoption("--cycles")
    settle = min(5, cycles // 2)
    with Target("mlp") as target:
        assert text_differences(target.pid) == {}
        before = descriptors(target.pid)
        settled = 0
        for cycle in range(cycles):
            capture = attach(target, tmp_path / "r.gpuprof", orders=lambda: target.step(2))
            assert capture.status == DONE, capture.told
            assert calls_of(capture.recording, "aten::addmm") == 6
            assert descriptors(target.pid) == before
            if cycle == settle:
                settled = anonymous_kib(target.pid)
        assert text_differences(target.pid) == {}
        assert anonymous_kib(target.pid) <= settled + 8192
        target.step(5)
        target.leave()


@pytest.mark.versions
def test_probes_are_seen_while_attached(idle, tmp_path):
    """The check of the test above can fail: with probes in place the code differs."""
    seen = {}
    attach(idle, tmp_path / "r.gpuprof", "--no-inject",
           orders=lambda: seen.update(text_differences(idle.pid)))
    assert any("libtorch_cpu" in name for name in seen), seen
    assert text_differences(idle.pid) == {}


@pytest.mark.versions
def test_pytorch_loaded_after_attach(tmp_path):
    """A process without PyTorch is attached to; once it has loaded it, its operators are seen."""
    path = tmp_path / "r.gpuprof"
    with Target("late") as target, Gpuprof("attach", "-v", "--pid", target.pid,
                                           "-o", path) as profiler:
        profiler.wait_recording()
        assert target.command("load").startswith("loaded")
        # Thousands, not the few of the libraries before it.
        profiler.wait_line("stderr", lambda text: re.search(r": \d{4,} probes more", text))
        target.step(4)
        status = profiler.finish()
        assert status == DONE, profiler.told()
        target.leave()
    assert calls_of(Recording(path), "aten::add") == 40


@pytest.mark.versions
def test_gpuprof_is_killed(tmp_path):
    """The target goes on with its code as before, and the recording is readable."""
    path = tmp_path / "r.gpuprof"
    with Target("mlp") as target:
        with Gpuprof("attach", "--pid", target.pid, "-o", path) as profiler:
            profiler.wait_recording()
            target.step(50)
            begun = os.path.getsize(path)

            def grown():
                target.step(1)
                return os.path.getsize(path) > begun

            wait_until("events in the recording", grown)
            profiler.signal(signal.SIGKILL)
            assert profiler.wait() == -signal.SIGKILL
        target.step(20)
        wait_until("the probes are gone", lambda: text_differences(target.pid) == {})
        target.step(20)
        done = gpuprof("table", path, "--json", "--limit", "-1")
        assert done.status in (DONE, LOST) and done.stderr, done
        assert any(row["name"] == "aten::addmm" for row in parse_json(done.stdout)["rows"])
        # And it can be attached to as before.
        capture = attach(target, tmp_path / "again.gpuprof", orders=lambda: target.step(4))
        assert calls_of(capture.recording, "aten::addmm") == 12
        target.leave()


def test_ring_overflow_is_counted(tmp_path):
    """gpuprof is stopped while far more happens than the smallest ring holds."""
    path = tmp_path / "r.gpuprof"
    with Target("mlp") as target, Gpuprof("attach", "--pid", target.pid, "-o", path, "--no-inject",
                                          "--ring-bytes", "65536") as profiler:
        profiler.wait_recording()
        profiler.signal(signal.SIGSTOP)
        target.step(100)
        profiler.signal(signal.SIGCONT)
        target.step(1)
        assert profiler.finish() == LOST, profiler.told()
        recording = Recording(path)
        lost = recording.losses()["ring_full"]
        assert lost > 0
        assert "ring full" in profiler.text("stderr").replace("_", " ")
        target.leave()
    events = recording.chrome()["traceEvents"]
    expected = reference.table(events)
    rows = {name: row for name, row in recording.rows().items() if name != "[memory]"}
    assert rows and {name: row["calls"] for name, row in rows.items()} == {
        name: row["calls"] for name, row in expected.items()}
    for name, row in rows.items():
        assert -0.001 <= row["self_cpu_us"] <= row["cpu_total_us"] + 0.001, name


def test_two_targets_in_one_capture(tmp_path):
    path = tmp_path / "r.gpuprof"
    with Target("mlp") as first, Target("forker") as second, \
            Gpuprof("attach", "--pid", "%d,%d" % (first.pid, second.pid), "-o", path) as profiler:
        profiler.wait_recording()
        first.step(3)
        second.step(4)
        assert profiler.finish() == DONE, profiler.told()
        first.leave()
        second.leave()
    events = Recording(path).chrome()["traceEvents"]
    for target, name, count in ((first, "aten::addmm", 9), (second, "aten::add", 40)):
        mine = reference.calls([event for event in events if event["pid"] == target.pid])
        assert mine[name] == count


def test_attached_twice_at_once(tmp_path):
    """Two gpuprofs on one target: both see all, or the second says why not; no harm in any case."""
    with Target("mlp") as target:
        with Gpuprof("attach", "--pid", target.pid, "-o", tmp_path / "a.gpuprof",
                     "--no-inject") as one:
            one.wait_recording()
            capture = attach(target, tmp_path / "b.gpuprof", "--no-inject",
                             orders=lambda: target.step(5))
            assert capture.status == DONE, capture.told
            assert calls_of(capture.recording, "aten::addmm") == 15
            target.step(5)
            assert one.finish() == DONE, one.told()
        assert calls_of(Recording(tmp_path / "a.gpuprof"), "aten::addmm") == 30
        assert text_differences(target.pid) == {}
        target.leave()


