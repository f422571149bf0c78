# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
usage: foreign.py cupy|jax. A program that uses CUDA without PyTorch; obeys "launch N" (so often the
same kernel) and "exit". Without the package it says so and ends.
"""

import importlib
import os
import sys


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def of_cupy(cupy):
    data = cupy.arange(1000, dtype="float32")

    def launch(count):
        for _ in range(count):
            cupy.multiply(data, 2, out=data)
        cupy.cuda.runtime.deviceSynchronize()

    return launch


def of_jax(jax):
    double = jax.jit(lambda data: data * 2 + 1)
    data = jax.numpy.ones(1000)

    def launch(count):
        result = data
        for _ in range(count):
            result = double(result)
        result.block_until_ready()

    return launch


def main():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    try:
        launch = {"cupy": of_cupy, "jax": of_jax}[sys.argv[1]](importlib.import_module(sys.argv[1]))
        launch(1)
    except Exception as error:
        say("not here: %r" % error)
        return
    say("ready ")
    for line in sys.stdin:
        words = line.split()
        if words[0] == "exit":
            break
        launch(int(words[1]))
        say("did")
    say("bye")


if __name__ == "__main__":
    main()
