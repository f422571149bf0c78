# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Inputs of operators: the rows by shape, and the arguments in the trace, equal what torch.profiler
tells with record_shapes of as many steps, on each version of PyTorch.
"""

import collections
import functools
import json
import re

import pytest

import harness
from conftest import STEPS

pytestmark = pytest.mark.versions

NAMES = ["mlp", "resnet18_infer", "lstm", "transformer", "inputs", "layouts"]
KEYS = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")


class Shaped:
    """One capture with shapes, and torch.profiler's account of as many steps."""

    def __init__(self, name, folder):
        steps = STEPS.get(name, 3)
        with harness.Target(name) as target:
            self.capture = harness.attach(target, folder / (name + "-shapes.gpuprof"), "--shapes",
                                          orders=lambda: target.step(steps))
            self.truth = target.truth(steps, "shapes")
            target.leave()
        assert self.capture.status == harness.DONE, self.capture.told
        # The target waits for orders while gpuprof attaches: there is always a safe moment.
        assert "by callback" in self.capture.stderr, self.capture.told
        assert "no shapes" not in self.capture.stderr
        self.recording = self.capture.recording


@pytest.fixture(scope="module")
def shaped(recordings):
    """Shaped(name), made when it is first asked for."""
    return functools.cache(lambda name: Shaped(name, recordings))


@pytest.mark.parametrize("name", NAMES)
def test_rows_by_shape_equal(shaped, name):
    one = shaped(name)
    ours = {(row["name"], row["input_shapes"]): row["calls"]
            for row in one.recording.table("--group-by", "shape")["rows"]
            if row["device"] == "CPU"}
    theirs = {(row, shapes): calls for row, shapes, calls in one.truth["rows"]}
    assert len({shapes for _, shapes in ours}) > 5
    assert harness.differences(ours, theirs) == {}


def test_all_rows_for_programs(shaped):
    """A hundred are for people, as with torch.profiler's table."""
    path, grouped = shaped("resnet18_infer").recording.path, ("--group-by", "shape")
    text = harness.gpuprof("table", path, *grouped).stdout
    rows = json.loads(harness.gpuprof("table", path, *grouped, "--json").stdout)["rows"]
    lines = harness.gpuprof("table", path, *grouped, "--csv").stdout.strip().split("\n")
    assert len(rows) > 100 and len(lines) == 1 + len(rows)
    # Three rules, the columns' names and the sum.
    assert text.count("\n") == 100 + 5
    few = json.loads(harness.gpuprof("table", path, *grouped, "--json", "--limit", "3").stdout)["rows"]
    assert few == rows[:3]


def operators(one):
    """name and arguments of each operator in gpuprof's trace."""
    return [(event["name"], event["args"]) for event in one.recording.chrome()["traceEvents"]
            if event.get("cat") in ("cpu_op", "user_annotation")]


def flat_shapes(arguments):
    """As the table prints them, where a list of tensors has no shape."""
    return str([[] if kind == "TensorList" else dims for dims, kind in
                zip(arguments.get("Input Dims", []), arguments.get("Input type", []))])


@pytest.mark.parametrize("name", NAMES)
def test_shapes_of_every_call_equal(shaped, name):
    one = shaped(name)
    ours = collections.Counter((row, flat_shapes(arguments)) for row, arguments in operators(one)
                               if not row.startswith("profiler::"))
    theirs = {(row, shapes): calls for row, shapes, calls in one.truth["raw_calls"]}
    assert harness.differences(ours, theirs) == {}


@pytest.mark.parametrize("name", NAMES)
def test_inputs_in_the_trace_equal(shaped, name):
    """All four arguments, where torch.profiler writes them: Debian's 1.13 has no Kineto."""
    one = shaped(name)
    theirs = one.truth["inputs"]
    assert theirs or one.truth["torch"].startswith("1.13")

    def count(events):
        texts = (json.dumps([row, [arguments.get(key, []) for key in KEYS]])
                 for row, arguments in events)
        # An optimizer's numbers are others in every step.
        return collections.Counter(re.sub(r'"-?[0-9][0-9]*[.][0-9e+-]*"', '"real"', text)
                                   if name in ("mlp", "lstm") else text for text in texts)

    seen = {row for row, _ in theirs}
    ours = count((row, arguments) for row, arguments in operators(one) if row in seen)
    assert harness.differences(ours, count(theirs)) == {}


def test_nothing_was_lost(shaped):
    for name in NAMES:
        losses = shaped(name).recording.losses()
        assert {loss for loss, count in losses.items() if count} == set(), losses
        assert losses["inputs"] == losses["inputs_invalid"] == 0


def test_text_and_csv_have_the_column(shaped):
    one = shaped("mlp")
    rows = one.recording.table("--group-by", "shape")["rows"]
    done = harness.gpuprof("table", one.recording.path, "--group-by", "shape", "--limit", "-1")
    lines = done.stdout.splitlines()
    assert lines[1].rstrip().endswith("Input Shapes")
    assert [line.rstrip().endswith(row["input_shapes"])
            for line, row in zip(lines[3:], rows)] == [True] * len(rows)
    done = harness.gpuprof("table", one.recording.path, "--group-by", "shape", "--csv")
    assert done.stdout.splitlines()[0].endswith(",input_shapes")


def test_without_shapes_there_is_no_column(idle, tmp_path):
    capture = harness.attach(idle, tmp_path / "plain.gpuprof", orders=lambda: idle.step(1))
    assert capture.status == harness.DONE, capture.told
    done = harness.gpuprof("table", capture.recording.path, "--group-by", "shape")
    assert "record with --shapes" in done.stderr
    assert "Input Shapes" not in done.stdout
    assert "Input Dims" not in capture.recording.chrome_text()


@pytest.mark.parametrize("options, reason", [
    (["attach", "--pid", "1", "--shapes", "--no-inject"], "--no-inject forbids"),
    (["attach", "--pid", "1", "--shapes", "--ops", "none"], "needs all operators"),
    (["attach", "--pid", "1", "--flops", "--stack", "native"], "traces them by uprobes"),
    (["run", "--shapes", "--", "true"], "use attach once it runs"),
])
def test_refused_where_it_cannot_be(options, reason):
    done = harness.gpuprof(*options)
    assert done.status == harness.USAGE, done
    assert reason in done.stderr
