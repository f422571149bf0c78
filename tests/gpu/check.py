# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
usage: check.py GPUPROF RESULTS. Attaches to workload.py on a real GPU and compares what gpuprof
tells with torch.profiler's account of as many steps of the same process. Writes results.json and
results.md; each check says what was found, passed or not. Needs no package but PyTorch.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 20
LIMIT_S = 120


class Program:
    """A child whose lines are waited for; `stream` is the one that is read."""

    def __init__(self, argv, stream, log):
        pipes = {"stdout": subprocess.PIPE, "stderr": open(log, "w", encoding="utf-8")}
        if stream == "stderr":
            pipes = {"stderr": subprocess.PIPE,
                     "stdout": open(log, "w", encoding="utf-8")}
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, text=True, **pipes)
        self.stream = getattr(self.process, stream)
        self.lines = []

    def line(self, beginning):
        """The next line that begins so; the program's end is an error."""
        signal.alarm(LIMIT_S)
        for line in self.stream:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(beginning):
                signal.alarm(0)
                return line.rstrip("\n")
        signal.alarm(0)
        raise RuntimeError("ended without %r: %s" % (beginning, "\n".join(self.lines[-20:])))

    def ask(self, command, beginning):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.line(beginning)


class Results:
    def __init__(self, folder):
        self.folder = folder
        self.facts = {"date": time.strftime("%Y-%m-%d")}
        self.checks = []

    def check(self, name, passed, found):
        self.checks.append({"check": name, "passed": bool(passed), "found": found})
        print("%-6s %s: %s" % ("ok" if passed else "FAILED", name, found), flush=True)

    def write(self):
        with open(os.path.join(self.folder, "results.json"), "w", encoding="utf-8") as file:
            json.dump({"facts": self.facts, "checks": self.checks}, file, indent=1)
        with open(os.path.join(self.folder, "results.md"), "w", encoding="utf-8") as file:
            for key, value in self.facts.items():
                file.write("- %s: %s\n" % (key, value))
            file.write("\n| check | passed | found |\n|---|---|---|\n")
            for one in self.checks:
                file.write("| %s | %s | %s |\n" % (one["check"], one["passed"],
                                                  str(one["found"]).replace("|", "/")[:400]))
        return 0 if self.checks and all(one["passed"] for one in self.checks) else 1


def capture(gpuprof, target, path, options, steps, log):
    """gpuprof attached around exactly `steps` steps; its stderr."""
    profiler = Program([gpuprof, "attach", "-v", "--pid", str(target.facts["pid"]), "-o", path,
                        *options], "stderr", log)
    try:
        profiler.line("recording ")
        target.ask("step %d" % steps, "did")
    finally:
        profiler.process.send_signal(signal.SIGINT)
        profiler.lines += profiler.stream.read().splitlines()
        profiler.process.wait(LIMIT_S)
    return profiler.process.returncode, profiler.lines


