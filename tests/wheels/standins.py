# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Stand-ins, by SONAME, for CUDA libraries of gigabytes that PyTorch needs to be imported and never calls without a
GPU: each exports what PyTorch's libraries want of it, in the versions that they want.
"""

import collections
import os
import re
import subprocess


def readelf(*args):
    return subprocess.run(["readelf", "-W", *args], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))


def wanted_versions(path):
    """library -> the versions of its symbols that this file wants."""
    found, library = collections.defaultdict(set), None
    for line in readelf("--version-info", path).splitlines():
        match = re.search(r"File: (\S+)", line)
        if match:
            library = match.group(1)
        match = re.search(r"Name: (\S+)\s+Flags", line)
        if match and library:
            found[library].add(match.group(1))
        if "Version symbols section" in line or "Version definition" in line:
            library = None
    return found


def wanted_symbols(path):
    """version ("" for none) -> symbols that this file wants in it."""
    found = collections.defaultdict(set)
    for match in re.finditer(r" UND ([^\s@]+)(?:@+(\S+))?", readelf("--dyn-syms", path)):
        found[match.group(2) or ""].add(match.group(1))
    return found


# What NVIDIA's libraries without versions of symbols export, by the beginnings of their names.
DRIVER = "libcuda.so.1"  # who has no GPU has none
UNVERSIONED = re.compile(r"(cuFile|cudnn|cublas|cusparse|cufft|cufile|cusolver|curand|nvrtc|nvshmem|nccl|nvtx|nvJitLink|cudss)")


def is_cuda(soname):
    return re.match(r"lib(cu|nccl|nv)", soname) is not None and soname != DRIVER


def missing(folder, there):
    """SONAME -> version -> symbols, for all that the folder's libraries need and nobody there has."""
    libraries = {name: os.path.join(folder, name) for name in sorted(os.listdir(folder))
                 if ".so" in name}
    found = {}
    for path in libraries.values():
        symbols, versions = wanted_symbols(path), wanted_versions(path)
        for soname in needed(path):
            if soname in libraries or soname in there or not is_cuda(soname):
                continue
            for version in versions.get(soname, ()):
                found.setdefault(soname, {}).setdefault(version, set()).update(
                    symbols.get(version, ()))
            # What is wanted in no version, whoever has it: the loader takes the first.
            found.setdefault(soname, {}).setdefault("", set()).update(
                name for name in symbols[""] if UNVERSIONED.match(name))
    return found


def make(soname, versions, folder):
    source, script = os.path.join(folder, soname + ".c"), os.path.join(folder, soname + ".map")
    with open(source, "w", encoding="ascii") as file:
        for name in sorted(set().union(set(), *versions.values())):
            file.write("int %s(void) { return 1; }\n" % name)
    with open(script, "w", encoding="ascii") as file:
        for version, names in sorted(versions.items()):
            if version:
                file.write("%s { global: %s };\n" % (
                    version, " ".join(name + ";" for name in sorted(names))))
    command = ["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", "-Wl,-soname," + soname, "-o",
               os.path.join(folder, soname), source]
    if os.path.getsize(script):
        command.append("-Wl,--version-script=" + script)
    subprocess.run(command, check=True)


def make_all(torch_libraries, folder, there):
    """Makes what is missing; its SONAMEs."""
    found = missing(torch_libraries, there)
    for soname, versions in found.items():
        make(soname, versions, folder)
    return sorted(found)
