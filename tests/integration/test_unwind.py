# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The kernel's walk of native stacks against libdw's unwinder, on the very same stopped threads
(tests/unwind/check.c). A stack is equal, or marked as not whole; there is no third.
"""

import os
import subprocess

import pytest

import harness

CHECK = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "unwind", "check")
TARGET = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "unwind", "target")
SAMPLES = 500

# The issue names these; code that is made at run time has no unwind information.
NAMED = ("libtorch", "libc10", "libpython", "python3", "libc.so", "libgomp")


def compare(pid):
    """File of the innermost frame -> {"equal": ..., "marked": ..., ...} of SAMPLES samples."""
    done = subprocess.run([CHECK, str(pid), str(SAMPLES), str(harness.LIMIT - 30)], check=False,
                          capture_output=True, text=True, timeout=harness.LIMIT,
                          env=harness.environment())
    assert done.returncode == 0, done.stdout + done.stderr
    tallies = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if "equal" in words[1:2]:
            tallies[words[0]] = {kind: int(nr) for kind, nr in zip(words[1::2], words[2::2])}
    assert tallies["all"]["wrong"] == 0, done.stderr
    return tallies


def total(tallies, kind, names=("",)):
    return sum(tally[kind] for name, tally in tallies.items()
               if name != "all" and name.startswith(names))


def test_code_that_is_hard_to_unwind():
    """Signals, aligned frames, the PLT, callbacks, the vDSO; recursion deeper than 256 frames."""
    with harness.Child([TARGET], "target") as target:
        target.wait_line("stdout", lambda line: line == "ready")
        tallies = compare(target.pid)
    assert tallies["target"]["equal"] > SAMPLES / 2
    assert tallies["target"]["truncated"] > 0
    assert total(tallies, "marked") <= SAMPLES / 200, tallies


@pytest.mark.versions
def test_pytorch():
    with harness.Child(harness.inside().argv("mixed"), "mixed",
                       env=dict(harness.environment(), OMP_WAIT_POLICY="passive")) as target:
        target.wait_line("stdout", lambda line: line == "ready")
        tallies = compare(target.pid)
    equal, marked = total(tallies, "equal", NAMED), total(tallies, "marked", NAMED)
    assert equal > SAMPLES / 10, tallies
    assert equal >= 0.99 * (equal + marked), tallies
    # Other files have unwind information too.
    files = {name: tally for name, tally in tallies.items() if name not in ("all", "elsewhere")}
    assert total(files, "equal") >= 0.99 * (total(files, "equal") + total(files, "marked")), tallies
