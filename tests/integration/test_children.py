# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that the processes of a capture start."""

import contextlib
import os
import re
import resource
import signal

import pytest

from harness import DONE, GPUPROF, Gpuprof, Recording, Target, gpuprof, wait_until
from rank_job import RANKS, RankJob

STEPS = 7


def number(answer):
    return int(answer.split()[1])


def calls(recording):
    """(pid, name) -> calls, of the two operators that the workload is made of."""
    found = {}
    for event in recording.chrome()["traceEvents"]:
        if event["ph"] == "X" and event["name"] in ("aten::add", "aten::sigmoid"):
            key = int(event["pid"]), event["name"]
            found[key] = found.get(key, 0) + 1
    return found


def recorded(profiler, pid):
    profiler.wait_line("stderr", lambda text: "child %d is recorded" % pid in text)


def probed(profiler, pid):
    """Operators of libraries that came later."""
    profiler.wait_line("stderr", lambda text: re.search(r"\b%d: \d{4,} probes more" % pid, text))


@pytest.mark.versions
@pytest.mark.parametrize("how", ((), ("--no-inject",)), ids=("callback", "uprobes"))
def test_before_and_after(tmp_path, how):
    """One child is there already, one is forked meanwhile, one is another program first."""
    with Target("children") as target:
        early = number(target.command("fork early"))
        with Gpuprof("-v", "attach", "--pid", target.pid, "--children", "-o",
                     tmp_path / "a.gpuprof", *how) as profiler:
            profiler.wait_recording()
            late = number(target.command("fork late"))
            recorded(profiler, late)
            other = number(target.command("spawn other"))
            probed(profiler, other)
            target.step(STEPS)
            for name, steps in ("early", 2), ("late", 3), ("other", 4):
                assert target.command("child %s %d" % (name, steps)) == "did %d" % steps
            assert target.command("end early") == "%d left with 0" % early
            target.step(1)
            status = profiler.finish()
        for name, pid in ("late", late), ("other", other):
            assert target.command("end " + name) == "%d left with 0" % pid
        target.leave()
    assert status == DONE, profiler.told()
    recording = Recording(tmp_path / "a.gpuprof")
    assert calls(recording) == {
        (target.pid, "aten::add"): 10 * (STEPS + 1),
        (early, "aten::sigmoid"): 20,
        (late, "aten::sigmoid"): 30,
        (other, "aten::sigmoid"): 40,
    }
    losses = recording.losses()
    assert losses["child_late"] == 2 and losses["child_missed"] == 0
    assert losses["ring_full"] == losses["record"] == 0


@contextlib.contextmanager
def becoming(path):
    """A child that is a static program and becomes another at "child one go": all three, and what
    it did then is looked at."""
    first = os.path.join(os.path.dirname(GPUPROF), "tests", "fake", "becomes")
    with Target("children") as target:
        with Gpuprof("-v", "attach", "--pid", target.pid, "--children", "-o", path,
                     "--no-inject") as profiler:
            profiler.wait_recording()
            pid = number(target.command("becomes one " + first))
            recorded(profiler, pid)
            yield target, profiler, pid
            probed(profiler, pid)
            assert target.command("child one 3") == "did 3"
            assert target.command("end one") == "%d left with 0" % pid
            status = profiler.finish()
        target.leave()
    assert status == DONE, profiler.told()
    assert calls(Recording(path)) == {(pid, "aten::sigmoid"): 30}


def test_one_that_had_no_loader_before(tmp_path):
    """Nothing of a static program is probed; what it becomes by exec is probed from its start."""
    with becoming(tmp_path / "s.gpuprof") as (target, _, pid):
        assert target.command("child one go") == "here %d" % pid


def test_one_that_could_not_be_looked_at_in_time(tmp_path):
    """gpuprof can open nothing while it becomes another program: it looks again until it can."""
    with becoming(tmp_path / "t.gpuprof") as (target, profiler, pid):
        _, most = resource.prlimit(profiler.pid, resource.RLIMIT_NOFILE)
        usual = resource.prlimit(profiler.pid, resource.RLIMIT_NOFILE, (3, most))
        assert target.command("child one go") == "here %d" % pid
        wait_until("it says so", lambda: "cannot be probed" in profiler.text("stderr"))
        resource.prlimit(profiler.pid, resource.RLIMIT_NOFILE, usual)
    assert profiler.text("stderr").count("new libraries cannot be probed: ") == 1


