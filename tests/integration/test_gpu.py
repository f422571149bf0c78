# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
GPU activity from a process that runs on the stand-ins for CUDA (tests/fake/), whose simulated GPU
writes down the truth.
"""

import os
import random
import re
import shutil
import signal
import subprocess

import pytest

import gpu_truth
import harness

KINDS = 9  # that the collector switches on
APP = os.path.join(gpu_truth.FAKE, "cuda_app")


class App(harness.Child):
    """tests/fake/cuda_app."""

    def __init__(self, *args, app=APP, **settings):
        env = dict(harness.environment(), **{key: str(value) for key, value in settings.items()})
        super().__init__([app, *args], "cuda_app", env=env)
        self._next = 0
        assert self._line() == "ready gpuprof test stand-in, no GPU"

    def _line(self):
        line, self._next = self.wait_line("stdout", lambda text: True, self._next)
        return line

    def command(self, order):
        self.send(order)
        return self._line()

    def do(self, order):
        assert self.command(order) == "did " + order, self.told()

    def counted(self, what):
        return int(self.command("count " + what).split()[1])

    def wait_counted(self, what, number):
        harness.wait_until("%d times %s" % (number, what), lambda: self.counted(what) >= number)

    def wait_flushes(self, number):
        """Until the collector has gone round so many times more."""
        self.wait_counted("flushed", self.counted("flushed") + number)

    def truth(self, folder):
        path = os.path.join(str(folder), "truth")
        self.do("truth " + path)
        return gpu_truth.true_events(path)

    def leave(self):
        self.send("leave")
        assert self.wait() == 0, self.told()


def capture(app, folder, *orders, options=(), name="r.gpuprof"):
    """Attaches, gives the orders (or calls them); the finished capture and its GPU events."""
    path = os.path.join(str(folder), name)

    def give():
        for order in orders:
            if callable(order):
                order()
            else:
                app.do(order)

    done = harness.attach(app, path, *options, orders=give)
    return done, gpu_truth.Recorded(path)


@pytest.mark.san
def test_every_piece_of_work_once(tmp_path):
    with App(FAKE_CUDA_DEVICES=2) as app:
        app.do("work 1 3")
        done, recording = capture(app, tmp_path, "work 3 200", "driver 20", "work 2 50",
                                  "calls 1", "devices 2", "graph 5")
        app.do("work 2 3")
        truth = app.truth(tmp_path)
        app.leave()
    assert done.status == harness.DONE, done.told
    assert not recording.lost()
    recorded, _ = gpu_truth.check(recording, truth)
    kinds = [key[0] for key in recorded]
    assert kinds.count("kernel") == 3 * 700 + 20 + 3 + 4 + 2 * 5
    assert kinds.count("copy") == 2 * 700 + 1 + 4 + 5 and kinds.count("set") == 700 + 1 + 4
    assert kinds.count("sync") == 701 + 1 + 4 + 1
    assert {event.what[3] for event in recorded.values() if event.kind == "kernel"} == {"0", "1"}


@pytest.mark.san
def test_faults_are_counted_exactly(tmp_path):
    with App(FAKE_CUPTI_FAULT="zero=7,backwards=11,drop=13") as app:
        done, recording = capture(app, tmp_path, "work 3 100")
        truth = app.truth(tmp_path)
        app.leave()
    assert done.status == harness.LOST, done.told
    faults = [fault for _, fault in truth]
    for fault in ("zero", "backwards", "drop"):
        assert faults.count(fault) > 50
    assert recording.lost() == {"cupti_time": faults.count("zero") + faults.count("backwards"),
                                "cupti_dropped": faults.count("drop")}
    gpu_truth.check(recording, truth)


@pytest.mark.parametrize("settings", (
    {"FAKE_CUPTI_VERSION": 13}, {"FAKE_CUPTI_VERSION": 14}, {"FAKE_CUPTI_VERSION": 130001},
    {"FAKE_CUPTI_BUFFER": 32768}, {"FAKE_CUPTI_LATE": 1},
    {"FAKE_CUPTI_DRIFT_PPM": 400, "FAKE_CUPTI_OFFSET_NS": 5},
    {"FAKE_CUDA_CORRELATION": 2**32 - 100},
), ids=lambda settings: "-".join("%s" % key for key in settings))
def test_other_cuptis(settings, tmp_path):
    with App(**settings) as app:
        done, recording = capture(app, tmp_path, "work 2 60",
                                  lambda: app.wait_flushes(1), "work 2 60", "driver 3",
                                  options=("--any-cupti",))
        truth = app.truth(tmp_path)
        app.leave()
    assert done.status == harness.DONE, done.told
    assert not recording.lost()
    gpu_truth.check(recording, truth)


@pytest.mark.parametrize("settings", (
    {"FAKE_CUPTI_VERSION": 18}, {"FAKE_CUPTI_VERSION": 26}, {"FAKE_CUPTI_VERSION": 130001},
), ids=lambda settings: str(settings["FAKE_CUPTI_VERSION"]))
def test_events_that_are_waited_for(settings, tmp_path):
    """Each wait names the record that it is for, though the event is always the same."""
    with App(**settings) as app:
        done, _ = capture(app, tmp_path, "events 20", options=("--any-cupti",))
        app.leave()
    assert done.status == harness.DONE, done.told
    events = [event for event in done.recording.chrome()["traceEvents"] if event["ph"] == "X"]
    calls = {event["args"]["correlation"]: event for event in events
             if event["cat"] == "cuda_runtime"}
    records = sorted(one for one, call in calls.items() if call["name"] == "cudaEventRecord")
    assert len(records) == 20
    streams = {event["args"]["correlation"]: event["tid"] for event in events
               if event["cat"] == "gpu_memset"}
    source = streams[min(streams)]
    for kind in ("Event Sync", "Stream Wait Event"):
        waits = sorted((event for event in events if event["name"] == kind),
                       key=lambda event: event["args"]["correlation"])
        assert [wait["args"]["wait_on_cuda_event_record_corr_id"] for wait in waits] == records
        assert {wait["args"]["wait_on_stream"] for wait in waits} == {source}
        assert len({wait["args"]["wait_on_cuda_event_id"] for wait in waits}) == 1
        assert list(waits[0]["args"])[:4] == [
            "cuda_sync_kind", "wait_on_stream", "wait_on_cuda_event_record_corr_id",
            "wait_on_cuda_event_id"]
    timed = [event for event in events if event["cat"] == "cuda_event"]
    assert [event["args"]["correlation"] for event in timed] == (
        records if settings["FAKE_CUPTI_VERSION"] >= 130000 else [])
    assert {(event["name"], str(event["dur"]), event["tid"]) for event in timed} <= {
        ("cudaEvent", "0.001", source)}
    last = [event for event in events if event["name"] == "Context Sync"]
    assert len(last) == 1 and last[0]["args"]["stream"] == -1


def test_clock_of_a_cuda_that_gets_ready(tmp_path):
    """CUPTI's clock is another one until there is work."""
    for name, settings in (("up", {}), ("down", {"FAKE_CUPTI_OFFSET_NS": 1})):
        with App(FAKE_CUPTI_SETTLE=1, **settings) as app:
            done, recording = capture(app, tmp_path, lambda: app.wait_flushes(1), "work 2 60",
                                      name=name)
            truth = app.truth(tmp_path)
            app.leave()
        # The call in which each thread is when it changes may seem to end before it began.
        odd = 2 * int(name == "down")
        assert not set(recording.lost()) - {"cupti_time"}, recording.lost()
        assert recording.lost().get("cupti_time", 0) <= odd
        recorded, fine = gpu_truth.check(recording, truth, complete=not odd)
        assert len(fine) - len(recorded) <= odd


