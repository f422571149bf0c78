# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Walks its own stack by the collector's code, loaded as a library, and compares what comes out with
what it knows: python_walk.py LIBRARY LAYOUT_TOOL. For any CPython from 3.8 on, without PyTorch.
Prints how many stacks were right; ends with status 1 at the first that is not.
"""

import ctypes
import functools
import os
import subprocess
import sys
import threading

FRAMES = 256
CHECKED = (0, 1)


class Frame(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint64), ("lasti", ctypes.c_int32), ("check", ctypes.c_uint32)]


class Stack(ctypes.Structure):
    _fields_ = [("hash", ctypes.c_uint64), ("nr", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("frames", Frame * FRAMES)]


LIBRARY = ctypes.CDLL(sys.argv[1])
# With the GIL: meanwhile no thread comes or goes, and the lists of thread states hold still.
LOCKED = ctypes.PyDLL(sys.argv[1])
LAYOUT = bytes.fromhex(subprocess.run([sys.argv[2], str(os.getpid())], check=True,
                                      stdout=subprocess.PIPE).stdout.decode())
STATE = ctypes.pythonapi.PyGILState_GetThisThreadState
STATE.restype = ctypes.c_void_p
RIGHT = []  # appending is one step, counting is not


def lasti(frame):
    """As the interpreter keeps it: up to 3.9 in bytes, in 3.10 in units of two, then bytes."""
    return frame.f_lasti // 2 if sys.version_info[:2] == (3, 10) else frame.f_lasti


def walked(reads):
    """The stack from this function on, read while the GIL is free."""
    first, stack = ctypes.c_uint64(), Stack()
    state = ctypes.c_uint64(STATE())
    assert LOCKED.python_state_is_good(LAYOUT, state, ctypes.c_uint64(threading.get_ident()))
    assert LOCKED.python_state_is_only(LAYOUT, state, ctypes.c_uint64(threading.get_ident()))
    assert LIBRARY.python_first_frame(LAYOUT, state, reads, ctypes.byref(first))
    assert LIBRARY.python_walk(LAYOUT, first, reads, ctypes.byref(stack))
    return stack


def note():
    for reads in CHECKED:
        stack, frame = walked(reads), sys._getframe()
        expected = []
        while frame is not None and len(expected) < FRAMES - 1:
            expected.append((id(frame.f_code), lasti(frame)))
            frame = frame.f_back
        got = [(one.code, one.lasti) for one in stack.frames[:stack.nr]]
        # walked() and this function have moved on since.
        assert got[0][0] == id(walked.__code__), got[0]
        assert got[1][0] == expected[0][0], (got[1], expected[0])
        assert got[2:] == expected[1:], (got, expected)
        assert (stack.flags == 1) == (frame is not None), stack.flags
        RIGHT.append(reads)


def recursion(depth):
    if depth:
        return recursion(depth - 1)
    return note()


def generator():
    for _ in range(3):
        yield note()


class Finalized:
    def __del__(self):
        note()


def main():
    for depth in (0, 5, 200, 249, 600):
        recursion(depth)
    list(generator())
    sorted([3, 1, 2], key=lambda value: (note(), -value)[1])
    functools.reduce(lambda a, b: note(), range(3))
    [note() for _ in range(2)]
    Finalized()
    exec(compile("note()", "<made>", "exec"), {"note": note})
    threads = [threading.Thread(target=recursion, args=(depth,)) for depth in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("right", len(RIGHT))


main()
