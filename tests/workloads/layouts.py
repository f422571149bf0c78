# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Operators on tensors that are not plain ones: sparse, quantized, on no device."""

import warnings

import protocol
import torch


class Layouts(protocol.Workload):
    """Each step calls operators on a tensor of each kind."""

    def __init__(self, args):
        super().__init__(args)
        warnings.simplefilter("ignore")
        where = torch.tensor([[0, 1, 1], [2, 0, 2]])
        self.dense = torch.randn(3, 4)
        self.coo = torch.sparse_coo_tensor(where, torch.randn(3), (2, 3)).coalesce()
        self.hybrid = torch.sparse_coo_tensor(where[:1], torch.randn(3, 5), (4, 5))
        self.empty = torch.sparse_coo_tensor((6, 7))
        self.csr = self.coo.to_sparse_csr()
        self.bytes = torch.quantize_per_tensor(torch.randn(6, 7, 1), 0.1, 3, torch.quint8)
        self.channels = torch.quantize_per_channel(torch.randn(2, 5), torch.ones(2),
                                                   torch.zeros(2), 0, torch.qint8)
        self.nowhere = torch.empty(3, 1, device="meta")
        self.words = torch.nn.Embedding(10, 4, sparse=True)

    def step(self):
        torch.sparse.mm(self.coo, self.dense)
        torch.mm(self.csr, self.dense)
        (self.hybrid + self.hybrid).to_dense()
        self.empty.coalesce()
        self.dense.to_sparse()
        torch.cat([self.coo, self.coo])
        self.bytes.dequantize()
        self.bytes.permute(2, 0, 1).int_repr()
        self.channels.dequantize()
        self.nowhere + 1
        self.words(torch.tensor([1, 2, 1])).sum().backward()
        self.words.weight.grad = None


if __name__ == "__main__":
    protocol.main(Layouts)
