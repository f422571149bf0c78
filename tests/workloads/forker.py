# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Forks on command; parent and child both run ops."""

import os

import protocol
import torch


class Forker(protocol.Workload):
    """One step is ten additions."""

    def __init__(self, args):
        super().__init__(args)
        self.data = torch.randn(8, 8)

    def step(self):
        for _ in range(10):
            torch.add(self.data, self.data)

    def command(self, words):
        # "fork N": a child does N steps of ten sigmoids and leaves; the parent waits for it.
        if words[0] == "fork" and len(words) == 2:
            pid = os.fork()
            if pid == 0:
                for _ in range(10 * int(words[1])):
                    torch.sigmoid(self.data)
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            return "forked %d status %d" % (pid, status)
        return None


if __name__ == "__main__":
    protocol.main(Forker)
