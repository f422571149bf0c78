# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Real operators of PyTorch on the CPU that launch on the simulated GPU (tests/fake/) from inside
their ranges: each kernel's name says which range launched it. With --inside each operator launches
a kernel of its own name from inside itself, instead. --fake names the folder of the stand-ins. With
--late they are loaded when "load" is said.

    cache BYTES        memory for PyTorch's caching allocator, as that gets it and tells of it
                                                                       "cache BYTES"
    take BYTES         memory from CUDA by someone else                "take BYTES"
    collectives        one of each, on a communicator of four ranks   "collectives"
    push, pop          the begin and the end of one range of NVTX     "push", "pop"
    nvtx               ranges of NVTX around operators and each other "nvtx"
    nvtx_built_in      the same by functions that NVTX's header makes "nvtx_built_in"
    load               load the stand-ins and use CUDA                 "loaded"
    counted WHAT       what happened to CUPTI so often                 "counted N"
    truth_gpu FILE     what the GPU did, see tests/fake/fake_gpu.h     "truth_gpu 0"
"""

import ctypes
import os
import threading

import torch
from torch.autograd.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode

import protocol

LAYERS = 3
DEVICE_CUDA = 1
NCCL_HALF, NCCL_FLOAT, NCCL_SUM, NCCL_MAX = 6, 7, 0, 2
# c10::reportMemoryUsageToProfiler(void *, int64_t, size_t, size_t, Device), old and new.
REPORTS = ("_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
           "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE")
DEVICE_TO_DEVICE = 3


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class NcclId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Gpu:
    """The CUDA runtime by ctypes."""

    def __init__(self, folder):
        self.folder = folder
        self.runtime = ctypes.CDLL(os.path.join(folder, "libcudart.so.12"))
        self.driver = ctypes.CDLL(os.path.join(folder, "libcuda.so.1"))
        self.runtime.cudaLaunchKernel.argtypes = [
            ctypes.c_char_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        self.runtime.cudaMemcpyAsync.argtypes = [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self.runtime.cudaStreamSynchronize.argtypes = [ctypes.c_void_p]
        self.runtime.cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))
        self.names = {}

    def launch(self, name, stream):
        # The stand-in keeps the pointer for ever.
        text = self.names.setdefault(name, ctypes.create_string_buffer(name.encode()))
        self.runtime.cudaLaunchKernel(ctypes.cast(text, ctypes.c_char_p), Dim3(64, 1, 1),
                                      Dim3(128, 1, 1), None, 0, stream)

    def copy(self, size, stream):
        self.runtime.cudaMemcpyAsync(None, None, size, DEVICE_TO_DEVICE, stream)

    def one_range(self, part):
        nvtx = ctypes.CDLL(os.path.join(self.folder, "libnvToolsExt.so.1"))
        if part == "push":
            nvtx.nvtxRangePushA(b"left open")
        else:
            nvtx.nvtxRangePop()

    def nvtx(self, built_in):
        name, push, pop = ("libnvtx_client.so", "nvtx_client_push", "nvtx_client_pop") \
            if built_in else ("libnvToolsExt.so.1", "nvtxRangePushA", "nvtxRangePop")
        nvtx = ctypes.CDLL(os.path.join(self.folder, name))
        nvtx[push](b"outer")
        torch.ones(3).sinh()
        with record_function("between"):
            nvtx[push]("inner \u00e9".encode())
            torch.ones(3).cosh()
            nvtx[pop]()
        nvtx[pop]()

    def collectives(self):
        nccl = ctypes.CDLL(os.path.join(self.folder, "libnccl.so.2"))
        comm, stream, count = ctypes.c_void_p(), ctypes.c_void_p(30), ctypes.c_size_t(1000)
        nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, NcclId, ctypes.c_int]
        nccl.ncclCommInitRank(ctypes.byref(comm), 4, NcclId(), 2)
        nccl.ncclAllReduce(None, None, count, NCCL_FLOAT, NCCL_SUM, comm, stream)
        nccl.ncclReduce(None, None, count, NCCL_HALF, NCCL_MAX, 3, comm, stream)
        nccl.ncclAllGather(None, None, count, NCCL_HALF, comm, stream)
        nccl.ncclSend(None, count, NCCL_FLOAT, 1, comm, stream)
        self.wait(30)

    def allocate(self, size):
        memory = ctypes.c_void_p()
        self.runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(size))
        return memory

    def wait(self, stream):
        self.runtime.cudaStreamSynchronize(stream)


class Launching(TorchDispatchMode):
    """Every operator launches a kernel of its name."""

    def __init__(self, gpu, stream):
        super().__init__()
        self.gpu = gpu
        self.stream = stream

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.gpu.launch("kernel " + func._schema.name, self.stream)
        return func(*args, **(kwargs or {}))


class Bridge(protocol.Workload):
    """Two threads, each with a stream, ranges, operators and launches."""

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--fake", required=True)
        parser.add_argument("--late", action="store_true")
        parser.add_argument("--inside", action="store_true")

    def __init__(self, args):
        super().__init__(args)
        self.gpu = None if args.late else Gpu(args.fake)
        self.x = torch.ones(8, 8)
        self.reserved = 0

    def work_inside(self, stream):
        with Launching(self.gpu, stream):
            for _ in range(LAYERS):
                torch.relu(torch.addmm(self.x, self.x, self.x)).sum()
        self.gpu.wait(stream)

    def work(self, stream):
        if self.args.inside:
            self.work_inside(stream)
            return
        y = self.x
        for layer in range(LAYERS):
            with record_function("range %d.%d" % (stream, layer)):
                y = torch.mm(y, self.x)
                if self.gpu:
                    self.gpu.launch("kernel %d.%d" % (stream, layer), stream)
                y = torch.relu(y)
                if self.gpu:
                    self.gpu.copy(1000 + layer, stream)
        if self.gpu:
            self.gpu.wait(stream)

    def step(self):
        other = threading.Thread(target=self.work, args=(20,))
        other.start()
        self.work(10)
        other.join()

    def cache(self, size):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            c10 = ctypes.CDLL(next(line.split()[-1] for line in maps if "/libc10.so" in line))
        report = next(getattr(c10, name) for name in REPORTS if hasattr(c10, name))
        self.reserved += size
        report(self.gpu.allocate(size), ctypes.c_int64(size // 2),
               ctypes.c_size_t(self.reserved // 2), ctypes.c_size_t(self.reserved), DEVICE_CUDA)

    def command(self, words):
        if words[0] == "cache":
            self.cache(int(words[1]))
            return " ".join(words)
        if words[0] in ("push", "pop"):
            self.gpu.one_range(words[0])
            return words[0]
        if words[0] in ("nvtx", "nvtx_built_in"):
            self.gpu.nvtx(words[0] != "nvtx")
            return words[0]
        if words[0] == "collectives":
            self.gpu.collectives()
            return "collectives"
        if words[0] == "take":
            self.gpu.allocate(int(words[1]))
            return " ".join(words)
        if words[0] == "load":
            self.gpu = Gpu(self.args.fake)
            return "loaded"
        if words[0] == "counted":
            return "counted %d" % self.gpu.driver.fake_gpu_counted(words[1].encode())
        if words[0] == "truth_gpu":
            return "truth_gpu %d" % self.gpu.driver.fake_gpu_truth(words[1].encode())
        return None


if __name__ == "__main__":
    protocol.main(Bridge)
