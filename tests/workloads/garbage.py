# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Python's garbage is collected on order alone, and Python's own account of it kept:

    collect N    each generation once with N objects in cycles before it, the oldest once more on
                 a thread of its own; what gc.callbacks were told         "collected JSON"
    finalize     collections with finalizers that run operators, which are the last ones, and
                 then the first ones, of the functions around                "finalized"
"""

import gc
import json
import threading
import time

import protocol
import torch


class Tensors:
    """A cycle; runs operators when it is collected."""

    def __init__(self):
        self.self = self

    def __del__(self):
        torch.ones(2).add(1)


class Garbage(protocol.Workload):
    """Cycles, and the collector's own words."""

    def __init__(self, args):
        super().__init__(args)
        gc.disable()
        gc.collect()
        self.told = []

    def note(self, phase, info):
        if phase == "start":
            self.told.append({"start_ns": time.monotonic_ns()})
        else:
            self.told[-1].update(info, ns=time.monotonic_ns() - self.told[-1].pop("start_ns"),
                                 tid=threading.get_native_id())

    def step(self):
        torch.ones(2).add(1)

    @staticmethod
    def litter(count):
        for _ in range(count):
            cycle = []
            cycle.append(cycle)

    @staticmethod
    def ends_in_a_collection():
        torch.ones(3).mul(2)
        Tensors()
        gc.collect()

    @staticmethod
    def begins_in_a_collection():
        gc.collect()
        torch.ones(3).sub(2)

    def finalize(self):
        torch.ones(3)
        self.ends_in_a_collection()
        Tensors()
        self.begins_in_a_collection()
        torch.ones(3)

    def command(self, words):
        if words == ["finalize"]:
            self.finalize()
            return "finalized"
        if words[0] != "collect":
            return None
        self.told = []
        gc.callbacks.append(self.note)
        for generation in range(3):
            self.litter(int(words[1]))
            gc.collect(generation)
        self.litter(int(words[1]))
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()
        gc.callbacks.remove(self.note)
        return "collected " + json.dumps(self.told)


if __name__ == "__main__":
    protocol.main(Garbage)
