# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A process with a stand-in for libtorch_cpu (tests/fake/torch.c) and the collector:

    torch_target.py FAKE COLLECTOR

says "ready PID", then obeys one order a line:

    begin AT NAME SCOPE SEQUENCE    an op begins, its record is number AT
    end AT                          it ends
    end-elsewhere AT                it ends on another thread
    again                           InitializeInjection() once more
    callbacks                       how many callbacks are registered
    slow MS                         the next callback takes MS milliseconds to be added
    fork                            forks meanwhile; "fork STATUS": how a child ended that begins an op
"""

import ctypes
import os
import signal
import sys
import threading


CHILD_S = 20


def fork_meanwhile(fake):
    """The child's status."""
    while not fake.fake_changing():
        pass
    child = os.fork()
    if not child:
        signal.alarm(CHILD_S)
        fake.fake_begin(0, b"in the child", 0, ctypes.c_longlong(-1))
        os._exit(3)
    return os.waitpid(child, 0)[1]


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main():
    fake = ctypes.CDLL(sys.argv[1])
    collector = ctypes.CDLL(sys.argv[2])
    collector.InitializeInjection()
    say("ready %d" % os.getpid())
    for line in sys.stdin:
        order, *words = line.split()
        answer = order
        if order == "begin":
            fake.fake_begin(int(words[0]), words[1].encode(), int(words[2]),
                            ctypes.c_longlong(int(words[3])))
        elif order == "end":
            fake.fake_end(int(words[0]))
        elif order == "end-elsewhere":
            thread = threading.Thread(target=fake.fake_end, args=(int(words[0]),))
            thread.start()
            thread.join()
        elif order == "again":
            answer = "again %d" % collector.InitializeInjection()
        elif order == "slow":
            fake.fake_slow(int(words[0]))
        elif order == "fork":
            answer = "fork %d" % fork_meanwhile(fake)
        elif order == "callbacks":
            answer = "callbacks %d" % fake.fake_callbacks()
        say(answer)


main()
