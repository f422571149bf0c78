# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What happens to the target and to the capture when either side begins, ends, dies, forks, execs or
falls behind. The target must outlive gpuprof in every case.
"""

import os
import re
import signal
import time

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
    losses = capture.recording.losses()
    # Operators at the edges of a capture are nothing to speak of.
    named = {loss for loss in losses if losses[loss] and not loss.startswith("open_at_")}
    for loss in losses:
        assert (loss + ": " in capture.stderr) == (loss in named), loss
    assert "complete: no event is missing%s\n" % ("." if named else "") in capture.stderr or named
    assert sorted(os.listdir(tmp_path)) == ["m.html", "r.gpuprof", "t.json"]


@pytest.mark.parametrize("options", [(), ("--no-inject",)])
def test_the_window_ends_with_collection(tmp_path, options):
    """Not after the probes have been taken away, which takes a multiple of what may pass here. A
    busy machine may come between, but not each time."""
    parts, path = [], tmp_path / "r.gpuprof"
    with Target("mlp") as target:
        target.order("step 1000000000")
        while len(parts) < 8 and min(parts, default=1) > 0.25:
            with Gpuprof("attach", "--pid", target.pid, "-o", path, *options) as profiler:
                profiler.wait_recording()
                # As soon as there are some: the slower all of this is, the more there would be.
                size = os.path.getsize(path)
                wait_until("events", lambda before=size: os.path.getsize(path) > before)
                begin = time.monotonic()
                assert profiler.finish() in (DONE, LOST), profiler.told()
                ending = time.monotonic() - begin
            recording = Recording(path)
            last = max(event["ts"] + event["dur"] for event in recording.chrome()["traceEvents"]
                       if event["ph"] == "X" and event.get("cat") == "cpu_op")
            first = min(event["ts"] for event in recording.chrome()["traceEvents"]
                        if event["ph"] == "X" and event.get("cat") == "cpu_op")
            tail = recording.table()["wall_us"] - float(last - first)
            parts.append(tail / 1e6 / ending)
    assert min(parts) <= 0.25, parts


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


def test_replaced_recording_keeps_its_owner(idle, tmp_path):
    path = tmp_path / "r.gpuprof"
    path.write_text("of an earlier run")
    os.chown(path, 65534, 65534)
    path.chmod(0o640)
    capture = attach(idle, path, orders=lambda: idle.step(1))
    assert capture.status == DONE, capture.told
    assert calls_of(capture.recording, "aten::addmm") == 3
    seen = os.stat(path)
    assert (seen.st_uid, seen.st_gid, seen.st_mode & 0o777) == (65534, 65534, 0o640)
    assert os.listdir(tmp_path) == ["r.gpuprof"]


def test_nohup_means_it(idle, tmp_path):
    with Gpuprof("attach", "--pid", idle.pid, "-o", tmp_path / "r.gpuprof",
                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as profiler:
        profiler.wait_recording()
        profiler.signal(signal.SIGHUP)
        idle.step(2)
        assert profiler.running()
        assert profiler.finish() == DONE, profiler.told()
    assert calls_of(Recording(tmp_path / "r.gpuprof"), "aten::addmm") == 6


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


@pytest.mark.parametrize("command, told", [("exit 7", "ended with status 7"),
                                           ("kill -9 $$", "ended by signal 9")])
def test_run_tells_how_the_program_ended(tmp_path, command, told):
    done = gpuprof("run", "-o", tmp_path / "r.gpuprof", "--", "sh", "-c", command)
    assert done.status == DONE and told in done.stderr, done
    assert "no operators in it" in done.stderr, done


def test_run_tells_that_the_program_goes_on(tmp_path):
    done = gpuprof("run", "-d", "0.2", "-o", tmp_path / "r.gpuprof", "--", "sleep", "3")
    assert done.status == DONE and "still runs" in done.stderr, done


def test_quiet_leaves_errors_and_losses(tmp_path):
    done = gpuprof("run", "-q", "-o", tmp_path / "r.gpuprof", "--", "sh", "-c", "exit 7")
    assert done.status == DONE and done.stderr == "complete: no event is missing\n", done
    assert "gpuprof:" not in done.stderr, done


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


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_target_goes_away(tmp_path, how):
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
        said = "has ended, by signal 9 (Killed)" if how == "kill" else "has ended\n"
        assert said in profiler.text("stderr"), profiler.told()
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
        # Nothing is left to record: it ends by itself.
        assert profiler.wait() == DONE, profiler.told()
        assert "(exec)" in profiler.text("stderr"), profiler.told()
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
            # The collector's thread closes its ring after it has said that it leaves.
            wait_until("its descriptors are as before",
                       lambda: descriptors(target.pid) == before)
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
    with Target("late") as target, Gpuprof("attach", "-v", "--pid", target.pid, "--wait",
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


def has_linear(path):
    """Whether a recording that is not whole has the operators of a linear layer in it."""
    done = gpuprof("table", path, "--json", "--limit", "-1")
    assert done.status in (DONE, LOST) and done.stderr, done
    return any(row["name"] == "aten::addmm" for row in parse_json(done.stdout)["rows"])


@pytest.mark.versions
def test_gpuprof_is_killed(tmp_path):
    """The target goes on with its code as before, and the recording is readable."""
    path = tmp_path / "r.gpuprof"
    with Target("mlp") as target:
        with Gpuprof("attach", "--pid", target.pid, "-o", path) as profiler:
            profiler.wait_recording()
            target.step(50)

            def written():
                target.step(1)
                return has_linear(path)

            wait_until("events in the recording", written)
            profiler.signal(signal.SIGKILL)
            assert profiler.wait() == -signal.SIGKILL
        target.step(20)
        wait_until("the probes are gone", lambda: text_differences(target.pid) == {})
        target.step(20)
        assert has_linear(path)
        # And it can be attached to as before.
        capture = attach(target, tmp_path / "again.gpuprof", orders=lambda: target.step(4))
        assert calls_of(capture.recording, "aten::addmm") == 12
        target.leave()


def test_killed_as_it_sets_probes_or_takes_them_away(tmp_path):
    """Whenever that is: none stays."""
    def begin():
        return Gpuprof("attach", "--no-inject", "--pid", target.pid, "-o", tmp_path / "r.gpuprof")

    def kill(profiler):
        profiler.kill()
        wait_until("the probes are gone", lambda: text_differences(target.pid) == {})

    moments = 12
    with Target("mlp") as target:
        # The second time as ever after.
        for _ in range(2):
            start = time.monotonic()
            with begin() as profiler:
                profiler.wait_recording()
                setting = time.monotonic() - start
                assert profiler.finish() == DONE, profiler.told()
        for moment in range(moments):
            with begin() as profiler:
                time.sleep(setting * (0.7 + 0.3 * moment / moments))
                kill(profiler)
            with begin() as profiler:
                profiler.wait_recording()
                profiler.signal(signal.SIGINT)
                time.sleep(0.2 * moment / moments)
                kill(profiler)
        target.step(20)
        target.leave()


def collector_runs(pid):
    names = set()
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid), encoding="utf-8") as comm:
                names.add(comm.read().strip())
        except FileNotFoundError:
            pass
    return "gpuprof" in names


def attach_with_collector(target, path):
    """Looks for a safe moment as often as it takes: a slow machine may miss gpuprof's limit."""
    for _ in range(20):
        profiler = Gpuprof("attach", "-v", "--memory", "--pid", target.pid, "-o", path)
        profiler.wait_recording()
        if collector_runs(target.pid):
            return profiler
        profiler.finish()
    return profiler.fail("no collector came")


