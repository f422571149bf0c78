# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The programs that the checks start, and how long anything may take: no wait is longer than the check
at hand has, and no check longer than all of them together have.
"""

import contextlib
import os
import signal
import subprocess
import time

SECONDS = float(os.environ.get("GPU_CHECK_S", "520"))
BEGIN = time.monotonic()
LIMIT_S = 100   # of one wait
KILLED_S = 10   # until a program that was killed has gone, if it goes at all

_ends = [BEGIN + SECONDS]


class OutOfTime(Exception):
    """What was waited for did not come."""


def left_s():
    return _ends[-1] - time.monotonic()


@contextlib.contextmanager
def at_most(seconds):
    """What is done in it has so long, at most."""
    _ends.append(min(_ends[-1], time.monotonic() + seconds))
    try:
        yield
    finally:
        _ends.pop()


@contextlib.contextmanager
def limit():
    """Ends one wait."""
    seconds = max(1, min(LIMIT_S, left_s()))

    def over(*_):
        raise OutOfTime("not within %.0f s" % seconds)

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Program:
    """A child whose lines are waited for; `stream` is the one that is read. What it says on the
    other is in `log`, where it has a name."""

    alive = []

    def __init__(self, argv, stream, log, **variables):
        other = "stdout" if stream == "stderr" else "stderr"
        with open(log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, text=True,
                                            errors="replace", env=dict(os.environ, **variables),
                                            **{stream: subprocess.PIPE, other: file})
        self.log = log
        self.stream = getattr(self.process, stream)
        self.lines = []
        Program.alive.append(self)

    def line(self, beginning):
        """The next line that begins so; the program's end is an error."""
        with limit():
            for line in self.stream:
                self.lines.append(line.rstrip("\n"))
                if line.startswith(beginning):
                    return line.rstrip("\n")
        raise RuntimeError("ended without %r: %s" % (beginning, self.tail()))

    def tail(self):
        said = list(self.lines[-20:])
        if self.log != os.devnull:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                said += file.read().splitlines()[-10:]
        return " / ".join(said)

    def tell(self, command):
        # One that has ended says why where its answer was to come.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()

    def ask(self, command, beginning):
        self.tell(command)
        return self.line(beginning)

    def interrupt(self):
        """Ends it as Ctrl-C does; its status."""
        with limit():
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
            self.lines += self.stream.read().splitlines()
            return self.process.wait()

    def kill(self):
        """One that is stuck in the kernel stays."""
        if self.process.poll() is None:
            self.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(KILLED_S)

    @classmethod
    def end_all(cls):
        while cls.alive:
            cls.alive.pop().kill()


def run(argv, **more):
    """A program from begin to end."""
    return subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, text=True, errors="replace",
                          timeout=max(1, min(LIMIT_S, left_s())), **more)
