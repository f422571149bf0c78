# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Knows its own Python stack at each operator: note() stands on the very line of torch.sinh(), which
nothing else calls, and writes down the stack it was called with.
"""

import ctypes
import functools
import gc
import json
import queue
import re
import struct
import sys
import threading
import types
import weakref
import time

import protocol
import torch

X = torch.ones(4)
TOLD = {}
SIZES = {}
SIZE_FIRST, SIZE_STEP = 70000, 64
DEEP = 200
DEEPER = 3000  # than can be kept
NOTED = 300    # frames of a stack, at most


def stack_of(frame):
    """Innermost first."""
    stack = []
    while frame is not None and len(stack) < NOTED:
        code = frame.f_code
        stack.append("%s(%d): %s" % (code.co_filename, frame.f_lineno,
                                     getattr(code, "co_qualname", code.co_name)))
        frame = frame.f_back
    return stack


def note():
    """The caller's stack, under the thread that it is on."""
    TOLD.setdefault(threading.get_native_id(), []).append(stack_of(sys._getframe(1)))


def size():
    """One that nothing else has, under which the caller's stack is known."""
    nr = SIZE_FIRST + SIZE_STEP * len(SIZES)
    SIZES[nr] = stack_of(sys._getframe(1))
    return nr


def in_operator():
    torch.empty(size(), dtype=torch.uint8)


def in_none():
    """Memory that no operator of its own asks for."""
    torch.UntypedStorage(size())


def sizes(depth=3):
    """Inside an operator that calls Python, its memory is at the stack of that."""
    if depth:
        return sizes(depth - 1)
    in_operator(); in_none(); in_operator()
    leaf = torch.ones(2, requires_grad=True)
    leaf.register_hook(lambda grad: (in_none(), in_operator(), in_none(), grad)[-1])
    for _ in range(2):
        Doubled.apply(leaf * 2).sum().backward()
    in_none()
    return in_operator()


def plain():
    note(); torch.sinh(X)


def recursion(depth):
    if depth:
        return recursion(depth - 1)
    note(); return torch.sinh(X)


def generator():
    for _ in range(3):
        note(); yield torch.sinh(X)


def outer_generator():
    note(); torch.sinh(X)
    yield from generator()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        note(); torch.sinh(X)
        return function(*args)
    return wrapper


@decorated
@decorated
def twice():
    note(); torch.sinh(X)


def key(value):
    note(); torch.sinh(X)
    return -value


def replaced(match):
    note(); torch.sinh(X)
    return match.group(0)


class Module(torch.nn.Module):
    def forward(self, data):
        note(); return torch.sinh(data)


class Finalized:
    def __del__(self):
        note(); torch.sinh(X)


class Numbers:
    def __add__(self, other):
        note(); return torch.sinh(X)

    @property
    def value(self):
        note(); return torch.sinh(X)

    @staticmethod
    def still():
        note(); return torch.sinh(X)


def callbacks():
    sorted([3, 1, 2], key=key)
    list(map(lambda value: (note(), torch.sinh(X)), range(2)))
    functools.reduce(lambda a, b: (note(), torch.sinh(X)), range(3))
    re.sub("a", replaced, "banana")
    [(note(), torch.sinh(X)) for _ in range(2)]
    {value: (note(), torch.sinh(X)) for value in range(2)}
    list((note(), torch.sinh(X)) for _ in range(2))
    Finalized()
    Numbers() + 1
    Numbers().value
    Numbers.still()


def raising(depth):
    if depth:
        raising(depth - 1)
    raise ValueError


def caught():
    try:
        raising(20)
    except ValueError:
        note(); torch.sinh(X)
    plain()


def thrown():
    for _ in range(3):
        try:
            torch.mm(X, X)
        except RuntimeError:
            note(); torch.sinh(X)
    note(); torch.sinh(X)


def nested():
    """Operators that call one, and that call Python; PyTorch has none that is so simple."""
    note(); note(); torch.tanh(X)
    note(); torch.cosh(torch.hook_type(plain)); note()


async def coroutine():
    note(); torch.sinh(X)


def backward():
    leaf = torch.ones(2, requires_grad=True)
    leaf.register_hook(lambda grad: (note(), torch.sinh(grad))[1])
    (leaf * 2).sum().backward()


if hasattr(torch, "autograd"):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, data):
            in_none(); in_operator()
            return data * 2

        @staticmethod
        def backward(ctx, grad):
            in_operator(); in_none()
            return grad * 2


def annotation(what):
    """Where PyTorch has it; the stand-in for it has none."""
    if not hasattr(torch, "_C"):
        return lambda *_: None
    return torch._C._jit_get_operation("profiler::_record_function_" + what)[0]


ENTER, EXIT = annotation("enter_new"), annotation("exit")


def annotated():
    """Entered from this very frame, and around two of its lines."""
    handle = ENTER("told", None)
    note(); torch.sinh(X)
    note(); torch.sinh(X)
    EXIT(handle)