def test_old_cupti_is_not_taken_down(tmp_path):
    """The stand-in aborts, as the real one corrupts a process that has CUDA graphs."""
    with App(FAKE_CUPTI_VERSION=23) as app:
        app.do("keep 1")
        for number in range(3):
            done, recording = capture(app, tmp_path, "graph 2", "work 1 5",
                                      name="%d.gpuprof" % number)
            assert done.status == harness.DONE, done.told
            assert [event.kind for event in recording.events].count("kernel") >= 15 + 4
            assert app.counted("unsubscribed") == number + 1
            assert "not taken down (before CUDA 12.6 that is not safe)" in done.stderr, done.told
        assert not app.counted("finalized")
        app.do("keep 0")
        app.leave()


@pytest.mark.parametrize("version", (26, 130001))
def test_graphs_are_taken_down_from_cuda_13_on(version, tmp_path):
    """Before, CUPTI is let go of where graphs were captured or launched while it was ours: the
    stand-in aborts otherwise."""
    with App(FAKE_CUPTI_VERSION=version) as app:
        app.do("keep 1")
        done, recording = capture(app, tmp_path, "graph 2", "work 1 5")
        assert done.status == harness.DONE, done.told
        assert [event.kind for event in recording.events].count("kernel") >= 15 + 4
        app.wait_counted("unsubscribed", 1)
        taken = app.counted("finalized")
        assert taken == int(version >= 130000)
        assert taken == ("not taken down (before CUDA 13.0" not in done.stderr), done.told
        capture(app, tmp_path, "work 1 5")
        app.wait_counted("finalized", taken + 1)
        app.do("keep 0")
        app.leave()


