# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ranges deeper than is followed, and ranges with unusual names, whichever way operators come."""

import pytest

import harness

DEPTH = 96
BY_CALLBACK, BY_PROBES = (), ("--no-inject",)
WAYS = pytest.mark.parametrize("options", [BY_CALLBACK, BY_PROBES], ids=["default", "probes"])


def capture(path, *commands, options=()):
    with harness.Target("ranges") as target:
        done = harness.attach(target, path, *options,
                              orders=lambda: [target.command(command) for command in commands])
        target.leave()
    return done


@pytest.mark.versions
@WAYS
def test_deeper_than_is_followed(tmp_path, options):
    """What is too deep is missing, and said to be; what comes after it is told as ever."""
    done = capture(tmp_path / "r", "nest %d" % (DEPTH + 10), "step 5", options=options)
    assert done.status == harness.LOST, done.told
    assert "EVENTS ARE MISSING: depth: " in done.stderr
    rows, losses = done.recording.rows(), done.recording.losses()
    # A step in the last range but one has no place for its operator, in the last one none at all.
    assert rows["nest"]["calls"] == DEPTH
    assert rows["step"]["calls"] == DEPTH - 1 + 5
    assert rows["aten::sin"]["calls"] == DEPTH - 2 + 5
    assert {name for name, count in losses.items() if count} == {"depth"}


def test_nothing_but_what_is_too_deep(tmp_path):
    done = capture(tmp_path / "r", "into %d" % DEPTH, "step 1", options=("--ops", "aten::sin"))
    assert done.status == harness.LOST, done.told
    assert "aten::sin" not in done.recording.rows()
    assert "none matched" not in done.stderr
    assert "may be among the events that are missing" in done.stderr


@pytest.mark.versions
@WAYS
def test_names(tmp_path, options):
    """One may be empty; a long one is cut, and never within a character."""
    done = capture(tmp_path / "r", "named 0 x", "named 600 \u00e9", "named 3000 \u00e9",
                   "named 50 \u65e5\u672c", options=options)
    assert done.status == harness.DONE, done.told
    names = {name for name in done.recording.rows() if not name.startswith("aten::")}
    cut = {"\u00e9" * 600, "\u00e9" * 2047, "\u65e5\u672c" * 50} if options == BY_CALLBACK else {
        "\u00e9" * 63, "\u65e5\u672c" * 21}
    assert names == cut | {""}
    csv = harness.gpuprof("table", tmp_path / "r", "--csv")
    assert csv.status == harness.DONE and "\ufffd" not in csv.stdout
