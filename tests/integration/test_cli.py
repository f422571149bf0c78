# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Subcommands on a finished recording: sorts, limits, forms, help, damaged files, bad usage."""

import csv
import decimal
import io
import os
import pathlib
import re
import shutil

import pytest

from harness import DONE, FAILED, LOST, ROOT_DIR, USAGE, attach, gpuprof, parse_json

pytestmark = pytest.mark.san

SORTS = {"cpu_time_total": "cpu_total_us", "self_cpu_time_total": "self_cpu_us", "count": "calls",
         "cpu_memory_usage": "cpu_mem", "self_cpu_memory_usage": "self_cpu_mem"}
COMMANDS = ("attach", "run", "table", "export", "merge", "list", "doctor")
ALL_COMMANDS = COMMANDS + ("top", "ctl", "daemon")


@pytest.fixture(scope="module")
def recording(sample):
    return sample("mlp").recording


def json_rows(recording, *options):
    done = gpuprof("table", recording.path, "--json", *options)
    assert done.status == DONE, done
    return parse_json(done.stdout)["rows"]


@pytest.mark.parametrize("key", SORTS)
def test_sorts(recording, key):
    rows = json_rows(recording, "--sort", key, "--limit", "-1")
    values = [row[SORTS[key]] for row in rows]
    assert values == sorted(values, reverse=True) and len(set(values)) > 1


def test_limit(recording):
    every = json_rows(recording, "--sort", "count", "--limit", "-1")
    assert json_rows(recording, "--sort", "count", "--limit", "3") == every[:3]


def test_text_table(recording):
    done = gpuprof("table", recording.path, "--sort", "count", "--limit", "5")
    assert done.status == DONE, done
    lines = done.stdout.splitlines()
    header = next(line for line in lines if "Name" in line)
    titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
              "CPU Mem", "Self CPU Mem", "# of Calls"]
    assert header.split() == " ".join(titles).split()
    assert any(line.startswith("Self CPU time total: ") for line in lines)
    top = json_rows(recording, "--sort", "count", "--limit", "5")
    body = [line.split() for line in lines if line.strip().startswith(("aten::", "[memory]"))]
    assert [[line[0], line[-1]] for line in body] == [[row["name"], str(row["calls"])]
                                                     for row in top]


def test_csv(recording):
    done = gpuprof("table", recording.path, "--csv", "--sort", "count", "--limit", "-1")
    assert done.status == DONE, done
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    expected = json_rows(recording, "--sort", "count", "--limit", "-1")
    assert [row["name"] for row in rows] == [row["name"] for row in expected]
    assert [int(row["calls"]) for row in rows] == [row["calls"] for row in expected]


def test_json_object(recording):
    table = recording.table()
    assert {"rows", "wall_us", "threads", "losses", "overhead", "capture"} <= set(table)
    assert table["wall_us"] > 0 and table["threads"] >= 1
    for row in table["rows"]:
        assert {"name", "device", "calls", "self_cpu_us", "cpu_total_us", "self_cpu_mem",
                "cpu_mem"} <= set(row), row


def test_gzip_holds_the_same_events(recording):
    packed = parse_json(recording.chrome_text(".json.gz"), decimal.Decimal)
    assert packed["traceEvents"] == recording.chrome()["traceEvents"]


def test_memory_json(recording, tmp_path):
    path = tmp_path / "memory.json"
    done = gpuprof("export", recording.path, "--format", "memory", "-o", path)
    assert done.status == DONE, done
    assert parse_json(path.read_text())


def test_memory_page_stands_alone(recording, tmp_path):
    path = tmp_path / "memory.html"
    done = gpuprof("export", recording.path, "--format", "memory", "-o", path)
    assert done.status == DONE, done
    page = path.read_text()
    assert "<html" in page.lower()
    for outside in ('src="http', "src='http", 'href="http', "@import", "fetch("):
        assert outside not in page, outside


def test_export_to_an_impossible_place(recording, tmp_path):
    done = gpuprof("export", recording.path, "--format", "chrome", "-o", "/nowhere/here/x.json")
    assert done.status == FAILED and "/nowhere/here" in done.stderr, done
    folder = tmp_path / "a-folder.json"
    folder.mkdir()
    done = gpuprof("export", recording.path, "--format", "chrome", "-o", folder)
    assert done.status == FAILED and "a-folder.json" in done.stderr, done
    assert os.listdir(tmp_path) == ["a-folder.json"] and os.listdir(folder) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    done = gpuprof(command, "--help")
    assert done.status == DONE and "gpuprof " + command in done.stdout, done
    assert done.stderr == ""


