# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings one after another in one capture: each whole by itself, together what one would be."""

import contextlib
import os
import re
import signal
import subprocess

import pytest

import harness
from harness import DONE, LOST, USAGE, gpuprof


def ctl(path, *words):
    done = gpuprof("ctl", "--socket", path, *words)
    assert done.status == DONE, done
    return done.stdout


def status(path):
    return dict(line.split(None, 1) for line in ctl(path, "status").splitlines())


def numbers(folder, name="r"):
    """Of the recordings that are there."""
    found = (re.fullmatch(name + r"[.]([0-9]+)[.]gpuprof", one) for one in os.listdir(folder))
    return sorted(int(match.group(1)) for match in found if match)


@contextlib.contextmanager
def rotating(target, folder, *options):
    """A capture that goes on, and how to talk to it."""
    path = str(folder / "r.sock")
    with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path, "-o",
                         folder / "r.gpuprof", *options) as profiler:
        profiler.wait_recording()
        yield profiler, path


def shown(recording, *options):
    """What the table says that is no time."""
    found = {}
    for row in recording.table(*options)["rows"]:
        key = (row["name"], row["device"], str(row.get("input_shapes")), str(row.get("stack")))
        numbers_of = [row.get(name) or 0 for name in ("calls", "cpu_mem", "self_cpu_mem")]
        found[key] = [a + b for a, b in zip(found.get(key, [0] * 3), numbers_of)]
    return found


@pytest.fixture(scope="module")
def rotated(recordings):
    """Three recordings of 2, 3 and 4 steps, and what the same steps are in one."""
    options = ["--memory", "--shapes", "--stack", "python"]
    folder = recordings / "rotated"
    folder.mkdir()
    with harness.Target("mlp") as target:
        with rotating(target, folder, "--rotate", "5h", *options) as (profiler, path):
            for steps in (2, 3):
                target.step(steps)
                ctl(path, "rotate")
            target.step(4)
            assert profiler.finish() == DONE, profiler.told()
            told = profiler.told()
        one = harness.attach(target, folder / "one.gpuprof", *options,
                             orders=lambda: target.step(9))
        target.leave()
    assert numbers(folder) == [1, 2, 3]
    assert "3 recordings kept, " in told
    parts = [harness.Recording(folder / ("r.%d.gpuprof" % number)) for number in (1, 2, 3)]
    done = gpuprof("merge", *(part.path for part in parts), "-o", folder / "all.gpuprof")
    assert done.status == DONE, done
    return parts, harness.Recording(folder / "all.gpuprof"), one.recording


@pytest.mark.versions
def test_each_is_whole(rotated):
    parts = rotated[0]
    tables = [part.table("--group-by", "stack:5") for part in parts]
    for number, (part, table, steps) in enumerate(zip(parts, tables, (2, 3, 4))):
        assert part.rows()["aten::mse_loss"]["calls"] == steps
        assert table["capture"]["recording_nr"] == str(number + 1)
        assert table["capture"]["capture_id"] == tables[0]["capture"]["capture_id"]
        assert all(row["name"] != "?" for row in table["rows"])
        assert any("mlp.py" in frame for row in table["rows"] for frame in row.get("stack") or [])
        losses = part.losses()
        assert not losses["names"] and not losses["process_unknown"]
        assert not losses["inputs_invalid"] and not losses.get("schemas_missing")
        names = [event["args"]["name"] for event in part.chrome()["traceEvents"]
                 if event["ph"] == "M" and event["name"] == "thread_name"]
        assert any("python" in name for name in names), names


@pytest.mark.versions
def test_together_they_are_one(rotated):
    parts, together, one = rotated
    for options in ((), ("--group-by", "shape"), ("--group-by", "stack:5")):
        assert shown(together, *options) == shown(one, *options)
    assert together.losses()["probe"] == parts[0].losses()["probe"]
    assert not together.losses()["parent_missing"]
    rows = together.rows()
    assert sum(row["self_cpu_us"] for row in rows.values()) <= together.table()["wall_us"] * 1.01
    assert rows["aten::mse_loss"]["calls"] == 9


def test_operator_open_at_the_border(tmp_path):
    """It is in the recording in which it ends, and its children are its children."""
    with harness.Target("bordered") as target:
        with rotating(target, tmp_path, "--rotate", "5h") as (profiler, path):
            assert target.command("open") == "opened"
            ctl(path, "rotate")
            assert target.command("close") == "closed"
            assert profiler.finish() == DONE, profiler.told()
        target.leave()
    first, second = (harness.Recording(tmp_path / ("r.%d.gpuprof" % nr)) for nr in (1, 2))
    assert first.rows()["aten::mm"]["calls"] == 3 and "outer" not in first.rows()
    assert second.rows()["aten::mm"]["calls"] == 2 and second.rows()["outer"]["calls"] == 1
    gpuprof("merge", first.path, second.path, "-o", tmp_path / "both.gpuprof")
    rows = harness.Recording(tmp_path / "both.gpuprof").rows()
    assert rows["aten::mm"]["calls"] == 5
    inner = rows["outer"]["cpu_total_us"] - rows["outer"]["self_cpu_us"]
    assert inner >= rows["aten::mm"]["cpu_total_us"] - 0.01


