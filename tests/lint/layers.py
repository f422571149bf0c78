# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Who may include whom. The rooms are the stages of the data flow, in order: a room sees wire.h, base/,
itself and earlier rooms. The collector lives in another process: it sees wire.h and itself. Only
probe/ and capture/ see libbpf.
"""

import os
import re

import files

ROOMS = ("base", "target", "probe", "inject", "recording", "capture", "timeline", "output", "daemon",
         "cli")
# On their own: the collector, and what stands in for libraries in the static executable.
ALONE = ("collector", "share")
LIBBPF_ROOMS = {"probe", "capture"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def room_of(name):
    """The room of a file below userspace/; None for main.c and for what is not there."""
    parts = name.split("/")
    return parts[1] if parts[0] == "userspace" and len(parts) > 2 else None


def target_room(root, name, included):
    """The room an include leads to; None if to no room."""
    first = included.split("/")[0]
    if "/" in included and (first in ROOMS or first in ALONE):
        return first
    beside = os.path.join(os.path.dirname(name), included)
    return room_of(name) if os.path.exists(os.path.join(root, beside)) else None


def complaint(root, name, form, included):
    room = room_of(name)
    libbpf = included.startswith("bpf/") or included == "gpuprof.skel.h"
    if libbpf and (form == "<" or included == "gpuprof.skel.h"):
        if room not in LIBBPF_ROOMS:
            return "only %s see libbpf" % " and ".join(sorted(LIBBPF_ROOMS))
        return None
    if form == "<":
        return None
    # Generated, by the room itself.
    if os.path.basename(included) == "wire.h" or included.endswith((".inc", ".pb-c.h")):
        return None
    to = target_room(root, name, included)
    if room in ALONE:
        return None if to == room else "%s/ sees wire.h and its own files only" % room
    if room is None:
        return None if to in ("cli", "base") else "main.c sees cli/ and base/ only"
    if to is None:
        return "leads to no room (write it as room/file.h)"
    if to in ALONE:
        return "nobody sees the files of %s/" % to
    if ROOMS.index(to) > ROOMS.index(room):
        return "%s/ comes before %s/" % (room, to)
    return None


def check(root):
    """Complaints, each as text."""
    bad = []
    for name in files.c_files(root):
        if not name.startswith("userspace/"):
            continue
        room = room_of(name)
        if room is not None and room not in ROOMS + ALONE:
            bad.append("%s: '%s' is no room" % (name, room))
            continue
        for form, included in INCLUDE.findall(files.without_comments(files.read(root, name))):
            why = complaint(root, name, form, included)
            if why:
                bad.append("%s includes %s: %s" % (name, included, why))
    return bad
