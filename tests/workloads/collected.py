# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The tiny MLP with what the collector's tests order besides steps:

    load FILE       loads the library and calls its InitializeInjection   "loaded RESULT"
    again           calls it once more                                    "loaded RESULT"
    across N        N annotations that begin here and end on a thread     "across N"
    chain N         the same, each begins before the last one has ended   "chain N"
    overlap N       N annotations that begin in one which ends before       "overlap N"
    crowd N K       N annotations deep in K threads at once               "crowd N"
    fork_join N     TorchScript functions that wait for a forked one      "fork_join N"
    nest N          annotations N deep                                    "nest N"
    wrong N         N ops that raise, the error caught                    "wrong N"
    threads N K     N threads, each with K additions                      "threads TIDS"
    fork N          N steps in a forked child                             "fork STATUS RINGS"
    forward N       N forward passes without autograd                     "forward N"
    become          a forked child obeys in its parent's place            "become PID"
"""

import contextlib
import ctypes
import os
import threading

import mlp
import protocol
import torch
from torch.autograd.profiler import record_function


@torch.jit.script
def forked(x):
    for _ in range(100):
        x = torch.sin(x)
    return x


@torch.jit.script
def fork_join(x):
    future = torch.jit.fork(forked, x)
    y = torch.cos(x)
    return y + torch.jit.wait(future)


class Collected(mlp.Mlp):
    """The tiny MLP, with the collector put in by itself."""

    library = None

    def command(self, words):
        order = getattr(self, "do_" + words[0], None)
        return order(*words[1:]) if order else None

    def do_load(self, path):
        self.library = ctypes.CDLL(path)
        return self.do_again()

    def do_again(self):
        return "loaded %d" % self.library.InitializeInjection()

    @staticmethod
    def do_across(count):
        for _ in range(int(count)):
            annotation = record_function("across")
            annotation.__enter__()
            inner = torch.ones(2)
            thread = threading.Thread(target=annotation.__exit__, args=(None, None, None))
            thread.start()
            thread.join()
            inner.add(1)
        return "across " + count

    @staticmethod
    def do_chain(count):
        last = contextlib.nullcontext()
        for _ in range(int(count)):
            annotation = record_function("chained")
            annotation.__enter__()
            thread = threading.Thread(target=last.__exit__, args=(None, None, None))
            thread.start()
            thread.join()
            last = annotation
        last.__exit__(None, None, None)
        return "chain " + count

    @staticmethod
    def do_overlap(count):
        """As two tasks of asyncio do it."""
        for _ in range(int(count)):
            first, second = record_function("first"), record_function("second")
            first.__enter__()
            second.__enter__()
            inner = torch.ones(2)
            first.__exit__(None, None, None)
            inner.add(1)
            second.__exit__(None, None, None)
        return "overlap " + count

    @staticmethod
    def do_crowd(depth, threads):
        all_in = threading.Barrier(int(threads))

        def nest():
            with contextlib.ExitStack() as stack:
                for _ in range(int(depth)):
                    stack.enter_context(record_function("crowd"))
                all_in.wait()

        workers = [threading.Thread(target=nest) for _ in range(int(threads))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return "crowd " + depth

    @staticmethod
    def do_fork_join(count):
        x = torch.ones(100)
        for _ in range(int(count)):
            fork_join(x)
        return "fork_join " + count

    @staticmethod
    def do_nest(count):
        def nest(left):
            if left:
                with record_function("nest"):
                    nest(left - 1)

        nest(int(count))
        return "nest " + count

    @staticmethod
    def do_wrong(count):
        for _ in range(int(count)):
            try:
                torch.mm(torch.ones(2, 3), torch.ones(2, 3))
            except RuntimeError:
                pass
        return "wrong " + count

    @staticmethod
    def do_threads(threads, count):
        tids = []

        def add():
            tids.append(threading.get_native_id())
            one = torch.ones(2)
            for _ in range(int(count)):
                one.add(1)

        workers = [threading.Thread(target=add) for _ in range(int(threads))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return "threads " + " ".join(str(tid) for tid in tids)

    def do_forward(self, count):
        with torch.no_grad():
            for _ in range(int(count)):
                self.model(self.data)
        return "forward " + count

    def do_fork(self, count):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self.do_forward(count)
            rings = sum("gpuprof-ring" in os.readlink("/proc/self/fd/%d" % fd)
                        for fd in range(256) if os.path.islink("/proc/self/fd/%d" % fd))
            os.write(writing, b"%d" % rings)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        os.close(writing)
        rings = os.read(reading, 100).decode()
        os.close(reading)
        return "fork %d %s" % (status, rings)

    @staticmethod
    def do_become():
        child = os.fork()
        if child:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return "become %d" % os.getpid()


if __name__ == "__main__":
    protocol.main(Collected)
