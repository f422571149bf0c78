# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What it takes to begin: by what the kernel's verifier follows, which does not depend on the machine's pace."""

import pytest

import harness

# Options -> instructions, with room for other kernels and compilers. Before the walks kept their state in memory it was ten
# times as many and more.
MOST = {("--mode", "sample"): 200000,
        ("--no-inject", "--stack", "both", "--memory"): 400000,
        ("--no-inject",): 100000}


@pytest.mark.parametrize("options", MOST, ids="_".join)
def test_what_the_verifier_follows(options, tmp_path):
    with harness.Target("stacks") as target, \
            harness.Gpuprof("attach", "--pid", target.pid, "-o", tmp_path / "x.gpuprof", *options) as profiler:
        profiler.wait_recording()
        followed = harness.verified(profiler.pid)
        loaded = {one["name"] for one in harness.programs()}
        assert profiler.finish() in (harness.DONE, harness.LOST), profiler.told()
        target.leave()
    if None in followed.values():
        pytest.skip("the kernel does not tell")
    assert 1000 < sum(followed.values()) <= MOST[options], followed
    # What no probe can reach is not loaded.
    assert ("gp_cpu_new" in loaded) == ("--memory" in options)
