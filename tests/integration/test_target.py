# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What gpuprof finds out about a process: `list` and `doctor`, in other namespaces too."""

import os
import subprocess

import pytest

from harness import (DONE, FAILED, GPUPROF, LIMIT, USAGE, Child, environment, gpuprof, inside,
                     parse_json)

pytestmark = pytest.mark.san

CAPABILITIES = ["bpf", "btf", "uprobe_multi", "perf_event", "ring_memory", "ptrace",
                "torch_symbols", "cuda", "cupti", "python_gc", "programs", "probes", "attach"]


def listed():
    done = gpuprof("list", "--json")
    assert done.status == DONE, done
    return parse_json(done.stdout)


def version_of(facts):
    return facts["torch"].split("+")[0].split("a")[0]


def parent_of(pid):
    """0 if the process, not one of ours, has ended since."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


@pytest.mark.versions
def test_list_json(idle):
    found = listed()
    pids = [process["pid"] for process in found["processes"]]
    assert pids == sorted(set(pids)) and found["not_looked_into"] >= 0
    mine = next(process for process in found["processes"] if process["pid"] == idle.pid)
    assert mine["torch"].startswith(version_of(idle.facts))
    assert mine["python"].startswith("3.") and mine["python"].count(".") == 2
    assert mine["cuda"] is None and mine["cupti"] is None and not mine["cupti_mapped"]
    assert mine["uid"] == os.stat("/proc/%d" % idle.pid).st_uid and mine["uptime_s"] >= 0
    assert "mlp.py" in mine["command"]


def test_list_table_is_the_json(idle):
    done = gpuprof("list")
    lines = done.stdout.splitlines()
    assert done.status == DONE, done
    assert lines[0].split() == ["PID", "USER", "UPTIME", "PYTHON", "TORCH", "CUDA", "ROLE",
                                "COMMAND"]
    mine = [line.split() for line in lines[1:] if line.split()[0] == str(idle.pid)]
    assert len(mine) == 1 and version_of(idle.facts) in mine[0][4] and mine[0][5] == "-", done


@pytest.mark.versions
def test_other_namespaces():
    """A workload alone in new mount, PID, UTS and IPC namespaces is found and understood."""
    argv = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child",
            *inside().argv("mlp")]
    with Child(argv, "unshare") as outer:
        outer.wait_line("stdout", lambda text: text.startswith("ready "))
        mine = [process for process in listed()["processes"]
                if parent_of(process["pid"]) == outer.pid]
        assert len(mine) == 1 and mine[0]["torch"] not in (None, "?"), mine
        done = gpuprof("doctor", "--pid", mine[0]["pid"], "--json")
        torch = next(one for one in parse_json(done.stdout)["capabilities"]
                     if one["name"] == "torch_symbols")
        assert torch["answer"] == "yes" and mine[0]["torch"] in torch["detail"], done
        outer.send("exit")
        assert outer.wait() == 0


@pytest.mark.versions
def test_doctor_json(idle):
    done = gpuprof("doctor", "--pid", idle.pid, "--json")
    told = parse_json(done.stdout)
    assert done.status == (DONE if told["able"] else FAILED) and told["pid"] == idle.pid, done
    found = told["capabilities"]
    assert [one["name"] for one in found] == CAPABILITIES
    for one in found:
        assert one["answer"] in ("yes", "no", "partly") and one["detail"], one
        assert (one["advice"] == "") == (one["answer"] == "yes"), one
    assert told["able"] == (not any(one["required"] and one["answer"] == "no" for one in found))
    torch = found[CAPABILITIES.index("torch_symbols")]
    assert torch["answer"] == "yes" and version_of(idle.facts) in torch["detail"]
    # Thousands of operators, whatever the version.
    assert int(torch["detail"].split(": ")[1].split()[0]) > 2000


def test_doctor_lines_are_the_json(idle):
    told = parse_json(gpuprof("doctor", "--pid", idle.pid, "--json").stdout)["capabilities"]
    done = gpuprof("doctor", "--pid", idle.pid)
    lines = [line.split(None, 2) for line in done.stdout.splitlines() if "->" not in line]
    assert [line[:2] for line in lines] == [[one["name"], one["answer"]] for one in told], done


def test_doctor_does_not_touch_the_target(idle):
    """Twice looked at, the process has not even been stopped for a moment."""
    for _ in range(2):
        gpuprof("doctor", "--pid", idle.pid)
        with open("/proc/%d/status" % idle.pid, encoding="utf-8") as status:
            assert "TracerPid:\t0\n" in status.read()
    idle.step(1)


def test_doctor_mistakes():
    with Child(["/bin/cat"], "cat") as cat:
        pid = cat.pid
    done = gpuprof("doctor", "--pid", pid)
    assert done.status == FAILED and done.stdout == "" and str(pid) in done.stderr, done
    for wrong in ("0", "-1", "x", "4294967297"):
        done = gpuprof("doctor", "--pid", wrong)
        assert done.status == USAGE and done.stdout == "", done


@pytest.mark.parametrize("command", ["list", "doctor"])
def test_full_disk(command):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([GPUPROF, command], stdin=subprocess.DEVNULL, stdout=full,
                              stderr=subprocess.PIPE, check=False, timeout=LIMIT,
                              env=environment())
    assert done.returncode == FAILED and b"space" in done.stderr.lower(), done
