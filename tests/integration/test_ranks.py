# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The ranks of a job beside each other."""

import decimal
import struct
import zlib

import pytest

import harness
import recording_file
from harness import DONE, FAILED, USAGE, Gpuprof, Recording, gpuprof
from rank_job import LATE, RANKS, RankJob

STEPS = 3


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    path = tmp_path_factory.mktemp("ranks") / "ranks.gpuprof"
    with RankJob() as target:
        with Gpuprof("attach", "--pid", target.pid, "--children", "-o", path) as profiler:
            profiler.wait_recording()
            target.step(STEPS)
            target.be_late()
            target.step(STEPS)
            assert profiler.finish() == DONE, profiler.told()
        target.leave()
    return Recording(path), target.pids


def shown(path, *options):
    done = gpuprof("table", path, *options)
    assert done.status == DONE, done
    return done.stdout


@pytest.mark.versions
def test_who_comes_last(job):
    recording, pids = job
    found = harness.parse_json(shown(recording.path, "--distributed", "--json"), decimal.Decimal)
    assert {row["rank"]: row["pid"] for row in found["ranks"]} == pids
    # Each order is broadcast before it is carried out; a step sums two gradients.
    orders, sums = 3, 2 * 2 * STEPS + 1
    for row in found["ranks"]:
        assert row["times_of"] == "CPU" and row["untimed"] == row["peer_calls"] == 0, row
        # The other ranks were in the first broadcast already when the recording began.
        assert row["collectives"] - row["unmatched"] == orders - 1 + sums, row
        assert 0 < row["communication_us"] and \
            0 <= row["computed_meanwhile_us"] <= row["communication_us"]
    matched = [one for one in found["collectives"] if one["kind"] == "all_reduce"]
    assert len(matched) == sums
    starts = {one["rank"]: one["at_us"] for one in matched[2 * STEPS]["ranks"]}
    late = starts.pop(LATE)
    assert matched[2 * STEPS]["last_rank"] == LATE and len(starts) == RANKS - 1
    assert matched[2 * STEPS]["behind_us"] == late - max(starts.values()) > 0
    assert matched[2 * STEPS]["spread_us"] == late - min(starts.values())
    for one in found["collectives"]:
        ends = [part["at_us"] + part["us"] for part in one["ranks"]]
        if one["kind"] == "all_reduce":
            assert max(part["at_us"] for part in one["ranks"]) <= min(ends)
    rows = {row["rank"]: row for row in found["ranks"]}
    for rank, row in rows.items():
        mine = [one for one in found["collectives"] if one.get("last_rank") == rank]
        assert row["came_last"] == len(mine)
        assert row["behind_us"] == sum(one["behind_us"] for one in mine)


def test_text_and_marks(job):
    recording, _ = job
    found = harness.parse_json(shown(recording.path, "--distributed", "--json"))
    lasts = [one["last_rank"] for one in found["collectives"] if "last_rank" in one]
    lines = shown(recording.path, "--distributed").splitlines()
    listed = [line.split() for line in lines if line.strip().startswith("all_reduce")]
    assert sorted(int(line[2]) for line in listed) == sorted(lasts)
    short = shown(recording.path, "--distributed", "--limit", "1").splitlines()
    assert [line.split() for line in short if line.strip().startswith("all_reduce")] == listed[:1]
    trace = recording.chrome()
    assert trace["distributedInfo"] == {"backend": "gloo", "rank": 0, "world_size": RANKS}
    marks = [event for event in trace["traceEvents"] if event.get("cat") == "straggler"]
    assert sorted(mark["args"]["rank"] for mark in marks) == sorted(lasts)
    assert {mark["name"] for mark in marks} == {"last to all_reduce"}


def test_tables_of_ranks(job):
    recording, _ = job
    grouped = harness.parse_json(shown(recording.path, "--group-by", "rank", "--json",
                                       "--limit", "-1"))["rows"]
    whole = recording.rows()
    for rank in range(RANKS):
        alone = harness.parse_json(shown(recording.path, "--rank", rank, "--json",
                                         "--limit", "-1"))["rows"]
        assert {row["name"]: row["calls"] for row in alone} == \
            {row["name"]: row["calls"] for row in grouped if row.get("rank") == rank}
    linear = [row for row in grouped if row["name"] == "aten::linear"]
    assert sorted(row["rank"] for row in linear) == list(range(RANKS))
    assert sum(row["calls"] for row in linear) == whole["aten::linear"]["calls"]
    assert "Rank" in shown(recording.path, "--group-by", "rank")
    assert shown(recording.path, "--group-by", "rank", "--csv").startswith("name,rank,device")


