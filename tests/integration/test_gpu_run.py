# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
GPU times from `gpuprof run`: the collector comes by CUDA_INJECTION64_PATH, which the stand-in for
the driver heeds as the real one does.
"""

import os
import re
import shutil
import signal
import stat

import pytest

import gpu_truth
import harness
from test_gpu import APP

NOBODY = 65534
SPAWNER = """
import subprocess, sys
sys.exit(subprocess.call(sys.argv[1:]))
"""
# Libraries by their full paths, because a program with rights of its own does not look beside them.
USER = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1] + "/libcuda.so.1", ctypes.RTLD_GLOBAL)
runtime = ctypes.CDLL(sys.argv[1] + "/libcudart.so.12")
for _ in range(3):
    runtime.cudaDeviceSynchronize()
print("counted", driver.fake_gpu_counted(b"subscribed"))
"""


# What is built in asks for the library in the environment when it is first called.
ANNOTATED = """
import ctypes, sys
runtime = ctypes.CDLL(sys.argv[1] + "/libcudart.so.12")
ranges = ctypes.CDLL(sys.argv[1] + "/libnvtx_client.so")
runtime.cudaDeviceSynchronize()
ways = ("", "_long", "_clang", "_long", "")
for at, way in enumerate(ways):
    ranges["nvtx_client_push" + way](b"%d" % at)
runtime.cudaDeviceSynchronize()
print("depth", *[ranges["nvtx_client_pop" + way]() for way in reversed(ways)])
"""


class Run(harness.Child):
    """gpuprof run, whose program obeys on its standard input as tests/fake/cuda_app does."""

    def __init__(self, folder, *argv, options=(), **settings):
        self.path = os.path.join(str(folder), "run.gpuprof")
        env = dict(harness.environment(), GPUPROF_CACHE_DIR=os.path.join(str(folder), "cache"),
                   **settings)
        super().__init__([harness.GPUPROF, "run", "-o", self.path, *options, "--", *argv],
                         "gpuprof run", env=env)
        self._next = 0

    def command(self, order):
        """Gives one and waits for its answer."""
        self.send(order)
        line, self._next = self.wait_line(
            "stdout", lambda text: text.startswith(("did", "took", "counted")), self._next)
        return line

    def orders(self, *orders):
        """Gives all of them at once and waits for the end; the program's own answers."""
        for order in (*orders, "leave"):
            self.send(order)
        self.status = self.wait()
        return [line for line in self.text("stdout").splitlines()
                if line.startswith(("did", "ready", "counted"))]


@pytest.mark.san
def test_from_the_first_call(tmp_path):
    truth = tmp_path / "truth"
    with Run(tmp_path, APP) as run:
        run.orders("work 2 50", "driver 3", "calls 1", "graph 2", "truth %s" % truth)
        assert run.status == harness.DONE, run.told()
    recording = gpu_truth.Recorded(run.path)
    assert not recording.lost()
    recorded, _ = gpu_truth.check(recording, gpu_truth.true_events(str(truth)))
    kinds = [key[0] for key in recorded]
    assert kinds.count("kernel") == 300 + 3 + 3 + 4
    losses = harness.Recording(run.path).losses()
    assert not losses["api_unjoined"] and not losses["gpu_unmatched"], losses


def test_cupti_that_is_safe_from_the_start(tmp_path):
    """Before CUDA 12.2 graphs endanger it only where they were there first."""
    with Run(tmp_path, APP, FAKE_CUPTI_VERSION="18") as run:
        run.orders("work 1 5", "graph 2")
        assert run.status == harness.DONE, run.told()
    recording = gpu_truth.Recorded(run.path)
    assert [event.kind for event in recording.events].count("kernel") == 15 + 4


def test_programs_that_are_short(tmp_path):
    for number in range(5):
        truth = tmp_path / ("truth%d" % number)
        with Run(tmp_path, APP) as run:
            run.orders("driver 1", "truth %s" % truth)
            assert run.status == harness.DONE, run.told()
        recording = gpu_truth.Recorded(run.path)
        assert not recording.lost()
        recorded, _ = gpu_truth.check(recording, gpu_truth.true_events(str(truth)))
        assert [key[0] for key in recorded].count("kernel") == 1


def test_a_program_that_becomes_another(tmp_path):
    with Run(tmp_path, "sh", "-c", "exec " + APP) as run:
        run.orders("work 1 10")
        assert run.status == harness.DONE, run.told()
    recording = gpu_truth.Recorded(run.path)
    assert [event.kind for event in recording.events].count("kernel") == 30


def test_children_are_left_alone(tmp_path):
    with Run(tmp_path, harness.PYTHON, "-c", SPAWNER, APP) as run:
        said = run.orders("work 1 10", "count subscribed")
        assert run.status == harness.DONE, run.told()
    assert "counted 0" in said, said
    assert not gpu_truth.Recorded(run.path).events


def test_children_that_are_wanted(tmp_path):
    """Each brings its collector along, whenever gpuprof comes to look at it."""
    with Run(tmp_path, harness.PYTHON, "-c", SPAWNER, APP, options=("--children", "-v")) as run:
        run.wait_line("stderr", lambda line: "collector put in by CUDA" in line)
        run.orders("work 1 10", "work 1 10")
        assert run.status == harness.DONE, run.told()
    recording = gpu_truth.Recorded(run.path)
    assert [event.kind for event in recording.events].count("kernel") == 60


