# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Known allocations and frees on every step."""

import ctypes
import os
import resource

import protocol
import torch

KIB = 1024


def loaded(name):
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps
                    if os.path.basename(line.split()[-1]).startswith(name))


def ask_for_too_much(size):
    """A tensor that there is no room for: half of its size is left."""
    with open("/proc/self/statm", encoding="utf-8") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + size // 2, limits[1]))
    try:
        torch.empty(size, dtype=torch.uint8)
    except RuntimeError:
        return
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    raise AssertionError("there was room for %d bytes" % size)


def report_out_of_memory(size, allocated, reserved):
    """As a GPU's allocator does when there is no memory left: c10::reportOutOfMemoryToProfiler()."""
    library = ctypes.CDLL(loaded("libc10.so"))
    for kinds in ("lmm", "lll"):
        function = getattr(library, "_ZN3c1027reportOutOfMemoryToProfilerE%sNS_6DeviceE" % kinds,
                           None)
        if function is not None:
            break
    first_gpu = 0x0001
    function(ctypes.c_int64(size), ctypes.c_uint64(allocated), ctypes.c_uint64(reserved),
             ctypes.c_uint16(first_gpu))


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
        # "keep N" leaves N blocks of 64 KiB allocated, "drop" frees them all; "refuse N" asks for a
        # tensor of so many bytes in vain, "refuse_profiled N" under torch.profiler; "report N" says
        # that a GPU had not so many.
        if words[0] == "keep" and len(words) == 2:
            self.kept += [torch.empty(64 * KIB, dtype=torch.uint8) for _ in range(int(words[1]))]
            return "kept %d" % len(self.kept)
        if words[0] == "refuse" and len(words) == 2:
            ask_for_too_much(int(words[1]))
            return "refused " + words[1]
        if words[0] == "refuse_profiled" and len(words) == 2:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                        profile_memory=True):
                ask_for_too_much(int(words[1]))
            return "refused " + words[1]
        if words[0] == "report" and len(words) == 2:
            report_out_of_memory(int(words[1]), 3 << 30, 4 << 30)
            return "reported " + words[1]
        if words == ["drop"]:
            self.kept.clear()
            return "dropped"
        return None


if __name__ == "__main__":
    protocol.main(Alloc)
