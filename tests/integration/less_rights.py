# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
gpuprof with less rights: in containers, in namespaces, under security modules. A case tells what is
made, what gpuprof is asked for, and what is to come of it. test_less_rights.py asserts them;
tests/kernels/rights.py runs those that need a kernel of their own in guests.

usage: less_rights.py [--results FILE] [--rows FILE...]     writes the table of all cases
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import harness
import sandbox

RESULTS = Path(__file__).resolve().parents[1] / "rights" / "RESULTS.md"
STEPS = 3
SAMPLED_S = 3  # for which a percent of the CPU time gives dozens of samples

BARE = "only what the collector inside the process tells"
ADD_BPF = r"CAP_BPF and CAP_PERFMON are missing; .*--cap-add BPF --cap-add PERFMON.*\[BPF, PERFMON\]"

# It waits for the collector: what was called before is not to be counted upon.
PROGRAM = """
import time, torch
while "libgpuprof" not in open("/proc/self/maps").read():
    time.sleep(0.01)
one = torch.ones(2, 2)
for _ in range(%d):
    torch.mm(one, one)
""" % STEPS


class Case:
    """`command`: "attach", "run" or "top" with options. `says`: a pattern of what gpuprof says ("": nothing).
    Operators are to be recorded where the status is 0."""

    def __init__(self, name, command, status=0, says="", target=(), own=None, container=None, outside=False,
                 may_say=False):
        self.name = name
        self.command = command
        self.status = status
        self.says = says
        self.target = target          # rights of the target, as sandbox.inside() gives them
        self.own = target if own is None else own  # those of gpuprof
        self.container = container    # of sandbox.Container
        self.outside = outside        # gpuprof is outside of the container
        self.may_say = may_say        # something else

    def __str__(self):
        return "%s: %s" % (self.name, " ".join(self.command))


def docker(extra=(), refused=(), without=()):
    capabilities = [one for one in (*sandbox.DOCKER, *extra) if one not in without]
    return tuple(sandbox.inside(capabilities, sandbox.docker_refuses(capabilities) + list(refused)))


def in_docker(name, command, status=0, says="", extra=(), refused=(), without=(), **container):
    rights = docker(refused=refused)
    return Case(name, command, status, says, rights, docker(extra, refused, without), container)


NO_MEMFD = ((sandbox.MEMFD_CREATE, sandbox.EPERM),)
NO_MEMFD_CALL = ((sandbox.MEMFD_CREATE, sandbox.ENOSYS),)
NO_CODE = {"more": "echo 2 >/proc/sys/vm/memfd_noexec"}
NO_FOLDERS = {"more": NO_CODE["more"], "last": "mount -o remount,bind,ro /; "
              "for at in /tmp /var/tmp /run; do mount -t tmpfs -o noexec none $at; done"}
READ_ONLY = {"last": "mount -o remount,bind,ro /; mount -t tmpfs none /tmp"}
FROM_FILE = r"refused code in memory files \(%s: .*\): the collector came by a file in its folder /tmp"
DEFAULT = "default capabilities"

