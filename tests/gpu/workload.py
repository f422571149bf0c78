# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A small CUDA training that obeys commands on stdin, one answer a line:
"mode cnn|transformer|graph|streams|large" (what a step is; large: one that keeps the GPU busy),
"step N", "truth N FILE" (the same under torch.profiler: its kernels as JSON, its trace in
FILE.trace.json), "hold" and "release" (torch.profiler runs in between), "take BYTES" (memory from
CUDA that PyTorch's allocator knows nothing of), "time N", "exit".
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

        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.transformer = torch.nn.TransformerEncoder(layer, 2).cuda()
        self.tokens = torch.randn(8, 32, 64).cuda()
        self.streams = [torch.cuda.Stream() for _ in range(3)]
        self.graph = self.deep = None
        self.step = self.cnn

    def transform(self):
        self.transformer(self.tokens).sum().backward()
        self.transformer.zero_grad()

    def replay(self):
        """Three kernels of a graph that is captured the first time."""
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.kept = ((self.tokens * 2).relu() + 1)
        self.graph.replay()

    def on_streams(self):
        for stream in self.streams:
            with torch.cuda.stream(stream):
                (self.tokens @ self.tokens.transpose(1, 2)).softmax(-1)

    def set_mode(self, mode):
        self.step = {"cnn": self.cnn, "transformer": self.transform, "graph": self.replay,
                     "streams": self.on_streams, "large": self.large}[mode]
        self.steps(3)

    def large(self):
        """ResNet-50 where torchvision is, else as many convolutions."""
        if self.deep is None:
            try:
                from torchvision.models import resnet50

                self.deep = resnet50().cuda()
            except ImportError:
                layers = [torch.nn.Conv2d(3, 32, 3, 2, 1)]
                for _ in range(50):
                    layers += [torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
                               torch.nn.Conv2d(32, 32, 3, padding=1)]
                self.deep = torch.nn.Sequential(*layers).cuda()
            self.images = torch.randn(64, 3, 224, 224).cuda()
            self.learn = torch.optim.SGD(self.deep.parameters(), lr=0.01)
        self.deep(self.images).square().mean().backward()
        self.learn.step()
        self.learn.zero_grad()

    def cnn(self):
        loss = torch.nn.functional.cross_entropy(self.net(self.data.cuda()), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def steps(self, count):
        for _ in range(count):
            self.step()
        torch.cuda.synchronize()


def profiler():
    from torch.profiler import ProfilerActivity

    return torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])


def truth(training, count, path):
    with profiler() as prof:
        training.steps(count)
    prof.export_chrome_trace(path + ".trace.json")
    kernels, ops = {}, {}
    for event in prof.events():
        where = ops if event.device_type == torch.autograd.DeviceType.CPU else kernels
        one = where.setdefault(event.name, {"calls": 0, "us": []})
        one["calls"] += 1
        one["us"].append(event.time_range.elapsed_us())
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"kernels": kernels, "ops": ops}, file)


def take(size):
    import ctypes

    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next(line.split()[-1] for line in maps if "/libcudart" in line)
    memory = ctypes.c_void_p()
    ctypes.CDLL(path).cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(size))


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main():
    training, held = Training(), None
    training.steps(5)
    say("ready " + json.dumps({"pid": os.getpid(), "torch": torch.__version__,
                               "cuda": torch.version.cuda,
                               "gpu": torch.cuda.get_device_name(0)}))
    for line in sys.stdin:
        words = line.split()
        if words[0] == "step":
            training.steps(int(words[1]))
            say("did")
        elif words[0] == "mode":
            training.set_mode(words[1])
            say("mode")
        elif words[0] == "hold":
            held = profiler()
            held.__enter__()
            training.steps(1)
            say("hold")
        elif words[0] == "release":
            held.__exit__(None, None, None)
            say("release")
        elif words[0] == "take":
            take(int(words[1]))
            say("take")
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
