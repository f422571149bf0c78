# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A process that starts others on command, each of which waits for orders of its own.

    fork NAME           a child by fork, which has PyTorch already
    busy NAME           the same, and it does steps until it is told to leave
    spawn NAME          a child that is another program at first and loads PyTorch by itself
    becomes NAME FILE   the same, with that static program before it (tests/fake/becomes.c), which
                        waits for an order of its own: "child NAME go"
    child NAME N        that child does N steps of ten sigmoids
    end NAME            that child leaves
"""

import os
import select
import subprocess
import sys

import protocol
import torch


def serve(orders, answers):
    """What a child does: "N\n" is N steps, an empty line the end."""
    data = torch.randn(8, 8)
    print("here %d" % os.getpid(), file=answers, flush=True)
    for line in orders:
        line = line.strip()
        if not line:
            break
        for _ in range(int(line)):
            for _ in range(10):
                torch.sigmoid(data)
        print("did " + line, file=answers, flush=True)
    os._exit(0)


def calculate(orders, answers):
    """Steps without a pause, until there is an order."""
    data = torch.randn(8, 8)
    print("here %d" % os.getpid(), file=answers, flush=True)
    while not select.select([orders], [], [], 0)[0]:
        for _ in range(100):
            torch.sigmoid(data)
    os._exit(0)


class Child:
    """The near end of a child's pipes."""

    def __init__(self, start):
        orders, answers = os.pipe(), os.pipe()
        start(orders[0], answers[1])
        os.close(orders[0])
        os.close(answers[1])
        self.orders = os.fdopen(orders[1], "w")
        self.answers = os.fdopen(answers[0])
        self.pid = int(self.answers.readline().split()[1])

    def say(self, text):
        print(text, file=self.orders, flush=True)
        return self.answers.readline().strip()

    def end(self):
        self.say("")
        _, status = os.waitpid(self.pid, 0)
        return "%d left with %d" % (self.pid, status)


def fork(orders, answers):
    if os.fork() == 0:
        serve(os.fdopen(orders), os.fdopen(answers, "w"))


def busy(orders, answers):
    if os.fork() == 0:
        calculate(os.fdopen(orders), os.fdopen(answers, "w"))


def spawn(orders, answers, first=None):
    os.set_inheritable(orders, True)
    os.set_inheritable(answers, True)
    ends = [str(orders), str(answers)]
    before = [first, *ends] if first else ["env", "RANK=3", "WORLD_SIZE=4"]
    subprocess.Popen([*before, sys.executable, "-B", __file__, "serve", *ends], close_fds=False)


class Children(protocol.Workload):
    """One step is ten additions."""

    def __init__(self, args):
        super().__init__(args)
        self.data = torch.randn(8, 8)
        self.children = {}

    def step(self):
        for _ in range(10):
            torch.add(self.data, self.data)

    def command(self, words):
        if words[0] in ("fork", "busy", "spawn"):
            child = Child({"fork": fork, "busy": busy, "spawn": spawn}[words[0]])
            self.children[words[1]] = child
            return "%sed %d" % (words[0], child.pid)
        if words[0] == "becomes":
            child = Child(lambda orders, answers: spawn(orders, answers, words[2]))
            self.children[words[1]] = child
            return "became %d" % child.pid
        if words[0] == "child":
            return self.children[words[1]].say(words[2])
        if words[0] == "end":
            return self.children.pop(words[1]).end()
        return None


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(os.fdopen(int(sys.argv[2])), os.fdopen(int(sys.argv[3]), "w"))
    protocol.main(Children)