CASES = [
    in_docker(DEFAULT, ("attach",), says=BARE + ".*" + ADD_BPF),
    in_docker(DEFAULT, ("attach", "--shapes"), says=ADD_BPF),
    in_docker(DEFAULT, ("attach", "--stack", "python"), says=ADD_BPF),
    in_docker(DEFAULT, ("attach", "--memory"), says="no GPU memory.*" + ADD_BPF),
    in_docker(DEFAULT, ("top",), says=ADD_BPF),
    in_docker(DEFAULT, ("run",), says="from a moment after PyTorch has been loaded.*" + ADD_BPF),
    in_docker(DEFAULT, ("attach", "--no-inject"), 1, ADD_BPF),
    in_docker(DEFAULT, ("attach", "--mode", "sample"), 1, "within a PID namespace; .*--pid=host .*hostPID: true"),
    in_docker("PID namespace of the machine, CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE", ("attach", "--mode", "sample"),
              extra=("BPF", "PERFMON", "SYS_PTRACE"), pids=0),
    in_docker("CAP_SYS_PTRACE missing", ("attach",), 1, "CAP_SYS_PTRACE is missing; .*--cap-add SYS_PTRACE",
              without=("CHOWN",)),
    in_docker(DEFAULT, ("attach", "--stack", "native"), 1, ADD_BPF),
    in_docker(DEFAULT, ("attach", "--ops", "aten::mm"), 1, ADD_BPF),
    in_docker("CAP_BPF alone", ("attach", "--no-inject"), 1, r"CAP_PERFMON is missing; .*--cap-add PERFMON ",
              extra=("BPF",)),
    in_docker("CAP_BPF and CAP_PERFMON", ("attach", "--no-inject"), extra=("BPF", "PERFMON")),
    in_docker("no /sys", ("attach", "--no-inject"), 1, r"/sys/kernel/btf/vmlinux is missing; .*-v /sys:/sys:ro",
              extra=("BPF", "PERFMON"), last="mount -t tmpfs none /sys"),
    in_docker("read-only root", ("attach",), says=BARE, **READ_ONLY),
    in_docker("memfd_create refused", ("attach",), says=FROM_FILE % "memfd_create", refused=NO_MEMFD),
    in_docker("no memfd_create", ("attach",), says=FROM_FILE % "memfd_create", refused=NO_MEMFD_CALL),
    in_docker("no code in memory files", ("attach",), says=FROM_FILE % "memfd_create", **NO_CODE),
    in_docker("no code in any file", ("attach",), 1,
              r"has no folder for a file with code .*--tmpfs /tmp:exec.*emptyDir", **NO_FOLDERS),
    Case("seccomp filter of a target, gpuprof on the host", ("attach",), 0, FROM_FILE % "memfd_create",
         tuple(sandbox.inside(None, NO_MEMFD)), ()),
    Case("PID namespace, gpuprof outside", ("attach",), 0, "", docker(), (), {}, outside=True),
    Case("user namespace, gpuprof inside", ("attach", "--no-inject"), 1, "user namespace has no right to it",
         container={"user": True}),
    Case("user namespace, gpuprof inside", ("attach",), 0, BARE + ".*user namespace has no right to it",
         container={"user": True}),
    Case("user namespace, gpuprof outside", ("attach",), 0, "", container={"user": True}, outside=True),
]


class Outcome:
    def __init__(self, status, stderr, calls):
        self.status = status
        self.lines = [line for line in stderr.splitlines() if line.startswith("gpuprof: ")]
        self.stderr = stderr
        self.calls = calls


def _status(pid, name):
    with open("/proc/%s/status" % pid, encoding="ascii", errors="replace") as file:
        return re.search(r"^%s:\s+(.*)$" % name, file.read(), re.MULTILINE)[1]


def member(child, program):
    """The number of the process of this program that a child of ours has become, or has started in
    another PID namespace."""
    for folder in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.getsid(int(folder)) == child.pid and os.path.samefile("/proc/%s/exe" % folder, program):
                return int(folder)
    return child.fail("%s does not run" % program)


def _table(path):
    done = harness.gpuprof("table", path, "--json", "--limit", "-1")
    assert done.status in (harness.DONE, harness.LOST), done
    return {row["name"]: row.get("calls", 0) for row in json.loads(done.stdout)["rows"]
            if row["name"].startswith("aten::")}


def _run_program(prefix, out, path):
    done = harness.gpuprof("run", "-o", path, "--", harness.PYTHON, "-c", PROGRAM, prefix=prefix)
    recorded = done.status in (harness.DONE, harness.LOST)
    return Outcome(done.status, done.stderr, _table(os.path.join(out, "r.gpuprof")) if recorded else {})


def work(target, seconds):
    """Some steps, and more until so much time is over."""
    end = time.monotonic() + seconds
    target.step(STEPS)
    while time.monotonic() < end:
        target.step(STEPS)


