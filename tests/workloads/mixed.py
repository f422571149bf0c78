# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Runs without orders, and spends its time all over: in operators of several kinds on several threads,
in autograd, in Python's own code and through callbacks of the C library. Says "ready", ends when its
standard input does.
"""

import ctypes
import ctypes.util
import sys
import threading

import torch

torch.set_num_threads(2)


def sort_in_c(libc, numbers):
    """The C library's qsort() calls Python back."""
    array = (ctypes.c_int * len(numbers))(*numbers)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                               ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
    libc.qsort(array, len(numbers), ctypes.sizeof(ctypes.c_int), compare)
    return list(array)


def python_work(depth):
    if depth:
        return python_work(depth - 1)
    words = sorted((str(n * 7919 % 1009) for n in range(800)), key=lambda word: word[::-1])
    return {word: len(word) for word in words}


def work(model, optimizer, recurrent, libc):
    loss = model(torch.randn(2, 3, 24, 24)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    recurrent(torch.randn(5, 2, 16))[0].sum().backward()
    grid = torch.randn(300, 300)
    torch.softmax(grid @ grid, 1).sort(1)
    torch.erfinv(grid.tanh()).cumsum(0)
    torch.linalg.inv(grid[:40, :40] + 40 * torch.eye(40))
    python_work(12)
    sort_in_c(libc, [n * 37 % 101 for n in range(60)])


def main():
    libc = ctypes.CDLL(ctypes.util.find_library("c"))
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8),
                                torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(3872, 10))
    optimizer = torch.optim.Adam(model.parameters())
    recurrent = torch.nn.LSTM(16, 32, 2)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    work(model, optimizer, recurrent, libc)
    print("ready", flush=True)
    while not over.is_set():
        work(model, optimizer, recurrent, libc)


if __name__ == "__main__":
    main()
