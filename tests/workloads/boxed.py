# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Operators that are not called through at::_ops: by torch.ops, from TorchScript, and of a library of
one's own; in ranges of record_function(), one of which an error leaves.
"""

import torch
from torch.autograd.profiler import record_function

import protocol

LIBRARY = torch.library.Library("gpuprof_test", "DEF")
LIBRARY.define("twice(Tensor x) -> Tensor")
LIBRARY.define("a_name_that_is_not_short.and_an_overload(Tensor x) -> Tensor")


def twice(x):
    return torch.add(x, x)


def long_name(x):
    return torch.ops.gpuprof_test.twice(torch.neg(x))


LIBRARY.impl("twice", twice, "CPU")
LIBRARY.impl("a_name_that_is_not_short.and_an_overload", long_name, "CPU")
# Otherwise operators become one that has a name of its own.
torch._C._jit_set_texpr_fuser_enabled(False)


@torch.jit.script
def scripted(x):
    y = torch.relu(x)
    return torch.sigmoid(y) + torch.mm(x, y)


class Boxed(protocol.Workload):
    """torch.ops, TorchScript, torch.library and record_function()."""

    def __init__(self, args):
        super().__init__(args)
        self.x = torch.ones(4, 4)
        self.parameter = torch.ones(4, 4, requires_grad=True)
        self.optimizer = torch.optim.SGD([self.parameter], lr=0.1)

    def raise_one(self):
        try:
            with record_function("left by an error"):
                with record_function("inside"):
                    torch.ops.aten.mm(self.x, torch.ones(3, 3))
        except RuntimeError:
            return
        raise AssertionError("no error")

    def step(self):
        with record_function("outer"):
            torch.ops.aten.mul(self.x, self.x)
            with record_function("inner"):
                torch.ops.aten.add.Tensor(self.x, self.x)
                torch.ops.gpuprof_test.a_name_that_is_not_short(self.x)
            scripted(self.x)
        self.raise_one()
        self.optimizer.zero_grad()
        (self.parameter * self.x).sum().backward()
        self.optimizer.step()


if __name__ == "__main__":
    protocol.main(Boxed)
