# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What each operator costs gpuprof: CPU time of a whole `attach` less that of printing the table, by operator, and how many operators the
process got done meanwhile. GPUPROF may name several binaries, with colons between them: they take turns, and are compared with the
first. Needs root.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import bench  # noqa: E402
import harness  # noqa: E402


def cpu_of(*argv):
    """CPU seconds of a command, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (harness.DONE, harness.LOST), argv
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def turn(binary, target, seconds, folder):
    """CPU nanoseconds for each operator, and how many operators there were."""
    path = os.path.join(folder, "drain.gpuprof")
    whole, table = cpu_of(binary, "attach", "--pid", str(target.pid), "--duration", str(seconds), "-o", path, "-q", "--json")
    printing, _ = cpu_of(binary, "table", path, "--json")
    os.unlink(path)
    operators = sum(row["calls"] for row in json.loads(table)["rows"])
    return (whole - printing) / operators * 1e9, operators


def cell(values, form):
    low, middle, high = bench.quartiles(values)
    return "%s (%s..%s)" % tuple(form % value for value in (middle, low, high))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    binaries = [os.path.abspath(path) for path in os.environ.get("GPUPROF", harness.GPUPROF).split(":")]
    found = {binary: [] for binary in binaries}
    with tempfile.TemporaryDirectory() as folder, harness.Target("mlp") as target:
        target.order("step %d" % 10 ** 9)
        for number in range(args.rounds):
            for binary in binaries if number % 2 else binaries[::-1]:
                found[binary].append(turn(binary, target, args.seconds, folder))
        target.kill()
    for binary, turns in found.items():
        print("%s: %s ns of CPU for each operator" % (binary, cell([ns for ns, _ in turns], "%.0f")))
        if binary != binaries[0]:
            pairs = list(zip(found[binaries[0]], turns))
            print("    difference of pairs: %s ns; operators done: %s of the first one's"
                  % (cell([new[0] - old[0] for old, new in pairs], "%+.0f"), cell([new[1] / old[1] for old, new in pairs], "%.3f")))


if __name__ == "__main__":
    main()
