# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Whether what the windows of `--overhead` say of the whole is true: the tiny MLP, by turns with as many operators a step as it has and
with ten times as many, some seconds each. How often each operator was called follows from how many steps of either kind were done and
what one calls, which is counted before; beside it stands what gpuprof estimates, with its standard error. Where steps are not seen
between windows (small budgets) estimates are by time, and the machine's changes of speed are in their error. Prints a table; asserts
nothing.

Environment: as bench.py.
"""

import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
import harness  # noqa: E402

KINDS = (1, 10)  # times the operators
COUNTED_STEPS = 50
NAMES = 4  # operators that are shown, those called most


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--percent", action="append", type=float, help="repeatable (default: 3 and 10)")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--turn", type=float, default=4, help="seconds of one kind of steps")
    parser.add_argument("--no-inject", action="store_true", help="operators by uprobes")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's intra-op threads")
    args = parser.parse_args()
    args.percent = args.percent or [3, 10]
    return args


def become(target, kind):
    assert target.command("ops %d" % kind) == "ops %d" % kind


def calls_of_a_step(target, kind, path):
    become(target, kind)
    rows = harness.attach(target, path, orders=lambda: target.step(COUNTED_STEPS)).recording.rows()
    return {name: row["calls"] / COUNTED_STEPS for name, row in rows.items()
            if name.startswith("aten::")}


def work(target, args):
    """Steps done of each kind."""
    done = dict.fromkeys(KINDS, 0)
    end, turn = time.monotonic() + args.seconds, 0
    while time.monotonic() < end:
        kind = KINDS[turn % 2]
        become(target, kind)
        turn += 1
        stop = min(end, time.monotonic() + args.turn)
        while time.monotonic() < stop:
            steps = 20 * KINDS[-1] // kind
            target.step(steps)
            done[kind] += steps
    return done


def told(said, truth):
    """What is printed of an estimate; with one window nothing is known of its error."""
    if not said:
        return "nothing"
    error = "%.0f" % said["standard_error"] if "standard_error" in said else "not known"
    return "%10.0f +- %s  ratio %.3f" % (said["value"], error, said["value"] / truth)


def compare(args, percent, folder):
    path = os.path.join(folder, "truth.gpuprof")
    with bench.start(args, "mlp") as target:
        target.step(100)
        calls = {kind: calls_of_a_step(target, kind, path) for kind in KINDS}
        done = {}
        options = ["--overhead", "%g" % percent] + (["--no-inject"] if args.no_inject else [])
        recording = harness.attach(target, path, *options,
                                   orders=lambda: done.update(work(target, args))).recording
        target.leave()
    table = recording.table()
    whole = table.get("estimated", {})
    print("\n--overhead %g: %d windows, %s; steps done: %d, and %d of ten times the operators" % (
        percent, whole.get("windows", 0), "by steps" if "steps" in whole else "by time", *done.values()))
    for name in sorted(calls[KINDS[0]], key=calls[KINDS[0]].get, reverse=True)[:NAMES]:
        truth = sum(calls[kind].get(name, 0) * done[kind] for kind in KINDS)
        said = recording.rows().get(name, {}).get("estimated", {}).get("calls")
        print("  %-24s called %10.0f  estimated %s" % (name, truth, told(said, truth)), flush=True)


def main():
    args = arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-bench-") as folder:
            for percent in args.percent:
                compare(args, percent, folder)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
