# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The repository's files, and C text without its comments, for the checks of this folder."""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIP = {".git", "build", "__pycache__", "node_modules", ".pytest_cache"}


def every(root):
    """Paths, relative to root, of all files that git keeps or would keep; sorted."""
    if os.path.exists(os.path.join(root, ".git")):
        listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-co",
                                 "--exclude-standard", "-z"], check=True, stdout=subprocess.PIPE)
        names = listed.stdout.decode().split("\0")
        return sorted({name for name in names
                       if name and os.path.isfile(os.path.join(root, name))})
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIP]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def c_files(root, endings=(".c", ".h")):
    """C sources and headers of our own."""
    return [name for name in every(root)
            if name.endswith(endings) and not name.startswith("vmlinux/")]


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def without_comments(text):
    """C text in which comments are blanks; line numbers stay."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'

    def blank(match):
        found = match.group(0)
        return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)

    return re.sub(pattern, blank, text, flags=re.DOTALL)