class Worker(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.orders, self.done = queue.Queue(), queue.Queue()
        self.start()

    def run(self):
        while self.orders.get():
            for depth in range(20):
                recursion(depth)
            self.done.put(True)


# Each notes and calls once. Code of a module, of a function, of a generator, and one that a function
# is given for the time of a call.
MADE = (
    "note(); torch.sinh(X)",
    "def made():\n    note(); torch.sinh(X)\nmade()",
    "list((note(), torch.sinh(X)) for _ in range(1))",
    "def one(): pass\ndef two(): note(); torch.sinh(X)\n"
    "one.__code__, two.__code__ = two.__code__, one.__code__\none()",
)


def dynamic(number):
    """Code that is gone as soon as it has run, at an address that the next one gets."""
    source = "\n" * (number % 50) + MADE[number % len(MADE)]
    exec(compile(source, "<made %d>" % (number % 7), "exec"), {"note": note, "torch": torch, "X": X})


def freed(count):
    """Frees code objects in each way in which they go; how many went."""
    gone, watched = [], []
    for number in range(count):
        codes = [compile(MADE[number % len(MADE)], "<freed>", "exec")]
        for code in codes:
            codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
        watched += [weakref.ref(code, gone.append) for code in codes]
        if number % 2:
            exec(codes[0], {"note": int, "torch": types.SimpleNamespace(sinh=int), "X": 0})
        del code, codes
    return len(gone)


def inside(path):
    """For another interpreter of this process: a few stacks, told in a file."""
    plain()
    recursion(5)
    thread = threading.Thread(target=plain)
    thread.start()
    thread.join()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(TOLD, file)


def in_other_interpreter(own_gil, path):
    """Runs inside() in a new interpreter; what is known of it before and after. None: there is no
    such thing here."""
    try:
        interpreters = __import__("_interpreters" if sys.version_info >= (3, 13)
                                  else "_xxsubinterpreters")
    except ImportError:
        return None
    plain()
    if sys.version_info >= (3, 13):
        other = interpreters.create("isolated" if own_gil else "legacy")
    elif sys.version_info >= (3, 9):
        other = interpreters.create(isolated=False)
    else:
        other = interpreters.create()
    plain()
    failed = interpreters.run_string(
        other, "import sys; sys.path[:] = %r; import stacks; stacks.inside(%r)" % (sys.path, path))
    plain()
    interpreters.destroy(other)
    plain()
    return failed or "done"


def depth():
    """Of the caller."""
    nr, frame = 0, sys._getframe(1)
    while frame is not None:
        nr, frame = nr + 1, frame.f_back
    return nr


def repeat(more, count):
    """So many frames more, every third called by C as modules are; operators in the last."""
    if more > 1:
        return (functools.partial(repeat, more - 1, count)() if more % 3 == 0 else
                repeat(more - 1, count))
    for _ in range(count):
        torch.sinh(X)
    return None
def busy(count, depth):
    """CPU nanoseconds of one torch.cosh() with so many frames, its own included."""
    if depth > 3:
        return busy(count, depth - 1)
    begin = time.thread_time_ns()
    for _ in range(count):
        torch.cosh(X)
    return (time.thread_time_ns() - begin) / count


def deny(number):
    """System call `number` is refused to all threads from now on."""
    words = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)]
    program = b"".join(struct.pack("=HBBI", *word) for word in words)
    buffer = ctypes.create_string_buffer(program)
    head = ctypes.create_string_buffer(struct.pack("=H6xQ", len(words), ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    # PR_SET_NO_NEW_PRIVS; seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC).
    if libc.prctl(38, 1, 0, 0, 0) or libc.syscall(317, 1, 1, head):
        raise OSError(ctypes.get_errno(), "seccomp")


class Stacks(protocol.Workload):
    def __init__(self, args):
        super().__init__(args)
        sys.setrecursionlimit(2 * DEEPER)
        self.workers = [Worker() for _ in range(3)]
        self.module = torch.nn.Sequential(Module(), Module())
        gc.disable()

    def step(self):
        for worker in self.workers:
            worker.orders.put(True)
        plain()
        recursion(DEEP)
        recursion(DEEPER)
        for depth in range(0, 100, 9):
            recursion(depth)
        list(outer_generator())
        twice()
        callbacks()
        caught()
        thrown()
        if hasattr(torch, "hook_type"):
            nested()
        self.module(X)
        try:
            coroutine().send(None)
        except StopIteration:
            pass
        backward()
        annotated()
        for worker in self.workers:
            worker.done.get()
        brief = threading.Thread(target=plain)
        brief.start()
        brief.join()

    def command(self, words):
        # What note() was told since the last "told", as a file.
        if words[0] == "told" and len(words) == 2:
            with open(words[1], "w", encoding="utf-8") as file:
                json.dump(TOLD, file)
            TOLD.clear()
            return "told"
        # Allocations, and as a file which stack each size is at.
        if words[0] == "sizes" and len(words) == 3:
            for _ in range(int(words[1])):
                sizes()
            with open(words[2], "w", encoding="utf-8") as file:
                json.dump(SIZES, file)
            return "sizes " + words[1]
        if words[0] == "dynamic" and len(words) == 2:
            for number in range(int(words[1])):
                dynamic(number)
            return "dynamic " + words[1]
        if words[0] == "freed" and len(words) == 2:
            return "freed %d" % freed(int(words[1]))
        # An interpreter more, with its own GIL or without.
        if words[0] in ("interpreter", "isolated") and len(words) == 2:
            return "%s %s" % (words[0], in_other_interpreter(words[0] == "isolated", words[1]))
        # So many operators under a stack so deep.
        if words[0] == "deep" and len(words) == 3:
            repeat(int(words[1]) - depth(), int(words[2]))
            return "deep " + words[1]
        if words[0] == "deny" and len(words) == 2:
            deny(int(words[1]))
            return "deny " + words[1]
        # What an operator costs under a stack of so many frames: main() and command() are two.
        if words[0] == "busy" and len(words) == 3:
            return "took %.1f" % busy(int(words[1]), int(words[2]))
        return None

    def close(self):
        for worker in self.workers:
            worker.orders.put(None)
        for worker in self.workers:
            worker.join()


if __name__ == "__main__":
    protocol.main(Stacks)
