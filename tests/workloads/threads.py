# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Several threads run ops at the same time, each its own known number."""

import queue
import threading

import protocol
import torch


class Worker(threading.Thread):
    """Thread number i does 10 * (i + 1) additions and 2 * (i + 1) products a step."""

    def __init__(self, index):
        super().__init__(daemon=True)
        self.adds = 10 * (index + 1)
        self.products = 2 * (index + 1)
        self.orders = queue.Queue()
        self.done = queue.Queue()
        self.data = torch.randn(8, 8)
        self.start()

    def run(self):
        while self.orders.get():
            for _ in range(self.adds):
                torch.add(self.data, self.data)
            for _ in range(self.products):
                torch.mm(self.data, self.data)
            self.done.put(True)


class Threads(protocol.Workload):
    """All workers at once, then the main thread does one op of its own."""

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--workers", type=int, default=4)

    def __init__(self, args):
        super().__init__(args)
        self.workers = [Worker(index) for index in range(args.workers)]
        self.data = torch.randn(4, 4)

    def step(self):
        for worker in self.workers:
            worker.orders.put(True)
        for worker in self.workers:
            worker.done.get()
        torch.relu(self.data)

    def facts(self):
        return {"workers": {str(w.native_id): {"aten::add": w.adds, "aten::mm": w.products}
                            for w in self.workers}}

    def command(self, words):
        # Threads that live for one batch of ops only: "brief N" starts and joins N of them.
        if words[0] == "brief" and len(words) == 2:
            for _ in range(int(words[1])):
                thread = threading.Thread(target=torch.sigmoid, args=(self.data,))
                thread.start()
                thread.join()
            return "brief " + words[1]
        return None

    def close(self):
        for worker in self.workers:
            worker.orders.put(None)
        for worker in self.workers:
            worker.join()


if __name__ == "__main__":
    protocol.main(Threads)
