# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The module of PyTorch's profiler tutorial: a layer, then indices that NumPy looks for, each in a
range of record_function()."""

import inspect
import time

import numpy
import protocol
import torch
from torch import nn
from torch.autograd.profiler import record_function


class Masked(nn.Module):
    """Its bottleneck is .item() and what NumPy does after it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.numpy_ns = 0

    def forward(self, data, mask):
        with record_function("LINEAR PASS"):
            out = self.linear(data)
        with record_function("MASK INDICES"):
            threshold = out.sum(axis=1).mean().item()
            mask = mask.numpy()
            begin = time.monotonic_ns()
            indices = numpy.argwhere(mask > threshold)
            self.numpy_ns += time.monotonic_ns() - begin
            indices = torch.from_numpy(indices).clone()
        return out, indices


class MaskedSteps(protocol.Workload):
    """The module's forward, one call a step."""

    def __init__(self, args):
        super().__init__(args)
        self.model = Masked(500, 10)
        self.data = torch.rand(128, 500)
        self.mask = torch.rand((500, 500, 4), dtype=torch.double)

    def step(self):
        self.model(self.data, self.mask)

    def facts(self):
        lines, first = inspect.getsourcelines(Masked.forward)

        def line_of(text):
            return first + next(i for i, line in enumerate(lines) if text in line)

        return {"item": line_of(".item()"), "numpy": line_of("argwhere"),
                "clone": line_of(".clone()")}

    def command(self, words):
        if words[0] == "numpy":
            spent, self.model.numpy_ns = self.model.numpy_ns, 0
            return "numpy %d" % spent
        return None


if __name__ == "__main__":
    protocol.main(MaskedSteps)
