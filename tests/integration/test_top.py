# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gpuprof top: what stands on a terminal, what the keys do, and what scripts get."""

import os
import re
import signal

import pytest

import harness
from terminal import Terminal
from test_gpu import App

STEP_OP = "aten::mse_loss"


def rows_below(lines, title):
    """The lines of rows: below the titles, without the last line."""
    at = [index for index, line in enumerate(lines) if line.rstrip().endswith(title)]
    return lines[at[0] + 1:-1] if at else []


def shows(title, text):
    return lambda lines: any(text in row for row in rows_below(lines, title))


def column(lines, title):
    """Where the arrow of the column that sorts stands, as the title behind it."""
    head = [line for line in lines if line.rstrip().endswith(title)][0]
    at = max(head.find("\u25be"), head.find("\u25b4"))
    return head[at:].split()[0]


@pytest.mark.versions
def test_a_terminal(tmp_path):
    with harness.Target("mlp") as target, \
            Terminal("top", "--pid", target.pid, "--interval", "0.5") as terminal:
        def step():
            target.step(5)

        lines = terminal.wait("operators", shows("OPERATOR", "aten::addmm"), step)
        assert len(lines) == 24 and max(map(len, lines)) <= 80
        assert lines[0].startswith("gpuprof top  %d " % target.pid)
        terminal.wait("steps", lambda seen: any(line.startswith("steps ") and "/s" in line
                                                for line in seen), step)
        # Nothing that is not recorded yet is asked of the process before it is looked at.
        terminal.keys("t")
        terminal.wait("threads", shows("NAME", str(target.facts["tid"])), step)
        terminal.keys("m")
        terminal.wait("memory", shows("OPERATOR", "aten::"), step)
        assert "KEPT" in terminal.text()
        # By TOTAL: lines that call operators through the library.
        terminal.keys("l", ">", ">")
        terminal.wait("lines", shows("LINE OF PYTHON", "mlp.py:"), step)
        terminal.keys("k")
        terminal.wait("no GPU", shows("KERNEL OR COPY", "no work of a GPU was seen"))
        terminal.keys("h")
        terminal.wait("help", lambda seen: "any key goes back" in seen[-1])
        terminal.keys("x")
        terminal.keys("o")
        terminal.wait("operators again", shows("OPERATOR", "aten::addmm"), step)

        assert column(terminal.lines(), "OPERATOR") == "\u25beSELF%"
        terminal.keys(">")
        terminal.wait("other order", lambda seen: column(seen, "OPERATOR") == "\u25beSELF")
        terminal.keys("<", "r")
        terminal.wait("reversed", lambda seen: column(seen, "OPERATOR") == "\u25b4SELF%")
        terminal.keys("r", "c")
        terminal.wait("sums", lambda seen: any("sum of all intervals" in line for line in seen))

        terminal.keys("/", *"mse_loss", "Enter")
        terminal.wait("filter", lambda seen: all(
            "mse_loss" in row for row in rows_below(seen, "OPERATOR") if row.strip()))
        assert "/mse_loss" in terminal.text()
        terminal.keys("Escape")
        terminal.wait("no filter", shows("OPERATOR", "aten::addmm"))

        terminal.keys("Space")
        terminal.wait("pause", lambda seen: any("paused" in line for line in seen))
        target.step(3)
        terminal.keys("Space")
        terminal.wait("no pause", lambda seen: not any("paused" in line for line in seen))

        terminal.resize(60, 14)
        lines = terminal.wait("smaller", lambda seen: len(seen) == 14 and
                              "q end" in seen[-1] and "AVG" not in "\n".join(seen))
        assert max(map(len, lines)) <= 60
        terminal.resize(20, 5)
        terminal.wait("too small", lambda seen: "too small" in seen[0])
        terminal.resize(120, 40)
        terminal.wait("larger", lambda seen: len(seen) == 40 and "AVG" in "\n".join(seen))

        target.leave()
        terminal.wait("end of the process",
                      lambda seen: any("ended" in line for line in seen))
        terminal.keys("q")
        assert terminal.status() == harness.DONE
        assert "complete: " in terminal.stderr()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGSEGV])