def test_another_profiler_after_us(tmp_path):
    """CUPTI is free once gpuprof has left, though the process has made no call of CUDA since."""
    with App() as app:
        capture(app, tmp_path, "work 1 5")
        app.do("records 1")
        app.do("records 0")
        app.leave()


@pytest.mark.parametrize("version, why", (
    (13, "of CUDA before 12.2 may crash"), (19, "of CUDA before 12.2 may crash"),
    (130000, "first CUPTI of CUDA 13.0 may hang the process"),
))
def test_cupti_that_endangers_the_process(version, why, tmp_path):
    with App(FAKE_CUPTI_VERSION=version) as app:
        done, recording = capture(app, tmp_path, "work 1 5")
        assert app.counted("subscribed") == 0
        assert why in done.stderr and "--any-cupti" in done.stderr, done.told
        assert not recording.events and not recording.clocks
        # The calls come by uprobes then.
        assert [call.name for call in recording.calls].count("cudaLaunchKernel") == 15
        done, recording = capture(app, tmp_path, "work 1 5", name="any",
                                  options=("--any-cupti",))
        app.leave()
    assert done.status == harness.DONE and why not in done.stderr, done.told
    assert [event.kind for event in recording.events].count("kernel") == 15


def test_unknown_version_is_left_alone(tmp_path):
    for version in (12, 140000):
        with App(FAKE_CUPTI_VERSION=version) as app:
            done, recording = capture(app, tmp_path, "work 1 5")
            assert app.counted("subscribed") == 0
            app.leave()
        assert "not of CUDA 11 to 13" in done.stderr, done.told
        assert not recording.events and not recording.clocks


@pytest.mark.parametrize("jump_ns", (5_000_000, -5_000_000, 10**12, -10**12))
def test_clock_that_is_set(jump_ns, tmp_path):
    with App() as app:
        done, recording = capture(
            app, tmp_path, "work 2 50", lambda: app.wait_flushes(2), "work 2 50",
            "jump %d" % jump_ns, "work 2 50", lambda: app.wait_flushes(2), "work 2 50")
        truth = app.truth(tmp_path)
        app.leave()
    recorded, fine = gpu_truth.check(recording, truth, complete=False)
    # What was not told right was not told.
    missing = len(fine) - len(recorded)
    assert recording.lost() == ({"cupti_clock": missing} if missing else {})
    assert done.status == (harness.LOST if missing else harness.DONE), done.told
    # The first and the last work are far from the jump.
    order = sorted((event.start, key) for key, event in fine.items() if key[0] == "kernel")
    for _, key in order[:300] + order[-300:]:
        assert key in recorded


def test_cupti_in_use_by_another(tmp_path):
    with App() as app:
        app.do("busy 1")

        def free_it():
            app.do("work 1 5")
            app.wait_counted("turned away", 2)
            app.do("busy 0")
            app.wait_counted("enabled", KINDS)
            app.do("work 2 30")

        done, recording = capture(app, tmp_path, free_it)
        truth = app.truth(tmp_path)
        app.leave()
    assert done.status == harness.DONE, done.told
    assert "CUPTI is in use by another profiler" in done.stderr, done.told
    assert not recording.lost()
    # It came after all.
    assert "no GPU times of" not in harness.gpuprof("table", done.recording.path).stderr
    recorded, _ = gpu_truth.check(recording, truth)
    assert [key[0] for key in recorded].count("kernel") == 3 * 60


