# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A small CUDA training that obeys commands on stdin, one answer a line:
"mode cnn|resnet18|transformer|graph|streams|churn|resnet50" (what a step is), "step N", "truth N
FILE" (the same under torch.profiler: how often it saw each operator and call as JSON, its trace in
FILE.trace.json), "hold" and "release" (torch.profiler runs in between), "take BYTES" (memory from
CUDA that PyTorch's allocator knows nothing of), "ranges" (NVTX's, one in another), "time N", "exit".
"""

import collections
import ctypes
import json
import os
import sys
import time

import torch

PR_SET_PTRACER, ANYBODY = 0x59616d61, ctypes.c_ulong(-1)

try:
    from torchvision import models
except ImportError:
    models = None


def convolutions(layers):
    """In place of a ResNet, where torchvision is not."""
    parts = [torch.nn.Conv2d(3, 32, 3, 2, 1)]
    for _ in range(layers):
        parts += [torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3, padding=1)]
    return torch.nn.Sequential(*parts)


class Deep:
    """The training of a ResNet, on images that stay on the GPU."""

    def __init__(self, layers, batch):
        net = getattr(models, "resnet%d" % layers)() if models else convolutions(layers)
        self.net = net.cuda()
        self.images = torch.randn(batch, 3, 224, 224).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)

    def step(self):
        self.net(self.images).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


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
        self.graph = self.held = None
        self.step = self.cnn

    def facts(self):
        return {"torch": torch.__version__, "cuda": torch.version.cuda,
                "gpu": torch.cuda.get_device_name(0),
                "deep": "ResNet-50, batch 64" if models else "51 convolutions, no torchvision here"}

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

    def churn(self):
        """The caching allocator gives, takes, and asks CUDA anew."""
        kept = [torch.zeros(1 << (10 + i), device="cuda") for i in range(12)]
        del kept[::2]
        kept.append(torch.ones(3 << 20, device="cuda"))
        del kept
        torch.cuda.empty_cache()

    def cnn(self):
        loss = torch.nn.functional.cross_entropy(self.net(self.data.cuda()), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def set_mode(self, mode):
        if mode.startswith("resnet"):
            layers = int(mode[len("resnet"):])
            self.step = Deep(layers, 64 if layers == 50 else 8).step
        else:
            self.step = {"cnn": self.cnn, "transformer": self.transform, "graph": self.replay,
                         "streams": self.on_streams, "churn": self.churn}[mode]
        self.steps(3)

    def steps(self, count):
        for _ in range(count):
            self.step()
        torch.cuda.synchronize()

    @staticmethod
    def profiler():
        from torch.profiler import ProfilerActivity

        return torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])

    def truth(self, count, path):
        with self.profiler() as prof:
            self.steps(count)
        prof.export_chrome_trace(path + ".trace.json")
        calls = collections.Counter(event.name for event in prof.events()
                                    if event.device_type == torch.autograd.DeviceType.CPU)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(calls, file)

    def hold(self):
        self.held = self.profiler()
        self.held.__enter__()
        self.steps(1)

    def release(self):
        self.held.__exit__(None, None, None)

    def take(self, size):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            path = next(line.split()[-1] for line in maps if "/libcudart" in line)
        memory = ctypes.c_void_p()
        ctypes.CDLL(path).cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(size))

    def ranges(self):
        with torch.cuda.nvtx.range("gpuprof outer"), torch.cuda.nvtx.range("gpuprof inner"):
            self.steps(1)


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def obey(training, words):
    """One command; the answer."""
    name = words[0]
    if name == "step":
        training.steps(int(words[1]))
        return "did"
    if name == "time":
        begin = time.monotonic()
        training.steps(int(words[1]))
        return "took %.9f" % (time.monotonic() - begin)
    if name == "mode":
        training.set_mode(words[1])
    elif name == "truth":
        training.truth(int(words[1]), words[2])
    elif name == "take":
        training.take(int(words[1]))
    elif name in ("hold", "release", "ranges"):
        getattr(training, name)()
    else:
        return None
    return name


def main(make=Training):
    # Yama lets a sibling look on only if it is told so.
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYBODY, 0, 0, 0)
    training = make()
    training.steps(5)
    say("ready " + json.dumps(dict(training.facts(), pid=os.getpid())))
    for line in sys.stdin:
        answer = obey(training, line.split())
        if not answer:
            break
        say(answer)
    say("bye")


if __name__ == "__main__":
    main()
