# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Modules within modules, one of them used twice, one called again and again, one with hooks."""

import protocol
import torch
from torch import nn


class Gate(nn.Module):
    """Two layers and arithmetic of its own; takes a keyword argument."""

    def __init__(self, size):
        super().__init__()
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)

    def forward(self, data, *, scale=1.0):
        return torch.sigmoid(self.key(data)) * self.value(data) * scale


class Repeat(nn.Module):
    """Calls one and the same layer in a loop, with nothing in between."""

    def __init__(self, size, times):
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.times = times

    def forward(self, data):
        for _ in range(self.times):
            data = self.layer(data)
        return data


class Nested(nn.Module):
    """A sequence with a gate in it, which it also uses itself."""

    def __init__(self, size):
        super().__init__()
        self.gate = Gate(size)
        self.body = nn.Sequential(nn.Linear(size, size), nn.ReLU(), self.gate, Repeat(size, 3))
        self.head = nn.ModuleDict({"out": nn.Linear(size, 4)})

    def forward(self, data):
        data = self.gate(data, scale=0.5)
        data = self.body(data) + data
        return self.head["out"](data)


class Modules(protocol.Workload):
    """Training of the model above; a hook of one layer does an operation of its own."""

    def __init__(self, args):
        super().__init__(args)
        self.model = Nested(16)
        self.model.body[0].register_forward_hook(lambda module, args, out: out.mul(2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.data = torch.randn(8, 16)
        self.goal = torch.randint(0, 4, (8,))

    def step(self):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(self.data), self.goal).backward()
        self.optimizer.step()


if __name__ == "__main__":
    protocol.main(Modules)
