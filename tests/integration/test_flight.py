# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The flight recorder: what happened before something went wrong, and what that was."""

import contextlib
import os
import signal

import pytest

import harness
from harness import DONE, USAGE, gpuprof
from test_rotate import ctl, numbers, rotating, status


def flying(target, folder, *options):
    return rotating(target, folder, "--flight", "5h", "--trigger-apart", "0.001", *options)


def dumps(folder):
    return [harness.Recording(folder / ("r.%d.gpuprof" % number)) for number in numbers(folder)]


def triggered(folder, kind, steps=None):
    """The recording that was written because of this, once there is one."""
    found = []

    def there():
        for dump in dumps(folder)[len(found):]:
            found.append(dump)
        return any(one["kind"] == kind for dump in found for one in dump.table()["triggers"])

    harness.wait_until("a recording because of: " + kind, there)
    for dump in found:
        for one in dump.table()["triggers"]:
            if one["kind"] == kind:
                return dump, one
    raise harness.HarnessError(kind)


def step_until(target, what, condition):
    for _ in range(10000):
        if condition():
            return
        target.step(1)
    raise harness.HarnessError("did not come: " + what)


def refuse(target, seconds):
    """Memory is refused within an annotation that goes on for so long."""
    assert target.command("refuse %g" % seconds) == "refused"
    return target.answer()


@pytest.mark.versions
def test_slow_step(tmp_path):
    options = ["--trigger", "slow-step=20", "--stack", "python"]
    with harness.Target("stalls") as target:
        with flying(target, tmp_path, *options) as (profiler, path):
            target.step(30)
            assert target.command("stall") == "stalled"
            # It ends where the next one begins.
            step_until(target, "the slow step", lambda: numbers(tmp_path) != [])
            dump, trigger = triggered(tmp_path, "slow step")
            assert profiler.finish() == DONE, profiler.told()
            assert "trigger: a slow step" in profiler.told()
        target.leave()
    assert trigger["us"] >= 1.2e6 and trigger["us"] > trigger["bound_us"]
    assert abs(trigger["bound_us"] - 20 * trigger["usual_us"]) < 1
    assert trigger["usual_us"] >= 20000 and trigger["step"] >= 20
    assert trigger["pid"] == target.pid and trigger["tid"] == target.facts["tid"]
    assert 0 < trigger["time_us"] <= dump.table()["wall_us"]
    # What is to blame, above all else.
    top = dump.table("--group-by", "stack:1")["rows"][0]
    assert top["name"] == "aten::mm" and "multiply_for_long" in top["stack"][0]
    assert dump.rows()["Optimizer.step#SGD.step"]["calls"] >= 30
    assert dump.table()["losses"]["triggers_skipped"] == 0
    text = gpuprof("table", dump.path).stdout
    assert text.startswith("Trigger at ") and "slow step: step " in text.splitlines()[0]
    marks = [event for event in dump.chrome()["traceEvents"] if event.get("cat") == "trigger"]
    assert len(marks) == 1 and marks[0]["name"] == "Trigger: slow step"
    assert "are usual" in marks[0]["args"]["why"]


@pytest.mark.versions
@pytest.mark.parametrize("how", ((), ("--no-inject",)), ids=("callback", "uprobes"))
def test_out_of_memory(tmp_path, how):
    """The ops in which it was refused are there too, though they end after that."""
    options = ["--trigger", "oom", "--stack", "python", *how]
    with harness.Target("stalls") as target:
        with flying(target, tmp_path, *options) as (profiler, _):
            target.step(3)
            assert refuse(target, 0.1) == "went on"
            dump, trigger = triggered(tmp_path, "out of memory")
            assert profiler.finish() == DONE, profiler.told()
        target.leave()
    assert trigger["bytes"] == 2 << 30
    refused = dump.table()["out_of_memory"][0]
    assert refused["bytes"] == 2 << 30 and refused["op"] == "aten::empty"
    rows = dump.table("--group-by", "stack:3")["rows"]
    assert any(row["name"] == "too much" and "ask_for_too_much" in str(row["stack"])
               for row in rows if row.get("stack"))
    assert dump.rows()["Optimizer.step#SGD.step"]["calls"] == 3


def test_ops_that_stay_open_are_not_waited_for(tmp_path):
    with harness.Target("stalls") as target:
        with flying(target, tmp_path, "--trigger", "oom") as (profiler, _):
            assert target.command("refuse 30") == "refused"
            dump, _ = triggered(tmp_path, "out of memory")
            assert profiler.finish() == DONE, profiler.told()
        target.kill()
    assert dump.table()["out_of_memory"][0]["op"] == "aten::empty"
    assert "too much" not in dump.rows()


def test_what_it_dies_of(tmp_path):
    """It is killed before what refused it has ended: the recording is written all the same."""
    with harness.Target("stalls") as target:
        with flying(target, tmp_path, "--trigger", "oom") as (profiler, _):
            assert target.command("refuse 30") == "refused"
            target.kill()
            assert profiler.wait() == DONE, profiler.told()
    dump, = dumps(tmp_path)
    assert [one["kind"] for one in dump.table()["triggers"]] == ["out of memory"]
    assert dump.table()["out_of_memory"][0]["op"] == "aten::empty"


