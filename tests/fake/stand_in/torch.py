# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
As much of the torch module as tests/workloads/stacks.py needs, over the stand-in for libtorch_cpu
(FAKE_TORCH): for Pythons that have no PyTorch. Operators are called without a Python frame of their
own, and without the GIL, as PyTorch's are.
"""

import ctypes
import os
import types

__version__ = "stand-in"
_LIBRARY = ctypes.CDLL(os.environ["FAKE_TORCH"])

sinh = getattr(_LIBRARY, "_ZN2at4_ops4sinh4callERKNS_6TensorE")
tanh = getattr(_LIBRARY, "_ZN2at4_ops4tanh4callERKNS_6TensorE")
cosh = getattr(_LIBRARY, "_ZN2at4_ops4cosh4callERKNS_6TensorE")
hook_type = ctypes.CFUNCTYPE(None)


class Tensor:
    """Knows no numbers, only whom to call backwards."""

    _as_parameter_ = None

    def __init__(self, requires_grad=False):
        self.hooks = []

    def __mul__(self, other):
        return self

    def sum(self):
        return self

    def register_hook(self, hook):
        self.hooks.append(hook)

    def backward(self):
        for hook in self.hooks:
            hook(self)


def mm(*_):
    raise RuntimeError


def ones(_, requires_grad=False):
    return Tensor(requires_grad)


class Module:
    def __call__(self, data):
        return self.forward(data)


class Sequential(Module):
    def __init__(self, *modules):
        self.modules = modules

    def forward(self, data):
        for module in self.modules:
            module(data)
        return data


nn = types.SimpleNamespace(Module=Module, Sequential=Sequential)


def set_num_threads(_):
    pass


def manual_seed(_):
    pass