def test_the_terminal_is_given_back(idle, how):
    with Terminal("top", "--pid", idle.pid, "--interval", "0.5") as terminal:
        terminal.wait("operators", shows("OPERATOR", STEP_OP), lambda: idle.step(2))
        os.kill(terminal.pid(), how)
        if how == signal.SIGSEGV:
            # By that signal, or with the report of a sanitizer.
            assert terminal.status() in (128 + how, harness.SANITIZER_STATUS)
        else:
            assert terminal.status() == harness.DONE
    idle.step(2)


def test_plain_terminals(idle):
    def step():
        idle.step(2)

    with Terminal("top", "--pid", idle.pid, "--interval", "0.5", LC_ALL="C") as terminal:
        terminal.wait("operators", shows("OPERATOR", STEP_OP), step)
        assert terminal.text().isascii()
        assert "vSELF%" in terminal.text()
        assert "\x1b[32m" in terminal.text("-e")
        terminal.keys("q")
        assert terminal.status() == harness.DONE
    with Terminal("top", "--pid", idle.pid, "--interval", "0.5", NO_COLOR="1") as terminal:
        terminal.wait("operators", shows("OPERATOR", STEP_OP), step)
        assert not re.search(r"\x1b\[3[0-7]m", terminal.text("-e"))
        terminal.keys("q")
        assert terminal.status() == harness.DONE


def test_terminals_that_the_machine_does_not_know(idle):
    """Containers describe few terminals and have few languages: what is like xterm is drawn on as xterm."""
    with Terminal("top", "--pid", idle.pid, "--interval", "0.5", kind="xterm-unheard-of",
                  LC_ALL="xx_YY.UTF-8") as terminal:
        lines = terminal.wait("operators", shows("OPERATOR", STEP_OP), lambda: idle.step(2))
        assert column(lines, "OPERATOR") == "\u25beSELF%"
        assert "\x1b[32m" in terminal.text("-e")
        terminal.keys("q")
        assert terminal.status() == harness.DONE
    with Terminal("top", "--pid", idle.pid, kind="unheard-of") as terminal:
        assert terminal.status() == harness.FAILED
        assert "'unheard-of' is not known here" in terminal.stderr()


def once(pid, *options, orders):
    """The interval ends when the orders are done."""
    with harness.Gpuprof("top", "--pid", pid, "--once", "--interval", "3600",
                         *options) as profiler:
        profiler.wait_recording()
        orders()
        assert profiler.finish() == harness.DONE, profiler.told()
        return profiler.text("stdout"), profiler.text("stderr")


@pytest.mark.san
@pytest.mark.versions
def test_once(idle):
    text, told = once(idle.pid, "--json", "--memory", "--stack", orders=lambda: idle.step(7))
    seen = harness.parse_json(text)
    ops = {row["name"]: row for row in seen["ops"]}
    assert ops[STEP_OP]["calls"] == 7
    assert seen["steps"]["count"] == 6
    assert sum(row["calls"] for row in seen["lines"]) == sum(row["calls"] for row in seen["ops"])
    assert any("mlp.py:" in row["name"] for row in seen["lines"])
    assert any(row["cpu_bytes"] for row in seen["memory"])
    assert idle.facts["tid"] in [row["tid"] for row in seen["threads"]]
    assert seen["pids"] == [idle.pid] and seen["rss_bytes"] > 1 << 20
    assert not any(seen["losses"][name] for name in ("ring_full", "collector_full"))
    # What a step frees may be what a step before the capture allocated.
    counted = {name for name, count in seen["losses"].items() if count}
    assert counted <= {"free_unknown"}, told

    text, _ = once(idle.pid, "--limit", "3", "--sort", "calls", orders=lambda: idle.step(2))
    lines = text.splitlines()
    assert lines[0].startswith("gpuprof top  %d " % idle.pid)
    assert len(rows_below([*lines, ""], "OPERATOR")) == 3
    assert text.isascii()


