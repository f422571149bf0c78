# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Modules on the stand-in for PyTorch: what torch/nn/modules/module.py does when one is called."""

import protocol
import torch

MODULE = """
class Module:
    _compiled_call_impl = None
    hooks = ()

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        def inner():
            nonlocal args, kwargs
            return self.forward(*args, **kwargs)
        return inner() if self.hooks else self.forward(*args, **kwargs)

    __call__ = _wrapped_call_impl
"""
_NAMES = {}
exec(compile(MODULE, "/stand-in/torch/nn/modules/module.py", "exec"), _NAMES)
Module = _NAMES["Module"]


def operator(name):
    torch._LIBRARY.fake_begin(0, name, 0, -1)
    torch._LIBRARY.fake_end(0)


class Leaf(Module):
    def forward(self, *, scale=1):
        operator(b"aten::leaf")


class Net(Module):
    def __init__(self):
        self.one, self.two = Leaf(), Leaf()
        self.two.hooks = (1,)
        self.turn = 0

    def forward(self, times):
        operator(b"aten::net")
        self.one(scale=2)
        for _ in range(times):
            self.two()
        # No variable changes from one call to the next.
        for self.turn in range(2):
            self.one()


class Called(protocol.Workload):
    """The net, once a step."""

    def __init__(self, args):
        super().__init__(args)
        self.net = Net()

    def step(self):
        self.net(3)


if __name__ == "__main__":
    protocol.main(Called)
