# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every kind of input an operator can have: lists, strides, empty and many-dimensional tensors."""

import protocol
import torch


class Inputs(protocol.Workload):
    """Each step calls operators with inputs of every kind."""

    def __init__(self, args):
        super().__init__(args)
        self.square = torch.randn(4, 6)
        self.many = [torch.randn(2, width) for width in (1, 2, 3)]
        self.deep = torch.randn(2, 1, 2, 1, 2, 1, 3)
        self.short = torch.ones(5, dtype=torch.int16)
        self.image = torch.randn(1, 3, 8, 8)
        self.kernel = torch.randn(2, 3, 3, 3)
        self.where = torch.tensor([0, 2])

    def step(self):
        torch.cat(self.many, dim=1)
        torch.stack([self.square, self.square, self.square])
        torch.einsum("ij,kj->ik", self.square, self.square)
        self.square.t() + 1.5
        self.square[:, ::2].sum(dim=-1, keepdim=True)
        self.deep.transpose(0, 6).contiguous()
        torch.empty(0, 7).sum()
        torch.tensor(3.25).add(True)
        self.short.to(torch.float64)
        self.square[self.where]
        torch.nn.functional.conv2d(self.image, self.kernel, stride=2, padding=1)
        torch.nn.functional.dropout(self.square, 0.5, False)
        torch.full((2, 3), 7)


if __name__ == "__main__":
    protocol.main(Inputs)
