# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The examples of PyTorch's profiler tutorials. ResNet-18 and the schedule are in test_parity.py,
test_shapes.py and test_steps.py; this is the masked module, whose bottleneck is to be found.
"""

import re

import pytest

import harness

pytestmark = pytest.mark.versions

STEPS = 5
LABELS = ("LINEAR PASS", "MASK INDICES")


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    path = tmp_path_factory.mktemp("masked") / "masked.gpuprof"
    with harness.Target("masked") as target:
        target.command("numpy")
        capture = harness.attach(target, path, "--memory", "--stack", "python",
                                 orders=lambda: target.step(STEPS))
        numpy_ns = int(target.command("numpy").split()[1])
        truth = target.truth(STEPS)
        facts = target.facts
        target.leave()
    assert capture.status == harness.DONE, capture.told
    return capture.recording, truth, facts, numpy_ns


def test_rows_equal_torch_profilers(masked):
    """Calls and memory of every row, the labels among them."""
    recording, truth, _, _ = masked
    assert set(LABELS) <= set(truth["rows"])
    columns = ("calls", "cpu_mem", "self_cpu_mem")
    ours = {name: [row[column] for column in columns] for name, row in recording.rows().items()}
    theirs = {name: [row[column] for column in columns] for name, row in truth["rows"].items()}
    assert ours == theirs


def test_item_is_at_its_line(masked):
    recording, _, facts, _ = masked
    rows = [row for row in recording.table("--group-by", "stack:1")["rows"]
            if row["name"] == "aten::item"]
    assert [row["calls"] for row in rows] == [STEPS]
    assert re.search(r"masked\.py\(%d\): (\w+\.)?forward$" % facts["item"], rows[0]["stack"][0])


def places(row):
    """The lines that the time of a row lies between."""
    found = [re.search(r"masked\.py\((\d+)\): (?:\w+\.)?forward$", frame) for frame in row["stack"]]
    return tuple(int(one.group(1)) for one in found) if all(found) else None


def test_numpys_time_is_shown_between_its_lines(masked):
    """Time in which no operator runs: NumPy's lies in it, by the program's own clock."""
    recording, _, facts, numpy_ns = masked
    rows = recording.table("--group-by", "between")["rows"]
    around = [row for row in rows if places(row) and
              facts["item"] <= places(row)[0] < facts["numpy"] < places(row)[1]]
    assert len(around) == 1 and around[0]["calls"] == STEPS
    assert places(around[0])[1] == facts["clone"]
    assert around[0]["self_cpu_us"] * 1000 >= numpy_ns > 0
    # No operator is in it: the range's own time holds all of it.
    assert around[0]["self_cpu_us"] <= recording.rows()["MASK INDICES"]["self_cpu_us"]


def test_times_between_and_in_operators_do_not_overlap(masked):
    recording, _, _, _ = masked
    table = recording.table("--group-by", "between")
    between = sum(row["self_cpu_us"] for row in table["rows"])
    assert 0 < between < table["wall_us"]
    text = harness.gpuprof("table", recording.path, "--group-by", "between").stdout
    assert "[between operators]" in text and "masked.py(" in text
