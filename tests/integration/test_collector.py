# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The collector in a real PyTorch process, read by collector_reader: the target loads the library
itself here, so nothing but the two ends of the ring is under test.
"""

import collections
import os
import re
import shutil
import subprocess

import pytest

import harness
from dropped import DROPPED

FOLDER = os.path.dirname(harness.GPUPROF)
LIBRARY = os.path.join(FOLDER, "libgpuprof-cupti.so")
READER = os.path.join(FOLDER, "tests", "collector_reader")
STEPS = 10

# enum gp_loss and enum gp_op_flags.
LOSS_DEPTH = 1
FLAG_CALLBACK, FLAG_ASYNC = 2, 4
DEPTH, PENDING = 96, 1024
FUNCTION, BACKWARD, SCRIPT, USER = 0, 1, 2, 7

Op = collections.namedtuple("Op", "name tid start end instance parent sequence forward scope flags "
                                  "thread")


def library():
    """The library where the targets can see it."""
    if not harness.ROOT_DIR:
        return LIBRARY
    path = os.path.join(harness.inside().folder, "libgpuprof-cupti.so")
    if not os.path.exists(path):
        shutil.copy(LIBRARY, path)
    return path


def load(target):
    assert target.command("load " + harness.inside().inner(library())) == "loaded 1"


class Reader(harness.Child):
    """A collector_reader that has had the collector's answer."""

    def __init__(self, pid, path, *words):
        self.path = str(path)
        super().__init__([READER, str(pid), self.path, *words], "collector_reader")
        self.said, _ = self.wait_line("stdout", lambda text: True)

    def finish(self):
        """Ends it in good order; the ops, and the losses that are not zero."""
        self.send("stop")
        assert self.wait() == 0, self.told()
        assert self.text("stdout").endswith("done"), self.told()
        ops, losses = [], {}
        with open(self.path, encoding="utf-8") as file:
            for line in file:
                fields = line.rstrip("\n").split("\t")
                if fields[0] == "loss":
                    losses[int(fields[1])] = int(fields[2])
                else:
                    numbers = [int(text, 16 if at in (5, 6) else 10)
                               for at, text in enumerate(fields) if at > 1]
                    ops.append(Op(fields[1], *numbers))
        assert losses
        return ops, {what: count for what, count in losses.items() if count}


def collect(target, path, *orders, pid=None):
    """Arms, gives the orders, disarms; the ops and losses."""
    assert target.command("again") == "loaded 1"
    with Reader(pid or target.pid, path) as reader:
        assert reader.said.startswith("active"), reader.told()
        answers = [target.command(order) for order in orders]
        return (*reader.finish(), answers)


@pytest.fixture(scope="module")
def target():
    """A workload with the library loaded; the ring it made at once is used up first."""
    with harness.Target("collected") as child:
        load(child)
        yield child
        child.leave()


def counts(ops):
    found = collections.Counter(op.name for op in ops)
    for name in DROPPED:
        found.pop(name, None)
    return found


def check_tree(ops):
    """Every parent is there and holds its children; instances are unique."""
    by_instance = {op.instance: op for op in ops}
    assert len(by_instance) == len(ops)
    for op in ops:
        assert op.start <= op.end
        if op.parent:
            parent = by_instance[op.parent]
            assert parent.tid == op.tid
            assert parent.start <= op.start
            assert op.end <= parent.end or (parent.flags & FLAG_ASYNC)


def check_backward(ops):
    """Nodes of autograd know the op that made them: same sequence number, its thread."""
    forward = {op.sequence: op for op in ops if op.scope == FUNCTION and op.sequence >= 0
               and op.name == "aten::addmm"}
    nodes = [op for op in ops if op.scope == BACKWARD and op.name == "AddmmBackward0"]
    assert forward and nodes
    for node in nodes:
        # A node's number is the one its op was given.
        assert node.forward == forward[node.sequence].thread


@pytest.mark.versions
@pytest.mark.san
def test_same_ops_as_torch_profiler(target, tmp_path):
    ops, losses, _ = collect(target, tmp_path / "ops", "step %d" % STEPS)
    assert not losses
    expected = target.truth(STEPS)["raw_calls"]
    assert counts(ops) == expected
    assert {op.flags for op in ops} == {FLAG_CALLBACK}
    assert {op.scope for op in ops} == {FUNCTION, BACKWARD, USER}
    assert target.facts["tid"] in {op.tid for op in ops}
    check_tree(ops)
    check_backward(ops)


