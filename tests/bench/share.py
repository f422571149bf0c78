# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The share of CPU total that the five biggest ops have, by gpuprof and by torch.profiler, both
normalised to the sum over all ops, seen by callback and by uprobes (--no-inject). A round lets both
see as many steps of one process, one right after the other; the ratio told is the median of the
rounds' own ratios, with the quartiles beside it, because the machine may change its speed between
rounds by more than the two differ. A report: times depend on the machine, so CI does not ask.

Apart, either sees what it costs itself too: the ops within an op are followed on its time, so a
short op with others in it has more of the whole by whichever of the two costs more. --same-run has
both look at the same steps: there either sees the costs of both, and what is left between them is
where they take their times. --judge has perf sample more steps of each process, with neither of
them there, and tells which of the two is nearer to it.
"""

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
import typing

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration")]

import harness  # noqa: E402
import pairs  # noqa: E402

JUDGE_HZ, JUDGE_STACKS = 499, "dwarf,16384"
STEPS = {"mlp": 300, "resnet18_infer": 20, "resnet18_train": 10, "lstm": 60, "raiser": 1500}


def shares(times):
    times = {name: value for name, value in times.items() if name.startswith("aten::")}
    whole = sum(times.values())
    return {name: value / whole for name, value in times.items()}


def apart(target, name, options, path):
    """The capture and torch.profiler's account of as many steps, one after the other."""
    capture = harness.attach(target, path, *options, orders=lambda: target.step(STEPS[name]))
    return capture, target.truth(STEPS[name], "times")


def together(target, name, options, path):
    """The capture and torch.profiler's account of the same steps."""
    told = []
    capture = harness.attach(target, path, *options,
                             orders=lambda: told.append(target.truth(STEPS[name], "times")))
    return capture, told[0]


class Account(typing.NamedTuple):
    """By operator: its part of the whole CPU total, and the microseconds of one call."""

    shares: dict
    call_us: dict


def account_of(rows):
    return Account(shares({name: row["cpu_total_us"] for name, row in rows.items()}),
                   {name: row["cpu_total_us"] / row["calls"] for name, row in rows.items()})


def one_round(look, target, name, options, path):
    """Both accounts of the same process, and its version of PyTorch."""
    capture, truth = look(target, name, options, path)
    return account_of(capture.recording.rows()), account_of(truth["rows"]), truth["torch"]


def judge(target, name, seconds, operators, folder):
    """The samples that perf finds each operator in, with all that it calls, of at least so many seconds of steps."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        perf = pairs.Perf(target, own, JUDGE_HZ, JUDGE_STACKS)
        perf.switch(True)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            target.step(STEPS[name])
        perf.switch(False)
        return pairs.perf_operators(perf.finish(), operators)[1]


def told_by(samples):
    """Of each operator, what is printed of its share by perf, with the standard error."""
    return {op: "  perf %6.2f%% +- %.2f" % (100 * share, 100 * share / math.sqrt(samples[op]))
            for op, share in shares(samples).items()} if samples else {}


def middle(accounts, side, what, op):
    """Of the rounds: what gpuprof (side 0) or torch.profiler (1) tells of an operator."""
    return statistics.median(getattr(account[side], what).get(op, 0) for account in accounts)


def compare(look, name, options, args, folder):
    with harness.Target(name) as target:
        accounts = [one_round(look, target, name, options, os.path.join(folder, name + ".gpuprof"))
                    for _ in range(args.rounds)]
        samples = judge(target, name, args.judge, accounts[0][1].shares, folder) if args.judge else {}
        target.leave()
    print("\n%s: PyTorch %s, %s, medians of %d rounds of %d steps %s" % (
        name, accounts[0][2], look.__name__, args.rounds, STEPS[name], " ".join(options)))
    operators = {op: middle(accounts, 1, "shares", op) for op in accounts[0][1].shares}
    within, judged = 0, told_by(samples)
    for op in sorted(operators, key=operators.get, reverse=True)[:5]:
        low, ratio, high = statistics.quantiles(
            (ours.shares.get(op, 0) / theirs.shares[op] for ours, theirs, _ in accounts), n=4)
        within += abs(ratio - 1) <= 0.1
        print("  %-30s gpuprof %6.2f%%  torch.profiler %6.2f%%  ratio %.3f (%.3f..%.3f)"
              "  us a call %.3f and %.3f%s" % (
                  op, 100 * middle(accounts, 0, "shares", op), 100 * operators[op], ratio, low, high,
                  middle(accounts, 0, "call_us", op), middle(accounts, 1, "call_us", op),
                  judged.get(op, "")))
    print("  %d of 5 within 10 %%" % within)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", choices=tuple(STEPS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--default-only", action="store_true", help="not by uprobes")
    parser.add_argument("--same-run", action="store_true", help="both look at the same steps")
    parser.add_argument("--judge", type=float, metavar="S", help="S seconds of samples by perf")
    args = parser.parse_args()
    look = together if args.same_run else apart
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-share-") as folder:
            for name in args.workload or STEPS:
                for options in ((),) if args.default_only else ((), ("--no-inject",)):
                    compare(look, name, options, args, folder)
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
