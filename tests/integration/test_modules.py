# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Calls of nn.Modules: the same names, as often, and the same operators in them as torch.profiler
tells of as many steps of the same process, on each version of PyTorch.
"""

import collections
import functools

import pytest

import harness

NAMES = ["modules", "resnet18_train", "transformer"]
STEPS = 3


class Called:
    """One capture with modules, and torch.profiler's account of as many steps."""

    def __init__(self, name, folder):
        with harness.Target(name) as target:
            self.capture = harness.attach(target, folder / (name + "-modules.gpuprof"), "--modules",
                                          "--memory", orders=lambda: target.step(STEPS))
            self.truth = target.truth(STEPS, "modules")
            target.leave()
        assert self.capture.status == harness.DONE, self.capture.told
        assert "no modules" not in self.capture.stderr
        self.recording = self.capture.recording
        self.rows = {row["name"]: row for row in
                     self.recording.table("--group-by", "module")["rows"]}


@pytest.fixture(scope="module")
def called(recordings):
    """Called(name), made when it is first asked for."""
    return functools.cache(lambda name: Called(name, recordings))


def forward(rows):
    return {name: row["calls"] for name, row in rows.items()
            if name.startswith("nn.Module: ") and not name.endswith(" [backward]")}


@pytest.mark.versions
@pytest.mark.parametrize("name", NAMES)
def test_calls_equal_torch_profilers(called, name):
    one = called(name)
    assert len(one.truth["calls"]) > 5
    assert harness.differences(forward(one.rows), one.truth["calls"]) == {}
    if one.truth["traced"] is not None:
        assert harness.differences(forward(one.rows), one.truth["traced"]) == {}


def slices(recording):
    """Of the trace, by thread: (begin, end, name, arguments, whether it is a module)."""
    found = collections.defaultdict(list)
    for event in recording.chrome()["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in ("cpu_op", "user_annotation", "python_function"):
            found[event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"],
                                        event["args"], event["cat"] == "python_function"))
    return found


def around(calls, begin, end):
    """The innermost module in which something lies."""
    holding = [call for call in calls if call[0] <= begin and end <= call[1]]
    return max(holding, key=lambda call: (call[0], -call[1], call[3]["Python id"]), default=None)


@pytest.mark.versions
def test_with_stacks_over_a_pause(tmp_path):
    """Neither takes anything from the other."""
    path, socket = tmp_path / "both.gpuprof", str(tmp_path / "ctl.sock")
    with harness.Target("modules") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", socket, "--modules",
                             "--stack", "python", "--memory", "-o", path) as profiler:
            profiler.wait_recording()
            target.step(STEPS)
            for command in ("stop", "start"):
                done = harness.gpuprof("ctl", "--socket", socket, command)
                assert done.status == harness.DONE, done
            target.step(STEPS)
            assert profiler.finish() == harness.DONE, profiler.told()
        truth = target.truth(STEPS, "modules")
        target.leave()
    recording = harness.Recording(path)
    rows = {row["name"]: row for row in recording.table("--group-by", "module")["rows"]}
    assert forward(rows) == {name: 2 * count for name, count in truth["calls"].items()}
    losses = recording.losses()
    assert {losses[name] for name in ("modules", "stack_incomplete", "stack_room")} == {0}
    stacks = [row.get("stack", []) for row in recording.table("--group-by", "stack:5")["rows"]]
    assert any("modules.py" in frame for stack in stacks for frame in stack)


@pytest.mark.versions
@pytest.mark.parametrize("name", NAMES)
def test_operators_lie_in_their_modules(called, name):
    """By the trace alone."""
    one = called(name)
    ours = collections.Counter()
    for events in slices(one.recording).values():
        calls = [event for event in events if event[4]]
        for begin, end, op, _, is_module in events:
            call = None if is_module else around(calls, begin, end)
            if call:
                ours[call[2], op] += 1
    theirs = {(module, op): count for module, op, count in one.truth["ops"]}
    assert harness.differences(ours, theirs) == {}


@pytest.mark.versions
def test_trace_tells_the_hierarchy(called):
    one = called("modules")
    events = [event for calls in slices(one.recording).values() for event in calls if event[4]]
    by_id = {event[3]["Python id"]: event for event in events}
    assert len(by_id) == len(events) == sum(one.truth["calls"].values())
    names = collections.Counter()
    for begin, end, name, args, _ in events:
        parent = by_id[args["Python parent id"]] if args["Python parent id"] else None
        assert parent is None or (parent[0] <= begin and end <= parent[1])
        assert args["Python module id"] == int(name.rsplit("_", 1)[1])
        names[parent and parent[2], name] += 1
    module = "nn.Module: "
    assert names[None, module + "Nested_0"] == STEPS
    assert names[module + "Nested_0", module + "Gate_0"] == STEPS
    assert names[module + "Sequential_0", module + "Gate_0"] == STEPS
    assert names[module + "Repeat_0", module + "Linear_3"] == 3 * STEPS