def test_calls_by_uprobes_once_the_collector_has_left(tmp_path):
    """It leaves a gpuprof that is stopped; from then on calls of CUDA come by uprobes."""
    with App() as app:
        with harness.Gpuprof("attach", "-v", "--pid", app.pid, "-o", tmp_path / "r") as profiler:
            profiler.wait_recording()
            app.do("work 1 5")
            profiler.signal(signal.SIGSTOP)
            app.wait_counted("unsubscribed", 1)
            profiler.signal(signal.SIGCONT)
            profiler.wait_line("stderr", lambda line: "in place of the collector" in line)
            app.do("work 1 7")
            profiler.signal(signal.SIGINT)
            assert profiler.wait() == harness.LOST, profiler.told()
        assert "not taken down (gpuprof had not answered" in profiler.told(), profiler.told()
        app.leave()
    recording = gpu_truth.Recorded(tmp_path / "r")
    assert [event.kind for event in recording.events].count("kernel") == 15
    assert [call.name for call in recording.calls].count("cudaLaunchKernel") == 21


def test_no_safe_moment_at_first(tmp_path):
    """A stopped process has none: the collector is tried again, and GPU times come from then on."""
    with App() as app:
        app.signal(signal.SIGSTOP)
        os.waitpid(app.pid, os.WUNTRACED)
        with harness.Gpuprof("attach", "-v", "--pid", app.pid, "-o", tmp_path / "r") as profiler:
            profiler.wait_recording()
            app.signal(signal.SIGCONT)
            profiler.wait_line("stderr", lambda line: "in it after all" in line)
            app.wait_counted("enabled", KINDS)
            app.do("work 1 7")
            profiler.signal(signal.SIGINT)
            assert profiler.wait() == harness.DONE, profiler.told()
        assert "kill -CONT" in profiler.told() and "tried again" in profiler.told()
        app.leave()
    recording = gpu_truth.Recorded(tmp_path / "r")
    assert [event.kind for event in recording.events].count("kernel") == 21


def test_cuda_not_in_use_yet(tmp_path):
    with App("lazy") as app:
        def begin():
            app.do("work 1 1")
            app.wait_counted("enabled", KINDS)
            app.do("work 2 30")

        done, recording = capture(app, tmp_path, begin)
        truth = app.truth(tmp_path)
        app.leave()
    assert done.status == harness.DONE, done.told
    assert "CUDA is not in use in the process yet" in done.stderr, done.told
    gpu_truth.check(recording, truth)
    assert recording.events and not recording.lost()


def test_cupti_that_takes_long(tmp_path):
    """As where a thread waits for the GPU: calls come by uprobes until it is there, and by it then."""
    with App(FAKE_CUPTI_SLOW_MS=4000) as app:
        def work():
            app.do("work 1 4")
            app.wait_counted("enabled", KINDS)
            app.do("work 1 7")

        done, recording = capture(app, tmp_path, work, options=("-v",))
        app.leave()
    assert "GPU times come later" in done.stderr and "come by CUPTI" in done.stderr, done.told
    kernels = [event.kind for event in recording.events].count("kernel")
    # For a moment by both, of which one counts.
    calls = done.recording.rows()["cudaLaunchKernel"]["calls"]
    assert (kernels, calls) == (21, 33), done.told
    assert "12 launches of kernels have no GPU times" in done.stderr, done.told
    assert done.recording.table()["gpu"]["launches_unseen"] == 12


def test_no_cupti_there(tmp_path):
    for name in ("cuda_app", "libcuda.so.1", "libcudart.so.12"):
        shutil.copy(os.path.join(gpu_truth.FAKE, name), tmp_path)
    with App(app=str(tmp_path / "cuda_app"), FAKE_CUDA_DRIVER=10000) as app:
        done, recording = capture(app, tmp_path, "work 1 5")
        app.leave()
    assert done.status == harness.DONE, done.told
    assert "no libcupti beside the process's CUDA" in done.stderr, done.told
    assert not recording.events
    # Who reads the recording later is told, too.
    assert re.search(r"no GPU times of %d: .*no libcupti beside the process's CUDA" % app.pid,
                     harness.gpuprof("table", done.recording.path).stderr)


@pytest.mark.parametrize("option", ("--no-gpu", "--no-inject"))
def test_left_out(option, tmp_path):
    with App() as app:
        done, recording = capture(app, tmp_path, "work 1 5", options=(option,))
        assert app.counted("subscribed") == 0
        app.leave()
    assert done.status == harness.DONE, done.told
    assert not recording.events and not recording.lost()
    assert bool(recording.calls) == (option == "--no-inject")


