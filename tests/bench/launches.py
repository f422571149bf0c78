# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What a launch costs while it is watched: 20,000 a second on the stand-ins for CUDA, plain, with
CUPTI's records through the collector, while sampled (with those records too), and by uprobes. The stand-in's own records cost
less than the real CUPTI's; what is measured here is gpuprof's part. Prints a table; asserts nothing.
"""

import argparse
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import harness  # noqa: E402
from test_gpu import App  # noqa: E402

VARIANTS = {"gpuprof": (), "gpuprof --mode sample": ("--mode", "sample"),
            "gpuprof --no-inject": ("--no-inject",)}
PERIOD_US = 50


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--launches", type=int, default=20000, metavar="N", help="a round")
    return parser.parse_args()


def launch_ns(app, launches):
    return float(app.command("rate %d %d" % (launches, PERIOD_US)).split()[1])


def attached(app, launches, options, folder):
    path = os.path.join(folder, "launches.gpuprof")
    took = []
    capture = harness.attach(app, path, *options,
                             orders=lambda: took.append(launch_ns(app, launches)))
    assert capture.status in (harness.DONE, harness.LOST), capture.told
    table = capture.recording.table()
    seen = sum(row["calls"] for row in table["rows"] if row["name"] == "cudaLaunchKernel")
    losses = capture.recording.losses()
    # Of samples the table has no row of calls.
    missed = 0 if "--mode" in options else launches - seen
    return took[0], missed + losses["ring_full"] + losses["collector_full"] + losses["cupti_dropped"]


def main():
    args = arguments()
    added = {name: [] for name in VARIANTS}
    lost = dict.fromkeys(VARIANTS, 0)
    plain = []
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder, App() as app:
            for _ in range(args.rounds):
                before = launch_ns(app, args.launches)
                plain.append(before)
                for name, options in VARIANTS.items():
                    took, missed = attached(app, args.launches, options, folder)
                    added[name].append(took - before)
                    lost[name] += missed
    finally:
        harness.kill_all()
    print("\nlaunches: %d a second on the stand-ins, %d rounds of %d; a plain one takes %.0f ns" % (
        1000000 // PERIOD_US, args.rounds, args.launches, statistics.median(plain)))
    for name, values in added.items():
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        print("  %-22s added ns per launch: %.0f [%.0f .. %.0f], %.1f %% of the time; %d lost" % (
            name, middle, low, high, middle / PERIOD_US / 10, lost[name]))


if __name__ == "__main__":
    main()