def test_collector_leaves(tmp_path):
    """gpuprof is stopped until the collector gives it up: from then on probes see the operators."""
    path = tmp_path / "r.gpuprof"
    with Target("mlp") as target, attach_with_collector(target, path) as profiler:
        profiler.signal(signal.SIGSTOP)
        wait_until("the collector leaves", lambda: not collector_runs(target.pid))
        profiler.signal(signal.SIGCONT)
        profiler.wait_line("stderr", lambda text: "the collector has left" in text)
        profiler.wait_line("stderr", lambda text: re.search(r": \d{4,} probes more", text))
        target.step(4)
        assert profiler.finish() == LOST, profiler.told()
        target.leave()
    recording = Recording(path)
    assert recording.losses()["collector_left"] == 1
    assert calls_of(recording, "aten::addmm") == 3 * 4


def test_target_short_of_memory(tmp_path, memory_group):
    """A container whose memory is nearly used up: the collector's would have the kernel kill it."""
    folder, limit = memory_group
    path = tmp_path / "r.gpuprof"
    with Target("mlp") as target:
        target.step(4)
        with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(target.pid))
        with open(limit, "w", encoding="ascii") as file:
            file.write(str(12 << 20))
        with Gpuprof("attach", "--pid", target.pid, "-o", path) as profiler:
            profiler.wait_recording()
            assert not collector_runs(target.pid)
            target.step(4)
            assert profiler.finish() == DONE, profiler.told()
        assert re.search(r"by uprobes, which cost more: there are only \d+ MB of memory left",
                         profiler.text("stderr")), profiler.told()
        target.leave()
    assert calls_of(Recording(path), "aten::addmm") == 3 * 4


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


@pytest.mark.parametrize("options", [(), ("--no-inject",)])
def test_attached_twice_at_once(tmp_path, options):
    """Two gpuprofs on one target: both see all, and the second says how; no harm in any case."""
    with Target("mlp") as target:
        with Gpuprof("attach", "--pid", target.pid, "-o", tmp_path / "a.gpuprof",
                     *options) as one:
            one.wait_recording()
            capture = attach(target, tmp_path / "b.gpuprof", *options,
                             orders=lambda: target.step(5))
            assert capture.status == DONE, capture.told
            assert ("another gpuprof" in capture.stderr) == (not options), capture.told
            assert calls_of(capture.recording, "aten::addmm") == 15
            target.step(5)
            assert one.finish() == DONE, one.told()
        assert calls_of(Recording(tmp_path / "a.gpuprof"), "aten::addmm") == 30
        assert text_differences(target.pid) == {}
        target.leave()




def test_attach_at_once_after_a_kill(tmp_path):
    """What the killed one left has not gone yet, and its thread is the only one that sleeps."""
    with Target("mlp", "--endless") as target:
        for number in range(4):
            with Gpuprof("-v", "attach", "--pid", target.pid, "-o", tmp_path / "r") as profiler:
                profiler.wait_recording()
                assert "operators by callback" in profiler.text("stderr"), (number, profiler.told())
                profiler.kill()


def minor_faults(pid):
    """Of the first thread, so far."""
    with open("/proc/%d/task/%d/stat" % (pid, pid), encoding="utf-8") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[7])


def test_events_meet_no_page_faults(tmp_path):
    """The ring's pages, some 2,000, are mapped before operators are told, not by those that tell."""
    with Target("mlp") as target:
        def faults():
            before = minor_faults(target.pid)
            target.step(400)
            return minor_faults(target.pid) - before

        target.step(50)
        alone = faults()
        with Gpuprof("attach", "--pid", target.pid, "-o", tmp_path / "r.gpuprof") as profiler:
            profiler.wait_recording()
            attached = faults()
            assert profiler.finish() == DONE, profiler.told()
        target.leave()
    assert attached - alone < 500, (alone, attached)
