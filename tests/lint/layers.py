# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Who may include whom. The rooms are the stages of the data flow, in order: a room sees wire.h, base/, itself and earlier
rooms. Within a room the order is that of its sub-rooms; "" stands for the files that lie in the room itself. The
collector lives in another process: it sees wire.h, common/ and itself. Only probe/ and capture/ see libbpf.
"""

import os
import re

import files

ROOMS = ("common", "base", "inspect", "probe", "inject", "recording", "capture", "timeline", "output", "daemon", "cli")
# On their own: the collector, and what stands in for libraries in the static executable.
ALONE = ("collector", "share")
# The files of a room in the order in which they may see each other; a room that is not here has no sub-rooms.
ORDER = {
    "inspect": ("access", "kernel", "elf", "unwind", "process", "program"),
    "probe": ("plan", "unwind", "session"),
    "collector": ("runtime", "python", "cupti", "torch", ""),
    "capture": ("policy", "core", "recordings", "symbols", "collector", "process", "events", "control", ""),
    "timeline": ("model", "read", "build", "analysis"),
    "output": ("format", "memory", "flame", "pprof", "summary", "chrome", "perfetto", ""),
    "cli": ("core", "view", "record", "top", ""),
}
LIBBPF_ROOMS = {"probe", "capture"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def place_of(name):
    """Room and sub-room of a file below userspace/; (None, "") for main.c and for what is not there."""
    parts = name.split("/")
    if parts[0] != "userspace" or len(parts) < 3:
        return None, ""
    return parts[1], "/".join(parts[2:-1])


def target_of(root, name, included):
    """The path of the file that an include leads to; None if it is none of ours."""
    for path in (os.path.join("userspace", included), os.path.normpath(os.path.join(os.path.dirname(name), included))):
        if os.path.exists(os.path.join(root, path)) or (path.split("/")[1:2] or [""])[0] in ROOMS + ALONE and "/" in included:
            return path
    return None


def complaint(root, name, form, included):
    room, sub = place_of(name)
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
    path = target_of(root, name, included)
    to, to_sub = place_of(path) if path else (None, "")
    if room in ALONE and to not in (room, "common"):
        return "%s/ sees wire.h, common/ and its own files only" % room
    if room is None:
        return None if to in ("cli", "base") else "main.c sees cli/ and base/ only"
    if to is None:
        return "leads to no room (write it as room/file.h)"
    if to == room:
        order = ORDER.get(room)
        if order and order.index(to_sub) > order.index(sub):
            return "%s/%s comes before %s/%s" % (room, sub, to, to_sub)
        return None
    if to in ALONE:
        return "nobody sees the files of %s/" % to
    if room not in ALONE and ROOMS.index(to) > ROOMS.index(room):
        return "%s/ comes before %s/" % (room, to)
    return None


def check(root):
    """Complaints, each as text."""
    bad = []
    for name in files.c_files(root):
        if not name.startswith("userspace/"):
            continue
        room, sub = place_of(name)
        if room is not None and room not in ROOMS + ALONE:
            bad.append("%s: '%s' is no room" % (name, room))
            continue
        if room in ORDER and sub not in ORDER[room]:
            bad.append("%s: '%s' is no sub-room of %s/" % (name, sub, room))
            continue
        if room is not None and room not in ORDER and room != "share" and sub:
            bad.append("%s: %s/ has no sub-rooms" % (name, room))
            continue
        for form, included in INCLUDE.findall(files.without_comments(files.read(root, name))):
            why = complaint(root, name, form, included)
            if why:
                bad.append("%s includes %s: %s" % (name, included, why))
    return bad
