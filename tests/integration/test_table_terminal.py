# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The printed table on terminals of several widths, and how complete it says the recording is."""

import os
import re

import pytest

from harness import DONE, LOST, gpuprof, parse_json
from recording_file import RecordingFile
from terminal import Terminal

pytestmark = pytest.mark.san

LONG = "torch::autograd::generated::details::" + "x" * 60 + "::TheEndOfTheName"
OPS = 40


@pytest.fixture
def path(tmp_path):
    """Forty operators with memory; the one that takes the longest has a long name."""
    made = RecordingFile()
    for i in range(OPS):
        made.op("aten::operator_%02d" % i if i else LONG, 1000 * i, 1000 * i + 900 - 20 * i, 10 + i)
        made.memory_event(1000 * i + 1, 0x10000 * (i + 1), 4096 * (i + 1), 10 + i)
    return made.save(tmp_path / "r.gpuprof")


class Shown:
    """What `gpuprof table PATH OPTIONS` prints on a terminal of so many columns."""

    def __init__(self, path, columns, *options, status=DONE):
        with Terminal("table", path, *options, columns=columns, rows=120) as terminal:
            assert terminal.status() == status
            lines = [line.rstrip() for line in terminal.lines()]
            self.stderr = terminal.stderr()
        self.lines = lines[:next(i for i, line in enumerate(lines) if "ended with status" in line)]
        self.titles = re.split(r"  +", self.lines[1].strip())
        hint = re.search(r"left out to fit: (.*) \(--wide shows all\)",
                         re.sub(r"\n  ", " ", "\n".join(self.lines)))
        self.left_out = hint.group(1).split(", ") if hint else []
        self.rows = [line for line in self.lines if "aten::" in line or "torch::" in line]


def all_titles(path):
    """As a pipe gets them."""
    return re.split(r"  +", gpuprof("table", path).stdout.splitlines()[1].strip())


def stated_order():
    """In which --help says that columns are left out."""
    words = " ".join(gpuprof("table", "--help").stdout.split())
    return re.search(r"left out, in this order: (.*?)\. ", words).group(1).split(", ")


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_the_table_fits(path, columns):
    shown = Shown(path, columns)
    every = all_titles(path)
    assert all(len(line) <= columns for line in shown.lines), shown.lines
    # No line was wrapped: each row has a value under each title.
    assert all(len(re.split(r"  +", row.strip())) == len(shown.titles) for row in shown.rows)
    assert [title for title in every if title not in shown.left_out] == shown.titles
    order = [title for title in stated_order() if title in every]
    assert shown.left_out == [title for title in every if title in order[:len(shown.left_out)]]
    assert ("Self CPU" in shown.titles) and (shown.titles == every) == (columns == 200)


def test_long_names_are_cut_in_the_middle(path):
    name = Shown(path, 80).rows[0].split()[0]
    begin, end = name.split("...")
    assert LONG.startswith(begin) and LONG.endswith(end) and len(name) >= 30
    assert len(Shown(path, 200).rows[0].split()[0]) > len(name)


@pytest.mark.parametrize("key, title", [("cpu_time", "CPU time avg"), ("cpu_memory_usage", "CPU Mem"),
                                        ("count", "# of Calls")])
def test_the_column_that_sorts_stays(path, key, title):
    assert title in Shown(path, 60, "--sort", key).titles


def test_columns_go_in_the_stated_order(path):
    """Each narrower terminal leaves out more, never one column before another that goes first."""
    before = []
    for columns in range(150, 40, -10):
        left_out = Shown(path, columns).left_out
        assert set(before) <= set(left_out)
        before = left_out
    assert set(before) == set(all_titles(path)) - {"Name", "Self CPU"}


def test_rows(path):
    shown = Shown(path, 120)
    assert len(shown.rows) == 20
    assert "20 of 40 rows (--limit -1 shows all)" in shown.lines
    shown = Shown(path, 120, "--limit", "-1")
    assert len(shown.rows) == OPS and not any("rows (" in line for line in shown.lines)


def test_wide(path):
    with Terminal("table", path, "--wide", "--limit", "-1", columns=300, rows=120) as terminal:
        assert terminal.status() == DONE
        lines = [line.rstrip() for line in terminal.lines()]
    plain = [line.rstrip() for line in gpuprof("table", path).stdout.splitlines()]
    assert lines[:len(plain)] == plain


def test_a_pipe_gets_all(path):
    done = gpuprof("table", path)
    assert done.stdout == gpuprof("table", path, "--wide").stdout
    lines = done.stdout.splitlines()
    assert len([line for line in lines if "aten::" in line or "torch::" in line]) == OPS
    assert not any("shows all" in line for line in lines)
    assert len({len(line) for line in lines[:-1]}) == 1 and len(lines[0]) > 120
    json = gpuprof("table", path, "--json")
    assert len(parse_json(json.stdout)["rows"]) == OPS


@pytest.mark.parametrize("options", [(), ("--wide",), ("--json",), ("--csv",)])
def test_a_terminal_changes_no_exit_status(path, options):
    options = ("--limit", "2", *options)
    with Terminal("table", path, *options, columns=80) as terminal:
        assert terminal.status() == gpuprof("table", path, *options).status == DONE


# ---- completeness ----

def with_losses(tmp_path, **losses):
    made = RecordingFile()
    made.op("aten::relu", 0, 10, 1)
    made.losses.update(losses)
    return made.save(tmp_path / "losses.gpuprof")


@pytest.mark.parametrize("losses, line, status", [
    ({}, "complete: no event is missing", DONE),
    ({"open_at_start": 3, "open_at_end": 2}, "complete: no event is missing", DONE),
    ({"exception": 3, "open_at_end": 2},
     "complete: no event is missing. Less exact: exception: 3. (see gpuprof-losses(7))", DONE),
    ({"ring_full": 7, "exception": 3},
     "incomplete: EVENTS ARE MISSING: ring_full: 7. Less exact: exception: 3. (see gpuprof-losses(7))", LOST),
])
def test_one_line_says_how_complete(tmp_path, losses, line, status):
    done = gpuprof("table", with_losses(tmp_path, **losses))
    assert done.status == status and done.stderr == line + os.linesep, done


def test_every_counter_is_named_where_asked(tmp_path):
    path = with_losses(tmp_path, open_at_start=3, exception=1)
    done = gpuprof("table", path, "--losses")
    names = set(parse_json(gpuprof("table", path, "--json").stdout)["losses"])
    assert "  at the edges: open_at_start: 3.\n  zero: " in done.stderr, done
    assert names == set(re.findall(r"\b(\w+)[:,.]", done.stderr)) & names