def test_old_ones_go(tmp_path):
    with harness.Target("mlp") as target:
        with rotating(target, tmp_path, "--rotate", "5h", "--keep", "3") as (profiler, path):
            for _ in range(6):
                target.step(1)
                ctl(path, "rotate")
            assert int(status(path)["recordings"]) == 6
            harness.wait_until("old ones are gone", lambda: numbers(tmp_path) == [5, 6, 7])
            assert profiler.finish() == DONE, profiler.told()
        target.leave()
    assert numbers(tmp_path) == [5, 6, 7]
    assert harness.Recording(tmp_path / "r.5.gpuprof").rows()["aten::mse_loss"]["calls"] == 1


def total_bytes(folder):
    found = 0
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            found += os.stat(folder / name).st_size
    return found


def bytes_at_once(profiler, folder):
    """No file is written and another one removed between two looks."""
    def is_stopped():
        with open("/proc/%d/stat" % profiler.pid, encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"

    os.kill(profiler.pid, signal.SIGSTOP)
    try:
        harness.wait_until("gpuprof stands still", is_stopped)
        return total_bytes(folder)
    finally:
        os.kill(profiler.pid, signal.SIGCONT)


def test_cap_is_kept(tmp_path):
    """At any moment that anyone looks."""
    cap = 4 << 20
    most = 0
    with harness.Target("mlp") as target:
        with rotating(target, tmp_path, "--max-bytes", "4M", "--memory") as (profiler, path):
            while int(status(path)["recordings"]) < 8:
                target.step(50)
                most = max(most, bytes_at_once(profiler, tmp_path))
            assert profiler.finish() == DONE, profiler.told()
        target.leave()
    assert cap / 2 < most <= cap and total_bytes(tmp_path) <= cap
    kept = numbers(tmp_path)
    assert kept[0] > 1 and kept == list(range(kept[0], kept[-1] + 1))
    for number in kept:
        recording = harness.Recording(tmp_path / ("r.%d.gpuprof" % number))
        assert recording.losses()["unwritten"] == 0
    assert any("aten::mse_loss" in harness.Recording(tmp_path / ("r.%d.gpuprof" % number)).rows()
               for number in kept)


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], check=False)
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk(small_disk):
    """The oldest go; where nothing helps it goes on and counts; when there is room it records."""
    filler = small_disk / "filler"
    with harness.Target("mlp") as target:
        with rotating(target, small_disk, "--rotate", "5h", "--memory") as (profiler, path):
            for _ in range(3):
                target.step(5)
                ctl(path, "rotate")
            assert 1 in numbers(small_disk)
            while 1 in numbers(small_disk):
                target.step(50)
            assert profiler.running()
            with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
            while not int(status(path)["lost"]):
                target.step(50)
            assert profiler.running()
            filler.unlink()
            harness.wait_until("it records again",
                               lambda: status(path)["writing"] == "yes")
            target.step(3)
            assert profiler.finish() == LOST, profiler.told()
            assert "the disk is full" in profiler.told()
        target.leave()
    last = harness.Recording(small_disk / ("r.%d.gpuprof" % numbers(small_disk)[-1]))
    assert last.losses()["unwritten"] > 0
    assert last.rows()["aten::mse_loss"]["calls"] >= 3


def test_killed(tmp_path):
    """What has ended is whole, what was in progress is there to its last second, and the target
    goes on."""
    with harness.Target("mlp") as target:
        with rotating(target, tmp_path, "--rotate", "5h") as (profiler, path):
            target.step(2)
            ctl(path, "rotate")
            target.step(3)
            ctl(path, "dump")
            profiler.signal(signal.SIGKILL)
            profiler.wait()
        target.step(5)
        target.leave()
    first, second = (harness.Recording(tmp_path / ("r.%d.gpuprof" % nr)) for nr in (1, 2))
    assert "damage" not in first.table()["capture"] and "damage" in second.table()["capture"]
    assert first.rows()["aten::mse_loss"]["calls"] == 2
    assert second.rows()["aten::mse_loss"]["calls"] == 3


@pytest.mark.parametrize("options, reason", [
    (["--keep", "3"], "give --rotate or --max-bytes"),
    (["--rotate", "0"], "above 0"),
    (["--rotate", "1m", "--steps", "3"], "--steps and --rotate exclude each other"),
    (["--max-bytes", "1G", "--trace", "a.json"], "written from one recording"),
    (["--max-bytes", "1000"], "at least 1048576"),
])
def test_refused(options, reason):
    done = gpuprof("attach", "--pid", str(os.getpid()), *options)
    assert done.status == USAGE and reason in done.stderr, done
