# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The job of tests/workloads/ranks.py, of which each rank is known to be through."""

import glob
import os
import signal

import harness

RANKS, LATE = 4, 2


def descendants(pid):
    found = []
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        with open(path, encoding="ascii") as file:
            for child in map(int, file.read().split()):
                found += [child, *descendants(child)]
    return found


def is_at(pid, name):
    """Its first thread has called itself so, and nothing runs in it any more."""
    with open("/proc/%d/comm" % pid, encoding="ascii") as file:
        if file.read().strip() != name:
            return False
    for path in glob.glob("/proc/%d/task/*/stat" % pid):
        with open(path, encoding="ascii") as file:
            if file.read().rsplit(")", 1)[1].split()[0] != "S":
                return False
    return True


class RankJob(harness.Target):
    """
    The first rank alone obeys and answers, which it may do before the others are through: these
    wait for them, so that what is recorded until then is the same each time.
    """

    def __init__(self):
        super().__init__("ranks")
        self.pids = self._pids()
        if sorted(self.pids) != list(range(RANKS)):
            self.fail("its ranks are %r" % self.pids)
        self._all_follow()

    def _pids(self):
        """Rank -> pid."""
        found = {}
        for pid in descendants(self.pid):
            with open("/proc/%d/environ" % pid, "rb") as file:
                for entry in file.read().split(b"\0"):
                    if entry.startswith(b"RANK="):
                        found[int(entry[5:])] = pid
        return found

    def _wait_at(self, rank, where):
        harness.wait_until("rank %d %s" % (rank, where), lambda: is_at(self.pids[rank], where))

    def _all_follow(self):
        for rank in self.pids:
            if rank:
                self._wait_at(rank, "follows")

    def step(self, count):
        super().step(count)
        self._all_follow()

    def be_late(self):
        """Rank LATE comes to a sum when all others are in it."""
        self.order("late %d" % LATE)
        for rank in self.pids:
            self._wait_at(rank, "waiting" if rank == LATE else "arrived")
        os.kill(self.pids[LATE], signal.SIGUSR1)
        answer = self.answer()
        if answer != "late %d" % LATE:
            self.fail("'late' was answered by %r" % answer)
        self._all_follow()