OPTION = re.compile(r"^(?:  -\w, |      )--([a-z-]+)", re.MULTILINE)


@pytest.mark.parametrize("command", ALL_COMMANDS)
def test_help_shows_few_options_and_help_all_the_rest(command):
    """At most ten and those of every subcommand; --help says how many there are beside."""
    few, every = (gpuprof(command, option) for option in ("--help", "--help-all"))
    assert few.status == every.status == DONE and every.stderr == ""
    few, every = (OPTION.findall(done.stdout) for done in (few, every))
    assert set(few) <= set(every) and len(set(every)) == len(every)
    own = [name for name in few if name not in ("help", "help-all", "verbose")]
    assert len(own) <= 10 and len(few) == len(own) + 3
    said = re.search(r"--help-all' shows (\d+) more options",
                     gpuprof(command, "--help").stdout)
    assert (int(said.group(1)) if said else 0) == len(every) - len(few)


def test_help_all_has_groups():
    for command in ("attach", "run", "table", "top", "daemon"):
        done = gpuprof(command, "--help-all")
        groups = re.findall(r"^([a-z].*):$", done.stdout, re.MULTILINE)
        assert groups[0] == "options" and len(groups) >= 4 and groups[-1] == "everywhere", done
        assert re.findall(r"^([a-z].*):$", gpuprof(command, "--help").stdout,
                          re.MULTILINE) == ["options"]


def test_help_of_all():
    done = gpuprof("--help")
    assert done.status == DONE, done
    for command in COMMANDS:
        assert command in done.stdout


def test_version():
    done = gpuprof("--version")
    assert done.status == DONE and done.stdout.startswith("gpuprof "), done


@pytest.mark.parametrize("args, words", [
    ((), "usage"),
    (("conjure",), "conjure"),
    (("attach",), "--pid"),
    (("attach", "--pid"), "--pid"),
    (("attach", "--pid", "abc"), "abc"),
    (("attach", "--pid", "0"), "0"),
    (("attach", "--pid", "-5"), "5"),
    (("attach", "--pid", "99999999999999999999"), "9999"),
    (("attach", "--frobnicate"), "frobnicate"),
    (("attach", "123"), "did you mean '--pid 123'"),
    (("top", "123,456", "--once"), "did you mean '--pid 123,456'"),
    ((__file__,), "'gpuprof table %s' reads" % __file__.lower()),
    (("run",), "command"),
    (("table",), "recording"),
    (("export",), "recording"),
])
def test_bad_usage(args, words):
    done = gpuprof(*args)
    assert done.status == USAGE, done
    assert words in done.stderr.lower() and done.stdout == "", done


@pytest.mark.parametrize("group, option", [
    ("shape", "--shapes"), ("module", "--modules"), ("stack:5", "--stack python"),
    ("between", "--stack python"), ("overload", "--no-inject"),
])
def test_what_cannot_tell_rows_apart_is_said(recording, group, option):
    done = gpuprof("table", recording.path, "--group-by", group)
    assert done.status == DONE and "record with %s\n" % option in done.stderr, done
    # And not, where there are no rows then, that the process called nothing.
    assert "called none" not in done.stderr, done


@pytest.mark.parametrize("metric, advice", [
    ("self_cuda_time_total", "used no GPU"), ("samples", "record with --mode sample"),
    ("peak_bytes", "record with --memory"),
])
@pytest.mark.parametrize("form", ["stacks", "speedscope", "pprof", "flamegraph"])
def test_stacks_by_what_was_not_recorded(idle, tmp_path, form, metric, advice):
    done = attach(idle, tmp_path / "r.gpuprof", "--stack", "python", orders=lambda: idle.step(1))
    said = gpuprof("export", done.recording.path, "--format", form, "--metric", metric, "-o",
                   tmp_path / "out")
    assert said.status == FAILED, said
    assert "cannot write stacks by %s: the recording has nothing of it" % metric in said.stderr
    assert advice in said.stderr
    assert os.listdir(tmp_path) == ["r.gpuprof"]


def test_deepest_group_by_stack(recording):
    assert gpuprof("table", recording.path, "--group-by", "stack:256").status == DONE
    done = gpuprof("table", recording.path, "--group-by", "stack:257")
    assert done.status == USAGE and "with N from 1 to 256" in done.stderr, done