def test_what_cannot_be_had(job, sample):
    recording, _ = job
    done = gpuprof("table", recording.path, "--rank", RANKS)
    assert done.status == FAILED and "no rank %d" % RANKS in done.stderr
    done = gpuprof("table", sample("mlp").recording.path, "--distributed")
    assert done.status == FAILED and "gpuprof merge" in done.stderr
    done = gpuprof("table", recording.path, "--distributed", "--csv")
    assert done.status == USAGE


def on_another_machine(path, ahead_ns):
    """As if recorded where the time of day is ahead by so much."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = 24
    while at < len(data):
        kind, flags, size = struct.unpack_from("<HHI", data, at + 4)
        assert not flags or kind not in (recording_file.META, recording_file.WINDOW)
        payload = slice(at + 24, at + 24 + size)
        if kind == recording_file.META and b"boot_id" in data[payload]:
            place = data.index(b"boot_id", at) + len("boot_id") + 4
            data[place] = ord("f") if data[place] != ord("f") else ord("e")
        if kind == recording_file.WINDOW:
            start, end, realtime = struct.unpack_from("<QQQ", data, at + 24)
            struct.pack_into("<QQQ", data, at + 24, start, end, realtime + ahead_ns)
        checksum = zlib.crc32(data[payload], zlib.crc32(data[at:at + 20]))
        struct.pack_into("<I", data, at + 20, checksum)
        at += 24 + size
    with open(path, "wb") as file:
        file.write(data)


def starts(path):
    """Of each sum, rank by rank; and what is said of the clocks."""
    found = harness.parse_json(shown(path, "--distributed", "--json"))
    return [{one["rank"]: one["at_us"] for one in collective["ranks"]}
            for collective in found["collectives"] if collective["kind"] == "all_reduce"], found


def test_clocks_of_two_machines(tmp_path):
    """One machine's recordings share its clock, which tells how well the others are aligned."""
    ahead_ns, parts = 3_000_000, [tmp_path / "a.gpuprof", tmp_path / "b.gpuprof"]
    with RankJob() as target:
        pids = target.pids
        with Gpuprof("attach", "--pid", "%d,%d" % (pids[0], pids[1]), "-o", parts[0]) as one, \
                Gpuprof("attach", "--pid", "%d,%d" % (pids[2], pids[3]), "-o", parts[1]) as other:
            one.wait_recording()
            other.wait_recording()
            target.step(STEPS)
            target.be_late()
            target.step(STEPS)
            assert one.finish() == DONE and other.finish() == DONE
        target.leave()
    done = gpuprof("merge", *parts, "-o", tmp_path / "one.gpuprof")
    assert done.status == DONE, done
    truth, _ = starts(tmp_path / "one.gpuprof")
    on_another_machine(parts[1], ahead_ns)
    # Without the memory to look it is merged all the same, by the times of day.
    short = dict(harness.environment(), GPUPROF_MEMORY_LEFT="1")
    done = gpuprof("merge", *parts, "-o", tmp_path / "two.gpuprof", env=short)
    assert done.status == DONE and "not checked against what the ranks did together: " in done.stderr, done
    assert "and 0 MB are left" in done.stderr, done
    _, said = starts(tmp_path / "two.gpuprof")
    assert said["capture"]["clocks"] == "time of day"
    done = gpuprof("merge", *parts, "-o", tmp_path / "two.gpuprof")
    assert done.status == DONE, done
    found, said = starts(tmp_path / "two.gpuprof")
    assert said["capture"]["clocks"] == "collectives"
    error = said["clocks"]["error_us"]
    assert len(truth) == len(found) >= 2 * 2 * STEPS
    for mine, theirs in zip(found, truth):
        moved = (mine[2] - mine[0]) - (theirs[2] - theirs[0])
        assert abs(moved) <= error + 0.001 and abs(moved) < ahead_ns / 1000 + error
