# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A loop with the ranges of PyTorch Lightning's PyTorchProfiler, and with its hooks' names."""

import protocol
import torch
from torch import nn
from torch.autograd.profiler import record_function


class Model(nn.Module):
    """A LightningModule's methods, as far as a trainer calls them."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def training_step(self, batch):
        return self.layer(batch).pow(2).mean()

    def validation_step(self, batch):
        return self.layer(batch)


class Actions(protocol.Workload):
    """Training and validation; --plain leaves the ranges out."""

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--plain", action="store_true")

    def __init__(self, args):
        super().__init__(args)
        self.model = Model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.data = torch.randn(8, 16)

    def ranged(self, name, function, *args):
        if self.args.plain:
            return function(*args)
        with record_function("[pl][profile]" + name):
            return function(*args)

    def batch(self):
        loss = self.ranged("[Strategy]SingleDeviceStrategy.training_step",
                           self.model.training_step, self.data)
        self.optimizer.zero_grad()
        self.ranged("[Strategy]SingleDeviceStrategy.backward", loss.backward)
        self.ranged("[LightningModule]Model.optimizer_step", self.optimizer.step)

    def step(self):
        self.ranged("run_training_batch", self.batch)
        with torch.no_grad():
            for _ in range(2):
                self.ranged("[Strategy]SingleDeviceStrategy.validation_step",
                            self.model.validation_step, self.data)


if __name__ == "__main__":
    protocol.main(Actions)