@pytest.mark.versions
def test_children_that_calculate_while_they_are_probed(tmp_path):
    """Probes come one by one: until all are there nothing of the process is taken for an event."""
    with Target("children") as target:
        with Gpuprof("-v", "attach", "--pid", target.pid, "--children", "-o",
                     tmp_path / "b.gpuprof", "--memory") as profiler:
            profiler.wait_recording()
            for name in "abcdef":
                recorded(profiler, number(target.command("busy " + name)))
                assert target.command("end " + name).endswith("left with 0")
            profiler.finish()
        target.leave()
    recording = Recording(tmp_path / "b.gpuprof")
    losses = recording.losses()
    assert losses["record"] == 0
    # What was open when the last probe came: a sigmoid, and what it calls.
    assert losses["open_at_start"] <= 6 * 2 and losses["nesting_repaired"] == 0
    assert losses["child_late"] == 6 and losses["child_missed"] == 0


def test_nothing_is_kept_open_of_those_that_ended(tmp_path):
    def watched(pid):
        found = 0
        for name in os.listdir("/proc/%d/fd" % pid):
            # Some are closed meanwhile.
            with contextlib.suppress(FileNotFoundError):
                found += "pidfd" in os.readlink("/proc/%d/fd/%s" % (pid, name))
        return found

    with Target("children") as target:
        with Gpuprof("-v", "attach", "--pid", target.pid, "--children", "-o",
                     tmp_path / "o.gpuprof", "--no-inject") as profiler:
            profiler.wait_recording()
            alone = watched(profiler.pid)
            for name in "abc":
                pid = number(target.command("fork " + name))
                recorded(profiler, pid)
                assert watched(profiler.pid) == alone + 1
                target.command("end " + name)
                profiler.wait_line("stderr", lambda text, pid=pid: "%d (" % pid in text
                                   and "has ended" in text)
            # One more is taken in after the last has been dealt with.
            recorded(profiler, number(target.command("fork d")))
            assert watched(profiler.pid) == alone + 1
            target.command("end d")
            profiler.finish()
        target.leave()


def test_one_after_another(tmp_path):
    """The kernel calls each what it called the one before; in recordings each is itself."""
    path = str(tmp_path / "c.sock")
    done = {}
    with Target("children") as target:
        with Gpuprof("-v", "attach", "--pid", target.pid, "--children", "--socket", path, "-o",
                     tmp_path / "c.gpuprof", "--no-inject", "--rotate", "5h", "--stack",
                     "python") as profiler:
            profiler.wait_recording()
            for steps, name in enumerate("abcdef", 1):
                pid = number(target.command("fork " + name))
                recorded(profiler, pid)
                target.command("child %s %d" % (name, steps))
                target.command("end " + name)
                profiler.wait_line("stderr", lambda text, pid=pid: "%d (" % pid in text
                                   and "has ended" in text)
                done[pid] = 10 * steps
                if name == "c":
                    assert gpuprof("ctl", "--socket", path, "rotate").status == DONE
                    wait_until("the next recording", (tmp_path / "c.2.gpuprof").exists)
            status = profiler.finish()
        target.leave()
    assert status == DONE, profiler.told()
    parts = [Recording(tmp_path / ("c.%d.gpuprof" % nr)) for nr in (1, 2)]
    found = {}
    for part in parts:
        for (pid, name), count in calls(part).items():
            if name == "aten::sigmoid":
                found[pid] = found.get(pid, 0) + count
        assert part.losses()["record"] == part.losses()["child_missed"] == 0
    assert found == done
    # Each child's own stacks; one that ended before its code was read has none with names.
    for event in parts[1].chrome()["traceEvents"]:
        if event["ph"] == "X" and event["name"] == "aten::sigmoid":
            stack = event["args"]["Call stack"]
            assert "children.py" in stack or stack.startswith("[incomplete]"), event


