# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Ranks of one job on one machine, started by torchrun; they talk by gloo. The first one obeys the
commands (see protocol.py) and passes each on to the others. One step is a linear layer forward and
backward and the sum of its gradients over all ranks. A command of its own:

    late R          one sum, to which rank R comes when it gets SIGUSR1   "late R"

Meanwhile the ranks say by the names of their first threads where they are: "waiting" is the late
one, "arrived" the others; "follows" is one that waits for the next command.
"""

import ctypes
import importlib
import os
import signal
import socket
import subprocess
import sys

import protocol
import torch

RANKS = 4
PR_SET_NAME = 15


def without_libuv():
    """Debian builds PyTorch without it, and torchrun asks for it all the same."""
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    store = rendezvous.TCPStore
    if "use_libuv" in (store.__init__.__doc__ or ""):
        rendezvous.TCPStore = torch.distributed.TCPStore = (
            lambda *args, **named: store(*args, **{**named, "use_libuv": False}))


class Ranks(protocol.Workload):
    warmup = 1

    def __init__(self, args):
        super().__init__(args)
        from torch import distributed

        self.distributed = distributed
        self.warm = False
        without_libuv()
        distributed.init_process_group("gloo")
        self.model = torch.nn.Linear(32, 32)
        self.data = torch.randn(16, 32)

    def step(self):
        self.model(self.data).sum().backward()
        for parameter in self.model.parameters():
            self.distributed.all_reduce(parameter.grad)

    def together(self, count, late=-1):
        """Has all ranks do so many steps, or be late; neither lets the others leave."""
        order = torch.tensor([count, late])
        self.distributed.broadcast(order, 0)
        call_thread("works")
        count, late = order.tolist()
        super().steps(count)
        if late >= 0:
            self.sum_late(late)
        return count or late >= 0

    def sum_late(self, late):
        if self.distributed.get_rank() == late:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
            call_thread("waiting")
            signal.sigwait({signal.SIGUSR1})
        else:
            call_thread("arrived")
        self.distributed.all_reduce(torch.zeros(8))
        call_thread("done")

    def command(self, words):
        if words[0] != "late" or len(words) != 2:
            return None
        self.together(0, int(words[1]))
        return "late " + words[1]

    def steps(self, count):
        if self.warm:
            self.together(count)
        else:
            self.warm = True
            super().steps(count)

    def close(self):
        if self.distributed.get_rank() == 0:
            self.together(0)
        self.distributed.barrier()


def call_thread(name):
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def leave():
    """Without what gloo does when a process ends, which crashes where another rank was quicker."""
    sys.stdout.flush()
    os._exit(0)


def follow():
    """What a rank does that is not the first."""
    ranks = Ranks(None)
    torch.set_num_threads(1)
    ranks.steps(Ranks.warmup)
    call_thread("follows")
    while ranks.together(0):
        call_thread("follows")
    ranks.close()
    leave()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def torchrun():
    without_libuv()
    from torch.distributed import run

    run.main(["--nproc_per_node", str(RANKS), "--master_addr", "127.0.0.1", "--master_port",
              str(free_port()), __file__, *sys.argv[1:]])


def launch():
    """The same for a torchrun that cannot start anything: that of 1.13 under Python 3.11."""
    port = free_port()
    children = []
    for rank in range(RANKS):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank),
                           WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        children.append(subprocess.Popen([sys.executable, "-B", __file__, *sys.argv[1:]],
                                         env=environment))
    sys.exit(max(child.wait() for child in children))


def main():
    if os.environ.get("RANK") == "0":
        protocol.main(Ranks)
        leave()
    elif "RANK" in os.environ:
        follow()
    else:
        from torch.distributed.elastic.multiprocessing import api

        if api.Std.from_str("0") is None:
            launch()
        torchrun()


if __name__ == "__main__":
    main()
