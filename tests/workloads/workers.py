# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A DataLoader whose two workers stay: started as told (fork, spawn, forkserver), alone or as a rank
of a job that talks by gloo. It says "ready {pid, parent, torch, workers}" once both workers work,
and ends with its standard input, or when it is a rank with its launcher.

    workers.py METHOD [TITLE]     TITLE: the name that it gives itself, as setproctitle() does

With a title it also names its first thread, before it starts its workers.
"""

import json
import os
import sys

import titles
import torch
from torch.utils.data import DataLoader, TensorDataset

WORKERS = 2


def join_job():
    from ranks import without_libuv
    from torch import distributed

    without_libuv()
    distributed.init_process_group("gloo")
    distributed.all_reduce(torch.ones(1))


def main():
    if len(sys.argv) > 2:
        titles.set_title(os.fsencode(sys.argv[2]))
    if "RANK" in os.environ:
        join_job()
    loader = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=2, num_workers=WORKERS,
                        multiprocessing_context=sys.argv[1])
    batches = iter(loader)
    # One of each.
    for _ in range(WORKERS):
        next(batches)
    print("ready " + json.dumps({
        "pid": os.getpid(), "parent": os.getppid(), "torch": torch.__version__,
        "rank": os.environ.get("RANK"), "workers": [one.pid for one in batches._workers]}),
        flush=True)
    sys.stdin.read()
    # Without what gloo does when a process ends: another rank may be gone.
    os._exit(0)


if __name__ == "__main__":
    main()