@pytest.mark.versions
def test_with_torch_profiler_at_once(target, tmp_path):
    path = "%s/both.json" % harness.inside().folder
    ops, losses, _ = collect(target, tmp_path / "ops",
                             "truth %d %s" % (STEPS, harness.inside().inner(path)))
    assert not losses
    with open(path, encoding="utf-8") as file:
        expected = harness.parse_json(file.read())["raw_calls"]
    found = counts(ops)
    # What the profiler does to start and stop itself is ours alone.
    assert {name: found[name] for name in expected} == expected


@pytest.mark.versions
def test_annotation_ends_on_another_thread(target, tmp_path):
    ops, losses, _ = collect(target, tmp_path / "ops", "across 5")
    assert not losses
    across = [op for op in ops if op.name == "across"]
    assert len(across) == 5
    for op in across:
        assert op.flags == FLAG_CALLBACK | FLAG_ASYNC
        assert op.tid == target.facts["tid"] and op.scope == USER
    # Once it has ended it is nobody's parent; before, it was.
    ended = {op.instance for op in across}
    assert all(op.parent not in ended for op in ops if op.name == "aten::add")
    assert sum(op.parent in ended for op in ops if op.name == "aten::ones") == 5


@pytest.mark.versions
def test_annotations_overlap(target, tmp_path):
    """The one that outlives the other lies in nothing, and lasts as long as it does."""
    ops, losses, _ = collect(target, tmp_path / "ops", "overlap 5")
    assert not losses
    first, second = ([op for op in ops if op.name == name] for name in ("first", "second"))
    assert len(first) == len(second) == 5
    assert {op.flags for op in first} == {FLAG_CALLBACK}
    assert {op.flags for op in second} == {FLAG_CALLBACK | FLAG_ASYNC}
    for one, other in zip(first, second):
        assert one.start < other.start < one.end < other.end


@pytest.mark.versions
def test_what_ends_on_another_thread_goes_away(target, tmp_path):
    """Also where it ends when the next one has begun: more of them than are kept open at once."""
    ops, losses, _ = collect(target, tmp_path / "ops", "chain %d" % (2 * DEPTH))
    assert not losses
    assert counts(ops)["chained"] == 2 * DEPTH


@pytest.mark.versions
def test_script_waits_for_another(target, tmp_path):
    """What waits may go on on another thread and end there."""
    ops, losses, _ = collect(target, tmp_path / "ops", "fork_join %d" % (2 * DEPTH), "chain 1")
    assert not losses
    found = counts(ops)
    assert found["fork_join"] == found["aten::cos"] == 2 * DEPTH
    assert found["chained"] == 1
    assert {op.scope for op in ops if op.name == "fork_join"} == {SCRIPT}


@pytest.mark.versions
def test_errors_inside_ops(target, tmp_path):
    ops, losses, answers = collect(target, tmp_path / "ops", "wrong 7", "wrong 7")
    assert answers == ["wrong 7", "wrong 7"] and not losses
    assert counts(ops)["aten::mm"] == 14
    check_tree(ops)


def test_deeper_than_is_kept(target, tmp_path):
    ops, losses, _ = collect(target, tmp_path / "ops", "nest %d" % (DEPTH + 10), "nest 3")
    assert counts(ops)["nest"] == DEPTH + 3
    # Entering an annotation is an op as well; what is too deep is counted, never made up.
    assert set(losses) == {LOSS_DEPTH} and losses[LOSS_DEPTH] >= 10
    check_tree(ops)


def test_more_at_once_than_are_kept(target, tmp_path):
    """Annotations could end on any thread; those without a place are counted, and leave nothing."""
    ops, losses, _ = collect(target, tmp_path / "ops", "crowd 90 12", "nest %d" % (DEPTH - 2))
    assert losses == {LOSS_DEPTH: 90 * 12 - PENDING}
    assert counts(ops)["crowd"] == PENDING
    assert counts(ops)["nest"] == DEPTH - 2


@pytest.mark.san
def test_threads(target, tmp_path):
    ops, losses, answers = collect(target, tmp_path / "ops", "threads 6 50", "threads 3 20")
    tids = [int(tid) for answer in answers for tid in answer.split()[1:]]
    assert not losses
    adds = collections.Counter(op.tid for op in ops if op.name == "aten::add")
    expected = collections.Counter()
    for tid, count in zip(tids, [50] * 6 + [20] * 3):
        expected[tid] += count
    assert adds == expected
    check_tree(ops)


@pytest.mark.versions
def test_fork_child_is_inert(target, tmp_path):
    ops, losses, answers = collect(target, tmp_path / "ops", "fork 5", "step 1")
    # It left in good order, without our ring.
    assert answers == ["fork 0 0", "did 1"]
    assert not losses
    assert counts(ops) == target.truth(1)["raw_calls"]


