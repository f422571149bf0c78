# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
How the two files that are shipped are built: gpuprof, which root runs on hostile input, and the collector, which runs in
somebody else's process.
"""

import os
import subprocess

import pytest

import harness

COLLECTOR = os.path.join(os.path.dirname(harness.GPUPROF), "libgpuprof-cupti.so")


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, stdout=subprocess.PIPE,
                          env=dict(os.environ, LC_ALL="C")).stdout.decode()


def segment(path, name):
    """The flags of a program header."""
    return [line.split()[6] for line in readelf(path, "-l").splitlines() if line.split()[:1] == [name]]


def imports(path):
    return {line.split()[7].split("@")[0] for line in readelf(path, "--dyn-syms").splitlines()
            if " UND " in line and len(line.split()) > 7}


@pytest.mark.parametrize("path", [harness.GPUPROF, COLLECTOR], ids=["gpuprof", "collector"])
def test_hardened(path):
    dynamic = readelf(path, "-d")
    assert "BIND_NOW" in dynamic
    assert segment(path, "GNU_RELRO") == ["R"]
    assert segment(path, "GNU_STACK") == ["RW"]
    assert "DYN (" in readelf(path, "-h")
    assert "TEXTREL" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic
    assert "__stack_chk_fail" in imports(path)
    # Nothing is writable and executable at once.
    assert not [flags for flags in segment(path, "LOAD") if "W" in flags and "E" in flags]


def test_position_independent():
    assert "Flags: NOW PIE" in readelf(harness.GPUPROF, "-d")


def test_checked_functions():
    """Calls whose buffer the compiler knows are checked when they run."""
    assert {"__memcpy_chk", "__snprintf_chk"} & imports(harness.GPUPROF)
    assert "__memcpy_chk" in imports(COLLECTOR)
