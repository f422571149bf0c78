# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
No return probes. A return probe replaces a return address on the target's stack, and a C++ exception
that crosses that frame ends the process (DESIGN: the target's stack is never touched). One is right
only on an extern "C" function that cannot throw; a line that needs it says so with ALLOWED.
"""

import re

import files

ALLOWED = 'return probe on extern "C"'
WORDS = re.compile(r"uretprobe|kretprobe|retprobe\s*=\s*(true|1)|uprobe\.session|uprobe\.multi/ret|"
                   r"UPROBE_MULTI_RETURN|UPROBE_SESSION|SEC\(\"uretprobe", re.IGNORECASE)


def check(root):
    """Complaints, each as text."""
    bad = []
    for name in files.c_files(root):
        if not name.startswith(("bpf/", "userspace/")):
            continue
        text = files.read(root, name)
        bare = files.without_comments(text).split("\n")
        for number, (line, whole) in enumerate(zip(bare, text.split("\n")), 1):
            if WORDS.search(line) and ALLOWED not in whole:
                bad.append("%s:%d: a return probe: %s" % (name, number, line.strip()))
    return bad
