# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The pprof profile of a real capture, as Go's own pprof reads it: its sums are the table's."""

import os
import re
import subprocess

import pytest

import harness

STEPS = 10
UNITS = {"nanoseconds": "ns", "bytes": "B", "count": ""}


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pprof")
    with harness.Target("mlp") as target:
        done = harness.attach(target, folder / "mlp.gpuprof", "--stack", "python", "--memory",
                              orders=lambda: target.step(STEPS))
        target.leave()
    assert done.status == harness.DONE, done.told
    return done.recording


@pytest.fixture(scope="module")
def profile(capture, tmp_path_factory):
    path = tmp_path_factory.mktemp("profile") / "mlp.pb.gz"
    assert harness.gpuprof("export", capture.path, "--format", "pprof", "-o",
                           path).status == harness.DONE
    return path


def pprof(profile, *options):
    """What `go tool pprof` prints."""
    done = subprocess.run(["go", "tool", "pprof", *options, str(profile)], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=harness.LIMIT,
                          env={**os.environ, "HOME": str(profile.parent), "GOFLAGS": "-mod=mod"})
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def top(profile, kind, unit):
    """name -> (flat, cumulative), as whole numbers of the unit."""
    text = pprof(profile, "-top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0",
                 "-sample_index=" + kind, "-unit=" + (UNITS[unit] or "count"))
    rows = {}
    for line in text.split("flat%", 1)[1].splitlines()[1:]:
        flat, _, _, total, _, name = line.split(None, 5)
        rows[name] = tuple(int(float(value.replace(UNITS[unit], "") or 0))
                           for value in (flat, total))
    return rows


def total(rows):
    return sum(flat for flat, _ in rows.values())


def test_types(profile):
    raw = pprof(profile, "-raw")
    types = raw.split("Samples:\n", 1)[1].splitlines()[0].split()
    assert types == ["cpu/nanoseconds[dflt]", "calls/count", "alloc_objects/count",
                     "alloc_space/bytes", "peak_space/bytes"]
    assert "Comment: losses: ring_full: 0, " in raw


def test_time_and_calls_are_the_tables(capture, profile):
    rows = {name: row for name, row in capture.rows().items() if name != "[memory]"}
    cpu, calls = top(profile, "cpu", "nanoseconds"), top(profile, "calls", "count")
    for name, row in rows.items():
        assert cpu[name][0] == round(row["self_cpu_us"] * 1000), name
        assert calls[name][0] == row["calls"], name
    assert total(cpu) == sum(round(row["self_cpu_us"] * 1000) for row in rows.values())
    assert total(calls) == sum(row["calls"] for row in rows.values())
    # All of it is under the program's own lines.
    assert cpu["Mlp.step"][1] == cpu["<module>"][1] == total(cpu)


def test_traces_add_up(profile):
    text = pprof(profile, "-traces", "-sample_index=cpu", "-unit=ns")
    values = re.findall(r"^ *(\d+)ns   \S", text, re.MULTILINE)
    assert sum(map(int, values)) == total(top(profile, "cpu", "nanoseconds"))
    assert len(re.findall(r"^ +op:  aten::addmm$", text, re.MULTILINE)) >= 1
    assert "Mlp.step" in text


def test_raw_adds_up(profile):
    raw = pprof(profile, "-raw").split("Samples:\n", 1)[1].split("Locations\n", 1)[0]
    sums = [0] * 5
    for line in raw.splitlines()[1:]:
        values = re.fullmatch(r" *((?:\d+ +){4}\d+): [\d ]+", line)
        if values:
            sums = [a + int(b) for a, b in zip(sums, values.group(1).split())]
    assert sums[0] == total(top(profile, "cpu", "nanoseconds"))
    assert sums[4] == total(top(profile, "peak_space", "bytes"))


def test_memory_is_that_of_the_memory_timeline(capture, profile, tmp_path):
    path = tmp_path / "memory.json"
    assert harness.gpuprof("export", capture.path, "--format", "memory", "-o",
                           path).status == harness.DONE
    (device,) = harness.parse_json(path.read_text(encoding="utf-8"))["devices"]
    assert total(top(profile, "alloc_space", "bytes")) == \
        sum(op["bytes"] for op in device["ops"])
    held = {}
    for op in device["peak"]["held_by"]:
        name = op["op"] or "[no operator]"
        held[name] = held.get(name, 0) + op["bytes"]
    peak = {name: flat for name, (flat, _) in top(profile, "peak_space", "bytes").items() if flat}
    assert peak == held


def test_lines(profile):
    """Files and lines are there: the step's own lines, by the cumulative time under each."""
    text = pprof(profile, "-top", "-lines", "-nodecount=0", "-nodefraction=0", "-cum",
                 "-sample_index=calls")
    lines = {int(number) for number in re.findall(r"Mlp\.step \S*/mlp\.py:(\d+)", text)}
    with open(os.path.join(harness.WORKLOADS, "mlp.py"), encoding="utf-8") as file:
        source = file.read().splitlines()
    assert {source[number - 1].split("(")[0].strip() for number in lines} >= {
        "self.optimizer.zero_grad", "loss = self.loss", "loss.backward", "self.optimizer.step"}


def test_default_metric(capture, tmp_path):
    path = tmp_path / "peak.pb"
    assert harness.gpuprof("export", capture.path, "--format", "pprof", "--metric", "peak_bytes",
                           "-o", path).status == harness.DONE
    assert "\nType: peak_space\n" in pprof(path, "-top")
