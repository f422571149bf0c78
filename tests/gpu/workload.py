# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A small CUDA training that obeys commands on stdin, one answer a line:
"mode NAME" (what a step is: set_mode()), "step N", "truth N FILE" (the same under torch.profiler: how
often it saw each operator and call as JSON, the GPU's times of each in FILE.device.json, its trace in
FILE.trace.json, its table in FILE.table.txt), "hold" and "release" (torch.profiler runs in between),
"take BYTES" (memory from CUDA that PyTorch's allocator knows nothing of), "memory" (what PyTorch's
allocator has, and what is free on the GPU), "refuse" (more is asked for than there is), "wait S" (for
a kernel that takes so long), "ranges" (NVTX's, one in another), "time N", "exit". It first says
"loaded" and waits for "begin".
"""

import collections
import ctypes
import json
import os
import sys
import threading
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


class Mixed:
    """A transformer in mixed precision: fused attention, fused AdamW, batches from pinned memory."""

    def __init__(self):
        layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.1, batch_first=True)
        self.net = torch.nn.TransformerEncoder(layer, 4).cuda()
        self.batch = torch.randn(8, 128, 256).pin_memory()
        self.mask = torch.nn.Transformer.generate_square_subsequent_mask(128).cuda()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), fused=True)

    def step(self):
        batch = self.batch.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = self.net(batch, mask=self.mask, is_causal=True).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()


class Compiled:
    """What torch.compile makes of a network: kernels of Triton."""

    def __init__(self):
        net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256),
                                  torch.nn.Linear(256, 64)).cuda()
        self.net = torch.compile(net)
        self.data = torch.randn(64, 256).cuda()

    def step(self):
        self.net(self.data).square().mean().backward()


class Distributed:
    """DistributedDataParallel with NCCL, of one rank."""

    def __init__(self):
        torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0,
                                             world_size=1)
        net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(),
                                  torch.nn.Linear(256, 64)).cuda()
        self.net = torch.nn.parallel.DistributedDataParallel(net)
        self.data = torch.randn(64, 256).cuda()

    def step(self):
        self.net(self.data).square().mean().backward()
        gathered = torch.empty(1024, device="cuda")
        torch.distributed.all_gather_into_tensor(gathered, gathered.new_ones(1024))


class Threads:
    """Four threads, each with a stream of its own, launch at once."""

    NUMBER = 4

    def __init__(self):
        self.data = torch.randn(self.NUMBER, 128, 128).cuda()
        self.streams = [torch.cuda.Stream() for _ in range(self.NUMBER)]
        self.gates = [threading.Barrier(self.NUMBER + 1) for _ in range(2)]
        for index in range(self.NUMBER):
            threading.Thread(target=self.work, args=(index,), daemon=True).start()

    def work(self, index):
        while True:
            self.gates[0].wait()
            with torch.cuda.stream(self.streams[index]):
                (self.data[index] @ self.data[index]).relu()
            self.streams[index].synchronize()
            self.gates[1].wait()

    def step(self):
        for gate in self.gates:
            gate.wait()


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
                "deep": "ResNet-50, batch 256" if models else "51 convolutions, no torchvision here"}

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

    def capture(self):
        """A graph anew each time."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = (self.tokens * 2).relu()
        graph.replay()
        del kept

    def set_mode(self, mode):
        """resnetN, mixed, compiled, distributed, threads: programs of their own; else a method."""
        programs = {"mixed": Mixed, "compiled": Compiled, "distributed": Distributed,
                    "threads": Threads}
        if mode.startswith("resnet"):
            layers = int(mode[len("resnet"):])
            self.step = Deep(layers, 256 if layers == 50 else 8).step
        elif mode in programs:
            self.step = programs[mode]().step
        else:
            self.step = {"cnn": self.cnn, "transformer": self.transform, "graph": self.replay,
                         "streams": self.on_streams, "churn": self.churn,
                         "capture": self.capture}[mode]
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
        rows = prof.key_averages()
        device = {row.key: (row.count, row.self_device_time_total, row.device_time_total)
                  for row in rows if row.device_type == torch.autograd.DeviceType.CPU}
        for name, content in ((path, calls), (path + ".device.json", device)):
            with open(name, "w", encoding="utf-8") as file:
                json.dump(content, file)
        with open(path + ".table.txt", "w", encoding="utf-8") as file:
            file.write(rows.table(sort_by="self_cuda_time_total", row_limit=-1))

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

    @staticmethod
    def memory():
        return {"allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved(),
                "free": torch.cuda.mem_get_info()[0]}

    @staticmethod
    def refuse():
        try:
            torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            pass

    @staticmethod
    def wait(seconds):
        torch.cuda._sleep(int(seconds * 1e9 * 1.8))
        torch.cuda.synchronize()

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
    elif name == "wait":
        training.wait(float(words[1]))
    elif name == "memory":
        return "memory " + json.dumps(training.memory())
    elif name in ("hold", "release", "ranges", "refuse"):
        getattr(training, name)()
    else:
        return None
    return name


def main(make=Training):
    # Yama lets a sibling look on only if it is told so.
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYBODY, 0, 0, 0)
    say("loaded")
    if sys.stdin.readline() != "begin\n":
        return
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