def test_bad_values(recording, tmp_path):
    done = gpuprof("table", recording.path, "--sort", "beauty")
    assert done.status == USAGE and "beauty" in done.stderr, done
    assert "cpu_time_total" in done.stderr, done
    done = gpuprof("export", recording.path, "--format", "oil-painting", "-o", tmp_path / "x")
    assert done.status == USAGE and "oil-painting" in done.stderr and "chrome" in done.stderr, done
    done = gpuprof("export", recording.path, "--format", "pprof", "-o", tmp_path / "x")
    assert done.status == FAILED and done.stderr.endswith("record with --stack python\n"), done
    done = gpuprof("export", recording.path, "--format", "chrome")
    assert done.status == USAGE and "-o" in done.stderr, done
    done = gpuprof("table", recording.path, "--group-by", "line")
    assert done.status == USAGE and "stack:1" in done.stderr and done.stdout == "", done
    done = gpuprof("table", recording.path, "--limit", "many")
    assert done.status == USAGE and "many" in done.stderr, done
    assert os.listdir(tmp_path) == []


def test_no_recording(tmp_path):
    done = gpuprof("table", tmp_path / "absent.gpuprof")
    assert done.status == FAILED and "absent.gpuprof" in done.stderr, done
    for name, content in (("empty", b""), ("text", b"Hello\n" * 1000), ("zeros", bytes(65536))):
        path = tmp_path / name
        path.write_bytes(content)
        done = gpuprof("table", path)
        assert done.status == FAILED and name in done.stderr and done.stdout == "", done


def test_cut_before_the_first_operator(recording, tmp_path):
    """It is not said that there were none."""
    path = tmp_path / "cut.gpuprof"
    whole = pathlib.Path(recording.path).read_bytes()
    for size in range(200, len(whole), 200):
        path.write_bytes(whole[:size])
        done = gpuprof("table", path)
        if "no operators" in done.stderr:
            break
    assert "it was cut before any were written" in done.stderr, done
    assert "called none" not in done.stderr, done


def test_cut_recording(recording, tmp_path):
    """Readable up to the last whole chunk, and told so."""
    path = tmp_path / "cut.gpuprof"
    size = os.path.getsize(recording.path)
    most = sum(row["calls"] for row in recording.table()["rows"])
    shown = []
    for percent in (1, 10, 30, 50, 70, 90, 99):
        shutil.copy(recording.path, path)
        os.truncate(path, size * percent // 100)
        done = gpuprof("table", path, "--json", "--limit", "-1")
        assert done.status in (DONE, FAILED, LOST), done
        assert done.status == FAILED or "not whole" in done.stderr, done
        if done.status != FAILED:
            shown.append(sum(row["calls"] for row in parse_json(done.stdout)["rows"]))
    assert shown and shown == sorted(shown) and shown[-1] <= most


def test_corrupted_recording(recording, tmp_path):
    """A flipped bit anywhere is noticed or changes nothing; it never crashes the reader."""
    path = tmp_path / "bad.gpuprof"
    size = os.path.getsize(recording.path)
    for step in range(1, 32):
        shutil.copy(recording.path, path)
        with open(path, "r+b") as file:
            file.seek(size * step // 32)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 0x40]))
        done = gpuprof("table", path, "--json", "--limit", "-1")
        assert done.status in (DONE, FAILED, LOST), done
        if done.status != FAILED and "not whole" not in done.stderr:
            assert parse_json(done.stdout)["rows"] == recording.table()["rows"]


@pytest.mark.versions
def test_doctor():
    done = gpuprof("doctor")
    assert done.status in (DONE, FAILED), done
    for word in ("bpf", "btf", "uprobe", "perf"):
        assert word in done.stdout.lower(), word


@pytest.mark.versions
def test_list_and_doctor_of_a_target(idle):
    done = gpuprof("list")
    assert done.status == DONE, done
    mine = [line for line in done.stdout.splitlines() if str(idle.pid) in line.split()]
    assert len(mine) == 1, done
    version = idle.facts["torch"].split("+")[0].split("a")[0]
    assert version in mine[0], done
    done = gpuprof("doctor", "--pid", idle.pid)
    assert done.status in (DONE, FAILED) and version in done.stdout, done
    assert ROOT_DIR == "" or ROOT_DIR not in mine[0]
