# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Training of a small transformer encoder."""

import protocol
import torch
from torch import nn


class Transformer(protocol.Workload):
    """Two encoder layers and a linear head on random numbers; no dropout."""

    def __init__(self, args):
        super().__init__(args)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 8)
        parameters = [*self.model.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=1e-3)
        self.data = torch.randn(2, 12, 32)
        self.goal = torch.randn(2, 12, 8)

    def step(self):
        self.optimizer.zero_grad()
        out = self.head(self.model(self.data))
        nn.functional.mse_loss(out, self.goal).backward()
        self.optimizer.step()


if __name__ == "__main__":
    protocol.main(Transformer)
