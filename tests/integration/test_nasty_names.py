# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A process whose names are chosen to act on whoever reads them: what is said about it while it runs,
and every format that export itself lists, is text and nothing else. What each name becomes in each
format is tested in tests/unit/test_cli_nasty_names.c.
"""

import csv
import io
import json
import re
import subprocess

import pytest

import harness
from terminal import Terminal

STEPS = 3
LABEL = "\udc9b31m\u009b31m\u202egpj.exe\x1b]0;title\x07"
CHINESE = "\u77e9\u9635\u4e58\u6cd5"
# base/escape.h says which these are.
ACTING = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")
LINES = re.compile("\r\n|\n")


@pytest.fixture(scope="module")
def target():
    with harness.Target("nasty", "--label", LABEL) as running:
        yield running
        running.leave()


@pytest.fixture(scope="module")
def capture(target, tmp_path_factory):
    path = tmp_path_factory.mktemp("nasty") / "r.gpuprof"
    done = harness.attach(target, path, "--stack", "python", "--memory", "--shapes",
                          orders=lambda: target.step(STEPS))
    assert done.status == harness.DONE, done.told
    return done


def run(*args):
    """Bytes of stdout and stderr, and the status."""
    done = subprocess.run([harness.GPUPROF, *map(str, args)], check=False, timeout=harness.LIMIT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=harness.environment())
    assert done.returncode in (harness.DONE, harness.LOST), done
    check_text(done.stderr)
    return done.stdout


def check_text(data):
    """Strictly UTF-8, and nothing in it acts but line ends."""
    text = data.decode("utf-8")
    assert not ACTING.search(LINES.sub(" ", text)), ACTING.search(LINES.sub(" ", text))
    return text


def test_what_attach_prints(capture):
    check_text(capture.stdout.encode("utf-8", "surrogateescape"))
    check_text(capture.stderr.encode("utf-8", "surrogateescape"))
    assert "csi?31m" in capture.stdout and "=cmd|'/C calc'!A0" in capture.stdout


def test_list(target, capture):
    line = next(line for line in check_text(run("list")).split("\n")
                if line.split()[:1] == [str(target.pid)])
    assert "?31m?gpj.exe?]0;title?" in line
    told = json.loads(check_text(run("list", "--json")))
    command = next(one for one in told["processes"] if one["pid"] == target.pid)["command"]
    assert LABEL.replace("\udc9b", "\ufffd") in command


def test_doctor(target):
    check_text(run("doctor", "--pid", target.pid))
    json.loads(check_text(run("doctor", "--pid", target.pid, "--json")))


@pytest.mark.parametrize("view", ["ops", "lines", "threads"])
def test_top(target, view):
    """Every view that the names of the target can reach, live."""
    with harness.Gpuprof("top", "--pid", target.pid, "--once", "--interval", "60", "--stack",
                         "--view", view, "--limit", "-1") as profiler:
        profiler.wait_recording()
        target.step(STEPS)
        assert profiler.finish() in (harness.DONE, harness.LOST), profiler.told()
        text = check_text(profiler.text("stdout").encode("utf-8", "surrogateescape"))
        check_text(profiler.text("stderr").encode("utf-8", "surrogateescape"))
    # Who reads lines knows no broken character: Child replaces what is no UTF-8.
    assert "csi?31m" in text and "?31m?gpj.exe?]0;title?" in text


def test_top_on_a_terminal(capture):
    """curses gets the same texts: the row is there, and nothing after it has moved or turned red."""
    with Terminal("top", capture.recording.path, "--view", "ops", columns=120,
                  rows=40) as terminal:
        terminal.wait("the rows", lambda lines: any("csi?31m" in line for line in lines))
        assert "\x1b[31m" not in terminal.text("-e")
        assert CHINESE in terminal.text()
        terminal.keys("q")


def test_table(capture):
    rows = capture.recording.rows()
    for name in ("csi\u009b31m", "esc\x1b[2J\x07", "\u202egpj.exe", "two\nlines\r", CHINESE):
        assert name in rows, sorted(rows)
    text = check_text(run("table", capture.recording.path, "--limit", "-1"))
    assert " csi?31m  " in text and " two?lines?  " in text and CHINESE in text
    check_text(run("table", capture.recording.path, "--group-by", "stack:5"))
    table = list(csv.reader(io.StringIO(run("table", capture.recording.path,
                                            "--csv").decode("utf-8"), newline=""), strict=True))
    assert {len(row) for row in table} == {len(table[0])}
    names = {row[0] for row in table}
    assert "'=cmd|'/C calc'!A0" in names and "csi?31m" in names and "a;b 12" in names


def formats():
    """Those that export offers to a shell."""
    done = subprocess.run([harness.GPUPROF, "__complete", "export", "--format", ""], check=False,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.split()


def test_exports(capture, tmp_path):
    endings = {"chrome": ".json", "perfetto": ".pftrace", "memory": ".html", "snapshot": ".pickle",
               "memory-timeline": ".json", "speedscope": ".json", "pprof": ".pb",
               "flamegraph": ".html"}
    listed = formats()
    assert len(listed) > 8
    for name in listed:
        path = tmp_path / (name + endings.get(name, ""))
        assert run("export", capture.recording.path, "--format", name, "-o", path) == b""
        if path.suffix == ".json":
            harness.parse_json(check_text(path.read_bytes()))
        elif path.suffix == ".html":
            page = path.read_bytes().decode("utf-8")
            data = page.split('id="data">', 1)[1].split("</script>", 1)[0]
            assert "<" not in data and not ACTING.search(data)
            harness.parse_json(data)
        elif path.is_dir():
            for one in path.iterdir():
                harness.parse_json(check_text(one.read_bytes()))
        elif not path.suffix:
            check_text(path.read_bytes().replace(b"\t", b" "))
    folded = (tmp_path / "stacks").read_text(encoding="utf-8").splitlines()
    assert folded and all(re.fullmatch(r"\S+ \d+", line) for line in folded)
    assert any("a_b_12" in line for line in folded)
