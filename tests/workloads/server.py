# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An inference server: a pool of threads answers requests with a small model, each request by itself."""

import queue
import threading

import protocol
import torch
from torch import nn

CLASSES = 10


class Server(protocol.Workload):
    """A step is a burst of as many requests as there are threads, until all are answered."""

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--workers", type=int, default=64)
        parser.add_argument("--width", type=int, default=128)

    def __init__(self, args):
        super().__init__(args)
        width = args.width
        self.model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width),
                                   nn.ReLU(), nn.Linear(width, CLASSES), nn.Softmax(-1)).eval()
        self.burst = list(torch.randn(args.workers, 1, width))
        self.requests, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
        self.pool = [threading.Thread(target=self.serve, daemon=True)
                     for _ in range(args.workers)]
        for thread in self.pool:
            thread.start()

    def serve(self):
        # Of this thread: OpenMP's number is each thread's own.
        torch.set_num_threads(self.args.threads)
        with torch.inference_mode():
            while (request := self.requests.get()) is not None:
                self.stamp("request")
                self.answers.put(int(self.model(request).argmax()))

    def step(self):
        for request in self.burst:
            self.requests.put(request)
        for _ in self.burst:
            assert 0 <= self.answers.get() < CLASSES

    def facts(self):
        return {"workers": len(self.pool)}

    def close(self):
        for _ in self.pool:
            self.requests.put(None)
        for thread in self.pool:
            thread.join()


if __name__ == "__main__":
    protocol.main(Server)
