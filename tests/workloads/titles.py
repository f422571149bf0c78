# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What setproctitle does to the process that it is called in."""

import ctypes

PR_SET_NAME = 15


def set_title(title):
    """Writes over the arguments and the environment, which lie behind each other on the stack."""
    with open("/proc/self/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    arguments, environment_end = int(fields[45]), int(fields[48])
    room = environment_end - arguments
    ctypes.memmove(arguments, title[:room - 1].ljust(room, b"\0"), room)
    ctypes.CDLL(None).prctl(PR_SET_NAME, title[:15], 0, 0, 0)
