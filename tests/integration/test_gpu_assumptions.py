# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The questions that tests/gpu/assumptions.py asks a real CUPTI first of all, asked of the stand-in: it
answers as the collector takes for granted, and the questions can be answered with no.
"""

import json
import os
import subprocess

import pytest

import gpu_truth
import harness

SCRIPT = os.path.join(harness.TESTS, "gpu", "assumptions.py")


def ask(*question, **settings):
    env = dict(harness.environment(), FILL_BYTES="1048576",
               CUDART=os.path.join(gpu_truth.FAKE, "libcudart.so.12"),
               CUPTI=os.path.join(gpu_truth.FAKE, "libcupti.so.12"))
    env.update(settings)
    done = subprocess.run([harness.PYTHON, "-B", SCRIPT, *question], stdout=subprocess.PIPE,
                          env=env, timeout=harness.LIMIT, check=True)
    return {one["question"]: one for one in map(json.loads, done.stdout.decode().splitlines())}


@pytest.mark.parametrize("version", ("23", "26", "130001"))
def test_all_hold(version):
    told = ask(FAKE_CUPTI_VERSION=version)
    assert len(told) == 16
    unasked = {"down_and_up", "own_call", "down_beside_calls", "down_beside_wait"} if version == "23" else set()
    assert {name for name, one in told.items() if one["holds"] is None} == unasked
    assert not [one for one in told.values() if one["holds"] is False]


@pytest.mark.parametrize("question, settings", (
    ("versions", {"FAKE_CUPTI_VERSION": "12"}),
    ("late", {"FAKE_CUPTI_FAULT": "drop=2"}),
    ("sizes", {"FAKE_CUPTI_FAULT": "zero=1"}),
), ids=lambda value: value if isinstance(value, str) else "")
def test_no_is_an_answer(question, settings):
    assert ask(question, **settings)[question]["holds"] is False


def test_a_library_that_is_not_there():
    told = ask("late", CUDART="/nowhere/libcudart.so")["late"]
    assert told["holds"] is False and "/nowhere" in told["found"]
