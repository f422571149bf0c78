# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Memory by category: what torch.profiler's export_memory_timeline() writes of as many steps of the
very process, change for change. Its Python tracer, which tells parameters and the optimizer's state
apart, works in the newest version alone: that of 2.6 crashes, and 1.13 has no memory timeline.
"""

import collections
import functools
import gzip
import json

import pytest

import harness

pytestmark = pytest.mark.versions

PARAMETER, STATE, INPUT, TEMPORARY, ACTIVATION, GRADIENT, DETAIL, UNKNOWN = range(8)
PREEXISTING, CREATE, WRITE, DESTROY = range(1, 5)
NAMES = {"mlp": 3, "resnet18_train": 1}
# Found by rules that need no tracer.
PLAIN = (TEMPORARY, GRADIENT)


class Measured:
    """One capture, its raw changes, and torch.profiler's."""

    def __init__(self, name, folder):
        steps = NAMES[name]
        path = folder / (name + "-categories.gpuprof")
        with harness.Target(name) as target:
            self.capture = harness.attach(target, path, "--memory", "--shapes",
                                          orders=lambda: target.step(steps))
            self.truth = target.truth(steps, "categories")
            target.leave()
        assert self.capture.status == harness.DONE, self.capture.told
        assert "no memory categories" not in self.capture.stderr
        self.steps = steps
        self.raw = self.read("raw.json.gz")

    def read(self, suffix, *options):
        path = "%s.%s" % (self.capture.recording.path, suffix)
        done = harness.gpuprof("export", self.capture.recording.path, "--format",
                               "memory-timeline", "-o", path, *options)
        assert done.status == harness.DONE, done
        opener = gzip.open if suffix.endswith(".gz") else open
        with opener(path, "rb") as file:
            return json.load(file)


@pytest.fixture(scope="module")
def measured(recordings):
    """Measured(name), made when it is first asked for."""
    return functools.cache(lambda name: Measured(name, recordings))


def before(raw, keep=lambda category: category):
    return sorted((size, keep(category)) for time, _, size, category in raw if time < 0)


def changes(raw, keep=lambda category: category):
    return [(action, size, keep(category)) for time, action, size, category in raw if time >= 0]


@pytest.mark.parametrize("name", NAMES)
def test_each_change_equals(measured, name):
    one = measured(name)
    theirs = one.truth["raw"]
    if theirs is None:
        assert one.truth["torch"].startswith("1.13")
        return
    traced = one.truth["with_stack"]
    assert traced or one.truth["torch"].startswith("2.6")
    keep = (lambda category: category) if traced else lambda category: category in PLAIN
    assert len(theirs) > 150
    assert changes(one.raw, keep) == changes(theirs, keep)
    assert before(one.raw, keep) == before(theirs, keep)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_training_has(measured, name):
    """In each version: parameters as the model has them, a gradient and two moments of each."""
    one = measured(name)
    held = collections.Counter()
    for _, _, size, category in one.raw:
        held[category] += size
    parameters = sum(size for size, category in before(one.raw) if category == PARAMETER)
    assert parameters == held[PARAMETER] == one.truth["parameter_bytes"]
    states = sum(size for size, category in before(one.raw) if category == STATE)
    assert states == held[STATE] == one.truth["state_bytes"]
    created = sum(size for _, action, size, category in one.raw
                  if action == CREATE and category == GRADIENT)
    kept = sum(size for size, category in before(one.raw) if category == GRADIENT)
    # Gradients are made anew in each step, or stay and are added to.
    assert (created == one.steps * parameters and kept in (0, parameters)) or (
        kept == parameters and created % parameters == 0)
    assert held[ACTIVATION] == held[TEMPORARY] == 0


def test_totals_are_the_sum_of_the_changes(measured):
    one = measured("mlp")
    times, sizes = one.read("json")
    row, rows = [0] * 9, {}
    for time, _, size, category in one.raw:
        row[category + 1] += size
        rows[time // 1000 if time >= 0 else -1] = list(row)
    assert sizes == list(rows.values())
    later = [time for time in rows if time >= 0]
    assert times == ([later[0]] if -1 in rows else []) + later


def test_of_a_device_that_was_not_used(measured):
    assert measured("mlp").read("json", "--device", "cuda:3") == [[], []]


def test_nothing_was_lost(measured):
    for name in NAMES:
        losses = measured(name).capture.recording.losses()
        for loss in ("tensors_invalid", "tensors_device", "schemas_missing"):
            assert losses[loss] == 0, losses


def test_several_processes_in_one_recording(measured, tmp_path):
    both = tmp_path / "both.gpuprof"
    parts = [measured(name).capture.recording for name in NAMES]
    done = harness.gpuprof("merge", *[part.path for part in parts], "-o", both)
    assert done.status == harness.DONE, done
    out = tmp_path / "both.raw.json"
    export = ["export", both, "--format", "memory-timeline", "-o", out]
    assert harness.gpuprof(*export).status == harness.USAGE
    for name, part in zip(NAMES, parts):
        pid = part.table()["processes"][0]["pid"]
        assert harness.gpuprof(*export, "--pid", pid).status == harness.DONE
        raw = json.loads(out.read_text(encoding="utf-8"))
        assert changes(raw) == changes(measured(name).raw)
        assert before(raw) == before(measured(name).raw)


def test_a_page_is_another_format(measured, tmp_path):
    path = measured("mlp").capture.recording.path
    done = harness.gpuprof("export", path, "--format", "memory-timeline", "-o", tmp_path / "m.html")
    assert done.status == harness.USAGE and "those that do: memory" in done.stderr, done
    assert not list(tmp_path.iterdir())


def test_refused_without_inputs(idle, tmp_path):
    capture = harness.attach(idle, tmp_path / "plain.gpuprof", "--memory",
                             orders=lambda: idle.step(1))
    done = harness.gpuprof("export", capture.recording.path, "--format", "memory-timeline", "-o",
                           tmp_path / "x.json")
    assert done.status == harness.FAILED
    assert "--shapes" in done.stderr