def test_table_adds_up(called):
    """Times and memory of all rows are those of the table of operators."""
    for name in NAMES:
        one = called(name)
        ops = one.recording.table()["rows"]
        for rows in (one.rows.values(),
                     one.recording.table("--group-by", "module-tree")["rows"]):
            for column in ("self_cpu_us", "self_cpu_mem"):
                # Memory that no operator shows has a row among operators alone.
                wanted = sum(row[column] for row in ops if row["name"] != "[memory]")
                assert sum(row[column] for row in rows) == pytest.approx(wanted), column
            for row in rows:
                assert row["self_cpu_us"] <= row["cpu_total_us"] or row["name"] == "[no module]"


def test_backward_counts_for_its_module(called):
    rows = called("resnet18_train").rows
    whole, backward = rows["nn.Module: ResNet_0"], rows["nn.Module: ResNet_0 [backward]"]
    assert whole["calls"] == backward["calls"] == STEPS
    assert backward["cpu_total_us"] > 0
    layers = [row for name, row in rows.items() if name.startswith("nn.Module: Conv2d_")]
    assert len(layers) == 40
    assert sum(row["cpu_total_us"] for row in layers if row["name"].endswith("[backward]")) <= (
        backward["cpu_total_us"])


def test_tree(called):
    one = called("modules")
    rows = one.recording.table("--group-by", "module-tree")["rows"]
    places = [(row["depth"], row["name"].replace("nn.Module: ", ""), row["calls"]) for row in rows
              if not row["name"].endswith("[backward]")]
    assert places == [
        (0, "Nested_0", STEPS),
        (1, "Gate_0", STEPS), (2, "Linear_0", STEPS), (2, "Linear_1", STEPS),
        (1, "Sequential_0", STEPS), (2, "Linear_2", STEPS), (2, "ReLU_0", STEPS),
        (2, "Gate_0", STEPS), (3, "Linear_0", STEPS), (3, "Linear_1", STEPS),
        (2, "Repeat_0", STEPS), (3, "Linear_3", 3 * STEPS),
        (1, "Linear_4", STEPS),
        (0, "[no module]", places[-1][2])]
    text = harness.gpuprof("table", one.recording.path, "--group-by", "module-tree").stdout
    assert "\n    nn.Module: Repeat_0" in text


@pytest.mark.versions
def test_nothing_was_lost(called):
    for name in NAMES:
        losses = called(name).recording.losses()
        counted = {loss for loss, count in losses.items() if count}
        assert counted - {"free_unknown"} == set(), losses
        assert losses["modules"] == losses["module_calls_invalid"] == 0


@pytest.mark.parametrize("minor", range(harness.FIRST_PYTHON, harness.LAST_PYTHON + 1))
def test_every_python(minor, tmp_path):
    """The frames of each version, on the stand-in for PyTorch."""
    with harness.Target("called", python=harness.python_or_skip(minor)) as target:
        done = harness.attach(target, tmp_path / "called.gpuprof", "--modules",
                              orders=lambda: target.step(STEPS))
        target.leave()
    assert done.status == harness.DONE, done.told
    rows = done.recording.table("--group-by", "module")["rows"]
    calls = {row["name"].replace("nn.Module: ", ""): row["calls"] for row in rows}
    same = calls.pop("Leaf_0")
    assert calls == {"Net_0": STEPS, "Leaf_1": 3 * STEPS, "[no module]": 0}
    # From 3.14 on the two that nothing tells apart may count as one.
    assert same == 3 * STEPS or (minor >= 14 and same >= 2 * STEPS)
    assert done.recording.rows()["aten::leaf"]["calls"] == 6 * STEPS
    assert done.recording.losses()["modules"] == 0


def test_without_modules(sample):
    done = harness.gpuprof("table", sample("mlp").recording.path, "--group-by", "module")
    assert "record with --modules" in done.stderr
    assert "python_function" not in sample("mlp").recording.chrome_text()


@pytest.mark.parametrize("options, reason", [
    (["attach", "--pid", "1", "--modules", "--no-inject"], "--no-inject forbids"),
    (["run", "--modules", "--", "true"], "use attach once it runs"),
])
def test_refused_where_it_cannot_be(options, reason):
    done = harness.gpuprof(*options)
    assert done.status == harness.USAGE, done
    assert reason in done.stderr
