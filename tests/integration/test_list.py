# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
`list` as a tree with roles, on real programs: DataLoaders by each way to start workers, torchrun
with ranks that have workers, processes with titles. What each process is it says itself.
"""

import contextlib
import json
import os

import pytest

import harness
from harness import Child, gpuprof, inside, parse_json
from terminal import DONE_MARK, Terminal

METHODS = ("fork", "forkserver")
TITLE = "ray::Trainer.step"
# setproctitle has the room of the arguments and of the environment.
LONG_TITLE = "a title " + "of many words " * 30
# A thread of PyTorch's since then has a name that tells what it is for.
NAMED_SINCE = (2, 6)


class Job:
    """A program and what its processes have said of themselves."""

    def __init__(self, stack, argv, said):
        env = dict(harness.environment(), OMP_NUM_THREADS="1")
        self.child = stack.enter_context(Child(argv, " ".join(argv[-2:]), env=env))
        self.number = said
        self.said = []

    def wait(self):
        start = 0
        while len(self.said) < self.number:
            line, start = self.child.wait_line(
                "stdout", lambda text: text.startswith("ready "), start)
            self.said.append(json.loads(line[len("ready "):]))


class Found:
    """What `list --json` says, by pid."""

    def __init__(self, jobs):
        self.jobs = jobs
        done = gpuprof("list", "--json")
        assert done.status == harness.DONE, done
        self.all = parse_json(done.stdout)["processes"]
        self.by_pid = {one["pid"]: one for one in self.all}

    def role(self, pid):
        one = self.by_pid[pid]
        return one["role"], one["role_is_guess"], one["parent"], one["profilable"]


def has_names(said):
    return tuple(map(int, said["torch"].split("+")[0].split("a")[0].split(".")[:2])) >= NAMED_SINCE


@pytest.fixture(scope="module")
def found():
    """All at once: most of the time is PyTorch's own to start."""
    with contextlib.ExitStack() as stack:
        jobs = {method: Job(stack, inside().argv("workers", method), 1) for method in METHODS}
        # What does not depend on the version of PyTorch is looked at on one.
        if not harness.ROOT_DIR:
            jobs["spawn"] = Job(stack, inside().argv("workers", "spawn"), 1)
            jobs["title"] = Job(stack, inside().argv("workers", "fork", TITLE), 1)
        jobs["torchrun"] = Job(stack, inside().script_argv(
            "bin/torchrun", "--nproc_per_node", "2", inside().workload("workers.py"), "fork"), 2)
        for job in jobs.values():
            job.wait()
        yield Found(jobs)


def main_of(found, name):
    return found.jobs[name].said[0]


def table_from(pid, number):
    """So many lines of the table from a process on, each as pid, role with its branches, command."""
    title, *lines = gpuprof("list").stdout.splitlines()
    role, command = title.index("ROLE"), title.index("COMMAND")
    rows = [(int(line.split()[0]), line[role:command].rstrip(), line[command:]) for line in lines]
    begin = [row[0] for row in rows].index(pid)
    return rows[begin:begin + number]


@pytest.mark.parametrize("method", [pytest.param("fork", marks=pytest.mark.versions), "spawn"])
def test_workers(found, method):
    said = main_of(found, method)
    assert found.role(said["pid"]) == (None, False, None, True)
    for worker in said["workers"]:
        assert found.role(worker) == ("dataloader_worker", not has_names(said), said["pid"], True)


@pytest.mark.versions
def test_workers_of_a_forkserver(found):
    said = main_of(found, "forkserver")
    servers = {found.by_pid[worker]["parent"] for worker in said["workers"]}
    assert len(servers) == 1
    server = servers.pop()
    assert found.role(server)[:3] == ("forkserver", False, said["pid"])
    for worker in said["workers"]:
        assert found.role(worker) == ("dataloader_worker", not has_names(said), server, True)


@pytest.mark.versions
def test_ranks_of_torchrun(found):
    """Each rank has workers of its own, and they have its environment."""
    job = found.jobs["torchrun"]
    launcher = found.by_pid[job.said[0]["parent"]]
    assert (launcher["role"], launcher["parent"]) == ("launcher", None)
    assert sorted(said["rank"] for said in job.said) == ["0", "1"]
    for said in job.said:
        one = found.by_pid[said["pid"]]
        rank = int(said["rank"])
        assert found.role(said["pid"]) == ("rank", False, launcher["pid"], True)
        assert (one["rank"], one["local_rank"], one["world_size"]) == (rank, rank, 2)
        for worker in said["workers"]:
            assert found.role(worker) == ("dataloader_worker", not has_names(said), said["pid"],
                                          True)
            assert found.by_pid[worker]["rank"] is None


def test_title(found):
    """It hides the program, and the forks have it, too."""
    said = main_of(found, "title")
    one = found.by_pid[said["pid"]]
    assert one["command"] == TITLE and os.path.basename(one["program"]).startswith("python3")
    assert found.role(said["pid"]) == ("ray_worker", False, None, True)
    for worker in said["workers"]:
        assert found.by_pid[worker]["command"] == TITLE
        assert found.role(worker) == ("dataloader_worker", not has_names(said), said["pid"], True)


