# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Everything here that has a name has one that a hostile program would choose: the process, its
command line (--label), a thread, Python functions and their files, ranges. A step calls operators
in all of them.
"""

import ctypes
import threading

from torch.autograd.profiler import record_function
import torch

import protocol

PR_SET_NAME = 15
# What acts on a terminal, a page, a spreadsheet or a line, and what only looks foreign.
NAMES = [b"csi\xc2\x9b31m", b"raw\x9b31m", b"esc\x1b[2J\x07", b"\xe2\x80\xaegpj.exe",
         b"iso\xe2\x81\xa6late", b"</script><img src=x onerror=alert(1)>", b"=cmd|'/C calc'!A0",
         b"a;b 12", b"two\nlines\r", b"q\"\\'", b"over\xc0\x9blong", b"\xed\xa0\x80half",
         "\u77e9\u9635\u4e58\u6cd5".encode(), "\U0001f469\u200d\U0001f4bb".encode(), b"del\x7f"]


def set_thread_name(name):
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_NAME, ctypes.c_char_p(name), 0, 0, 0) == 0


def function_named(name):
    """A function of this name, in a file of this name."""
    def work(x):
        return torch.sin(x)

    text = name.decode("utf-8", "replace")
    work.__code__ = work.__code__.replace(co_name=text, co_filename="/tmp/%s.py" % text)
    if hasattr(work.__code__, "co_qualname"):
        work.__code__ = work.__code__.replace(co_qualname=text)
    return work


class Nasty(protocol.Workload):
    """Operators under all names."""

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--label")

    def __init__(self, args):
        super().__init__(args)
        self.x = torch.ones(4)
        self.functions = [function_named(name) for name in NAMES]
        set_thread_name(NAMES[0])

    def all(self):
        for name, function in zip(NAMES, self.functions):
            with record_function(name.decode("utf-8", "replace")):
                function(self.x)

    def named(self, name):
        set_thread_name(name)
        self.all()

    def step(self):
        self.all()
        for name in NAMES[:6]:
            thread = threading.Thread(target=self.named, args=(name,))
            thread.start()
            thread.join()


if __name__ == "__main__":
    protocol.main(Nasty)
