# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
An annotation that is open between two commands, with operators on either side of the border:

    open            opens it, three operators               "opened"
    close           two operators, closes it                "closed"
"""

import protocol
import torch


class Bordered(protocol.Workload):
    def __init__(self, args):
        super().__init__(args)
        self.matrix = torch.ones(8, 8)
        self.outer = None

    def step(self):
        torch.mm(self.matrix, self.matrix)

    def command(self, words):
        if words == ["open"]:
            self.outer = torch.profiler.record_function("outer")
            self.outer.__enter__()
            self.steps(3)
            return "opened"
        if words == ["close"]:
            self.steps(2)
            self.outer.__exit__(None, None, None)
            return "closed"
        return None


if __name__ == "__main__":
    protocol.main(Bordered)