@pytest.mark.versions
def test_fork_child_has_a_collector_of_its_own(tmp_path):
    """It inherits the callbacks in PyTorch's list: nothing is told twice."""
    found = []
    with harness.Target("collected") as parent:
        load(parent)
        with Reader(parent.pid, tmp_path / "parent") as reader:
            assert reader.said.startswith("active"), reader.told()
            parent.command("forward 1")
            pid = int(parent.command("become").split()[1])
            for cycle in range(2):
                ops, losses, _ = collect(parent, tmp_path / str(cycle), "forward 2", pid=pid)
                assert not losses
                check_tree(ops)
                found.append(counts(ops))
            ops, losses = reader.finish()
            assert not losses
            once = counts(ops)
            assert once["aten::addmm"] == 3
            assert found == [once + once, once + once]
        parent.leave()


def shape(pid):
    """What a process consists of: threads, descriptors, mappings by name."""
    mappings = collections.Counter()
    with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) > 5 and "gpuprof" in fields[5]:
                mappings[fields[5].strip()] += 1
    return len(os.listdir("/proc/%d/task" % pid)), harness.descriptors(pid), mappings


def gone(target):
    """Whether the collector's thread has left and its ring is closed."""
    names = set()
    for tid in os.listdir("/proc/%d/task" % target.pid):
        try:
            with open("/proc/%d/task/%s/comm" % (target.pid, tid), encoding="utf-8") as comm:
                names.add(comm.read().strip())
        # It may end before it is opened, or before it is read.
        except (FileNotFoundError, ProcessLookupError):
            pass
    return "gpuprof" not in names


@pytest.mark.versions
@pytest.mark.san
def test_again_and_again(target, tmp_path):
    expected = target.truth(1)["raw_calls"]
    shapes = []
    for cycle in range(8):
        ops, losses, _ = collect(target, tmp_path / ("ops%d" % cycle), "step 1")
        assert not losses and counts(ops) == expected
        harness.wait_until("the collector's thread ends", lambda: gone(target))
        shapes.append(shape(target.pid))
    # The library stays, and nothing else: no thread, no descriptor, no ring.
    assert all(one == shapes[0] for one in shapes)
    assert not any("ring" in name for name in shapes[0][2])


def free_for_another(target, tmp_path):
    """Whether a reader that comes now finds a ring for itself."""
    if target.command("again") != "loaded 1":
        return False
    with Reader(target.pid, tmp_path / "next") as reader:
        if reader.said.startswith("failed"):
            assert "another gpuprof" in reader.said or "try again" in reader.said, reader.told()
            return False
        reader.finish()
        return True


@pytest.mark.parametrize("by_itself", [True, False])
def test_reader_is_killed(target, tmp_path, by_itself):
    assert target.command("again") == "loaded 1"
    with Reader(target.pid, tmp_path / "first") as reader:
        assert reader.said.startswith("active"), reader.told()
        target.step(2)
        reader.kill()
    if by_itself:
        harness.wait_until("the collector's thread ends", lambda: gone(target))
        target.step(2)
    else:
        # The next gpuprof takes the place as soon as the dead one is silent.
        harness.wait_until("the next one gets a ring", lambda: free_for_another(target, tmp_path))
    ops, losses, _ = collect(target, tmp_path / "second", "step 1")
    assert not losses and counts(ops) == target.truth(1)["raw_calls"]


def test_process_without_pytorch(tmp_path):
    program = ("import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).InitializeInjection(), "
               "flush=True); sys.stdin.read()")
    with harness.Child([harness.PYTHON, "-B", "-c", program, LIBRARY], "python") as child:
        child.wait_line("stdout", lambda text: text == "1")
        with Reader(child.pid, tmp_path / "ops") as reader:
            assert reader.said.startswith("failed") and "no libtorch_cpu" in reader.said
            assert reader.finish() == ([], {})
        child.process.stdin.close()
        assert child.wait() == 0


def test_loads_into_old_systems():
    """A door for gpuprof and CUDA, one for NVTX; nothing that glibc 2.17 does not have; no library
    but libc."""
    said = subprocess.run(["objdump", "-T", LIBRARY], stdout=subprocess.PIPE, check=True)
    text = said.stdout.decode()
    versions = {tuple(int(part) for part in version.split("."))
                for version in re.findall(r"GLIBC_([0-9.]+)", text)}
    assert versions and max(versions) <= (2, 17)
    assert sorted(re.findall(r"\.text\s.*\s(\S+)$", text, re.MULTILINE)) == [
        "InitializeInjection", "InitializeInjectionNvtx2", "gpuprof_nvtx_pop", "gpuprof_nvtx_push"]
    needed = subprocess.run(["objdump", "-p", LIBRARY], stdout=subprocess.PIPE, check=True)
    assert re.findall(r"NEEDED\s+(\S+)", needed.stdout.decode()) == ["libc.so.6"]
