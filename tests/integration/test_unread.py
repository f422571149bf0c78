# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Files that gpuprof cannot open for a while (tests/fake/fail_open.c): what they would tell is shown as
not known and counted meanwhile, and told again afterwards.
"""

import contextlib
import errno
import os
import re

import pytest

import harness
from test_rotate import ctl, numbers

FAIL_OPEN = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "fake", "fail_open.so")
LIBRARY = "/libtorch_cpu.so"


class Switch:
    """A file; while it is there opens fail."""

    def __init__(self, path):
        self.path = str(path)

    def on(self):
        with open(self.path, "x", encoding="ascii"):
            pass

    def off(self):
        os.unlink(self.path)


def failing(switch, path, **settings):
    """The environment in which opens fail of files whose path has this in it."""
    env = harness.environment()
    env.update(LD_PRELOAD=FAIL_OPEN, GPUPROF_TEST_OPEN_PATH=path,
               GPUPROF_TEST_OPEN_WHILE=switch.path)
    # A sanitizer's library wants to be the first.
    env["ASAN_OPTIONS"] += ":verify_asan_link_order=0"
    env.update({"GPUPROF_TEST_OPEN_" + name.upper(): str(value)
                for name, value in settings.items()})
    return env


class Sampling:
    """A capture that takes samples, in recordings that end when they are asked for."""

    def __init__(self, target, folder, profiler, path):
        self.target, self.folder, self.profiler, self.path = target, folder, profiler, path

    def recording(self):
        """The next one, of some work in each operator."""
        at = numbers(self.folder)[-1]
        self.target.command("spend 0.3")
        ctl(self.path, "rotate")
        harness.wait_until("the next recording",
                           lambda: numbers(self.folder)[-1] > at and self.ended(at))
        return harness.Recording(self.folder / ("r.%d.gpuprof" % at))

    def ended(self, number):
        status = dict(line.split(None, 1) for line in ctl(self.path, "status").splitlines())
        return int(status["recordings"]) >= number

    def until(self, wanted):
        """The first recording that is as wanted."""
        found = []

        def look():
            found.append(self.recording())
            return wanted(found[-1])

        harness.wait_until("a recording as wanted", look)
        return found[-1]


@contextlib.contextmanager
def sampling(folder, env):
    path = str(folder / "r.sock")
    with harness.Target("sampled") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path, "--rotate", "5h",
                             "-o", folder / "r.gpuprof", "--mode", "sample", "--hz",
                             harness.SAMPLED_BY["timer"], env=env) as profiler:
            profiler.wait_recording()
            yield Sampling(target, folder, profiler, path)
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()


def rows_in(recording, words):
    """Rows by stack that have a frame with these words."""
    rows = recording.table("--group-by", "stack:200")["rows"]
    return [row for row in rows if any(words in frame for frame in row.get("stack", []))]


@pytest.mark.parametrize("first,words", [(1, "libtorch_cpu.so"), (2, "at::_ops::")])
def test_symbols(tmp_path, first, words):
    """The file's symbols, which are read first, or the names of operators in it."""
    switch = Switch(tmp_path / "on")
    with sampling(tmp_path, failing(switch, LIBRARY, first=first)) as capture:
        switch.on()
        unknown = capture.recording()
        switch.off()
        rows = rows_in(unknown, words)
        assert rows and {row["name"] for row in rows} == {"[not known]"}, unknown.table()
        assert unknown.losses()["stack_incomplete"] > 0
        capture.until(lambda one: "aten::exp" in {row["name"] for row in one.table()["rows"]})
        known = capture.recording()
        assert {row["name"] for row in rows_in(known, "at::_ops::exp::")} == {"aten::exp"}


def test_unwind_table(tmp_path):
    """Stacks end at code whose table could not be read, and go on through it once it can."""
    switch = Switch(tmp_path / "on")
    with sampling(tmp_path, failing(switch, "/libsleef.so")) as capture:
        switch.on()
        unknown = capture.recording()
        switch.off()
        rows = rows_in(unknown, "libsleef.so")
        assert rows and {row["name"] for row in rows} == {"[not known]"}, unknown.table()
        assert unknown.losses()["unwind_table"] > 0
        capture.until(lambda one: "aten::exp" in {row["name"]
                                                  for row in rows_in(one, "libsleef.so")})


@pytest.mark.parametrize("first", [1, 2], ids=["look", "probe"])
def test_new_library(tmp_path, first):
    """That it cannot be probed, the first time, is said, and it is probed as soon as it can be."""
    switch = Switch(tmp_path / "on")
    path = tmp_path / "r.gpuprof"
    with harness.Target("late") as target:
        with harness.Gpuprof("attach", "-v", "--pid", target.pid, "--wait", "--no-inject", "-o", path,
                             env=failing(switch, LIBRARY, first=first, number=1)) as profiler:
            profiler.wait_recording()
            switch.on()
            assert target.command("load").startswith("loaded")
            profiler.wait_line("stderr", lambda line: "new libraries cannot be probed" in line)
            profiler.wait_line("stderr", lambda line: re.search(r": \d{4,} probes more", line))
            target.step(4)
            assert profiler.finish() in (harness.DONE, harness.LOST), profiler.told()
        target.leave()
    assert harness.Recording(path).rows()["aten::add"]["calls"] == 40


def test_new_library_on_a_disk_that_fails(tmp_path):
    """What is not known of it is counted, and the rest goes on."""
    switch = Switch(tmp_path / "on")
    path = tmp_path / "r.gpuprof"
    with harness.Target("late") as target:
        with harness.Gpuprof("attach", "-v", "--pid", target.pid, "--wait", "--no-inject", "-o", path,
                             env=failing(switch, LIBRARY, errno=errno.EIO)) as profiler:
            profiler.wait_recording()
            switch.on()
            assert target.command("load").startswith("loaded")
            profiler.wait_line("stderr", lambda line: re.search(r"libtorch_cpu.*Input/output", line))
            profiler.wait_line("stderr", lambda line: re.search(r": \d+ probes more", line))
            profiler.finish()
        target.leave()
    assert harness.Recording(path).losses()["probe"] > 0
