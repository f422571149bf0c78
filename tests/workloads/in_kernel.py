# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Spends its CPU time in the kernel: zeros() in a system call, touch() in page faults. A second thread
sleeps.

    spend SECONDS   so much CPU time of the kernel in each function; answers "spent"
"""

import mmap
import os
import threading
import time

import protocol

ZERO = os.open("/dev/zero", os.O_RDONLY)
BUFFER = bytearray(1 << 20)
PAGES = 4096


def zeros():
    for _ in range(16):
        os.readv(ZERO, [BUFFER])


def touch():
    # Private: a shared mapping's pages are given back behind munmap(), by what closes its file.
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE,
                   flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for page in range(PAGES):
            memory[page * mmap.PAGESIZE] = 1


def sleeps():
    while True:
        time.sleep(0.05)


class InKernel(protocol.Workload):
    """Spends CPU time in the kernel."""

    def __init__(self, args):
        super().__init__(args)
        threading.Thread(target=sleeps, daemon=True).start()

    def step(self):
        zeros()
        touch()

    def command(self, words):
        if words[0] != "spend" or len(words) != 2:
            return None
        for function in (zeros, touch):
            end = os.times().system + float(words[1])
            while os.times().system < end:
                function()
        return "spent"


protocol.main(InKernel)
