# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a command under a pid of choice: reborn.py PID COMMAND..."""

import ctypes
import errno
import os
import signal
import sys
import time

SYS_CLONE3 = 435
PR_SET_PDEATHSIG = 1


class CloneArgs(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls",
        "set_tid", "set_tid_size", "cgroup")]


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    pid = ctypes.c_int(int(sys.argv[1]))
    args = CloneArgs(exit_signal=signal.SIGCHLD, set_tid_size=1,
                     set_tid=ctypes.addressof(pid))
    while True:
        child = libc.syscall(SYS_CLONE3, ctypes.byref(args), ctypes.sizeof(args))
        if child >= 0 or ctypes.get_errno() != errno.EEXIST:
            break
        time.sleep(0.01)
    if child < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execvp(sys.argv[2], sys.argv[2:])
    os.waitpid(child, 0)


if __name__ == "__main__":
    main()
