# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The collector against a stand-in for PyTorch (tests/fake/torch.c): what real PyTorch does not do on
order, and PyTorch versions that are not as the collector knows them.
"""

import os

import pytest

import harness
from test_collector import BACKWARD, FLAG_ASYNC, FLAG_CALLBACK, FOLDER, FUNCTION, LIBRARY, SCRIPT, \
    USER, Reader

FAKE = os.path.join(FOLDER, "tests", "fake-torch-new", "libtorch_cpu.so")
OLD = os.path.join(FOLDER, "tests", "fake-torch-old", "libtorch_cpu.so")
PROGRAM = os.path.join(harness.TESTS, "fake", "torch_target.py")

FLAG_EXCEPTION = 1
LOSS_OPEN_AT_END, LOSS_EXCEPTION = 4, 5


class FakeTarget(harness.Child):
    """A process with the stand-in."""

    def __init__(self, fake=FAKE, fault=""):
        env = harness.environment()
        if fault:
            env["FAKE_TORCH_FAULT"] = fault
        super().__init__([harness.PYTHON, "-B", PROGRAM, fake, LIBRARY], "torch_target", env=env)
        _, self._next = self.wait_line("stdout", lambda text: text.startswith("ready"))

    def order(self, *words):
        """One order; what was answered."""
        self.send(" ".join(str(word) for word in words))
        line, self._next = self.wait_line("stdout", lambda text: True, self._next)
        return line

    def begin(self, place, name, scope=FUNCTION, sequence=-1):
        self.order("begin", place, name, scope, sequence)

    def end(self, place):
        self.order("end", place)

    def callbacks(self):
        return int(self.order("callbacks").split()[1])

    def leave(self):
        self.process.stdin.close()
        assert self.wait() == 0, self.told()


@pytest.mark.parametrize("fault, told", [
    ("not_called", "did not call"), ("name", "another name"), ("sequence", "sequence number"),
    ("two_sequences", "sequence number"), ("async", "forward thread"),
    ("debug_handle", "forward thread"), ("handle", "forward thread"),
])
def test_unknown_layout_is_refused(tmp_path, fault, told):
    with FakeTarget(fault=fault) as target:
        with Reader(target.pid, tmp_path / "ops") as reader:
            assert reader.said.startswith("failed") and told in reader.said, reader.told()
            # Nothing is left behind, and PyTorch works on.
            assert target.callbacks() == 0
            target.begin(0, "aten::add")
            target.end(0)
            assert reader.finish() == ([], {})
        target.leave()


def test_old_pytorch_is_refused(tmp_path):
    with FakeTarget(fake=OLD) as target:
        with Reader(target.pid, tmp_path / "ops") as reader:
            assert reader.said.startswith("failed") and "does not export" in reader.said
            assert reader.finish() == ([], {})
        target.leave()


def test_order_and_fields(tmp_path):
    with FakeTarget() as target:
        with Reader(target.pid, tmp_path / "ops") as reader:
            assert reader.said.startswith("active"), reader.told()
            assert target.callbacks() == 4
            target.begin(0, "note", USER)
            target.begin(1, "aten::mm", FUNCTION, 7)
            target.end(1)
            target.begin(2, "MmBackward0", BACKWARD, 7)
            target.end(2)
            target.end(0)
            target.begin(3, "method", SCRIPT)
            target.end(3)
            # A scope that torch.profiler does not show either.
            target.begin(4, "dtype", 3)
            target.end(4)
            ops, losses = reader.finish()
        assert not losses
        assert [(op.name, op.scope, op.sequence) for op in ops] == [
            ("aten::mm", FUNCTION, 7), ("MmBackward0", BACKWARD, 7), ("note", USER, -1),
            ("method", SCRIPT, -1)]
        assert [op.parent for op in ops] == [ops[2].instance, ops[2].instance, 0, 0]
        assert target.callbacks() == 0
        target.leave()


def test_operators_alone(tmp_path):
    with FakeTarget() as target:
        with Reader(target.pid, tmp_path / "ops", "alone") as reader:
            assert reader.said.startswith("active"), reader.told()
            # Nothing of ours is called for the others.
            assert target.callbacks() == 2
            target.begin(0, "note", USER)
            target.begin(1, "autograd::engine::evaluate_function:MmBackward0", FUNCTION, 7)
            target.begin(2, "MmBackward0", BACKWARD, 7)
            target.begin(3, "aten::mm", FUNCTION, 7)
            for place in (3, 2, 1, 0):
                target.end(place)
            target.begin(4, "method", SCRIPT)
            target.end(4)
            ops, losses = reader.finish()
        assert not losses
        assert [(op.name, op.parent) for op in ops] == [("aten::mm", 0), ("method", 0)]
        assert target.callbacks() == 0
        target.leave()


def test_op_left_without_its_end(tmp_path):
    with FakeTarget() as target:
        with Reader(target.pid, tmp_path / "ops") as reader:
            target.begin(0, "outer")
            target.begin(1, "left")
            target.begin(2, "note", USER)
            target.end(0)
            # The annotation may outlive the op it began in, and stands for itself; the op inside
            # cannot.
            target.begin(3, "inner")
            target.end(3)
            target.end(2)
            ops, losses = reader.finish()
        assert [(op.name, op.flags) for op in ops] == [
            ("left", FLAG_CALLBACK | FLAG_EXCEPTION), ("outer", FLAG_CALLBACK),
            ("inner", FLAG_CALLBACK), ("note", FLAG_CALLBACK | FLAG_ASYNC)]
        assert losses == {LOSS_EXCEPTION: 1}
        assert ops[2].parent == ops[3].instance
        target.leave()


def test_end_on_another_thread(tmp_path):
    with FakeTarget() as target:
        with Reader(target.pid, tmp_path / "ops") as reader:
            target.begin(0, "note", USER)
            target.begin(1, "under")
            target.order("end-elsewhere", 0)
            target.end(1)
            target.begin(2, "after")
            target.end(2)
            ops, losses = reader.finish()
        assert not losses
        note, under, after = ops
        assert (note.name, note.flags) == ("note", FLAG_CALLBACK | FLAG_ASYNC)
        assert note.tid == under.tid == after.tid
        assert under.parent == note.instance and after.parent == 0
        target.leave()


def test_ops_open_at_the_end_and_late_ends(tmp_path):
    with FakeTarget() as target:
        with Reader(target.pid, tmp_path / "first") as reader:
            target.begin(0, "open")
            target.begin(1, "note", USER)
            target.begin(2, "done")
            target.end(2)
            ops, losses = reader.finish()
        assert [op.name for op in ops] == ["done"]
        assert losses == {LOSS_OPEN_AT_END: 2}
        # PyTorch still calls what it has copied: nobody is at home.
        target.end(0)
        assert target.order("again") == "again 1"
        with Reader(target.pid, tmp_path / "second") as reader:
            assert reader.said.startswith("active"), reader.told()
            target.end(1)
            target.begin(3, "new")
            target.end(3)
            ops, losses = reader.finish()
        assert [op.name for op in ops] == ["new"] and not losses
        assert ops[0].parent == 0
        target.leave()


def test_many_names_and_long_ones(tmp_path):
    long_name = "n" * 60
    with FakeTarget() as target:
        with Reader(target.pid, tmp_path / "ops") as reader:
            for number in range(300):
                target.begin(0, "step#%d" % (number % 150))
                target.end(0)
            target.begin(0, long_name)
            target.end(0)
            ops, losses = reader.finish()
        assert not losses
        assert [op.name for op in ops] == ["step#%d" % (number % 150) for number in range(300)] + \
            [long_name]
        target.leave()


def test_fork_while_callbacks_are_added(tmp_path):
    """A child must not inherit PyTorch's mutex locked by a thread that it has not."""
    with FakeTarget() as target:
        target.order("slow", 500)
        target.send("fork")
        with Reader(target.pid, tmp_path / "ops") as reader:
            line, _ = target.wait_line("stdout", lambda text: text.startswith("fork"))
            assert os.WEXITSTATUS(int(line.split()[1])) == 3, line
            assert reader.said.startswith("active"), reader.told()
            reader.finish()
        target.leave()
