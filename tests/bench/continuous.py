# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A long capture of a process that forks, execs, allocates and dies, as recordings one after another:
gpuprof's memory over time, the bytes on disk, what was lost. Status 1 where memory goes over its
bound, the disk over its cap, a recording cannot be read, or the target did not go on.

Environment: GPUPROF the binary; GPUPROF_ROOT_DIR the folder of another Debian (tests/matrix).
"""

import argparse
import collections
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import harness  # noqa: E402

MB = 1e6


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rotate", default="20s", help="as gpuprof's option (default: %(default)s)")
    parser.add_argument("--keep", type=int, default=10)
    parser.add_argument("--max-bytes", type=int, default=200000000)
    parser.add_argument("--memory-bound", type=int, default=150, metavar="MB")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION",
                        help="one more option of attach (repeatable)")
    return parser.parse_args()


def resident_bytes(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmRSS"].split()[0]) * 1024


def on_disk(folder):
    """Names and bytes; files may go while one looks."""
    sizes = {}
    for name in os.listdir(folder):
        try:
            sizes[name] = os.stat(os.path.join(folder, name)).st_size
        except FileNotFoundError:
            pass
    return sizes


class Watch:
    """Looks at gpuprof now and then; the worst stays."""

    def __init__(self, args, folder, pid):
        self.args, self.folder, self.pid = args, folder, pid
        self.begin = self.told = time.monotonic()
        self.resident = []
        self.disk_max = 0

    def look(self, steps):
        self.resident.append(resident_bytes(self.pid))
        files = on_disk(self.folder)
        self.disk_max = max(self.disk_max, sum(files.values()))
        if time.monotonic() - self.told >= 60:
            self.told = time.monotonic()
            print("%6.0f s  %8d steps  resident %6.1f MB  disk %6.1f MB in %d files" % (
                self.told - self.begin, steps, self.resident[-1] / MB,
                sum(files.values()) / MB, len(files)), flush=True)

    def over(self):
        return time.monotonic() - self.begin >= self.args.seconds


def losses_of(folder):
    """Sums over the recordings that are left."""
    total, events = collections.Counter(), 0
    for name in sorted(on_disk(folder)):
        recording = harness.Recording(os.path.join(folder, name))
        total.update(recording.losses())
        events += sum(row["calls"] for row in recording.rows().values())
    return total, events


def soak(args, folder):
    path = os.path.join(folder, "soak.gpuprof")
    steps = 0
    with harness.Target("churn") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "-o", path, "--children", "--memory",
                             "--rotate", args.rotate, "--keep", args.keep,
                             "--max-bytes", args.max_bytes, *args.option) as profiler:
            profiler.wait_recording()
            watch = Watch(args, folder, profiler.pid)
            while not watch.over():
                target.step(50)
                steps += 50
                watch.look(steps)
            status = profiler.finish()
        target.leave()
    total, calls = losses_of(folder)
    tenth = max(1, len(watch.resident) // 10)
    early, late = max(watch.resident[:tenth]), max(watch.resident[-tenth:])
    print("%d steps, as many children and threads; status %d" % (steps, status))
    print("resident: %.1f MB in the first tenth, %.1f in the last, %.1f at most" % (
        early / MB, late / MB, max(watch.resident) / MB))
    print("disk: %.1f MB at most of %.1f" % (watch.disk_max / MB, args.max_bytes / MB))
    print("in the recordings left, %d calls; counted: %s" % (
        calls, ", ".join("%s %d" % item for item in sorted(total.items()) if item[1]) or "nothing"))
    return (status in (harness.DONE, harness.LOST) and calls > 0
            and max(watch.resident) <= args.memory_bound * MB and watch.disk_max <= args.max_bytes)


def main():
    args = arguments()
    # The harness's own limit is for tests.
    harness.LIMIT = args.seconds + 600
    try:
        with tempfile.TemporaryDirectory(prefix="gpuprof-soak-") as folder:
            return 0 if soak(args, folder) else 1
    finally:
        harness.kill_all()
        harness.close_inside()


if __name__ == "__main__":
    sys.exit(main())
