# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Ranges of record_function(): a step is one around an operator.

    nest N          N ranges in each other, each with a step in it             "nest N"
    into N          N ranges in each other that are left open                  "into N"
    named N TEXT    a range whose name is N times the text                     "named N"
"""

from torch.autograd.profiler import record_function
import torch

import protocol


class Ranges(protocol.Workload):
    """Ranges, as many and as named as is ordered."""

    def __init__(self, args):
        super().__init__(args)
        self.x = torch.ones(4)
        self.open = []

    def step(self):
        with record_function("step"):
            torch.sin(self.x)

    def nest(self, count):
        if count:
            with record_function("nest"):
                self.step()
                self.nest(count - 1)

    def into(self, count):
        for _ in range(count):
            self.open.append(record_function("open"))
            self.open[-1].__enter__()

    def command(self, words):
        if words[0] == "nest":
            self.nest(int(words[1]))
        elif words[0] == "into":
            self.into(int(words[1]))
        elif words[0] == "named":
            with record_function(int(words[1]) * words[2]):
                torch.cos(self.x)
        else:
            return None
        return " ".join(words[:2])


if __name__ == "__main__":
    protocol.main(Ranges)
