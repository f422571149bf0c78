# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
CUPTI comes and goes while the process's threads are held outside of CUDA, on the stand-ins, which
count what the real one does not always survive.
"""

import signal

import pytest

import gpu_truth
import harness
from test_gpu import App, KINDS, capture

LEFT = "not taken down (its threads could not be held outside of CUDA"


@pytest.mark.san
@pytest.mark.parametrize("version, what", ((26, "hammer"), (130001, "graphs")))
def test_cupti_comes_and_goes_beside_no_call(version, what, tmp_path):
    """Whatever other threads do: the real one has killed processes that made CUDA graphs as it came,
    and spoilt the heap of others as it went."""
    with App(FAKE_CUPTI_VERSION=version) as app:
        app.do(what + " 3")
        held = 0
        for _ in range(10):
            before, subscribed = app.counted("beside calls"), app.counted("subscribed")
            done, _ = capture(app, tmp_path, lambda: app.wait_flushes(1), options=("-v",))
            assert done.status == harness.DONE, done.told
            # A machine with other things to do may take too long, or find no moment: then CUPTI, whose
            # records were never on, is let go of and asked for again.
            if (done.stderr.count("were held for") != 2 or "not done by then" in done.stderr or
                    app.counted("subscribed") != subscribed + 1):
                continue
            assert app.counted("beside calls") == before, done.told
            held += 1
            assert app.counted("finalized") >= held, done.told
            if held == 3:
                break
        assert held == 3, done.told
        app.do(what + " 0")
        app.leave()


def test_a_moment_between_long_waits(tmp_path):
    """A program that is outside of CUDA for a millisecond of 150: CUPTI is taken down, more often than
    not."""
    with App() as app:
        app.do("steps 150")
        outside = 0
        for _ in range(6):
            done, _ = capture(app, tmp_path, "work 1 5", options=("-v",))
            assert done.status == harness.DONE, done.told
            outside += done.stderr.count(", 0 of them in a call that waits") == 2
        assert outside > 3, done.told
        assert app.counted("finalized") >= outside
        app.kill()


def test_a_thread_that_is_long_in_a_call(tmp_path):
    """And does not wait for the GPU: CUPTI comes once it has left it."""
    with App(FAKE_CUDA_PINNED_MS=5000) as app:
        app.do("pin")
        done, recording = capture(app, tmp_path, lambda: app.wait_counted("enabled", KINDS),
                                  "work 1 5", options=("-v",))
        assert done.status == harness.DONE, done.told
        assert "no moment was found" in done.stderr, done.told
        assert [event.kind for event in recording.events].count("kernel") == 15
        assert not app.counted("beside calls") and app.counted("finalized") == 1
        app.leave()


def test_held_for_too_long(tmp_path):
    """They go on, and CUPTI, which has not been taken down by then, is not."""
    with App(FAKE_CUPTI_OFF_MS=800) as app:
        done, recording = capture(app, tmp_path, "work 1 5", options=("-v",))
        assert done.status == harness.DONE, done.told
        assert done.stderr.count("it was not done by then") == 1, done.told
        assert [event.kind for event in recording.events].count("kernel") == 15
        assert app.counted("unsubscribed") == 1 and not app.counted("finalized")
        assert done.stderr.count(LEFT) == 1, done.told
        done, _ = capture(app, tmp_path, "work 1 5")
        assert app.counted("finalized") == 1 and LEFT not in done.stderr, done.told
        app.leave()


def test_gpuprof_killed_while_it_holds_threads(tmp_path):
    """They go on at once, and CUPTI is not taken down beside them."""
    with App(FAKE_CUPTI_OFF_MS=5000) as app:
        with harness.Gpuprof("attach", "--pid", app.pid, "-o", tmp_path / "r") as profiler:
            profiler.wait_recording()
            app.do("work 1 5")
            profiler.signal(signal.SIGINT)
            harness.wait_until("held", lambda: state(app.pid) == "t")
            profiler.kill()
        app.do("hammer 2")
        app.wait_counted("unsubscribed", 1)
        assert not app.counted("finalized"), app.told()
        app.do("hammer 0")
        app.leave()


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return file.read().rsplit(") ", 1)[1][0]


def test_a_thread_that_waits_and_one_of_the_driver(tmp_path):
    """The driver's own is not held. One that waits for the GPU all the time is, in its call: CUPTI
    comes all the same, and goes, but is not taken down."""
    with App(FAKE_CUDA_THREAD=1) as app:
        app.do("wait 40000")
        done, recording = capture(app, tmp_path, "work 1 5", options=("-v",))
        assert done.status == harness.DONE, done.told
        assert done.stderr.count("its threads (2, 1 of them in a call that waits for the GPU)") == 2, done.told
        assert [event.kind for event in recording.events].count("kernel") == 15
        assert app.counted("unsubscribed") == 1 and not app.counted("finalized")
        assert done.stderr.count(LEFT) == 1, done.told
        app.kill()


def test_nothing_after_the_end(tmp_path):
    """CUPTI's records go on until threads are held, half a second here: what is called meanwhile is
    not part of the capture, nor what it launches."""
    with App() as app:
        app.do("wait 40000")
        app.do("graphs 1")
        done, _ = capture(app, tmp_path, lambda: app.wait_flushes(2))
        app.do("graphs 0")
        app.kill()
    assert done.status == harness.DONE, done.told
    events = done.recording.chrome()["traceEvents"]
    end = next(event["ts"] for event in events if event["name"] == "Record Window End")
    calls = {event["args"]["correlation"]: event["ts"] for event in events
             if event.get("cat") in ("cuda_runtime", "cuda_driver")}
    launched = [event["args"]["correlation"] for event in events
                if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync")]
    assert len(calls) > 100 and max(calls.values()) <= end
    # What was launched before the beginning may run in it.
    assert {one for one in launched if one > min(calls)} <= set(calls)


def test_taken_down_without_a_call(tmp_path):
    """A process that does nothing is not left with slower calls: one of gpuprof's own will do."""
    with App() as app:
        capture(app, tmp_path, "work 1 5")
        assert app.counted("finalized") == 1
        app.leave()


def test_cupti_that_stays(tmp_path):
    """It refuses to be taken down: that is said, and the next gpuprof finds it free."""
    with App(FAKE_CUPTI_STAYS=1) as app:
        for number in (1, 2):
            done, recording = capture(app, tmp_path, "work 1 5")
            assert done.status == harness.DONE, done.told
            assert "not taken down (CUPTI, or the driver, would not)" in done.stderr, done.told
            assert [event.kind for event in recording.events].count("kernel") == 15
            assert app.counted("unsubscribed") == number and not app.counted("finalized")
        app.leave()


def test_exit_while_it_is_taken_down(tmp_path):
    """The process ends all the same, though CUPTI waits for a call that does not."""
    with App(FAKE_CUPTI_END_MS=1000000) as app:
        with harness.Gpuprof("attach", "--pid", app.pid, "-o", tmp_path / "r") as profiler:
            profiler.wait_recording()
            app.do("work 1 5")
            profiler.signal(signal.SIGINT)
            app.wait_counted("finalized", 1)
            app.leave()
            assert profiler.wait() == harness.DONE, profiler.told()
            assert "has not answered" not in profiler.text("stderr"), profiler.told()
    recording = gpu_truth.Recorded(tmp_path / "r")
    assert [event.kind for event in recording.events].count("kernel") == 15
    assert not recording.lost()
