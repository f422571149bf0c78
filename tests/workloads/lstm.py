# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Convolution, batch norm, LSTM and Adam in one small model."""

import protocol
import torch
from torch import nn


class Model(nn.Module):
    """A row of samples through a convolution, then an LSTM, then a linear layer."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 16, 3, padding=1)
        self.norm = nn.BatchNorm1d(16)
        self.lstm = nn.LSTM(16, 24, num_layers=2, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, data):
        data = torch.relu(self.norm(self.conv(data)))
        out, _ = self.lstm(data.transpose(1, 2))
        return self.head(out[:, -1])


class Lstm(protocol.Workload):
    """Training of the model above."""

    def __init__(self, args):
        super().__init__(args)
        self.model = Model()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.loss = nn.CrossEntropyLoss()
        self.data = torch.randn(8, 4, 12)
        self.goal = torch.randint(0, 5, (8,))

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(self.data), self.goal)
        loss.backward()
        self.optimizer.step()


if __name__ == "__main__":
    protocol.main(Lstm)