@pytest.mark.san
def test_again_and_again(tmp_path):
    """CUPTI is taken down each time when the process calls CUDA, and comes back."""
    with App() as app:
        app.do("keep 1")
        for number in range(4):
            done, recording = capture(app, tmp_path, "work 2 20", name="%d.gpuprof" % number)
            assert done.status == harness.DONE, done.told
            assert not recording.lost()
            kinds = [event.kind for event in recording.events]
            assert kinds.count("kernel") == 3 * 40 and kinds.count("copy") == 2 * 40
            assert app.counted("unsubscribed") == number + 1
        while not app.counted("finalized"):  # nobody came by in time, on a machine that is busy
            capture(app, tmp_path)
        app.do("keep 0")
        app.leave()


@pytest.mark.san
def test_buffers_that_cupti_keeps(tmp_path):
    """It may never give some back: captures that follow have as many all the same."""
    with App(FAKE_CUPTI_KEEPS=30) as app:
        for number in range(8):
            done, recording = capture(app, tmp_path, "work 2 20", name="%d.gpuprof" % number)
            assert done.status == harness.DONE, done.told
            assert not recording.lost()
            assert [event.kind for event in recording.events].count("kernel") == 3 * 40
        app.leave()


@pytest.mark.parametrize("version", (26, 27))
def test_no_buffer_left(version, tmp_path):
    """CUPTI is told so from CUDA 12.9 on; before, the stand-in aborts at that as the real one."""
    with App(FAKE_CUPTI_KEEPS=1000, FAKE_CUPTI_VERSION=version) as app:
        done, recording = capture(app, tmp_path, "work 2 20")
        app.leave()
    assert done.status == harness.LOST, done.told
    assert not recording.events and set(recording.lost()) == {"cupti_dropped"}
    if version >= 27:
        # Each launch and copy, and each of the calls that asked for them.
        assert recording.lost()["cupti_dropped"] >= 2 * 3 * 40, recording.lost()


def test_records_that_come_as_cupti_goes(tmp_path):
    """Are too late to be told, and counted."""
    with App(FAKE_CUPTI_LAST=1) as app:
        app.do("keep 1")
        for number in range(3):
            before = app.counted("finalized")
            _, recording = capture(app, tmp_path, "work 2 20", name="%d.gpuprof" % number)
            assert recording.lost().get("cupti_dropped", 0) == app.counted("finalized") - before
        while not app.counted("finalized"):
            capture(app, tmp_path)
        app.do("keep 0")
        app.leave()


def test_gpuprof_killed(tmp_path):
    with App() as app:
        with harness.Gpuprof("attach", "--pid", app.pid, "-o", tmp_path / "a") as profiler:
            profiler.wait_recording()
            app.do("work 2 20")
            profiler.kill()
        app.wait_counted("unsubscribed", 1)
        app.do("work 2 20")
        done, recording = capture(app, tmp_path, "work 2 20")
        assert done.status == harness.DONE, done.told
        assert [event.kind for event in recording.events].count("kernel") == 3 * 40
        app.leave()


def innermost(ops, tid, start, end):
    """The name of the shortest recorded range around a call, on its thread."""
    around = [(op.end - op.start, op.name) for op in ops
              if op.tid == tid and op.start <= start and end <= op.end]
    return min(around)[1] if around else None


@pytest.mark.san
@pytest.mark.parametrize("options", ((), ("--shapes",)), ids=("plain", "shapes"))
def test_launches_inside_pytorch_operators(options, tmp_path):
    """Each kernel by its call, and each call in the very range that made it."""
    steps = 20
    path = tmp_path / "truth"
    with harness.Target("bridge", "--fake", gpu_truth.FAKE) as target:
        done = harness.attach(target, tmp_path / "r", *options,
                              orders=lambda: target.step(steps))
        assert target.command("truth_gpu %s" % path) == "truth_gpu 0"
        target.leave()
    recording = gpu_truth.Recorded(tmp_path / "r")
    assert done.status == harness.DONE, done.told
    recorded, _ = gpu_truth.check(recording, gpu_truth.true_events(str(path)))
    kernels = [event for event in recorded.values() if event.kind == "kernel"]
    assert len(kernels) == steps * 2 * 3
    assert recording.ops
    for kernel in kernels:
        call = recorded["call", kernel.correlation]
        name = innermost(recording.ops, call.tid, call.start, call.end)
        assert name == kernel.what[-1].replace("kernel", "range"), (kernel, call)
    assert {event.tid for event in recorded.values() if event.kind == "call"} >= {
        target.facts["tid"]}
    rows = done.recording.table("--group-by", "shape")["rows"]
    told = bool(options) and "no shapes: " not in done.stderr
    assert told or not options or "by callback" not in done.stderr, done.told
    assert {row["input_shapes"]: row["calls"] for row in rows if row["name"] == "aten::mm"} == {
        "[[8, 8], [8, 8]]" if told else "[]": steps * 2 * 3}


