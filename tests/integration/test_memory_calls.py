# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Allocations and frees of CPU memory told within the process: two words of libc10's table lead
through the collector while a capture wants them, and are as before afterwards, however it ends.
"""

import os
import shutil
import signal
import struct
import subprocess

import pytest

import harness
from harness import Gpuprof, Recording, Target, attach, wait_until

pytestmark = pytest.mark.versions

DONE, LOST = 0, 3
NAMES = ("_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm",
         "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv")
STEPS = 5
# Of workload "alloc", a step: empty, zeros and ones, each an allocation and a free.
CALLS = 6
REPORTER = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "reporter.so")


def mappings(pid):
    """(begin, end, rights, path) of each that has a file."""
    with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as maps:
        for line in maps:
            fields = line.split(None, 5)
            begin, end = (int(part, 16) for part in fields[0].split("-"))
            yield begin, end, fields[1], fields[5].strip() if len(fields) > 5 else ""


def places(pid):
    """Where the words lie, by the function that is called."""
    base, end = next((begin, end) for begin, end, _, path in mappings(pid)
                     if os.path.basename(path).startswith("libc10.so"))
    listing = subprocess.run(["readelf", "--wide", "--relocs",
                              "/proc/%d/map_files/%x-%x" % (pid, base, end)],
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = (line.split() for line in listing.splitlines() if "JUMP_SLO" in line)
    found = {row[4]: base + int(row[0], 16) for row in rows if row[4] in NAMES}
    assert len(found) == len(NAMES)
    return found


def words(pid):
    """What the words are, and the rights of their pages."""
    rights = {name: next(right for begin, end, right, _ in mappings(pid) if begin <= at < end)
              for name, at in places(pid).items()}
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        found = {}
        for name, at in places(pid).items():
            memory.seek(at)
            found[name] = (struct.unpack("<Q", memory.read(8))[0], rights[name])
        return found


def write_words(pid, values):
    with open("/proc/%d/mem" % pid, "r+b", buffering=0) as memory:
        for name, at in places(pid).items():
            memory.seek(at)
            memory.write(struct.pack("<Q", values[name][0]))


def told_within(recording):
    return recording.table()["overhead"]["callback_memory"]


def check_alloc(recording, target, steps):
    """Each allocation once and by its operator."""
    for name, size in target.facts["allocated"].items():
        row = recording.rows()[name]
        assert row["cpu_mem"] == steps * size, name


@pytest.fixture(scope="module")
def alloc():
    with Target("alloc") as target:
        yield target
        target.leave()


@pytest.mark.parametrize("options", [(), ("--stack", "python", "--shapes")], ids=["plain", "all"])
def test_words_change_and_change_back(alloc, tmp_path, options):
    before, during = words(alloc.pid), {}
    assert len({word for word, _ in before.values()}) == 2

    def orders():
        alloc.step(STEPS)
        during.update(words(alloc.pid))

    capture = attach(alloc, tmp_path / "r.gpuprof", "--memory", *options, orders=orders)
    assert capture.status == DONE, capture.told
    assert words(alloc.pid) == before
    for name in NAMES:
        assert during[name][0] != before[name][0]
        assert during[name][1] == before[name][1]
    check_alloc(capture.recording, alloc, STEPS)
    # All of them, and no probe has told of one.
    assert told_within(capture.recording) == CALLS * STEPS


def test_nothing_is_changed_without_memory(alloc, tmp_path):
    before, during = words(alloc.pid), {}
    attach(alloc, tmp_path / "r.gpuprof", orders=lambda: during.update(words(alloc.pid)))
    assert during == before


def test_killed(tmp_path):
    with Target("alloc") as target:
        before = words(target.pid)
        with Gpuprof("attach", "--memory", "--pid", target.pid, "-o", tmp_path / "r") as profiler:
            profiler.wait_recording()
            target.step(STEPS)
            assert words(target.pid) != before
            profiler.signal(signal.SIGKILL)
            assert profiler.wait() == -signal.SIGKILL
        target.step(STEPS)
        wait_until("the words are as before", lambda: words(target.pid) == before)
        target.step(STEPS)
        target.leave()


def test_again_and_again_while_threads_allocate(tmp_path, request):
    cycles = max(2, request.config.getoption("--cycles") // 10)
    with Target("threads", "--endless") as target:
        before = words(target.pid)
        for cycle in range(cycles):
            path = tmp_path / ("%d.gpuprof" % cycle)
            with Gpuprof("attach", "--memory", "--pid", target.pid, "-o", path) as profiler:
                profiler.wait_recording()
                if cycle % 2:
                    profiler.kill()
                else:
                    assert profiler.finish() in (DONE, LOST), profiler.told()
            wait_until("the words are as before", lambda: words(target.pid) == before)
        target.kill()


def test_forks_meanwhile(tmp_path):
    with Target("forker") as target:
        before = words(target.pid)
        capture = attach(target, tmp_path / "r.gpuprof", "--memory",
                         orders=lambda: target.step(1))
        assert capture.status == DONE, capture.told
        assert words(target.pid) == before
        target.leave()


def reporter(pid):
    """The words as a library would have them that wraps the same calls."""
    base = next(begin for begin, _, _, path in mappings(pid)
                if os.path.basename(path) == os.path.basename(REPORTER))
    listing = subprocess.run(["readelf", "--wide", "--dyn-syms", REPORTER], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    found = {row[7]: base + int(row[1], 16) for row in map(str.split, listing.splitlines())
             if row[7:] in (["reporter_new"], ["reporter_delete"])}
    return {name: (found[own], "") for name, own in zip(NAMES, ("reporter_new", "reporter_delete"))}


def test_somebody_else_is_in_between(tmp_path, monkeypatch):
    """Another library wraps the same calls: they come by probes, as without a collector."""
    preload = REPORTER
    if harness.ROOT_DIR:
        preload = os.path.join(harness.inside().folder, os.path.basename(REPORTER))
        shutil.copy(REPORTER, preload)
        preload = harness.inside().inner(preload)
    monkeypatch.setenv("LD_PRELOAD", preload)
    with Target("alloc") as target:
        monkeypatch.delenv("LD_PRELOAD")
        write_words(target.pid, reporter(target.pid))
        before = words(target.pid)
        capture = attach(target, tmp_path / "r.gpuprof", "-v", "--memory",
                         orders=lambda: target.step(STEPS))
        assert capture.status == DONE, capture.told
        assert "allocations by uprobes" in capture.stderr, capture.told
        assert words(target.pid) == before
        check_alloc(capture.recording, target, STEPS)
        assert told_within(capture.recording) == 0
        target.leave()


def test_somebody_else_puts_them_back(tmp_path):
    path = tmp_path / "r.gpuprof"
    with Target("alloc") as target:
        before = words(target.pid)
        with Gpuprof("attach", "--memory", "--pid", target.pid, "-o", path) as profiler:
            profiler.wait_recording()
            target.step(STEPS)
            write_words(target.pid, before)
            profiler.wait_line("stderr",
                               lambda text: "allocations can no longer be told" in text)
            target.step(STEPS)
            assert profiler.finish() == LOST, profiler.told()
        assert words(target.pid) == before
        recording = Recording(path)
        check_alloc(recording, target, 2 * STEPS)
        assert told_within(recording) == CALLS * STEPS
        assert recording.losses()["collector_left"] == 1
        target.leave()
