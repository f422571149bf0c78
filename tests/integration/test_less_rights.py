# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
With less rights than root on a machine of its own: it works, or ends in a sentence with the next step.
"""

import pytest

import harness
import less_rights


@pytest.mark.parametrize("case", less_rights.CASES, ids=str)
def test_case(case):
    less_rights.check(case, less_rights.run(case))


# Its process maps the file that gVisor keeps its programs' memory in, and PyTorch's library as they do.
SENTRY = """
import mmap, os, sys
memory = os.memfd_create("runsc-memory")
os.ftruncate(memory, 4096)
kept = mmap.mmap(memory, 4096)
library = open(sys.argv[1], "rb")
mapped = mmap.mmap(library.fileno(), 4096, prot=mmap.PROT_READ)
print("ready", flush=True)
input()
"""


def test_gvisor(idle):
    """Its sandbox is told from a process with PyTorch, which it looks like."""
    with open("/proc/%d/maps" % idle.pid, encoding="utf-8") as file:
        library = next(line.split()[-1] for line in file if "libtorch_cpu.so" in line)
    with harness.Child([harness.PYTHON, "-c", SENTRY, library], "sentry") as sentry:
        sentry.wait_line("stdout", lambda line: line == "ready")
        for command in ("attach", "--wait"), ("attach", "--mode", "sample"), ("top", "--once"):
            done = harness.gpuprof(*command, "--pid", sentry.pid)
            assert done.status == harness.FAILED, done
            assert len(done.stderr.splitlines()) == 1 and "gVisor's" in done.stderr, done
            assert "--runtime runc" in done.stderr and "runtimeClassName" in done.stderr, done


def test_probes_that_nothing_hits(idle, tmp_path):
    """A process that computes and calls nothing that is probed: that is said, with what it may be. Not of one
    that waits."""
    code = "import torch\nprint('ready', flush=True)\nwhile True: pass"
    with harness.Child([harness.PYTHON, "-c", code], "busy") as busy:
        busy.wait_line("stdout", lambda line: line == "ready")
        said = [harness.gpuprof("attach", "--pid", pid, "--no-inject", "--duration", "1", "-o", tmp_path / "r").stderr
                for pid in (busy.pid, idle.pid)]
    assert "nothing at all was recorded" in said[0] and "gVisor" in said[0], said
    assert "nothing at all was recorded" not in said[1], said
