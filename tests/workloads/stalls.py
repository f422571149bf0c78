# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A training loop that goes wrong when told to. A step takes at least 20 ms.

    stall           a step with many more multiplications, over a second of them    "stalled"
    refuse S        more memory is asked for than there is, see alloc.py, within an
                    annotation that ends S seconds later                            "refused"
                                                                                    "went on"
    hang            says so, and stands still until the next line                   "hanging"
                                                                                    "went on"
"""

import sys
import time

import alloc
import protocol
import torch

STEP_S = 0.02


class Stalls(protocol.Workload):
    def __init__(self, args):
        super().__init__(args)
        self.model = torch.nn.Linear(16, 16)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.data = torch.ones(4, 16)
        self.large = torch.ones(256, 256)

    def step(self):
        self.optimizer.zero_grad()
        self.model(self.data).sum().backward()
        self.optimizer.step()
        time.sleep(STEP_S)

    def multiply_for_long(self):
        end = time.monotonic() + 60 * STEP_S
        while time.monotonic() < end:
            torch.mm(self.large, self.large)

    @staticmethod
    def wait_for_a_word():
        sys.stdin.readline()

    @staticmethod
    def ask_for_too_much(seconds):
        with torch.profiler.record_function("too much"):
            alloc.ask_for_too_much(2 << 30)
            protocol.say("refused")
            time.sleep(seconds)

    def command(self, words):
        if words == ["stall"]:
            self.multiply_for_long()
            self.step()
            return "stalled"
        if words[0] == "refuse":
            self.ask_for_too_much(float(words[1]))
            return "went on"
        if words == ["hang"]:
            protocol.say("hanging")
            self.wait_for_a_word()
            return "went on"
        return None


if __name__ == "__main__":
    protocol.main(Stalls)
