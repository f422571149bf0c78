# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Evaluation over a DataLoader: no optimizer tells where a step ends."""

import protocol
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Loader(protocol.Workload):
    """Each step is one pass over three batches."""

    warmup = 1

    def __init__(self, args):
        super().__init__(args)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        self.loader = DataLoader(TensorDataset(torch.randn(12, 8)), batch_size=4)

    def step(self):
        with torch.no_grad():
            for (batch,) in self.loader:
                self.model(batch)


if __name__ == "__main__":
    protocol.main(Loader)
