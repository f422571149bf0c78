# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What gpuprof says and returns for recordings made by hand, from the specification. No target, no BPF:
these tests need nothing but the binary."""

import csv
import gzip
import io
import os
import struct
import subprocess
import zlib

import pytest

from harness import DONE, FAILED, GPUPROF, LIMIT, LOST, USAGE, environment, gpuprof, parse_json
from recording_file import RecordingFile

pytestmark = pytest.mark.san


def small(**kind):
    """aten::linear calls aten::addmm, twice; then aten::relu alone; some memory."""
    made = RecordingFile(**kind)
    for i in range(2):
        at, linear, addmm = 100 * i, 10 + 2 * i, 11 + 2 * i
        made.op("aten::addmm", at + 10, at + 40, addmm, linear, overload="out" if i else "")
        made.op("aten::linear", at, at + 50, linear)
    made.op("aten::relu", 300, 307, 20)
    if kind.get("memory", "1") == "1":
        made.memory_event(20, 0x1000, 4096, 11)
        made.memory_event(120, 0x3000, 8192, 13)
        made.memory_event(400, 0x1000, -4096)
    return made


@pytest.fixture
def path(tmp_path):
    return small().save(tmp_path / "small.gpuprof")


def rows_of(done):
    return {row["name"]: row for row in parse_json(done.stdout)["rows"]}


def test_a_file_written_from_the_specification(path):
    done = gpuprof("table", path, "--json")
    assert done.status == DONE, done
    rows = rows_of(done)
    # As in torch.profiler's table, what happened outside every operator is a row "[memory]".
    assert set(rows) - {"[memory]"} == {"aten::linear", "aten::addmm", "aten::relu"}
    assert [rows["aten::linear"][key] for key in ("calls", "cpu_total_us", "self_cpu_us",
                                                  "cpu_mem", "self_cpu_mem")] == [
        2, 100, 40, 12288, 0]
    assert [rows["aten::addmm"][key] for key in ("calls", "cpu_total_us", "self_cpu_us",
                                                 "cpu_mem", "self_cpu_mem")] == [
        2, 60, 60, 12288, 12288]
    assert "not whole" not in done.stderr
    table = parse_json(done.stdout)
    assert table["losses"]["ring_full"] == 0 and table["losses"]["unknown_events"] == 0
    assert table["wall_us"] == 1_000_000


def test_sort_limit_and_groups(path):
    done = gpuprof("table", path, "--csv", "--sort", "count", "--group-by", "overload")
    assert done.status == DONE, done
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    # One row each for aten::addmm and aten::addmm.out.
    assert [row["name"] for row in rows].count("aten::addmm") == 2
    calls = [int(row["calls"]) for row in rows]
    assert calls == sorted(calls, reverse=True)
    done = gpuprof("table", path, "--csv", "--limit", "1")
    assert [row["name"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["aten::addmm"]
    done = gpuprof("table", path, "--json", "--top-level")
    assert set(rows_of(done)) - {"[memory]"} == {"aten::linear", "aten::relu"}


def test_time_unit(path):
    done = gpuprof("table", path, "--time-unit", "ms")
    assert done.status == DONE, done
    assert "0.060ms" in done.stdout and "us" not in done.stdout.split("aten::addmm")[1], done


@pytest.mark.parametrize("counter", ["ring_full", "collector_full", "record"])
def test_lost_events_are_an_exit_status(tmp_path, counter):
    made = small()
    made.losses[counter] = 7
    made.save(tmp_path / "lossy.gpuprof")
    for args in (("table", tmp_path / "lossy.gpuprof"),
                 ("export", tmp_path / "lossy.gpuprof", "--format", "chrome", "-o",
                  tmp_path / "t.json")):
        done = gpuprof(*args)
        assert done.status == LOST and counter + ": 7" in done.stderr, done


def test_what_is_only_less_exact_is_not_lost(tmp_path):
    made = small()
    made.losses.update(exception=3, open_at_start=2, probe=1, free_unknown=9)
    done = gpuprof("table", made.save(tmp_path / "a.gpuprof"))
    assert done.status == DONE and "exception: 3" in done.stderr, done
    assert "zero: " not in done.stderr and "open_at_start" not in done.stderr, done
    done = gpuprof("table", made.save(tmp_path / "a.gpuprof"), "--losses")
    assert "zero: ring_full," in done.stderr and "open_at_start: 2" in done.stderr, done


def test_cut_is_shown_with_a_warning(path, tmp_path):
    data = path.read_bytes()
    cut = tmp_path / "cut.gpuprof"
    cut.write_bytes(data[:-10])
    done = gpuprof("table", cut, "--json")
    assert done.status == DONE, done
    assert "not whole" in done.stderr and "cut after 6 chunks" in done.stderr, done
    assert rows_of(done)["aten::linear"]["calls"] == 2


def test_damaged_is_shown_with_a_warning(path, tmp_path):
    data = bytearray(path.read_bytes())
    data[data.index(b"testhost")] ^= 1
    bad = tmp_path / "bad.gpuprof"
    bad.write_bytes(data)
    done = gpuprof("table", bad)
    assert done.status == DONE, done
    assert "damaged after 0 chunks" in done.stderr and "no operators" in done.stderr, done


def test_export_to_stdout_file_and_gzip(path, tmp_path):
    out, packed = tmp_path / "t.json", tmp_path / "t.json.gz"
    shown = gpuprof("export", path, "--format", "chrome", "-o", "-")
    assert shown.status == DONE, shown
    assert gpuprof("export", path, "-f", "chrome", "-o", out).status == DONE
    assert gpuprof("export", path, "-f", "chrome", "-o", packed).status == DONE
    events = parse_json(shown.stdout)["traceEvents"]
    assert {"aten::linear", "aten::addmm"} <= {event.get("name") for event in events}
    assert parse_json(out.read_text())["traceEvents"] == events
    with gzip.open(packed, "rt") as file:
        assert parse_json(file.read())["traceEvents"] == events


def test_memory_forms(path, tmp_path):
    page, data = tmp_path / "m.html", tmp_path / "m.json"
    assert gpuprof("export", path, "--format", "memory", "-o", page).status == DONE
    assert gpuprof("export", path, "--format", "memory", "-o", data).status == DONE
    assert page.read_text().lstrip().lower().startswith("<!doctype html")
    assert parse_json(data.read_text())
    done = gpuprof("export", path, "--format", "memory", "-o", tmp_path / "m.png")
    assert done.status == USAGE and ".html" in done.stderr, done
    assert not os.path.exists(tmp_path / "m.png")


@pytest.mark.parametrize("form, name, others", [
    ("chrome", "t.pftrace", "perfetto"), ("chrome", "t.html", "memory, flamegraph"),
    ("perfetto", "t.json.gz", "chrome, memory, memory-timeline, speedscope"),
    ("memory", "m.pickle", "snapshot"), ("pprof", "p.json", "chrome"),
    ("stacks", "s.pb.gz", "pprof"), ("tensorboard", "runs.json", "chrome"), ("tensorboard", "-", "into a directory"),
])
def test_a_name_of_another_format(path, tmp_path, form, name, others):
    """Viewers go by the name: what would not open is not written."""
    done = gpuprof("export", path, "--format", form, "-o", name if name == "-" else tmp_path / name)
    assert done.status == USAGE and others in done.stderr, done
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("form, option, others", [
    ("chrome", ("--device", "cpu"), "memory-timeline"),
    ("memory", ("--device", "cpu"), "memory-timeline"),
    ("perfetto", ("--pid", "4242"), "chrome, memory-timeline, snapshot"),
    ("flamegraph", ("--pid", "4242"), "chrome, memory-timeline, snapshot"),
    ("chrome", ("--metric", "calls"), "stacks, speedscope, pprof, flamegraph"),
    ("snapshot", ("--steps",), "chrome, perfetto, memory, pprof, flamegraph, tensorboard, lightning"),
])
def test_an_option_of_another_format(path, tmp_path, form, option, others):
    """What would change nothing is not taken in silence."""
    done = gpuprof("export", path, "--format", form, *option, "-o", tmp_path / "out")
    assert done.status == USAGE and done.stderr.endswith(
        "%s is not for '%s', but for: %s; try 'gpuprof export --help'\n" % (option[0], form, others)
    ), done
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("form", ("--json", "--csv"))
@pytest.mark.parametrize("option", (("--header", "Run 5"), ("--time-unit", "ms")))
def test_options_of_the_printed_table(path, form, option):
    done = gpuprof("table", path, form, *option)
    assert done.status == USAGE and done.stdout == "" and option[0] in done.stderr, done


NO_GPU = "; the process used no GPU while it was recorded, or its times are missing"


@pytest.mark.parametrize("key, advice", [
    ("self_cuda_time_total", NO_GPU), ("device_time", NO_GPU),
    ("cpu_memory_usage", "; record with --memory"), ("flops", "; record with --flops"),
    ("count", None), ("cpu_time", None),
])
def test_sorted_by_what_no_row_has(tmp_path, key, advice):
    done = gpuprof("table", small(memory="0").save(tmp_path / "r"), "--sort", key)
    assert done.status == DONE, done
    assert ("the rows are not sorted: none has any %s%s\n" % (key, advice) in done.stderr if advice
            else "no order" not in done.stderr), done


@pytest.mark.parametrize("options", [(), ("--group-by", "between", "--sort", "self_cuda_time_total"),
                                     ("--group-by", "shape", "--sort", "flops")])
def test_orders_that_need_no_word(tmp_path, options):
    """Nobody asked for one; such rows never have it; or what is missing has been said."""
    made = RecordingFile(memory="1")
    made.memory_event(20, 0x1000, 4096)
    done = gpuprof("table", made.save(tmp_path / "r"), *options)
    assert done.status == DONE and "no order" not in done.stderr, done


def test_a_tree_has_its_order(path):
    done = gpuprof("table", path, "--group-by", "module-tree", "--sort", "count")
    assert done.status == USAGE and "leave --sort out" in done.stderr, done


def test_why_there_are_no_gpu_times(tmp_path):
    """Of the processes that are shown alone."""
    made = small()
    made.meta["gpu_lack.4242"] = "CUPTI is elsewhere"
    made.meta["gpu_lack.7"] = "never seen"
    path = made.save(tmp_path / "r")
    done = gpuprof("table", path)
    assert done.status == DONE, done
    assert [line for line in done.stderr.splitlines() if "GPU" in line] == [
        "gpuprof: no GPU times of 4242: CUPTI is elsewhere"], done
    assert parse_json(gpuprof("table", path, "--json").stdout)["capture"]["gpu_lack.7"] == "never seen"


def test_memory_that_was_not_recorded(tmp_path):
    """An empty chart would look like a process that allocates nothing."""
    path = small(memory="0").save(tmp_path / "a.gpuprof")
    done = gpuprof("export", path, "--format", "memory", "-o", tmp_path / "m.json")
    assert done.status == FAILED and "--memory" in done.stderr, done
    assert not os.path.exists(tmp_path / "m.json")


def test_the_recording_is_not_its_own_output(path):
    before = path.read_bytes()
    done = gpuprof("export", path, "--format", "chrome", "-o", path)
    assert done.status == USAGE and "itself" in done.stderr, done
    assert path.read_bytes() == before


def test_newer_format_says_so(tmp_path):
    data = bytearray(small().data())
    data[8:12] = struct.pack("<I", 2)
    data[20:24] = struct.pack("<I", zlib.crc32(bytes(data[:20])))
    path = tmp_path / "new.gpuprof"
    path.write_bytes(data)
    done = gpuprof("table", path)
    assert done.status == FAILED and "format 2.1" in done.stderr and done.stdout == "", done


def test_hostile_names_reach_no_terminal(tmp_path):
    made = RecordingFile()
    made.op("aten::\x1b[31mred\x07", 0, 10, 1)
    made.losses["\x1b]0;title\x07"] = 1
    done = gpuprof("table", made.save(tmp_path / "a.gpuprof"))
    assert done.status == DONE, done
    assert "\x1b" not in done.stdout + done.stderr and "\x07" not in done.stdout + done.stderr


def test_closed_streams(path, tmp_path):
    """The first files that gpuprof opens do not become its stdout and stderr."""
    out = tmp_path / "t.json"
    before = path.read_bytes()
    for closed in ("<&- >&- 2>&-", ">&-", "2>&-"):
        done = subprocess.run(["bash", "-c", '"$0" export "$1" -f chrome -o "$2" ' + closed,
                               GPUPROF, path, out], check=False, timeout=LIMIT,
                              env=environment())
        assert done.returncode == DONE
        assert parse_json(out.read_text())["traceEvents"]
        assert path.read_bytes() == before


def test_memory_is_short(path):
    """Reading more than the machine has room for would take it from the processes beside: it is refused."""
    done = gpuprof("table", path, env=dict(environment(), GPUPROF_MEMORY_LEFT="1"))
    assert done.status == FAILED and not done.stdout, done
    assert "and 0 MB are left" in done.stderr and "--rotate" in done.stderr, done
    plenty = dict(environment(), GPUPROF_MEMORY_LEFT=str(1 << 40))
    assert gpuprof("table", path, env=plenty).status == DONE


def test_memory_of_a_control_group_is_short(tmp_path, memory_group):
    """A container's memory is what it was given, whatever the machine has."""
    folder, limit = memory_group
    made, calls = RecordingFile(), 200_000
    for i in range(calls):
        made.op("aten::relu", i, i + 1, i + 1)
    path = made.save(tmp_path / "many.gpuprof")

    def table(megabytes):
        with open(limit, "w", encoding="ascii") as file:
            file.write(str(megabytes << 20))
        return subprocess.run(["bash", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', folder,
                               GPUPROF, "table", path, "--json"], check=False, timeout=LIMIT,
                              env=environment(), capture_output=True, text=True)

    done = table(60)
    assert done.returncode == FAILED and "too little to join them" in done.stderr, done
    done = table(1000)
    assert done.returncode == DONE and rows_of(done)["aten::relu"]["calls"] == calls


def test_ends_before_others(tmp_path):
    """Where memory runs out all the same, the kernel ends the reader first."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = subprocess.Popen([GPUPROF, "export", small().save(tmp_path / "a.gpuprof"), "--format", "chrome",
                               "-o", path], env=environment(), stderr=subprocess.DEVNULL)
    with open(path, "rb") as pipe:
        with open("/proc/%d/oom_score_adj" % reader.pid, encoding="ascii") as file:
            assert file.read() == "1000\n"
        assert pipe.read()
    assert reader.wait() == DONE


def test_mistyped_subcommand():
    done = gpuprof("tabel", "x.gpuprof")
    assert done.status == USAGE and "did you mean 'table'" in done.stderr, done
    done = gpuprof("--sort", "count", "table")
    assert done.status == USAGE and "--sort" in done.stderr, done


def test_mistyped_option(path):
    done = gpuprof("table", path, "--limits", "3")
    assert done.status == USAGE and "did you mean '--limit'" in done.stderr, done
