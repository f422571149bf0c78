# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Several recordings as one."""

import os
import subprocess

import harness
from harness import DONE, FAILED, USAGE, gpuprof


def calls(recording):
    return {row["name"]: row["calls"] for row in recording.table()["rows"]}


def slices(recording, pid):
    """What one process did, from its first event on."""
    events = [event for event in recording.chrome()["traceEvents"]
              if event["ph"] == "X" and event["pid"] == pid]
    first = min(event["ts"] for event in events)
    return sorted((round(event["ts"] - first, 3), event["tid"], event["name"], event["dur"])
                  for event in events)


def test_two_processes(tmp_path):
    parts = []
    for name in ("mlp", "lstm"):
        with harness.Target(name) as target:
            target.step(1)
            done = harness.attach(target, tmp_path / (name + ".gpuprof"),
                                  orders=lambda target=target: target.step(5))
            target.leave()
        assert done.status == DONE, done.told
        parts.append((done.recording, target.pid))
    path = tmp_path / "both.gpuprof"
    done = gpuprof("merge", *(part.path for part, _ in parts), "-o", path)
    assert done.status == DONE, done.stderr
    assert not done.stderr, done.stderr
    # What takes a pipe's place is the same recording, and nothing is said of it either.
    done = subprocess.run([harness.GPUPROF, "merge", *(part.path for part, _ in parts),
                           "-o", "/dev/stdout"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=harness.environment(), check=False)
    assert (done.returncode, done.stderr) == (DONE, b"") and done.stdout == path.read_bytes()
    # So it is in a file that is the standard output, whose link stays one.
    link, out = tmp_path / "stdout", tmp_path / "out"
    link.symlink_to("/proc/self/fd/1")
    for name in (str(link), "-"):
        with open(out, "wb") as file:
            done = subprocess.run([harness.GPUPROF, "merge", *(part.path for part, _ in parts),
                                   "-o", name], stdout=file, env=harness.environment(),
                                  check=False)
        assert done.returncode == DONE and out.read_bytes() == path.read_bytes()
    assert link.is_symlink() and os.readlink("/dev/stdout") == "/proc/self/fd/1"
    both = harness.Recording(path)
    expected = calls(parts[0][0])
    for name, number in calls(parts[1][0]).items():
        expected[name] = expected.get(name, 0) + number
    assert calls(both) == expected
    assert set(both.losses()) == set(parts[0][0].losses())
    capture = both.table()["capture"]
    assert capture["merged"] == "2" and capture["clocks"] == "one"
    # Each event where and when it was; the time of day is told anew.
    for part, pid in parts:
        assert slices(both, pid) == slices(part, pid) != []


def test_what_cannot_be_merged(sample, tmp_path):
    path = sample("mlp").recording.path
    other = tmp_path / "other"
    other.write_bytes(b"no recording")
    out = tmp_path / "out.gpuprof"
    done = gpuprof("merge", path, path, "-o", out)
    assert done.status == FAILED and "at the same time: merge only one of them" in done.stderr
    done = gpuprof("merge", path, other, "-o", out)
    assert done.status == FAILED and str(other) in done.stderr
    done = gpuprof("merge", path, "-o", out)
    assert done.status == USAGE and "recordings" in done.stderr
    done = gpuprof("merge", path, other)
    assert done.status == USAGE and "-o OUT" in done.stderr
    done = gpuprof("merge", path, other, "-o", other)
    assert done.status == USAGE and "name another file" in done.stderr
    assert other.read_bytes() == b"no recording"
    assert sorted(tmp_path.iterdir()) == [other]


def test_what_is_not_whole_is_told(sample, tmp_path):
    path = sample("mlp").recording.path
    cut = tmp_path / "cut.gpuprof"
    with open(path, "rb") as file:
        whole = file.read()
    cut.write_bytes(whole[:-30])
    with harness.Target("alloc") as target:
        done = harness.attach(target, tmp_path / "alloc.gpuprof",
                              orders=lambda: target.step(1))
        target.leave()
    out = tmp_path / "out.gpuprof"
    merged = gpuprof("merge", cut, done.recording.path, "-o", out)
    assert merged.status == DONE and "is not whole" in merged.stderr
    shown = gpuprof("table", out)
    assert shown.status == DONE and "not all that was merged" in shown.stderr