def test_without_children(tmp_path):
    with Target("children") as target:
        with Gpuprof("attach", "--pid", target.pid, "-o", tmp_path / "a.gpuprof") as profiler:
            profiler.wait_recording()
            child = number(target.command("fork child"))
            target.command("child child 1")
            target.step(1)
            assert profiler.finish() == DONE, profiler.told()
        target.command("end child")
        target.leave()
    recording = Recording(tmp_path / "a.gpuprof")
    assert calls(recording) == {(target.pid, "aten::add"): 10}
    assert child not in {event["pid"] for event in recording.chrome()["traceEvents"]}


def test_ranks(tmp_path):
    """What torchrun puts into the environment."""
    with Target("children") as target:
        with Gpuprof("-v", "attach", "--pid", target.pid, "--children", "-o",
                     tmp_path / "a.gpuprof") as profiler:
            profiler.wait_recording()
            other = number(target.command("spawn other"))
            probed(profiler, other)
            assert target.command("child other 1") == "did 1"
            assert profiler.finish() == DONE, profiler.told()
        target.command("end other")
        target.leave()
    trace = Recording(tmp_path / "a.gpuprof").chrome()
    assert trace["distributedInfo"] == {"rank": 3, "world_size": 4}


def state_of(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        return file.read().split()[2]


def test_run(tmp_path):
    """The first process is seen from its first instruction on; the capture ends with it."""
    path = tmp_path / "run.gpuprof"
    done = gpuprof("run", "--children", "-o", path, "--", "sh", "-c",
                   "sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; env true; :")
    assert done.status == DONE, done
    sleeper = int(done.stdout.split()[0])
    try:
        wait_until("the child sleeps", lambda: state_of(sleeper) == "S")
    finally:
        os.kill(sleeper, signal.SIGKILL)


def test_kill_of_gpuprof_lets_children_go_on(tmp_path):
    with Target("children") as target:
        with Gpuprof("-v", "attach", "--pid", target.pid, "--children", "-o",
                     tmp_path / "a.gpuprof") as profiler:
            profiler.wait_recording()
            child = number(target.command("fork child"))
            recorded(profiler, child)
            assert target.command("child child 2") == "did 2"
            profiler.kill()
        assert target.command("child child 2") == "did 2"
        target.step(2)
        assert target.command("end child") == "%d left with 0" % child
        target.leave()


@pytest.mark.versions
def test_ranks_of_one_job(tmp_path):
    """One command for what torchrun has started; all ranks on one clock."""
    steps = 5
    with RankJob() as target:
        with Gpuprof("attach", "--pid", target.pid, "--children", "-o",
                     tmp_path / "a.gpuprof") as profiler:
            profiler.wait_recording()
            target.step(steps)
            target.step(1)
            assert profiler.finish() == DONE, profiler.told()
        target.leave()
    events = Recording(tmp_path / "a.gpuprof").chrome()["traceEvents"]
    linear = {}
    for event in events:
        if event["ph"] == "X" and event["name"] == "aten::linear":
            linear[event["pid"]] = linear.get(event["pid"], 0) + 1
    assert sorted(linear.values()) == [steps + 1] * RANKS, linear
    assert target.facts["pid"] in linear and target.pid not in linear
    labels = {event["pid"]: event["args"]["labels"] for event in events
              if event["name"] == "process_labels"}
    assert sorted(labels[pid] for pid in linear) == ["rank %d" % rank for rank in range(RANKS)]
    # No rank is done with a sum before each has begun it.
    sums = {}
    for event in events:
        if event["name"] == "gloo:all_reduce" and event["ph"] == "X":
            sums.setdefault(event["pid"], []).append((event["ts"], event["ts"] + event["dur"]))
    assert {pid: len(spans) for pid, spans in sums.items()} == \
        {pid: 2 * (steps + 1) for pid in linear}
    for spans in zip(*(sorted(spans) for spans in sums.values())):
        assert max(begin for begin, _ in spans) <= min(end for _, end in spans)