@pytest.mark.versions
def test_hang(tmp_path):
    with harness.Target("stalls") as target:
        with flying(target, tmp_path, "--trigger", "hang=1", "--stack", "python") as (profiler, _):
            target.step(5)
            assert target.command("hang") == "hanging"
            dump, trigger = triggered(tmp_path, "hang")
            target.send("go on")
            assert target.answer() == "went on"
            assert profiler.finish() == DONE, profiler.told()
        target.leave()
    assert trigger["us"] >= 1e6 and trigger["bound_us"] == 1e6
    stacks = {thread["tid"]: thread["stack"] for thread in trigger["threads"]}
    assert "wait_for_a_word" in stacks[target.facts["tid"]][0]
    text = gpuprof("table", dump.path).stdout
    assert "hang: no " in text and "wait_for_a_word" in text


def test_asked_for(tmp_path):
    """By ctl and by a signal; the capture goes on, and what was held may be written twice."""
    with harness.Target("mlp") as target:
        with flying(target, tmp_path, "--trigger", "signal") as (profiler, path):
            target.step(2)
            done = harness.gpuprof("ctl", "--socket", path, "rotate")
            assert done.status == harness.FAILED and done.stderr == (
                "gpuprof: the flight recorder writes what it holds at 'dump'\n"), done
            said = ctl(path, "dump").strip()
            assert said == str(tmp_path / "r.1.gpuprof")
            target.step(3)
            profiler.signal(signal.SIGUSR2)
            second, _ = triggered(tmp_path, "signal")
            assert float(status(path)["holds"].split()[0]) > 0
            assert profiler.finish() == DONE, profiler.told()
            assert "2 recordings written" in profiler.told()
        target.leave()
    first = harness.Recording(said)
    assert [one["kind"] for one in first.table()["triggers"]] == ["asked for"]
    assert first.rows()["aten::mse_loss"]["calls"] == 2
    assert second.rows()["aten::mse_loss"]["calls"] == 5
    assert sorted(os.listdir(tmp_path)) == ["r.1.gpuprof", "r.2.gpuprof"]


def test_too_soon_is_counted(tmp_path):
    with harness.Target("stalls") as target:
        with rotating(target, tmp_path, "--flight", "5h", "--trigger", "oom") as (profiler, path):
            refuse(target, 0.1)
            triggered(tmp_path, "out of memory")
            harness.wait_until("it is done", lambda: len(numbers(tmp_path)) == 1)
            refuse(target, 0.1)
            target.step(1)
            ctl(path, "dump")
            assert profiler.finish() == DONE, profiler.told()
            assert "1 more trigger came too soon" in profiler.told()
        target.leave()
    last = dumps(tmp_path)[-1]
    assert last.table()["losses"]["triggers_skipped"] == 1
    assert [one["kind"] for one in last.table()["triggers"]] == ["out of memory", "out of memory",
                                                               "asked for"]


def memory_files(pid):
    """Bytes of the files that a process holds in memory."""
    found = {}
    for name in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, name)
        with contextlib.suppress(FileNotFoundError):
            if "gpuprof-flight" in os.readlink(path):
                found[os.stat(path).st_ino] = os.stat(path).st_size
    return sum(found.values())


def test_memory_is_fixed(tmp_path):
    """By how much was recorded, not by time: several times what it may hold."""
    held, kept = [], []
    with harness.Target("mlp") as target:
        with flying(target, tmp_path, "--flight-bytes", "4M", "--memory") as (profiler, path):
            while int(status(path)["bytes"]) < 12 << 20:
                target.step(100)
                held.append(memory_files(profiler.pid))
                if int(status(path)["bytes"]) > 6 << 20:
                    kept.append(harness.anonymous_kib(profiler.pid))
            ctl(path, "dump")
            assert max(held) <= 4 << 20 and held[-1] > 2 << 20
            assert max(kept) < kept[0] + 8192
            assert profiler.finish() == DONE, profiler.told()
            assert "of 18000.0 s are held" in profiler.told()
        target.leave()
    assert dumps(tmp_path)[0].rows()["aten::mse_loss"]["calls"] > 0


def test_killed(tmp_path):
    """Nothing is left behind, and the target goes on."""
    with harness.Target("mlp") as target:
        with flying(target, tmp_path) as (profiler, path):
            target.step(5)
            profiler.signal(signal.SIGKILL)
            profiler.wait()
        target.step(5)
        target.leave()
    assert [name for name in os.listdir(tmp_path) if name.endswith(".gpuprof")] == []


@pytest.mark.parametrize("options, reason", [
    (["--trigger", "oom"], "give --flight SEC too"),
    (["--flight", "30s", "--trigger", "slow-step"], "--trigger"),
    (["--flight", "30s", "--trigger", "slow-step=0.5"], "--trigger"),
    (["--flight", "30s", "--steps", "3"], "leave out --steps"),
    (["--flight", "30s", "--flight-bytes", "1M"], "at least"),
])
def test_refused(options, reason):
    done = gpuprof("attach", "--pid", str(os.getpid()), *options)
    assert done.status == USAGE and reason in done.stderr, done
