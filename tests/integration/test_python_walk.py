# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The collector's walk in whatever Pythons there are, PyTorch or not: the distribution's, and those
of pyenv.
"""

import glob
import os
import subprocess

import pytest

import harness

PYTHONS = [harness.PYTHON] + [path for path in sorted(
    glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    if int(path.split("/")[-3].split(".")[1]) >= 8]
BUILD = os.path.join(os.path.dirname(harness.GPUPROF), "tests")


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.split("/")[-3])
def test_walk(python):
    done = subprocess.run(
        [python, "-B", os.path.join(harness.TESTS, "fake", "python_walk.py"),
         os.path.join(BUILD, "python_walk.so"), os.path.join(BUILD, "python_layout")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=harness.LIMIT,
        check=False, env=harness.environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right 42\n"
