# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Files that a profiled process names are opened by inspect/access/process_file.c alone: the process may put anything in the place
of any file, at any moment. So in the rooms that see such names every other call that takes a path is counted here, with
the reason why its path is none of the process's choice. A new call changes the count, and must give its reason.
"""

import re

import files

ROOMS = ("inspect", "probe", "inject", "capture", "recording", "timeline", "output")
CALL = re.compile(r"(?<![\w.>])(open|open64|openat|openat2|creat|fopen|freopen|opendir|scandir|nftw|stat|lstat|fstatat|statx|"
                  r"access|faccessat|readlink|readlinkat|mkdir|rename|unlink|chmod|chown|truncate|"
                  r"dwfl_report_elf|dwfl_report_offline|dwfl_linux_proc_report|bpf_program__attach_\w*probe\w*|bpf_program__attach_usdt)\s*\(")
# A path that stands in the call itself.
LITERAL = re.compile(r'\w+\s*\(\s*"')

PROC = "names in /proc, made of numbers"
# File -> (calls, why their paths are nobody's choice).
ALLOWED = {
    "userspace/capture/collector/ring_reader.c": (2, "a list of descriptors in /proc and their links; they are opened by process_memfd_open()"),
    "userspace/capture/collector/tid_map.c": (2, PROC),
    "userspace/capture/process/python_threads.c": (1, PROC),
    "userspace/capture/process/threads.c": (1, PROC),
    "userspace/inject/safe_thread.c": (1, PROC),
    "userspace/inject/injected_library.c": (3, "a list of descriptors in /proc, looked at and not opened"),
    "userspace/inject/threads.c": (1, PROC),
    "userspace/probe/session/sampled_cpus.c": (1, "a constant, in /sys"),
    "userspace/probe/session/session_gc.c": (1, "libbpf opens it: only with --python-gc, which is for processes that one trusts"),
    "userspace/inspect/program/capabilities.c": (1, PROC),
    "userspace/inspect/process/rights.c": (1, PROC),
    "userspace/inspect/process/libraries.c": (2, "links of /proc, looked at and not opened"),
    "userspace/inspect/process/process.c": (4, PROC),
    "userspace/inspect/process/scan.c": (1, PROC),
}


def calls_of(root, name):
    """The calls with a path that is not literal, as (line, name)."""
    found = []
    for number, line in enumerate(files.without_comments(files.read(root, name)).split("\n"), 1):
        for match in CALL.finditer(line):
            if not LITERAL.match(line[match.start():]) and not re.match(r"(static |extern )?(int|long|FILE|DIR)\b", line):
                found.append((number, match.group(1)))
    return found


def complaints_of(name, found):
    nr, _ = ALLOWED.get(name, (0, ""))
    if len(found) == nr:
        return []
    where = ", ".join("%d %s()" % one for one in found) or "none"
    return ["%s: %d calls that take a path (%s), %d are allowed: open what a process names with inspect/access/process_file.h, "
            "or say in tests/lint/opens.py whose the path is" % (name, len(found), where, nr)]


def check(root):
    """Complaints, each as text."""
    bad = []
    for name in files.c_files(root, (".c",)):
        if name.startswith(tuple("userspace/%s/" % room for room in ROOMS)) and name != "userspace/inspect/access/process_file.c":
            bad += complaints_of(name, calls_of(root, name))
    return bad
