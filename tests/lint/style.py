# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""clang-format, the opening line, the size of files, and scripts that parse."""

import ast
import os
import shutil
import subprocess

import files

MOST_LINES = 600
SPDX = "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"
SIGNED = (".c", ".h", ".py", ".sh", ".mk")


def formatter():
    for name in ("clang-format-14", "clang-format"):
        if shutil.which(name):
            return name
    return None


def check_format(root):
    names = files.c_files(root)
    if not names:
        return []
    if formatter() is None:
        return ["clang-format is missing"]
    done = subprocess.run([formatter(), "--dry-run", "--Werror", *names], cwd=root,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return [done.stdout.decode()] if done.returncode else []


def check_opening(root):
    bad = []
    for name in files.every(root):
        if not name.endswith(SIGNED) or name.startswith("vmlinux/"):
            continue
        lines = files.read(root, name).split("\n")
        if SPDX not in "\n".join(lines[:2]):
            bad.append("%s: no SPDX line at its top" % name)
        if name.endswith((".c", ".h")) and len(lines) > MOST_LINES + 1:
            bad.append("%s: %d lines, more than %d" % (name, len(lines), MOST_LINES))
    return bad


def check_scripts(root):
    bad = []
    for name in files.every(root):
        if name.endswith(".py"):
            try:
                ast.parse(files.read(root, name))
            except SyntaxError as error:
                bad.append("%s: %s" % (name, error))
        first = files.read(root, name).split("\n")[0] if name.endswith(".sh") else ""
        if first:
            shell = "bash" if "bash" in first else "sh"
            done = subprocess.run([shell, "-n", os.path.join(root, name)], stderr=subprocess.PIPE,
                                  check=False)
            if done.returncode:
                bad.append("%s: %s" % (name, done.stderr.decode()))
    return bad


def check(root):
    """Complaints, each as text."""
    return check_format(root) + check_opening(root) + check_scripts(root)