def events_of(gpuprof, path, folder):
    trace = os.path.join(folder, os.path.basename(path) + ".trace.json")
    subprocess.run([gpuprof, "export", path, "--format", "chrome", "-o", trace], check=True,
                   stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    with open(trace, encoding="utf-8") as file:
        return json.load(file)


def kernels_of(trace):
    found = {}
    for event in trace["traceEvents"]:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            one = found.setdefault(event["name"], {"calls": 0, "us": [], "op": 0})
            one["calls"] += 1
            one["us"].append(event["dur"])
            one["op"] += "External id" in event.get("args", {})
    return found


def calls_of(gpuprof, path):
    """Calls of the CUDA API by name, as the table has them."""
    done = subprocess.run([gpuprof, "table", path, "--json", "--limit", "-1"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    table = json.loads(done.stdout)
    return {row["name"]: row["calls"] for row in table["rows"]
            if row["device"] == "CPU" and row["name"].startswith("cuda")}, table["losses"]


def compare_calls(results, what, ours, theirs):
    names = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync",
             "cudaGraphLaunch", "cudaStreamSynchronize")
    pairs = {name: (ours.get(name, 0), theirs.get(name, {"calls": 0})["calls"]) for name in names}
    results.check("%s: CUDA calls as often as torch.profiler says" % what,
                  all(a == b for a, b in pairs.values()), pairs)


def described(trace):
    """Kernel -> what the trace says of how it fills the GPU."""
    keys = ("blocks per SM", "warps per SM", "est. achieved occupancy %", "grid", "block",
            "registers per thread", "shared memory")
    return {event["name"]: {key: event["args"].get(key) for key in keys}
            for event in trace["traceEvents"] if event.get("cat") == "kernel"}


def same_number(a, b):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= 0.000002 + 0.00001 * abs(b)
    return a == b


def compare_traces(results, ours, theirs):
    """Occupancy and properties of devices, as Kineto has them; keys that it lacks do not count."""
    wrong = {}
    mine, kineto = described(ours), described(theirs)
    for name in set(mine) & set(kineto):
        for key, value in kineto[name].items():
            if value is not None and not same_number(mine[name][key], value):
                wrong[name[:60]] = (key, mine[name][key], value)
    results.check("occupancy, grid, registers as in Kineto's trace",
                  set(mine) & set(kineto) and not wrong, "%d kernels; different: %s" % (
                      len(set(mine) & set(kineto)), wrong))
    lacking = [key for one, other in zip(theirs.get("deviceProperties", []),
                                         ours["deviceProperties"])
               for key, value in one.items() if other.get(key) != value]
    results.check("properties of devices as in Kineto's trace",
                  ours["deviceProperties"] and not lacking, "different: %s" % lacking)


def compare(results, ours, theirs):
    counts = {name: (ours.get(name, {"calls": 0})["calls"], theirs.get(name, {"calls": 0})["calls"])
              for name in set(ours) | set(theirs)}
    wrong = {name: pair for name, pair in counts.items() if pair[0] != pair[1]}
    results.check("kernels, copies and memsets as often as torch.profiler says", ours and not wrong,
                  "%d names, %d events; different: %s" % (
                      len(counts), sum(one["calls"] for one in ours.values()), wrong))
    apart = {name: abs(statistics.median(one["us"]) - statistics.median(theirs[name]["us"]))
             for name, one in ours.items() if name in theirs}
    results.check("median duration of each within 1 us", apart and max(apart.values()) <= 1.0,
                  "largest difference %.3f us" % max(apart.values(), default=0))
    lone = {name: one["calls"] - one["op"] for name, one in ours.items()
            if one["calls"] != one["op"]}
    results.check("each under an operator", ours and not lone, "without: %s" % lone)


def check_mode(results, gpuprof, target, mode):
    """Kernels and calls of one kind of work, by CUPTI and by uprobes, against torch.profiler."""
    folder = results.folder
    target.ask("mode " + mode, "mode")
    paths = [os.path.join(folder, mode + end) for end in (".gpuprof", ".uprobes.gpuprof")]
    capture(gpuprof, target, paths[0], [], STEPS, os.path.join(folder, mode + ".table.txt"))
    capture(gpuprof, target, paths[1], ["--no-inject"], STEPS,
            os.path.join(folder, mode + ".uprobes.txt"))
    truth_path = os.path.join(folder, mode + ".truth.json")
    target.ask("truth %d %s" % (STEPS, truth_path), "truth")
    with open(truth_path, encoding="utf-8") as file:
        theirs = json.load(file)
    found = kernels_of(events_of(gpuprof, paths[0], folder))
    counts = {name: (found.get(name, {"calls": 0})["calls"],
                     theirs["kernels"].get(name, {"calls": 0})["calls"])
              for name in set(found) | set(theirs["kernels"])}
    wrong = {name: pair for name, pair in counts.items() if pair[0] != pair[1]}
    results.check("%s: kernels as often as torch.profiler says" % mode, found and not wrong,
                  "%d names; different: %s" % (len(counts), wrong))
    calls, losses = calls_of(gpuprof, paths[1])
    compare_calls(results, mode + " by uprobes", calls, theirs["ops"])
    results.check("%s by uprobes: nothing lost" % mode,
                  not losses["ring_full"] and not losses["api_end"] and not losses["probe"],
                  {name: count for name, count in losses.items() if count})


def mapped(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        return sum("gpuprof" in line or "libcupti" in line for line in maps)


def check_cycles(results, gpuprof, target):
    """Ten attaches: what the first leaves does not grow."""
    pid, path = target.facts["pid"], os.path.join(results.folder, "cycle.gpuprof")
    seen, statuses = [], []
    for _ in range(10):
        status, _ = capture(gpuprof, target, path, [], 2, os.devnull)
        statuses.append(status)
        seen.append((mapped(pid), len(os.listdir("/proc/%d/fd" % pid))))
    results.check("attach and detach ten times", not any(statuses) and len(set(seen[1:])) == 1,
                  "status %s; mappings of ours and descriptors %s" % (statuses, seen))


def check_memory(results, gpuprof, target):
    path, size = os.path.join(results.folder, "memory.gpuprof"), 64 << 20
    profiler = Program([gpuprof, "attach", "--memory", "--pid", str(target.facts["pid"]), "-o",
                        path], "stderr", os.devnull)
    profiler.line("recording ")
    target.ask("take %d" % size, "take")
    target.ask("step 2", "did")
    profiler.process.send_signal(signal.SIGINT)
    profiler.stream.read()
    profiler.process.wait(LIMIT_S)
    out = path + ".json"
    subprocess.run([gpuprof, "export", path, "--format", "memory", "-o", out], check=False,
                   stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    with open(out, encoding="utf-8") as file:
        devices = {one["device"]: one for one in json.load(file)["devices"]}
    calls = devices.get("cudaMalloc", {"bytes": []})
    results.check("memory outside PyTorch is seen", size in calls["bytes"],
                  {name: one["end_bytes"] for name, one in devices.items()})


def check_run(results, gpuprof):
    """GPU times of a program from its first call on."""
    path = os.path.join(results.folder, "run.gpuprof")
    program = Program([gpuprof, "run", "-o", path, "--", sys.executable, "-B",
                       os.path.join(HERE, "workload.py")], "stdout",
                      os.path.join(results.folder, "run.txt"))
    program.line("ready ")
    program.ask("step %d" % STEPS, "did")
    program.ask("exit", "bye")
    program.stream.read()
    status = program.process.wait(LIMIT_S)
    found = kernels_of(events_of(gpuprof, path, results.folder))
    _, losses = calls_of(gpuprof, path)
    results.check("gpuprof run has GPU times", status in (0, 3) and found
                  and not losses["gpu_unmatched"],
                  "status %d, %d kernels and copies, unmatched %d" % (
                      status, sum(one["calls"] for one in found.values()),
                      losses["gpu_unmatched"]))


def timings(results, gpuprof, target, folder):
    """Added time a step while attached, in interleaved rounds."""
    plain, attached = [], []
    for turn in range(5):
        plain.append(float(target.ask("time 200", "took").split()[1]))
        profiler = Program([gpuprof, "attach", "--pid", str(target.facts["pid"]), "-o",
                            os.path.join(folder, "time.gpuprof")], "stderr", os.devnull)
        profiler.line("recording ")
        attached.append(float(target.ask("time 200", "took").split()[1]))
        profiler.process.send_signal(signal.SIGINT)
        profiler.stream.read()
        profiler.process.wait(LIMIT_S)
    ratios = [b / a for a, b in zip(plain, attached)]
    results.facts["time attached / plain, 200 small steps, 5 rounds"] = "%.3f (%.3f..%.3f)" % (
        statistics.median(ratios), min(ratios), max(ratios))


def attempt(results, name, check, *args):
    """A check that breaks is a result, and the others still run."""
    try:
        check(*args)
    except Exception as error:
        results.check("%s: ran to its end" % name, False, repr(error)[:1000])


def run(gpuprof, results):
    folder = results.folder
    target = Program([sys.executable, "-B", os.path.join(HERE, "workload.py")], "stdout",
                     os.path.join(folder, "workload.txt"))
    target.facts = json.loads(target.line("ready ")[len("ready "):])
    results.facts.update(target.facts)
    path = os.path.join(folder, "gpu.gpuprof")
    status, lines = capture(gpuprof, target, path, [], STEPS, os.path.join(folder, "table.txt"))
    results.facts["gpuprof said"] = " / ".join(lines)[:2000]
    results.check("attach to a process that uses CUDA", status == 0, "status %d" % status)
    trace = events_of(gpuprof, path, folder)
    truth_path = os.path.join(folder, "truth.json")
    target.ask("truth %d %s" % (STEPS, truth_path), "truth")
    with open(truth_path, encoding="utf-8") as file:
        theirs = json.load(file)
    compare(results, kernels_of(trace), theirs["kernels"])
    with open(truth_path + ".trace.json", encoding="utf-8") as file:
        compare_traces(results, trace, json.load(file))
    status, lines = capture(gpuprof, target, path + ".2", [], 2, os.path.join(folder, "table2.txt"))
    results.check("GPU times after torch.profiler has run",
                  status == 0 and kernels_of(events_of(gpuprof, path + ".2", folder)),
                  " / ".join(lines)[:300])
    for mode in ("transformer", "graph", "streams"):
        attempt(results, mode, check_mode, results, gpuprof, target, mode)
    target.ask("mode cnn", "mode")
    attempt(results, "memory", check_memory, results, gpuprof, target)
    attempt(results, "cycles", check_cycles, results, gpuprof, target)
    attempt(results, "run", check_run, results, gpuprof)
    timings(results, gpuprof, target, folder)
    results.check("the target leaves in good order",
                  target.ask("exit", "bye") == "bye" and target.process.wait(LIMIT_S) == 0, "")


def main():
    results = Results(sys.argv[2])
    try:
        run(sys.argv[1], results)
    except Exception as error:  # the account of a failure is a result too
        results.check("ran to its end", False, repr(error)[:2000])
    return results.write()


if __name__ == "__main__":
    sys.exit(main())
