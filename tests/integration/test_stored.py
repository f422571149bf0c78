# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stored recordings: every output is, byte for byte, what the version that stored them made of them."""

import os
import sys

import pytest

import harness

sys.path.insert(0, os.path.join(harness.TESTS, "golden"))

import stored  # noqa: E402

@pytest.mark.parametrize("name", stored.recordings())
def test_outputs(name):
    expected, found = stored.expected(name), stored.outputs(harness.GPUPROF, name)
    assert sorted(found) == sorted(expected)
    assert any("text" in one for one in found.values())
    for command in sorted(found):
        assert found[command] == expected[command], command
