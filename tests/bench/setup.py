# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What it takes gpuprof to begin, by mode: CPU and wall seconds until it says that it records, median and quartiles of interleaved rounds,
with what it keeps between runs (plans of probes, unwind tables) and without; and how many instructions the kernel's verifier has
followed in each program, which does not depend on the machine. GPUPROF may name several binaries, with colons between them: they take
turns. GPUPROF_ROOT_DIR: the folder of another Debian whose PyTorch is attached to. Needs root.
"""

import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import bench  # noqa: E402
import harness  # noqa: E402

MODES = {
    "trace": (),
    "trace, probes alone": ("--no-inject",),
    "trace, Python stacks": ("--no-inject", "--stack", "python"),
    "trace, both stacks": ("--no-inject", "--stack", "both", "--memory"),
    "sample": ("--mode", "sample"),
}
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system, with those of children that have ended."""
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / TICKS_PER_SECOND


class Begin:
    """One begin of a capture."""

    def __init__(self, binary, target, options, folder, cache):
        path = os.path.join(folder, "setup.gpuprof")
        env = dict(harness.environment(), GPUPROF_CACHE_DIR=cache)
        harness.GPUPROF = binary
        begin = time.monotonic()
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, *options, env=env) as profiler:
            profiler.wait_recording()
            self.wall = time.monotonic() - begin
            self.cpu = cpu_seconds(profiler.pid)
            followed = harness.verified(profiler.pid)
            self.programs = {one["name"]: followed[one["id"]] or 0 for one in harness.programs()}
            status = profiler.finish()
            assert status in (harness.DONE, harness.LOST), profiler.told()
        os.unlink(path)


def cell(values):
    low, middle, high = bench.quartiles(values)
    return "%.2f (%.2f..%.2f)" % (middle, low, high)


def show(title, begins):
    print("%-48s%22s%22s" % (title, cell([one.cpu for one in begins]), cell([one.wall for one in begins])), flush=True)


def show_programs(mode, programs):
    print("\n%s: %d instructions verified" % (mode, sum(programs.values())))
    for name, nr in sorted(programs.items(), key=lambda item: -item[1]):
        print("    %-20s%10d" % (name, nr))


def rounds(binaries, target, mode, args, folder):
    """What was found of each binary with nothing kept, and with what runs before have kept."""
    begins = {}
    for binary in binaries:
        Begin(binary, target, MODES[mode], folder, args.cache)
    for number in range(args.rounds):
        for binary in binaries:
            if number < args.cold:
                with tempfile.TemporaryDirectory(dir=folder) as nothing:
                    begins.setdefault((binary, "nothing kept"), []).append(
                        Begin(binary, target, MODES[mode], folder, nothing))
            begins.setdefault((binary, "kept"), []).append(
                Begin(binary, target, MODES[mode], folder, args.cache))
    return begins


def measure(binaries, target, args, folder):
    programs = {}
    print("%-48s%22s%22s" % ("seconds, median (quartiles)", "CPU", "wall"))
    for mode in args.mode:
        for (binary, kept), begins in sorted(rounds(binaries, target, mode, args, folder).items()):
            name = mode if len(binaries) == 1 else "%s, %s" % (mode, os.path.relpath(binary))
            show("%s, %s" % (name, kept), begins)
            programs[name] = begins[-1].programs
    for name, found in programs.items():
        show_programs(name, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", action="append", choices=tuple(MODES), help="repeatable (all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", type=int, default=2, help="rounds with nothing kept, of those")
    parser.add_argument("--workload", default="mlp")
    args = parser.parse_args()
    args.mode = args.mode or list(MODES)
    binaries = [os.path.abspath(path) for path in os.environ.get("GPUPROF", harness.GPUPROF).split(":")]
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-setup-") as folder:
            args.cache = os.path.join(folder, "cache")
            with harness.Target(args.workload) as target:
                measure(binaries, target, args, folder)
                target.leave()
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    main()
