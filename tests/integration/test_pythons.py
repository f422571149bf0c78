# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Python stacks on every CPython of this machine, on the stand-in for PyTorch: the same program as in
test_stacks.py, which knows its own stacks. And what of a process's Python is refused.
"""

import json
import os
import subprocess

import pytest

import harness
from stack_truth import compare, recorded, told

STEPS = 3
MADE = 160
OPTIONS = ("--no-inject", "--stack", "python")
EMBEDS = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "fake", "fake_python")


python = harness.python_or_skip


MINORS = range(harness.FIRST_PYTHON, harness.LAST_PYTHON + 1)
# Before 3.13 ctypes, by which the stand-in is called, wants the main interpreter's GIL.
INTERPRETERS = [(minor, kind) for minor in MINORS for kind in ("interpreter", "isolated")
                if kind == "interpreter" or minor >= 13]


@pytest.fixture(params=MINORS)
def target(request):
    with harness.Target("stacks", python=python(request.param)) as started:
        told(started)
        yield started
        started.leave()


def free_codes(target):
    """How many codes the program has freed, and how many the kernel has seen go."""
    before = harness.program_account("gp_code_freed")[0]
    gone = int(target.command("freed %d" % MADE).split()[1])
    return gone, harness.program_account("gp_code_freed")[0] - before


def test_every_stack_is_right(target, tmp_path):
    counts = []

    def orders():
        target.step(STEPS)
        target.command("dynamic %d" % MADE)
        counts.append(free_codes(target))

    with harness.program_accounts():
        done = harness.attach(target, tmp_path / "stacks.gpuprof", *OPTIONS, orders=orders)
    assert done.status == harness.DONE, done.told
    expected, found = told(target), recorded(done.recording)
    main = target.facts["tid"]
    made = list(zip(expected[main][-MADE:], found[main][-MADE:]))
    expected[main], found[main] = expected[main][:-MADE], found[main][:-MADE]
    assert compare(expected, found) > 100 * STEPS
    assert len(made) == MADE
    for stack, (mark, got) in made:
        right_or_marked(stack, mark, got)
    ((gone, seen),) = counts
    assert gone >= MADE and seen >= gone


def right_or_marked(expected, mark, stack):
    """Frames whose code is gone have no name."""
    assert len(stack) == len(expected)
    for wanted, got in zip(expected, stack):
        assert got == wanted or (got == "?(0): ?" and mark == "[incomplete]"), (wanted, got)


@pytest.mark.versions
def test_each_freed_code_is_seen(tmp_path):
    """With the Python of PyTorch, whose compiler may have left nothing of a function."""
    counts = []
    with harness.Target("stacks") as started, harness.program_accounts():
        harness.attach(started, tmp_path / "freed.gpuprof", *OPTIONS, "--ops", "aten::sinh",
                       orders=lambda: counts.append(free_codes(started)))
        started.leave()
    ((gone, seen),) = counts
    assert gone >= MADE and seen >= gone


@pytest.mark.parametrize("target, kind", INTERPRETERS, indirect=["target"])
def test_several_interpreters(target, kind, tmp_path):
    """A stack that the walk cannot be sure of is none, and counted."""
    path = tmp_path / "inside"
    done = harness.attach(target, tmp_path / "stacks.gpuprof", *OPTIONS,
                          orders=lambda: target.command("%s %s" % (kind, path)))
    if not path.exists():
        pytest.skip("no such interpreter here: " + target.text("stderr")[-300:])
    expected, found = told(target), recorded(done.recording)
    with open(path, encoding="utf-8") as file:
        other = {int(tid): stacks for tid, stacks in json.load(file).items()}
    main = target.facts["tid"]
    assert len(expected[main]) == 4
    # As they were called: two before, those of the other interpreter, two after.
    in_order = expected[main][:2] + other.pop(main) + expected[main][2:]
    got = found.pop(main)
    assert len(got) == len(in_order)
    right = [stack == wanted and not mark for wanted, (mark, stack) in zip(in_order, got)]
    for is_right, (mark, stack) in zip(right, got):
        assert is_right or not stack, (mark, stack)
    assert right[0] and right[1] and right[-1]
    # Its own thread has no state but its. Its code goes with it, perhaps before it was read.
    ((own,),), (((mark, stack),),) = other.values(), found.values()
    right_or_marked(own, mark, stack)
    assert done.recording.losses()["stack_incomplete"] == right.count(False) + bool(mark)


@pytest.mark.parametrize("words, why", [
    ("free-threaded", "free-threaded"), ("3.15", "known are 3.8 to 3.14"), ("3.7", "known are"),
])
def test_what_is_refused(tmp_path, words, why):
    with subprocess.Popen([EMBEDS, words], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout.readline() == b"ready\n"
            done = harness.gpuprof("attach", "--pid", child.pid, "--wait", *OPTIONS, "-o",
                                   tmp_path / "no.gpuprof")
        finally:
            child.kill()
    assert done.status == harness.FAILED
    assert why in done.stderr, done
    assert not (tmp_path / "no.gpuprof").exists()
