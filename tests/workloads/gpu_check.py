# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Obeys as tests/gpu/workload.py does, on the simulated GPU of the folder FAKE_GPU: so that what runs on
a real one only now and then is known to run. All modes are the same work; what torch.profiler would
say of the GPU is what the GPU did.
"""

import collections
import ctypes
import json
import os
import sys
import tempfile
import time

import torch
from torch.autograd.profiler import record_function

import bridge

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu"))
import workload

STREAM, COPIED, HOST_TO_DEVICE = 10, 1000, 1
SHOWN = {"kernel": ("kernel", None), "copy": ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)")}


class Simulated(workload.Training):
    def __init__(self):
        folder = os.environ["FAKE_GPU"]
        self.gpu = bridge.Gpu(folder)
        self.nvtx = ctypes.CDLL(os.path.join(folder, "libnvtx_client.so"))
        self.cupti = ctypes.CDLL(os.path.join(folder, "libcupti.so.12"))
        self.held = ctypes.c_void_p()
        self.x = torch.ones(8, 8)

    def facts(self):
        return {"torch": torch.__version__, "cuda": "simulated", "gpu": "simulated",
                "deep": "no network: the GPU is simulated"}

    def set_mode(self, mode):
        self.steps(3)

    def steps(self, count):
        for _ in range(count):
            with record_function("range"):
                torch.relu(torch.mm(self.x, self.x))
                self.gpu.launch("kernel one", STREAM)
                self.gpu.launch("kernel two", STREAM)
                self.gpu.runtime.cudaMemcpyAsync(None, None, COPIED, HOST_TO_DEVICE, STREAM)
            self.gpu.wait(STREAM)

    def happened(self):
        """(kind, correlation id, start, end, name) of all that the GPU did and was asked for."""
        with tempfile.NamedTemporaryFile() as file:
            self.gpu.driver.fake_gpu_truth(file.name.encode())
            rows = [line.decode().rstrip("\n").split("\t") for line in file]
        return [(row[0], int(row[4]), int(row[6]), int(row[7]), row[14]) for row in rows]

    def truth(self, count, path):
        last = max(one[1] for one in self.happened())
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            self.steps(count)
        calls = collections.Counter(event.name for event in prof.events())
        trace = []
        for kind, correlation, start, end, name in self.happened():
            if correlation <= last:
                continue
            if kind == "call":
                calls[name.rsplit("_v", 1)[0]] += 1
            if kind in SHOWN:
                trace.append({"cat": SHOWN[kind][0], "name": SHOWN[kind][1] or name, "args": {},
                              "ts": start / 1000, "dur": (end - start) / 1000})
        for name, content in ((path, calls), (path + ".trace.json", {"traceEvents": trace})):
            with open(name, "w", encoding="utf-8") as file:
                json.dump(content, file)

    def hold(self):
        assert not self.cupti.cuptiSubscribe(ctypes.byref(self.held), None, None)

    def release(self):
        assert not self.cupti.cuptiUnsubscribe(self.held)

    def take(self, size):
        self.gpu.allocate(size)

    def memory(self):
        return {"free": 0}

    def refuse(self):
        pass

    def wait(self, seconds):
        time.sleep(seconds)

    def ranges(self):
        self.nvtx.nvtx_client_push(b"gpuprof outer")
        self.nvtx.nvtx_client_push(b"gpuprof inner")
        self.steps(1)
        self.nvtx.nvtx_client_pop()
        self.nvtx.nvtx_client_pop()


if __name__ == "__main__":
    workload.main(Simulated)
