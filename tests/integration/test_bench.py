# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
That the benchmarks measure to their end, with so little to do that what they tell means nothing: nobody else runs them as a whole, and
the README's figures are theirs. What they tell of time is never judged.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from harness import LIMIT

BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench")
LITTLE = {
    "bench": "--workload mlp --rounds 2 --seconds 0.02 --events 3000",
    "budget": "--workload mlp --pairs 3 --seconds 0.1 --warm 1 --percent 3",
    "budget_parts": "--percent 3 --seconds 1",
    "budget_rest": "--percent 3 --seconds 2",
    "budget_truth": "--percent 10 --seconds 2 --turn 0.5",
    "continuous": "--seconds 3 --rotate 1s",
    "drain": "--rounds 2 --seconds 0.3",
    "hits": "--workload mlp --rounds 2 --steps 60",
    "launches": "--rounds 2 --launches 500 --seconds 1 --overhead 3",
    "parts": "--workload mlp --seconds 1",
    "sampling": "--workload mlp --pairs 4 --parts 2",
    "sampling_truth": "--workload mlp --blocks 3 --seconds 0.2",
    "setup": "--mode trace --rounds 2 --cold 1",
    "share": "--workload mlp --rounds 2 --default-only --judge 0.5",
    "soak": "--stacks 500 --made 10",
    "stacks": "--stacks 500 --rounds 2 --ops 1000",
    "twins": "--rounds 2 --turns 2",
    "walk": "--depth 5 --minor %d --rounds 2 --count 1000" % sys.version_info.minor,
}
# The rows without which a report has not told what it is there for.
TOLD = {
    "bench": r"gpuprof( --no-inject|, all|) +stop to table and trace: [\d.]+ s; [1-9]\d+ events, 0 lost",
    "share": r"aten::\w+ +gpuprof +[\d.]+% +torch\.profiler +[\d.]+% +ratio [\d.]+ .* perf +[\d.]+%",
    "twins": r"(while|after) (gpuprof|torch\.profiler|nothing) +[\d.]+ \[",
}
ROWS = {"bench": 3, "share": 5, "twins": 6}


def test_all_are_here():
    there = set()
    for path in pathlib.Path(BENCH).glob("*.py"):
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8"):
            there.add(path.stem)
    assert there == set(LITTLE)


@pytest.mark.parametrize("name", LITTLE)
def test_measures_to_its_end(name):
    done = subprocess.run([sys.executable, "-B", os.path.join(BENCH, name + ".py"), *LITTLE[name].split()],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=LIMIT, check=False, text=True)
    assert done.returncode == 0, done.stdout
    assert len(re.findall(TOLD.get(name, r"\d"), done.stdout)) >= ROWS.get(name, 1), done.stdout
