# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What a process may do in months, in a step: operators, memory, a thread that ends, an annotation and
a function that never were before, and a child, which leaves, dies or becomes another program.
"""

import os
import signal
import sys
import threading

import protocol
import torch

KINDS = ("leaves", "is killed", "execs", "fails to exec")


class Churn(protocol.Workload):
    """One step is one of each; the fourth child does what the first did."""

    warmup = 0

    def __init__(self, args):
        super().__init__(args)
        self.data = torch.randn(64, 64)
        self.number = 0

    def work(self):
        for _ in range(20):
            torch.sigmoid(torch.add(self.data, self.data))
        torch.empty(1 << 20).fill_(1)

    def new_function(self):
        scope = {"torch": torch, "data": self.data}
        name = "made_%d" % self.number
        source = "def %s():\n    return torch.mul(data, data)\n" % name
        exec(compile(source, name + ".py", "exec"), scope)  # as templates and notebooks do
        scope[name]()

    def child(self, kind):
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            return
        try:
            for _ in range(5):
                torch.sigmoid(self.data)
            if kind == "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "execs":
                os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", "pass"])
            if kind == "fails to exec":
                os.execv("/does/not/exist", ["exist"])
        except OSError:
            pass
        os._exit(0)

    def step(self):
        self.number += 1
        with torch.autograd.profiler.record_function("batch %d" % self.number):
            self.work()
        self.new_function()
        thread = threading.Thread(target=self.work)
        thread.start()
        thread.join()
        self.child(KINDS[self.number % len(KINDS)])


if __name__ == "__main__":
    protocol.main(Churn)
