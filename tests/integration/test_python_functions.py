# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Calls of Python functions: as many of each as torch.profiler's own tracer tells, of those with
operators in them, and slices that nest with everything else on their thread.
"""

import collections
import functools
import re

import pytest

import harness
import test_trace

NAMES = ["modules", "transformer", "functions"]
STEPS = 3
# What drives the workload, of which the calls begin before the capture or are torch.profiler's; and
# what opens an annotation, which torch.profiler shows as long as the annotation.
LEFT_OUT = re.compile(r"(protocol|truth)\.py|.*: <module>$|profiler\.py.*: __enter__$|_ops\.py")


class Called:
    """One capture with modules and Python functions, and torch.profiler's account."""

    def __init__(self, name, folder):
        with harness.Target(name) as target:
            self.capture = harness.attach(target, folder / (name + "-functions.gpuprof"),
                                          "--modules", "--python-functions",
                                          orders=lambda: target.step(STEPS))
            self.truth = target.truth(STEPS, "functions")["calls"]
            target.leave()
        assert self.capture.status == harness.DONE, self.capture.told
        assert "no Python functions" not in self.capture.stderr
        self.recording = self.capture.recording


@pytest.fixture(scope="module")
def called(recordings):
    """Called(name), made when it is first asked for."""
    return functools.cache(lambda name: Called(name, recordings))


def short(name):
    """Theirs has paths from the folder that Python found a module in, and no class."""
    parts = re.fullmatch(r"(?:.*/)?([^/]+)\((\d+)\): (?:.*\.)?([^.]+)", name)
    # Of a generator theirs has the line where it goes on.
    parts = parts and [part if parts[3] != "given" else "" for part in parts.groups()]
    return "%s(%s): %s" % tuple(parts) if parts else name


def counted(calls):
    counts = collections.Counter()
    for name, count in calls:
        if not LEFT_OUT.match(short(name)):
            counts[short(name)] += count
    return dict(counts)


def slices(recording):
    return [event for event in recording.chrome()["traceEvents"]
            if event["ph"] == "X" and event["cat"] == "python_function"]


@pytest.mark.versions
@pytest.mark.parametrize("name", NAMES)
def test_calls_equal_torch_profilers(called, name):
    one = called(name)
    ours = counted((event["name"], 1) for event in slices(one.recording))
    assert len(ours) > 3
    if one.truth:
        assert ours == counted(one.truth.items())


def assert_nested(events):
    """On each thread."""
    threads = collections.defaultdict(list)
    for event in events:
        threads[event["tid"]].append((event["ts"], -event["dur"], event["name"]))
    for slices_ in threads.values():
        ends = []
        for begin, minus, name in sorted(slices_):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or begin - minus <= ends[-1], name
            ends.append(begin - minus)


@pytest.mark.versions
@pytest.mark.parametrize("name", NAMES)
def test_slices_nest(called, name):
    """With operators and annotations; and each in the one that it names."""
    assert_nested(event for event in called(name).recording.chrome()["traceEvents"]
                  if event["ph"] == "X" and
                  event["cat"] in ("cpu_op", "user_annotation", "python_function"))
    events = slices(called(name).recording)
    by_id = {event["args"]["Python id"]: event for event in events}
    assert len(by_id) == len(events)
    for event in events:
        outer = by_id.get(event["args"]["Python parent id"])
        assert (outer is None) == (event["args"]["Python parent id"] is None)
        assert not outer or (outer["ts"] <= event["ts"] and
                             event["ts"] + event["dur"] <= outer["ts"] + outer["dur"])
        assert event["args"]["Bounds"] == "first and last operator"


@pytest.mark.versions
@pytest.mark.parametrize("name", NAMES)
def test_nothing_was_lost(called, name):
    losses = called(name).recording.losses()
    told = {counter: count for counter, count in losses.items() if "python_calls" in counter}
    assert told == {"python_calls_unknown": 0, "python_calls_cut": 0,
                        "python_calls_crossing": 0, "python_calls_unplaced": 0}


def test_perfetto_has_the_same(called, tmp_path):
    one = called("functions")
    done = harness.gpuprof("export", one.recording.path, "--format", "perfetto", "-o",
                           tmp_path / "p.pftrace")
    assert done.status == harness.DONE, done
    text = test_trace.decoded(tmp_path / "p.pftrace")
    begun = text.count("\n    type: 1\n")
    assert begun == text.count("\n    type: 2\n") == sum(
        event["ph"] == "X" and event["cat"] != "Trace"
        for event in one.recording.chrome()["traceEvents"])
    names = set(re.findall(r'event_names \{\s+iid: \d+\s+name: "([^"]*)"', text))
    assert {event["name"] for event in slices(one.recording)} <= names


@pytest.mark.parametrize("minor", range(harness.FIRST_PYTHON, harness.LAST_PYTHON + 1))
def test_every_python(minor, tmp_path):
    """The frames of each version, on the stand-in for PyTorch."""
    with harness.Target("called", python=harness.python_or_skip(minor)) as target:
        done = harness.attach(target, tmp_path / "called.gpuprof", "--python-functions",
                              orders=lambda: target.step(STEPS))
        target.leave()
    assert done.status == harness.DONE, done.told
    calls = counted((event["name"], 1) for event in slices(done.recording))
    # Two of the six leaves a step are called by a loop that changes no variable.
    named = {name.split(": ")[1]: count for name, count in calls.items()}
    assert named["inner"] == 3 * STEPS
    assert named["step"] == STEPS
    assert 6 * STEPS <= named["operator"] <= 7 * STEPS
    assert done.recording.losses()["python_calls_unknown"] == 0


def test_without(sample):
    assert "python_function" not in sample("mlp").recording.chrome_text()
    assert "python_calls_cut" not in sample("mlp").recording.losses()


@pytest.mark.parametrize("options, reason", [
    (["attach", "--pid", "1", "--python-functions", "--no-inject"], "--no-inject forbids"),
    (["attach", "--pid", "1", "--python-functions", "--stack", "both"], "traces them by uprobes"),
    (["attach", "--pid", "1", "--python-functions", "--mode", "sample"], "exclude each other"),
    (["run", "--python-functions", "--", "true"], "use attach once it runs"),
])
def test_refused_where_it_cannot_be(options, reason):
    done = harness.gpuprof(*options)
    assert done.status == harness.USAGE, done
    assert reason in done.stderr