def test_once_of_a_recording_is_its_table(sample):
    """The same rows, to the nanosecond."""
    recording = sample("mlp").recording
    done = harness.gpuprof("top", recording.path, "--json")
    assert done.status == harness.DONE, done
    rows = {row["name"]: row for row in harness.parse_json(done.stdout)["ops"]}
    table = {name: row for name, row in recording.rows().items() if name != "[memory]"}
    assert set(rows) == set(table)
    for name, row in table.items():
        for key in ("calls", "self_cpu_us", "cpu_total_us"):
            assert rows[name][key] == row[key], (name, key)


def test_by_samples():
    """Estimates, and called so."""
    with harness.Target("sampled") as target:
        def spend():
            target.command("spend 0.3")
            target.command("spend 0.5")

        text, told = once(target.pid, "--mode", "sample", "--hz", "997", "--json", orders=spend)
        seen = harness.parse_json(text)
        ops = {row["name"]: row for row in seen["ops"]}
        assert seen["estimated"] is True and seen["samples"] > 50, told
        assert ops["aten::mm"]["samples"] > 0 and "calls" not in ops["aten::mm"]
        assert ops["aten::mm"]["self_cpu_us"] > 0
        assert "steps" not in seen and "memory" not in seen
        assert any("sampled.py:" in row["name"] and row["samples"] for row in seen["lines"])
        assert any(row["off_cpu_us"] for row in seen["lines"])
        text, _ = once(target.pid, "--mode", "sample", "--hz", "997", "--sort", "off",
                       orders=spend)
        assert "~OFF CPU" in text and "what has ~ is estimated" in text
        target.leave()


def test_a_recording_of_samples(tmp_path):
    path = tmp_path / "s.gpuprof"
    with harness.Target("sampled") as target:
        done = harness.attach(target, path, "--mode", "sample", "--hz", "99",
                              orders=lambda: target.command("spend 0.5"))
        target.leave()
    assert done.status == harness.DONE, done.told
    said = harness.gpuprof("top", path, "--json")
    assert said.status == harness.DONE, said
    rows = {row["name"]: row for row in harness.parse_json(said.stdout)["ops"]}
    for row in done.recording.table("--limit", "-1")["rows"]:
        for key in ("samples", "self_cpu_us", "cpu_total_us", "off_cpu_us"):
            assert rows[row["name"]][key] == row[key], (row["name"], key)


def test_gpus(tmp_path):
    with App(FAKE_CUDA_DEVICES=2) as app:
        text, _ = once(app.pid, "--json", orders=lambda: app.do("work 2 50"))
        truth = app.truth(tmp_path)
        app.leave()
    seen = harness.parse_json(text)
    work = [event for event, _ in truth if event.kind in ("kernel", "copy", "set")]
    assert sum(row["calls"] for row in seen["kernels"]) == len(work) > 0
    assert any(gpu["busy_us"] > 0 for gpu in seen["gpus"])
    assert not any(gpu["busy_us"] > seen["wall_us"] for gpu in seen["gpus"])


def test_what_is_refused(idle, tmp_path):
    for args, text in ((("--pid", idle.pid), "no terminal"),
                       ((), "give --pid"),
                       (("x.gpuprof", "--pid", idle.pid, "--once"), "not both"),
                       (("--pid", idle.pid, "--once", "--sort", "beauty"), "self_pct, self"),
                       (("--pid", idle.pid, "--once", "--mode", "sample", "--memory"),
                        "--memory"),
                       (("--pid", idle.pid, "--once", "--overhead", "1"), "--mode sample"),
                       (("x.gpuprof", "--once", "--mode", "sample"), "go with processes"),
                       (("x.gpuprof", "--once", "--overhead", "1"), "go with processes")):
        done = harness.gpuprof("top", *args)
        assert done.status == harness.USAGE and text in done.stderr, done
    done = harness.gpuprof("top", "--pid", "4194303", "--once")
    assert done.status == harness.FAILED and "4194303" in done.stderr, done
