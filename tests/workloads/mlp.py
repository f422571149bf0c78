# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Training of a tiny MLP: many small ops, so the cost per op is what counts."""

import protocol
import torch
from torch import nn


class Mlp(protocol.Workload):
    """Linear-ReLU-Linear trained on random numbers."""

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam")
        parser.add_argument("--width", type=int, default=32)
        parser.add_argument("--batch", type=int, default=16)

    def __init__(self, args):
        super().__init__(args)
        width = args.width
        self.model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width),
                                   nn.ReLU(), nn.Linear(width, 8))
        kind = torch.optim.Adam if args.optimizer == "adam" else torch.optim.SGD
        self.optimizer = kind(self.model.parameters(), lr=1e-3)
        self.loss = nn.MSELoss()
        self.data = torch.randn(args.batch, width)
        self.goal = torch.randn(args.batch, 8)
        self.repeats = 1

    def command(self, words):
        """ops N: from now on N times as many operators a step.  "ops N" """
        if words[0] != "ops" or len(words) != 2:
            return None
        self.repeats = int(words[1])
        return "ops " + words[1]

    def step(self):
        for _ in range(self.repeats):
            self.optimizer.zero_grad()
            loss = self.loss(self.model(self.data), self.goal)
            loss.backward()
        self.optimizer.step()


if __name__ == "__main__":
    protocol.main(Mlp)
