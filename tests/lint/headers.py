# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each header compiles alone, and its guard is named after its place."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import files

USER = ["-std=gnu11", "-D_GNU_SOURCE", '-DGPUPROF_VERSION="0"', "-Wall", "-Wextra", "-Werror",
        "-Wno-unused-parameter", "-Wno-unused-function", "-Iuserspace", "-Ibpf"]
KERNEL = ["-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", "-Wall", "-Wno-unused-function",
          "-Ibpf"]


def vmlinux(root):
    found = [name for name in files.every(root) if name.endswith("/vmlinux.h")]
    mine = [name for name in found if os.uname().machine in name]
    return (mine or found or [None])[0]


def command(root, name):
    """How to compile the header alone; None where this machine cannot."""
    if name.endswith(".bpf.h"):
        kernel = vmlinux(root)
        if kernel is None or shutil.which("clang") is None:
            return None
        return ["clang", *KERNEL, "-include", kernel, "-x", "c", "-fsyntax-only", name]
    own = os.path.dirname(name)
    return ["gcc", *USER, "-iquote", own, "-x", "c", "-fsyntax-only", name]


def guard(name):
    """GP_ and the whole path, from bpf/ or from below userspace/ on."""
    path = name[len("userspace/"):] if name.startswith("userspace/") else name
    return "GP_%s_H" % re.sub(r"[^A-Z0-9]", "_", path[:-2].upper())


def one(root, name):
    bad = []
    text = files.read(root, name)
    if "#ifndef %s\n#define %s\n" % (guard(name), guard(name)) not in text:
        bad.append("%s: its guard is not %s" % (name, guard(name)))
    argv = command(root, name)
    if argv is None:
        return bad + ["%s: cannot be compiled here (clang or vmlinux.h missing)" % name]
    done = subprocess.run(argv, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode:
        bad.append("%s does not compile alone:\n%s" % (name, done.stdout.decode()))
    return bad


def check(root):
    """Complaints, each as text."""
    names = [name for name in files.c_files(root, (".h",))
             if name.startswith(("bpf/", "userspace/"))]
    with ThreadPoolExecutor(2) as pool:
        return [line for lines in pool.map(lambda name: one(root, name), names) for line in lines]