def test_nothing_else_is_shown(found):
    """What starts the tests is no part of a job, nor are Python's own helpers."""
    assert os.getpid() not in found.by_pid
    roots = {job.child.pid for job in found.jobs.values()}
    assert roots <= found.by_pid.keys()

    def is_ours(one):
        while one["parent"] is not None and one["pid"] not in roots:
            one = found.by_pid[one["parent"]]
        return one["pid"] in roots

    ours = [one for one in found.all if is_ours(one)]
    # Each job's first, two ranks, two workers of each that has them, and the forkserver.
    assert len(ours) == 5 + 2 + 2 * 6 + 1
    assert all(one["profilable"] or one["role"] == "forkserver" for one in ours), ours


def test_table_is_a_tree(found):
    """The lines of a job stand together, the ranks in their order."""
    first, second = sorted(found.jobs["torchrun"].said, key=lambda said: said["rank"])
    worker = "DataLoader worker" + ("" if has_names(first) else "?")
    wanted = [(first["parent"], "launcher"), (first["pid"], "|- rank 0 of 2"),
              *zip(sorted(first["workers"]), ("|  |- " + worker, "|  `- " + worker)),
              (second["pid"], "`- rank 1 of 2"),
              *zip(sorted(second["workers"]), ("   |- " + worker, "   `- " + worker))]
    assert [row[:2] for row in table_from(first["parent"], len(wanted))] == wanted


def test_table_names_the_program(found):
    said = main_of(found, "title")
    program = os.path.basename(found.by_pid[said["pid"]]["program"])
    assert table_from(said["pid"], 1) == [
        (said["pid"], "Ray worker", "%s (%s)" % (TITLE, program))]


@pytest.mark.parametrize("columns", [80, 120])
def test_terminal(found, columns):
    """No line is broken in two, and a command still says which script it runs."""
    with Terminal("list", columns=columns, rows=60) as terminal:
        assert terminal.status() == harness.DONE
        lines = terminal.lines("-J")
    lines = lines[:[DONE_MARK in line for line in lines].index(True)]
    assert all(len(line) <= columns for line in lines), lines
    assert lines[0].split()[-2:] == ["ROLE", "COMMAND"]
    pid = str(main_of(found, "fork")["pid"])
    line = [line for line in lines if line.split()[:1] == [pid]][0]
    assert "python3 -B workers.py fork" in line


# A program that looks as if it used PyTorch, and says its pid. What it is to do besides comes as a
# statement.
LOOKALIKE = """
import ctypes, os, signal, subprocess, sys
torch, workloads, statement = sys.argv[1:4]
ctypes.CDLL(torch)
sys.path.insert(0, workloads)
exec(statement)
print("ready", os.environ.get("RANK", "-"), os.getpid(), flush=True)
signal.pause()
"""


def lookalike(statement, **env):
    """Its words and its environment."""
    return ([harness.PYTHON, "-B", "-c", LOOKALIKE, harness.FAKE_TORCH, harness.WORKLOADS,
             statement], dict(harness.environment(), **env))


def pids_said(child, number):
    """Rank -> pids."""
    found, start = {}, 0
    for _ in range(number):
        line, start = child.wait_line("stdout", lambda text: text.startswith("ready "), start)
        found.setdefault(line.split()[1], []).append(int(line.split()[2]))
    return found


@pytest.mark.san
def test_ranks_that_a_shell_starts():
    """It is shown above them; what a rank runs inherits its numbers and is none."""
    argv, env = lookalike("if os.environ['RANK'] == '1' and 'BELOW' not in os.environ: "
                          "subprocess.Popen([sys.executable, *sys.orig_argv[1:]], "
                          "env=dict(os.environ, BELOW='1'))")
    with Child(["sh", "-c", 'for RANK in 1 0; do export RANK; "$@" & done; wait', "sh", *argv],
               "starter", env=dict(env, WORLD_SIZE="2")) as starter:
        pids = pids_said(starter, 3)
        found = Found({})
        assert found.role(starter.pid) == (None, False, None, False)
        assert found.role(pids["0"][0]) == ("rank", False, starter.pid, True)
        first, below = sorted(pids["1"], key=lambda pid: found.by_pid[pid]["role"] is None)
        assert found.role(first) == ("rank", False, starter.pid, True)
        assert found.role(below) == (None, False, first, True)
        assert [row[:2] for row in table_from(starter.pid, 4)] == [
            (starter.pid, "-"), (pids["0"][0], "|- rank 0 of 2"), (first, "`- rank 1 of 2"),
            (below, "   `- child")]


@pytest.mark.san
def test_title_over_the_environment():
    """No number is left of a rank whose title is that long."""
    argv, env = lookalike("import titles; titles.set_title(%r)" % LONG_TITLE.encode(), RANK="0",
                          WORLD_SIZE="1", PADDING="x" * len(LONG_TITLE))
    with Child(argv, "titled", env=env) as child:
        pids_said(child, 1)
        found = Found({})
        assert found.by_pid[child.pid]["command"] == LONG_TITLE
        assert found.role(child.pid) == (None, False, None, True)