def watch(case, prefix, target, pid, out, path):
    command, *options = case.command
    output = ("--interval", "2", "--once") if command == "top" else ("-o", path)
    with harness.Child([*prefix, harness.GPUPROF, command, "--pid", str(pid), *options, *output], "gpuprof") as own:
        if case.status == harness.DONE:
            own.wait_line("stderr", lambda line: line.startswith("recording"))
            work(target, SAMPLED_S if "sample" in options else 0)
            os.kill(member(own, harness.GPUPROF), signal.SIGINT)
        status = own.wait()
        if status not in (harness.DONE, harness.LOST):
            return Outcome(status, own.text("stderr"), {})
        calls = {"aten::": own.text("stdout").count("aten::")} if command == "top" else _table(
            os.path.join(out, "r.gpuprof"))
        return Outcome(status, own.text("stderr"), calls)


def run(case):
    """Makes what the case tells of and does it. Its Outcome."""
    with contextlib.ExitStack() as stack:
        inner = out = None
        if case.container is not None:
            inner = stack.enter_context(sandbox.Container(**case.container))
        out = inner.out if inner else stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))
        is_inside = inner and not case.outside
        path = os.path.join(sandbox.OUT if is_inside else out, "r.gpuprof")
        prefix = inner.enter(*case.own) if is_inside else list(case.own)
        if case.command[0] == "run":
            return _run_program(prefix, out, path)
        target = stack.enter_context(harness.Target(
            "mlp", prefix=inner.enter(*case.target) if inner else list(case.target)))
        python = os.path.realpath(harness.PYTHON)
        pid = target.facts["pid"] if is_inside else member(target, python)
        return watch(case, prefix, target, pid, out, path)


def check(case, outcome):
    """Asserts that it came as the case says."""
    assert outcome.status == case.status, (str(case), outcome.stderr)
    assert bool(case.says) == bool(outcome.lines) or case.may_say, (str(case), outcome.stderr)
    if case.says:
        assert any(re.search(case.says, line) for line in outcome.lines), (str(case), outcome.stderr)
    if case.status == harness.FAILED:
        # One sentence, behind the one that says that there are no probes.
        assert len(outcome.lines) == 1 + (BARE in outcome.stderr), (str(case), outcome.stderr)
    elif "sample" in case.command:
        assert outcome.calls, (str(case), outcome.stderr)
    else:
        assert outcome.calls and outcome.calls.get("aten::mm", STEPS) % STEPS == 0, (str(case), outcome.calls)


def row_of(case, outcome, where):
    said = " / ".join(outcome.lines).replace("gpuprof: ", "").replace("|", "\\|")
    said = re.sub(r"\b\d+(?=: |/fd)|(?<=process )\d+|(?<=attach to )\d+", "PID", said)
    return "| %s | %s | `%s` | %s | %s | %d |" % (
        where, case.name, " ".join(case.command), "recorded" if outcome.calls else "nothing recorded", said,
        outcome.status)


def write_rows(cases, where, file=sys.stdout):
    """Does each and writes its row. Whether one is not as it says, which goes to stderr."""
    failed = False
    for case in cases:
        try:
            outcome = run(case)
            print(row_of(case, outcome, where), file=file, flush=True)
            check(case, outcome)
        except Exception:  # noqa: BLE001: the others are tried all the same
            traceback.print_exc()
            failed = True
    return failed


HEAD = """# gpuprof with less rights

Written by `tests/integration/less_rights.py` on %s. Each row was made and tried as it says: in namespaces, with
the capabilities, mounts and filters that Docker sets by default and what the row changes, and under QEMU where
the kernel itself is other.

| kernel | case | command | outcome | what gpuprof says | exit status |
|---|---|---|---|---|---|
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--rows", help="more rows, as tests/kernels/rights.py writes them", nargs="*", default=())
    args = parser.parse_args()
    args.results.parent.mkdir(exist_ok=True)
    with open(args.results, "w", encoding="utf-8") as file:
        file.write(HEAD % datetime.date.today().isoformat())
        failed = write_rows(CASES, platform.release().split("-")[0], file)
        for name in args.rows:
            file.write(Path(name).read_text(encoding="utf-8"))
    harness.kill_all()
    harness.close_inside()
    return failed


if __name__ == "__main__":
    sys.exit(main())
