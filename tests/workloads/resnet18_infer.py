# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ResNet-18, forward only."""

import protocol
import torch
import torchvision


class ResNetInfer(protocol.Workload):
    """ResNet-18 in eval mode without autograd."""

    warmup = 1

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--batch", type=int, default=2)
        parser.add_argument("--size", type=int, default=64)

    def __init__(self, args):
        super().__init__(args)
        self.model = torchvision.models.resnet18()
        self.model.eval()
        self.data = torch.randn(args.batch, 3, args.size, args.size)

    def step(self):
        with torch.no_grad():
            self.model(self.data)


if __name__ == "__main__":
    protocol.main(ResNetInfer)
