# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The repository speaks of the project alone: no machine's paths, no registry's hosts."""

import re

import files

# Written so that this file does not match itself.
BANNED = re.compile(r"/wor[k]/|/roo[t]/|/hom[e]/[a-z]|/mn[t]/[a-z]|debian\.or[g]|npmjs\.(com|or[g])|"
                    r"nodesourc[e]|pypi\.or[g]|/tmp/(?:prompt|harnes)[s]")
BINARY = (".png", ".gpuprof", ".gz", ".bin", ".o", ".pftrace", ".zst")


def check(root):
    """Complaints, each as text."""
    bad = []
    for name in files.every(root):
        if name.endswith(BINARY) or name.startswith("vmlinux/"):
            continue
        for number, line in enumerate(files.read(root, name).split("\n"), 1):
            found = BANNED.search(line)
            if found:
                bad.append("%s:%d: '%s' does not belong here" % (name, number, found.group(0)))
    return bad
