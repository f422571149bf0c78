# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An op raises an error on every step and the script catches it: C++ exceptions cross ops."""

import protocol
import torch
from torch.nn import functional


class Raiser(protocol.Workload):
    """Four caught errors a step, one of them through nested ops, and good ops between."""

    def __init__(self, args):
        super().__init__(args)
        self.left = torch.randn(3, 4)
        self.right = torch.randn(5, 6)
        self.square = torch.randn(4, 4)
        self.caught = 0

    def fail(self, function, *args):
        try:
            function(*args)
        except RuntimeError:
            self.caught += 1
        else:
            raise AssertionError("%r did not raise" % function)

    def step(self):
        torch.add(self.square, self.square)
        self.fail(torch.mm, self.left, self.right)
        torch.mm(self.square, self.square)
        self.fail(functional.linear, self.left, self.right)
        self.fail(torch.matmul, self.left, self.right)
        self.fail(torch.add, self.left, self.right)
        # A good op last: from outside, the end of an op that was left by an exception is seen at
        # the thread's next event.
        torch.relu(self.square)

    def command(self, words):
        if words == ["caught"]:
            return "caught %d" % self.caught
        return None


if __name__ == "__main__":
    protocol.main(Raiser)
