# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A refused request for memory, and what held the memory: a tensor too large for the room that is left,
while so many blocks are alive; and what a GPU's allocator tells.
"""

import pytest

import harness

pytestmark = pytest.mark.versions

BLOCK = 64 << 10


@pytest.fixture(scope="module", params=["callback", "stacks"])
def refused(request, recordings):
    options = ["--stack", "python"] if request.param == "stacks" else []

    def orders():
        target.command("keep 5")
        target.command("refuse %d" % (2 << 30))
        target.command("drop")
        target.step(1)

    with harness.Target("alloc") as target:
        capture = harness.attach(target, recordings / ("oom-%s.gpuprof" % request.param),
                                 "--memory", *options, orders=orders)
        target.leave()
    assert capture.status == harness.DONE, capture.told
    return request.param, capture


def test_who_held_the_memory(refused):
    kind, capture = refused
    events = capture.recording.table()["out_of_memory"]
    assert len(events) == 1
    one = events[0]
    assert (one["device"], one["bytes"], one["op"]) == ("cpu", 2 << 30, "aten::empty")
    assert one["allocator_bytes"] is None and one["reserved_bytes"] is None
    # Python's own small tensors may be among them.
    assert one["held_bytes"] == sum(row["bytes"] for row in one["held_by"]) >= 5 * BLOCK
    assert one["held_by"][0] == {"op": "aten::empty", "outermost": "aten::empty",
                                 "allocations": 5, "bytes": 5 * BLOCK}
    if kind == "stacks":
        line = one["lines"][0]
        assert "alloc.py" in line["line"] and line["bytes"] == 5 * BLOCK
    else:
        assert one["lines"] == []


def test_the_text_says_it_after_the_table(refused):
    kind, capture = refused
    table, _, said = capture.stdout.partition("Out of memory: ")
    assert "# of Calls" in table
    assert said.startswith("2.00 GB asked for on cpu after ")
    assert " s, in aten::empty\n" in said and "the allocator held" not in said
    assert ("alloc.py" in said) == (kind == "stacks")


def test_the_trace_and_the_page_have_it(refused, tmp_path):
    _, capture = refused
    events = [event for event in capture.recording.chrome()["traceEvents"]
              if event["name"] == "[OutOfMemory]"]
    assert [event["args"]["Bytes"] for event in events] == [2 << 30]
    page = tmp_path / "m.json"
    assert harness.gpuprof("export", capture.recording.path, "--format", "memory", "-o",
                           page).status == harness.DONE
    data = harness.parse_json(page.read_text(encoding="utf-8"))
    assert data["out_of_memory"] == capture.recording.table()["out_of_memory"]


def test_a_gpus_allocator_tells_its_totals(tmp_path):
    with harness.Target("alloc") as target:
        capture = harness.attach(target, tmp_path / "gpu.gpuprof", "--memory",
                                 orders=lambda: target.command("report %d" % (2 << 30)))
        target.leave()
    events = capture.recording.table()["out_of_memory"]
    assert [(one["device"], one["bytes"], one["op"], one["allocator_bytes"], one["reserved_bytes"])
            for one in events] == [("cuda:0", 2 << 30, None, 3 << 30, 4 << 30)]
    said = capture.stdout.partition("Out of memory: ")[2]
    assert said.startswith("2.00 GB asked for on cuda:0 after ")
    assert " s, outside any op; the allocator held 3.00 GB and had reserved 4.00 GB" in said


def test_it_is_told_once_beside_torch_profiler(tmp_path):
    """Which has PyTorch tell it, too."""
    with harness.Target("alloc") as target:
        capture = harness.attach(target, tmp_path / "both.gpuprof", "--memory",
                                 orders=lambda: target.command("refuse_profiled %d" % (2 << 30)))
        target.leave()
    assert [one["bytes"] for one in capture.recording.table()["out_of_memory"]] == [2 << 30]


def test_nothing_without_one(idle, tmp_path):
    capture = harness.attach(idle, tmp_path / "plain.gpuprof", "--memory",
                             orders=lambda: idle.step(1))
    assert "Out of memory" not in capture.stdout
    assert "out_of_memory" not in capture.recording.table()
