# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Where the kernel's verifier refuses a BPF program: it is told as that, in the verifier's words, and
what does without the program goes on. The gpuprof of these tests carries an object in which one
program is bad: its first instruction reads through a register that holds nothing.
"""

import json
import os
import platform
import shutil
import struct

import pytest

import harness

BPF = 247          # e_machine
SYMBOLS = 2        # sh_type
BAD = bytes([0x79, 0, 0, 0, 0, 0, 0, 0])  # r0 = *(u64 *)(r0 + 0)
WORDS = "R0 !read_ok"


def embedded(data):
    """Where the BPF object lies in gpuprof's file."""
    at = -1
    while True:
        at = data.index(b"\x7fELF\x02\x01", at + 1)
        if struct.unpack_from("<H", data, at + 18)[0] == BPF:
            return at


def code_of(data, program):
    """Where the program's first instruction lies."""
    base = embedded(data)
    table = base + struct.unpack_from("<Q", data, base + 40)[0]
    size, number = struct.unpack_from("<HH", data, base + 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(number)]
    for kind, offset, bytes_, link in ((s[1], s[4], s[5], s[6]) for s in sections):
        if kind != SYMBOLS:
            continue
        names = base + sections[link][4]
        for at in range(base + offset, base + offset + bytes_, 24):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
            begin = names + name
            if data[begin:data.index(b"\0", begin)] == program.encode():
                return base + sections[section][4] + value
    raise AssertionError("no program %s in the object" % program)


@pytest.fixture
def with_bad(tmp_path, monkeypatch):
    """Makes a gpuprof whose object has bad programs the one that the harness runs."""
    good = harness.GPUPROF

    def make(*programs):
        path = str(tmp_path / "-".join(("gpuprof", *programs)))
        shutil.copy(good, path)
        with open(path, "rb") as file:
            data = bytearray(file.read())
        for program in programs:
            at = code_of(data, program)
            data[at:at + len(BAD)] = BAD
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o755)
        monkeypatch.setattr(harness, "GPUPROF", path)
        return path
    return make


def calls(rows):
    return {name: row["calls"] for name, row in rows.items() if name.startswith("aten::")}


def test_what_nothing_goes_without_is_told_as_a_refusal(with_bad, idle, tmp_path):
    binary = with_bad("gp_op_entry")
    done = harness.gpuprof("attach", "--pid", idle.pid, "--no-inject", "--duration", "1", "-o",
                           tmp_path / "r", binary=binary)
    assert done.status == harness.FAILED
    for part in "gp_op_entry", WORDS, "Linux " + platform.release(), "report":
        assert part in done.stderr, done
    for part in "not permitted", "sudo", "CAP_":
        assert part not in done.stderr, done


def test_by_callback_it_goes_on(with_bad, tmp_path):
    with_bad("gp_op_entry")
    with harness.Target("mlp") as target:
        truth = target.truth(2)
        capture = harness.attach(target, tmp_path / "r", orders=lambda: target.step(2))
        target.leave()
    assert capture.status == harness.DONE, capture.told
    assert "gp_op_entry" in capture.stderr and WORDS in capture.stderr, capture.told
    assert calls(capture.recording.rows()) == calls(truth["rows"]) != {}


def test_what_does_without_a_program_goes_on(with_bad, tmp_path):
    """Operators by probes, where what tells of boxed ones is refused; which is counted."""
    with_bad("gp_dispatch_exit")
    with harness.Target("mlp") as target:
        truth = target.truth(2)
        capture = harness.attach(target, tmp_path / "r", "--no-inject",
                                 orders=lambda: target.step(2))
        target.leave()
    assert capture.status == harness.DONE, capture.told
    told = [line for line in capture.stderr.splitlines() if "gp_dispatch_exit" in line]
    assert len(told) == 1 and WORDS in told[0] and "torch.ops" in told[0], capture.told
    assert calls(capture.recording.rows()) == calls(truth["rows"]) != {}
    assert capture.recording.losses()["probe"] > 0


def test_samples_of_those_that_run_go_on(with_bad, tmp_path):
    with_bad("gp_look")
    with harness.Target("mlp") as target:
        capture = harness.attach(target, tmp_path / "r", "--mode", "sample", "--no-inject",
                                 orders=lambda: target.step(200))
        target.leave()
    assert capture.status in (harness.DONE, harness.LOST), capture.told
    assert "gp_look" in capture.stderr and "threads that wait" in capture.stderr, capture.told


def test_doctor_names_each_and_what_it_costs(with_bad):
    binary = with_bad("gp_look", "gp_gc_done")
    done = harness.gpuprof("doctor", "--json", binary=binary)
    found = {one["name"]: one for one in json.loads(done.stdout)["capabilities"]}
    assert done.status == harness.DONE, done
    assert found["programs"]["answer"] == "partly", done
    refused = {one["program"]: one for one in found["programs"]["refused"]}
    assert set(refused) == {"gp_look", "gp_gc_done"}
    assert all(one["words"] == WORDS for one in refused.values()), done
    assert "threads that wait" in refused["gp_look"]["costs"]
    text = harness.gpuprof("doctor", binary=binary).stdout
    assert "gp_gc_done: '%s'" % WORDS in text and "garbage collections" in text
    binary = with_bad("gp_op_exit")
    done = harness.gpuprof("doctor", "--json", binary=binary)
    found = {one["name"]: one for one in json.loads(done.stdout)["capabilities"]}
    assert found["programs"]["answer"] == "no" and found["programs"]["required"] is False, done
    assert found["attach"]["answer"] == "partly", done


def test_doctor_tells_where_probes_of_a_process_would_be(idle):
    done = harness.gpuprof("doctor", "--pid", idle.pid, "--json")
    found = {one["name"]: one for one in json.loads(done.stdout)["capabilities"]}
    assert found["programs"]["answer"] == "yes" and found["programs"]["refused"] == [], done
    assert "functions" in found["probes"]["detail"] and "single-stepped" in found["probes"]["detail"]
    assert int(found["probes"]["detail"].split()[0]) > 2000, done
