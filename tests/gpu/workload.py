# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A small CUDA training that obeys commands on stdin, one answer a line:
"step N", "truth N FILE" (the same under torch.profiler, its kernels as JSON), "time N", "exit".
"""

import json
import os
import sys
import time

import torch


class Training:
    """Convolution, batch norm, matrix products, a copy each way and a memset a step."""

    def __init__(self):
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
            torch.nn.Flatten(), torch.nn.Linear(16 * 32 * 32, 64), torch.nn.ReLU(),
            torch.nn.Linear(64, 10)).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)
        self.data = torch.randn(32, 3, 32, 32)
        self.labels = torch.randint(0, 10, (32,)).cuda()

    def step(self):
        loss = torch.nn.functional.cross_entropy(self.net(self.data.cuda()), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def steps(self, count):
        for _ in range(count):
            self.step()
        torch.cuda.synchronize()


def truth(training, count, path):
    from torch.profiler import ProfilerActivity

    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        training.steps(count)
    kernels, ops = {}, {}
    for event in prof.events():
        where = ops if event.device_type == torch.autograd.DeviceType.CPU else kernels
        one = where.setdefault(event.name, {"calls": 0, "us": []})
        one["calls"] += 1
        one["us"].append(event.time_range.elapsed_us())
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"kernels": kernels, "ops": ops}, file)


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main():
    training = Training()
    training.steps(5)
    say("ready " + json.dumps({"pid": os.getpid(), "torch": torch.__version__,
                               "cuda": torch.version.cuda,
                               "gpu": torch.cuda.get_device_name(0)}))
    for line in sys.stdin:
        words = line.split()
        if words[0] == "step":
            training.steps(int(words[1]))
            say("did")
        elif words[0] == "time":
            begin = time.monotonic()
            training.steps(int(words[1]))
            say("took %.9f" % (time.monotonic() - begin))
        elif words[0] == "truth":
            truth(training, int(words[1]), words[2])
            say("truth")
        else:
            break
    say("bye")


if __name__ == "__main__":
    main()