@pytest.mark.parametrize("options", ((), ("--ops", "none")), ids=("ops", "no-ops"))
def test_cuda_comes_later(options, tmp_path):
    path = tmp_path / "truth"
    with harness.Target("bridge", "--fake", gpu_truth.FAKE, "--late") as target:
        def orders():
            target.step(2)
            assert target.command("load") == "loaded"
            harness.wait_until("CUPTI", lambda: int(
                target.command("counted enabled").split()[1]) >= KINDS)
            target.step(10)

        done = harness.attach(target, tmp_path / "r", *options, orders=orders)
        assert target.command("truth_gpu %s" % path) == "truth_gpu 0"
        target.leave()
    recording = gpu_truth.Recorded(tmp_path / "r")
    assert done.status == harness.DONE, done.told
    recorded, _ = gpu_truth.check(recording, gpu_truth.true_events(str(path)))
    assert [key[0] for key in recorded].count("kernel") == 10 * 2 * 3
    assert bool(recording.ops) == (not options)


@pytest.mark.san
def test_process_ends_during_the_capture(tmp_path):
    with App() as app:
        with harness.Gpuprof("attach", "--pid", app.pid, "-o", tmp_path / "r") as profiler:
            profiler.wait_recording()
            app.do("work 3 50")
            truth = app.truth(tmp_path)
            app.leave()
            assert profiler.wait() == harness.DONE, profiler.told()
            assert "has not answered" not in profiler.text("stderr"), profiler.told()
    recording = gpu_truth.Recorded(tmp_path / "r")
    assert not recording.lost()
    recorded, _ = gpu_truth.check(recording, truth)
    assert [key[0] for key in recorded].count("kernel") == 3 * 150


def traces_of(app):
    """What an attach could leave behind: mapped ranges (those without a name are the program's
    own: its record of the truth grows), descriptors, threads."""
    with open("/proc/%d/maps" % app.pid, encoding="utf-8") as maps:
        mapped = sum(len(line.split()) > 5 for line in maps)
    return mapped, harness.descriptors(app.pid), len(os.listdir("/proc/%d/task" % app.pid))


def test_cycles_leave_no_trace(tmp_path, request):
    """After the first attach, which leaves the inert library and CUPTI itself, nothing grows."""
    with App() as app:
        app.do("keep 1")
        capture(app, tmp_path, "work 1 2", options=("--memory",))
        harness.wait_until("the collector is gone", lambda: traces_of(app)[2] == 2)
        settled = traces_of(app)
        for _ in range(request.config.getoption("--cycles")):
            done, recording = capture(app, tmp_path, "work 1 2", options=("--memory",))
            assert done.status == harness.DONE, done.told
            assert [event.kind for event in recording.events].count("kernel") == 6
            harness.wait_until("all is as before", lambda: traces_of(app) == settled)
        assert not harness.text_differences(app.pid)
        app.do("keep 0")
        app.leave()


def test_killed_at_random(tmp_path, request):
    """gpuprof dies while it injects, captures or tears down; the program does not."""
    chance = random.Random(20261122)
    with App() as app:
        app.do("keep 1")
        for _ in range(request.config.getoption("--kills")):
            with harness.Gpuprof("attach", "--pid", app.pid, "-o", tmp_path / "k") as profiler:
                if chance.random() < 0.6:
                    profiler.wait_recording()
                app.do("work 1 2")
                if chance.random() < 0.4:
                    profiler.signal(signal.SIGINT)
                try:
                    profiler.process.wait(chance.random() * 0.2)
                except subprocess.TimeoutExpired:
                    pass
                profiler.kill()
            app.do("work 1 2")
        app.wait_counted("unsubscribed", app.counted("subscribed"))
        done, recording = capture(app, tmp_path, "work 1 2")
        assert done.status == harness.DONE, done.told
        assert [event.kind for event in recording.events].count("kernel") == 6
        assert not harness.text_differences(app.pid)
        app.do("keep 0")
        app.leave()
