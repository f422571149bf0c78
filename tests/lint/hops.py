# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
How often one event changes the file on its way from a ring to the recording, for a look before and after a change. A script for gdb, which
steps through one call of HOPS_FUNCTION with an event of the kind HOPS_KIND (bpf/wire.h) and prints each file that it comes to:

    HOPS_FUNCTION=take_kernel_event HOPS_KIND=1 gdb -batch -x tests/lint/hops.py --args build/gpuprof attach --pid PID --no-inject --duration 20
    HOPS_FUNCTION=dispatch__collector_event HOPS_KIND=8 gdb -batch -x tests/lint/hops.py --args build/gpuprof attach --pid PID --duration 20

A hop is a change of the .c file, a return one to a file in which the event was before. Only capture/ and recording/ count.
"""

import os

import gdb

ROOMS = ("capture/", "recording/")
SETTINGS = ("set pagination off", "set confirm off", "set breakpoint pending on", "set debuginfod enabled off", "set follow-fork-mode parent",
            "handle all nostop noprint pass", "handle SIGTRAP stop nopass", "handle SIGINT stop")
SKIPPED = 40  # events of a capture's begin
STEPS_MAX = 4000


def place(frame):
    """(file below userspace/, function) of a frame; None if it is not of ours."""
    table = frame.find_sal().symtab
    at = table.filename.find("userspace/") if table else -1
    return (table.filename[at + len("userspace/"):], frame.name()) if at >= 0 else None


def callers(frame):
    """Places from main() down to the frame."""
    found = []
    while frame:
        found.append(place(frame))
        frame = frame.older()
    return found[::-1]


def stepped(frame):
    """Places that the call comes to until it returns."""
    caller = frame.older()
    for _ in range(STEPS_MAX):
        gdb.execute("step", to_string=True)
        now = gdb.selected_frame()
        if now == caller or now.older() == caller.older():
            return
        yield place(now)


def main():
    for setting in SETTINGS:
        gdb.execute(setting)
    first = gdb.Breakpoint(os.environ["HOPS_FUNCTION"])
    first.condition = "((struct gp_ev_head *)event)->kind == %d" % int(os.environ["HOPS_KIND"])
    first.ignore_count = int(os.environ.get("HOPS_SKIPPED", SKIPPED))
    gdb.execute("run")
    frame = gdb.selected_frame()
    way = []
    for found in callers(frame) + list(stepped(frame)):
        if found and found[0].startswith(ROOMS) and found[0].endswith(".c") and (not way or way[-1][0] != found[0]):
            way.append(found)
    for file, function in way:
        print("%-50s %s" % (file, function))
    files = [file for file, _ in way]
    print("%d hops, %d returns, %d files" % (len(way) - 1, sum(file in files[:at] for at, file in enumerate(files)), len(set(files))))
    gdb.execute("kill")


main()
