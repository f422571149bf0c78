# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Becomes another program on command."""

import os

import protocol
import torch


class Execer(protocol.Workload):
    """One step is ten additions; "exec" answers and becomes cat, which echoes."""

    def __init__(self, args):
        super().__init__(args)
        self.data = torch.randn(8, 8)

    def step(self):
        for _ in range(10):
            torch.add(self.data, self.data)

    def command(self, words):
        if words == ["exec"]:
            # Answered first: what is sent after the answer is cat's to read.
            protocol.say("becoming cat")
            os.execv("/bin/cat", ["cat"])
        return None


if __name__ == "__main__":
    protocol.main(Execer)
