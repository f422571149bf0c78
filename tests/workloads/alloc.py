# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Known allocations and frees on every step."""

import protocol
import torch

KIB = 1024


class Alloc(protocol.Workload):
    """Each step allocates 1024 + 512 + 256 KiB in ops and frees all of it again, outside ops."""

    def __init__(self, args):
        super().__init__(args)
        self.kept = []

    def step(self):
        first = torch.empty(1024 * KIB, dtype=torch.uint8)
        second = torch.zeros(512 * KIB, dtype=torch.uint8)
        del first
        third = torch.ones(256 * KIB, dtype=torch.uint8)
        del third
        del second

    def facts(self):
        return {"allocated": {"aten::empty": 1792 * KIB, "aten::zeros": 512 * KIB,
                              "aten::ones": 256 * KIB}}

    def command(self, words):
        # "keep N" leaves N blocks of 64 KiB allocated, "drop" frees them all.
        if words[0] == "keep" and len(words) == 2:
            self.kept += [torch.empty(64 * KIB, dtype=torch.uint8) for _ in range(int(words[1]))]
            return "kept %d" % len(self.kept)
        if words == ["drop"]:
            self.kept.clear()
            return "dropped"
        return None


if __name__ == "__main__":
    protocol.main(Alloc)