def test_children_that_were_there_first(tmp_path):
    """CUDA is in the child, and has brought the collector, before gpuprof comes to look."""
    waiter = ("import subprocess, sys\nprint('waits', flush=True)\nsys.stdin.buffer.raw.read(3)\n"
              + SPAWNER)
    with Run(tmp_path, harness.PYTHON, "-c", waiter, APP, options=("--children", "-v")) as run:
        run.wait_line("stdout", lambda line: line == "waits")
        run.signal(signal.SIGSTOP)
        run.send("go")
        run.wait_line("stdout", lambda line: line.startswith("ready"))
        run.signal(signal.SIGCONT)
        run.wait_line("stderr", lambda line: "calls of CUDA come by CUPTI" in line)
        run.orders("work 1 10")
        # Calls that were open when their probes went are counted.
        assert run.status in (harness.DONE, harness.LOST), run.told()
    recording = gpu_truth.Recorded(run.path)
    assert [event.kind for event in recording.events].count("kernel") == 30


@pytest.mark.parametrize("options", (("--no-gpu",), ("--no-inject",)), ids=("gpu", "inject"))
def test_not_wanted(options, tmp_path):
    with Run(tmp_path, APP, options=options) as run:
        said = run.orders("work 1 10", "count subscribed")
        assert run.status == harness.DONE, run.told()
    assert "counted 0" in said, said
    assert "no GPU times" not in run.text("stderr")
    recording = gpu_truth.Recorded(run.path)
    assert not recording.events and bool(recording.calls) == (options == ("--no-inject",))


@pytest.mark.parametrize("other", ({}, {"NVTX_INJECTION64_PATH": "/nowhere/libtool.so"}),
                         ids=("ours", "another"))
def test_ranges_of_nvtx_that_is_built_in(other, tmp_path):
    with Run(tmp_path, harness.PYTHON, "-c", ANNOTATED, gpu_truth.FAKE, **other) as run:
        assert run.wait() == harness.DONE, run.told()
        assert "depth -2 -2 -2 -2 -2" in run.text("stdout")
    ranges = [event for event in harness.Recording(run.path).chrome()["traceEvents"]
              if event.get("cat") == "user_annotation"]
    names = [event["name"] for event in sorted(ranges, key=lambda event: event["ts"])]
    # With another tool: those whose functions have symbols.
    assert names == (["0", "2", "4"] if other else ["0", "1", "2", "3", "4"])


def test_another_tool_is_there(tmp_path):
    with Run(tmp_path, APP, CUDA_INJECTION64_PATH="/nowhere/libtool.so") as run:
        run.orders("work 1 10")
        assert run.status == harness.DONE, run.told()
    assert "no GPU times: another tool uses CUDA_INJECTION64_PATH" in run.text("stderr")
    assert re.search("no GPU times of [0-9]+: another tool uses CUDA_INJECTION64_PATH",
                     harness.gpuprof("table", run.path).stderr)
    assert len(gpu_truth.Recorded(run.path).calls) > 30


def test_a_program_with_rights_of_its_own(tmp_path):
    program = str(tmp_path / "python3")
    shutil.copy(os.path.realpath(harness.PYTHON), program)
    os.chown(program, NOBODY, NOBODY)
    os.chmod(program, 0o755 | stat.S_ISUID)
    with Run(tmp_path, program, "-I", "-c", USER, gpu_truth.FAKE) as run:
        assert "counted 0" in run.orders()
        assert run.status == harness.DONE, run.told()
    assert "runs with more rights than its caller" in run.text("stderr"), run.told()
    names = [call.name for call in gpu_truth.Recorded(run.path).calls]
    assert names == ["cudaDeviceSynchronize"] * 3


def test_a_cache_that_others_may_change(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with Run(tmp_path, APP) as run:
        run.orders("work 1 1")
        assert run.status == harness.DONE, run.told()
    assert "is not a folder that only you may write to" in run.text("stderr"), run.told()


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def test_gpuprof_killed_while_the_program_is_stopped(tmp_path):
    """At a library that is just coming, in a program that has become another user's."""
    code = ("import os, sys; print(os.getpid(), flush=True); sys.stdin.readline(); import ctypes; "
            "ctypes.CDLL('libz.so.1'); print('loaded', flush=True)")
    with Run(tmp_path, "setpriv", "--reuid=65534", "--clear-groups", harness.PYTHON, "-c",
             code) as run:
        line, _ = run.wait_line("stdout", lambda line: line.isdigit())
        run.signal(signal.SIGSTOP)
        run.send("go on")
        harness.wait_until("the stop", lambda: state(int(line)) == "T")
        run.process.kill()
        run.wait_line("stdout", lambda line: line == "loaded")


def test_gpuprof_killed(tmp_path):
    """The program goes on, and CUPTI is given back."""
    orders, answers = tmp_path / "orders", tmp_path / "answers"
    os.mkfifo(orders)
    answers.touch()
    descriptor = os.open(orders, os.O_RDWR)

    def answered(order, wanted):
        os.write(descriptor, order.encode() + b"\n")
        return wanted in answers.read_text().splitlines()

    with Run(tmp_path, "sh", "-c", "exec %s <%s >%s 2>&1" % (APP, orders, answers)) as run:
        run.wait_line("stderr", lambda line: line.startswith("recording"))
        harness.wait_until("work", lambda: answered("work 1 10", "did work 1 10"))
        run.process.kill()
        run.process.wait()
        harness.wait_until("CUPTI given back",
                           lambda: answered("count unsubscribed", "counted 1"))
        harness.wait_until("more work", lambda: answered("driver 7", "did driver 7"))
        os.write(descriptor, b"leave\n")
        os.close(descriptor)
