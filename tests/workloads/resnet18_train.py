# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ResNet-18 training with SGD and momentum on random pictures."""

import protocol
import torch
import torchvision
from torch import nn


class ResNetTrain(protocol.Workload):
    """ResNet-18, one batch a step."""

    warmup = 2

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--batch", type=int, default=2)
        parser.add_argument("--size", type=int, default=64)

    def __init__(self, args):
        super().__init__(args)
        self.model = torchvision.models.resnet18()
        self.model.train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()
        self.data = torch.randn(args.batch, 3, args.size, args.size)
        self.goal = torch.randint(0, 1000, (args.batch,))

    def begin_stamps(self):
        """At each layer, forward and backward."""
        def backward(name):
            return lambda gradient: self.stamp("backward " + name)

        def forward(name):
            def after(module, inputs, output):
                self.stamp(name)
                if output.requires_grad:
                    output.register_hook(backward(name))
            return after

        for name, module in self.model.named_modules():
            if not list(module.children()):
                module.register_forward_hook(forward(name))

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(self.data), self.goal)
        loss.backward()
        self.optimizer.step()


if __name__ == "__main__":
    protocol.main(ResNetTrain)
