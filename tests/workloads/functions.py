# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls of Python functions of every kind, with operators before, in and behind them."""

import protocol
import torch
from torch.profiler import record_function


def leaf(data):
    return torch.sin(data)


def twice(data):
    return leaf(leaf(data))


def down(data, depth):
    data = torch.cos(data)
    return down(data, depth - 1) if depth else data


def each(data, times):
    for turn in range(times):
        data = leaf(data) + turn
    return data


def in_row(data, times):
    """Calls with no operator between them, of which one variable tells."""
    for _ in range(times):
        leaf(data)
    return data


def given(data):
    for turn in range(3):
        yield torch.tanh(data) * turn


def raises(data):
    torch.sin(data)
    raise ValueError


def labelled(data):
    torch.exp(data)
    with record_function("label"):
        data = leaf(data)
        with record_function("empty"):
            pass
    return data


class Doubled(torch.autograd.Function):
    """Python that operators call."""

    @staticmethod
    def forward(ctx, data):
        return leaf(data) * 2

    @staticmethod
    def backward(ctx, grad):
        return twice(grad)


class Functions(protocol.Workload):
    """All of them, once a step."""

    def __init__(self, args):
        super().__init__(args)
        self.data = torch.ones(4, requires_grad=True)

    def step(self):
        with torch.no_grad():
            data = down(twice(self.data), 2)
            data = in_row(each(data, 3), 3)
            for more in given(data):
                leaf(more)
            [leaf(one) for one in (data, more)]
            (lambda: leaf(data))()
            try:
                raises(data)
            except ValueError:
                leaf(data)
            labelled(data)
        Doubled.apply(self.data).sum().backward()


if __name__ == "__main__":
    protocol.main(Functions)
