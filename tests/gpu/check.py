# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
usage: check.py GPUPROF RESULTS. Attaches to workload.py on a real GPU and compares what gpuprof
tells with torch.profiler's account of as many steps of the same process, and asks CUPTI what the
collector takes for granted (assumptions.py). Each check has a process and a time of its own, because
torch.profiler, once it was used, keeps CUPTI for as long as its process lives: in each it comes
last. Writes results.json and results.md anew after each check; each says what was found, and whether
it passed, failed or could not be made. Needs no package but PyTorch. Of all the files that come to
be, RESULTS gets an archive at the end.
"""

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

import assumptions
from programs import BEGIN, Program, at_most, left_s, limit, run

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOAD = os.environ.get("GPU_CHECK_WORKLOAD", os.path.join(HERE, "workload.py"))
# Names of checks, comma between; empty: all.
ONLY = [name for name in os.environ.get("GPU_CHECK_ONLY", "").split(",") if name]
NEEDS = ["gpuprof", "doctor", "pytorch"]
STEPS = 20
SAMPLED_S = float(os.environ.get("GPU_CHECK_SAMPLED_S", 12))  # about
FEW_WINDOWS = 10  # of fewer, the error that an estimate tells may be off by as much as itself
DEARER = ["--overhead", "10"]  # where the default's percent paid for few windows
LONG_S = 0.01  # of a step that the GPU is busy with
ARCHIVE_BYTES = 12 << 20


class Results:
    def __init__(self, folder, work):
        self.folder, self.work = folder, work
        self.has_uprobes = False
        self.facts = {"date": time.strftime("%Y-%m-%d")}
        self.checks = []

    def check(self, name, passed, found):
        """`passed` None: it could not be made."""
        passed = None if passed is None else bool(passed)
        self.checks.append({"check": name, "passed": passed, "found": found,
                            "at_s": round(time.monotonic() - BEGIN, 1)})
        print("%-6s %s: %s" % ({None: "-", True: "ok", False: "FAILED"}[passed], name, found),
              flush=True)
        self.write()

    def fact(self, name, value):
        self.facts[name] = value
        print("       %s: %s" % (name, value), flush=True)
        self.write()

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self):
        self.put("results.json", json.dumps({"facts": self.facts, "checks": self.checks}, indent=1))
        rows = ["- %s: %s\n" % pair for pair in self.facts.items()]
        rows.append("\n| check | passed | found |\n|---|---|---|\n")
        word = {None: "could not be made", True: "yes", False: "NO"}
        for one in self.checks:
            rows.append("| %s | %s | %s |\n" % (one["check"], word[one["passed"]],
                                               str(one["found"]).replace("|", "/")[:600]))
        self.put("results.md", "".join(rows))

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def archive(self):
        """Small files first, as far as there is room."""
        paths = sorted((os.path.join(self.work, name) for name in os.listdir(self.work)),
                       key=os.path.getsize)
        path, room = os.path.join(self.folder, "evidence.tar.gz"), 6 * ARCHIVE_BYTES
        with tarfile.open(path, "w:gz", compresslevel=6) as archive:
            for one in paths:
                room -= os.path.getsize(one)
                if room > 0:
                    archive.add(one, os.path.basename(one))
        if os.path.getsize(path) > ARCHIVE_BYTES:
            os.remove(path)

    def status(self):
        return 0 if self.checks and all(one["passed"] is not False for one in self.checks) else 1


@contextlib.contextmanager
def workload(results, name):
    """The program that is profiled, ready; at the end it leaves in good order, if it still obeys."""
    target = Program([sys.executable, "-B", WORKLOAD], "stdout",
                     results.path(name + ".workload.txt"))
    try:
        target.facts = json.loads(target.line("ready ")[len("ready "):])
        yield target
        bye = target.ask("exit", "bye")
        with limit():
            status = target.process.wait()
        if bye != "bye" or status:
            results.check("%s: the program leaves in good order" % name, False,
                          "status %d: %s" % (status, target.tail()))
    finally:
        target.kill()


def attach(gpuprof, target, path, *options, log=os.devnull):
    """gpuprof that records the program; with any CUPTI, because the program is ours."""
    profiler = Program([gpuprof, "attach", "--any-cupti", "--pid", str(target.facts["pid"]), "-o",
                        path, *options], "stderr", log)
    try:
        profiler.line("recording ")
    except RuntimeError:
        profiler.interrupt()
        raise
    return profiler


def capture(gpuprof, target, path, options, steps, log):
    """gpuprof attached around exactly `steps` steps; its status and what it said."""
    profiler = attach(gpuprof, target, path, "-v", *options, log=log)
    try:
        target.ask("step %d" % steps, "did")
    finally:
        status = profiler.interrupt()
    return status, profiler.lines


def events_of(gpuprof, path):
    trace = path + ".trace.json"
    done = run([gpuprof, "export", path, "--format", "chrome", "-o", trace],
               stderr=subprocess.PIPE)
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr[-1000:])
    with open(trace, encoding="utf-8") as file:
        return json.load(file)


def kernels_of(trace):
    found = {}
    for event in sorted(trace["traceEvents"], key=lambda event: event.get("ts", 0)):
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            one = found.setdefault(event["name"], {"calls": 0, "us": [], "op": 0})
            one["calls"] += 1
            one["us"].append(event["dur"])
            one["op"] += "External id" in event.get("args", {})
    return found


def table_of(gpuprof, path):
    """Calls of rows of the CPU by name, and the losses."""
    done = run([gpuprof, "table", path, "--json", "--limit", "-1"], stdout=subprocess.PIPE,
               stderr=subprocess.DEVNULL)
    table = json.loads(done.stdout)
    return {row["name"]: row["calls"] for row in table["rows"] if row["device"] == "CPU"}, \
        table["losses"]


def lost(losses):
    return {name: count for name, count in losses.items() if count}


def compare_calls(results, what, ours, theirs):
    names = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync",
             "cudaGraphLaunch", "cudaStreamSynchronize")
    pairs = {name: (ours.get(name, 0), theirs.get(name, 0)) for name in names}
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


def compare(results, ours, theirs, what=""):
    counts = {name: (ours.get(name, {"calls": 0})["calls"], theirs.get(name, {"calls": 0})["calls"])
              for name in set(ours) | set(theirs)}
    wrong = {name[:80]: pair for name, pair in counts.items() if pair[0] != pair[1]}
    results.check(what + "kernels, copies and memsets as often as torch.profiler says",
                  ours and not wrong, "%d names, %d events; different: %s" % (
                      len(counts), sum(one["calls"] for one in ours.values()), wrong))
    apart = {}
    for name in set(ours) & set(theirs):
        mine = statistics.median(ours[name]["us"])
        kineto = statistics.median(theirs[name]["us"])
        apart[name] = (abs(mine - kineto), round(mine, 3), round(kineto, 3))
    far = {name[:80]: pair for name, pair in apart.items() if pair[0] > max(1.0, 0.02 * pair[2])}
    results.check(what + "median duration of each within 1 us or 2 %", apart and not far,
                  "largest difference %.3f us; further: %s" % (
                      max((pair[0] for pair in apart.values()), default=0), far))
    pairs = [abs(a - b) for name in apart if ours[name]["calls"] == theirs[name]["calls"]
             for a, b in zip(ours[name]["us"], theirs[name]["us"])]
    if pairs:
        # Of other steps of the same program: what differs is the GPU's too.
        results.fact(what + "n-th of ours and n-th of torch.profiler's, of the same name",
                     "%d pairs, %.1f %% within 1 us, median %.3f us, largest %.3f us" % (
                         len(pairs), 100 * sum(one <= 1 for one in pairs) / len(pairs),
                         statistics.median(pairs), max(pairs)))
    # The launch of a graph lies in none.
    if what == "graph: ":
        return
    lone = {name[:80]: one["calls"] - one["op"] for name, one in ours.items()
            if one["calls"] != one["op"]}
    results.check(what + "each under an operator", ours and not lone, "without: %s" % lone)


def compare_ops(results, ours, theirs, what=""):
    names = {name for name in set(ours) | set(theirs) if name.startswith("aten::")}
    wrong = {name: (ours.get(name, 0), theirs.get(name, 0)) for name in names
             if ours.get(name, 0) != theirs.get(name, 0)}
    results.check(what + "operators as often as torch.profiler says", names and not wrong,
                  "%d names; different: %s" % (len(names), wrong))


def own_truth(results, target, name):
    """What torch.profiler says of the steps of this process: calls by name, and its trace."""
    path = results.path(name + ".truth.json")
    target.ask("truth %d %s" % (STEPS, path), "truth")
    with open(path, encoding="utf-8") as file:
        ops = json.load(file)
    with open(path + ".trace.json", encoding="utf-8") as file:
        return ops, json.load(file)


def truth_of(results, target, name, mode="cnn"):
    """The same, or if that has no GPU times, of a process that gpuprof has never seen."""
    truth = own_truth(results, target, name)
    results.check(name + ": torch.profiler has GPU times after gpuprof has left",
                  kernels_of(truth[1]), "%d names" % len(kernels_of(truth[1])))
    if kernels_of(truth[1]):
        return truth
    with workload(results, name + ".other") as other:
        other.ask("mode " + mode, "mode")
        return own_truth(results, other, name + ".other")


# ---- the checks, each with the program that is profiled ----


def check_first(results, gpuprof, target):
    """What matters most: GPU times of a process that was running already."""
    path = results.path("gpu.gpuprof")
    status, lines = capture(gpuprof, target, path, [], STEPS, results.path("table.txt"))
    results.fact("gpuprof said", " / ".join(lines)[:3000])
    results.check("attach to a process that uses CUDA", status in (0, 3), "status %d" % status)
    trace = events_of(gpuprof, path)
    ours, (rows, losses) = kernels_of(trace), table_of(gpuprof, path)
    results.check("GPU times are there", ours, "%d names of kernels and copies" % len(ours))
    results.fact("counters above zero", lost(losses))
    results.fact("clocks and streams", trace["gpuprof"].get("gpu"))
    results.check("nothing lost, all matched",
                  not [name for name in ("ring_full", "collector_full", "cupti_time", "cupti_clock",
                                         "cupti_dropped", "gpu_unmatched", "launch_unmatched",
                                         "gpu_early") if losses.get(name)], lost(losses))
    ops, kineto = truth_of(results, target, "gpu")
    compare(results, ours, kernels_of(kineto))
    compare_ops(results, rows, ops)
    compare_traces(results, trace, kineto)


def check_run(results, gpuprof):
    """GPU times of a program from its first call on: CUDA loads the collector."""
    if not results.has_uprobes:
        results.check("gpuprof run has GPU times", None, "no uprobes here, which it needs")
        return
    path = results.path("run.gpuprof")
    program = Program([gpuprof, "run", "-v", "-o", path, "--", sys.executable, "-B", WORKLOAD],
                      "stdout", results.path("run.txt"))
    program.line("ready ")
    program.ask("step %d" % STEPS, "did")
    program.ask("ranges", "ranges")
    program.ask("exit", "bye")
    with limit():
        program.stream.read()
        status = program.process.wait()
    found = kernels_of(events_of(gpuprof, path))
    rows, losses = table_of(gpuprof, path)
    results.check("gpuprof run has GPU times",
                  status in (0, 3) and found and not losses["gpu_unmatched"],
                  "status %d, %d kernels and copies, counters %s" % (
                      status, sum(one["calls"] for one in found.values()), lost(losses)))
    check_ranges(results, "gpuprof run", rows)


def check_ranges(results, what, rows):
    """Of NVTX, which is in PyTorch's own code from 2.6 on: each once."""
    found = {name: rows.get(name, 0) for name in ("gpuprof outer", "gpuprof inner")}
    results.check("ranges of PyTorch's NVTX, " + what, all(nr == 1 for nr in found.values()), found)


def check_nvtx(results, gpuprof, target):
    """Attached to, such a process has ranges if NVTX's functions have symbols."""
    if not results.has_uprobes:
        results.check("ranges of PyTorch's NVTX, attached", None, "no uprobes here")
        return
    path = results.path("nvtx.gpuprof")
    profiler = attach(gpuprof, target, path)
    target.ask("ranges", "ranges")
    profiler.interrupt()
    check_ranges(results, "attached", table_of(gpuprof, path)[0])


def check_after(results, gpuprof, target):
    """CUPTI was torch.profiler's before, and may be for good: then that is said."""
    target.ask("hold", "hold")
    target.ask("release", "release")
    path = results.path("after.gpuprof")
    status, lines = capture(gpuprof, target, path, [], 2, os.devnull)
    found = kernels_of(events_of(gpuprof, path))
    results.check("after torch.profiler: GPU times, or who has them is said",
                  status in (0, 3) and (found or any("in use by" in line for line in lines)),
                  "%d names; said: %s" % (len(found), " / ".join(lines)[:600]))


def check_during(results, gpuprof, target):
    """It has CUPTI now: that is said, and both go on."""
    path = results.path("during.gpuprof")
    target.ask("hold", "hold")
    status, lines = capture(gpuprof, target, path, [], 3, os.devnull)
    target.ask("release", "release")
    calls, _ = table_of(gpuprof, path)
    results.check("while torch.profiler runs: said, and operators are there",
                  status in (0, 3) and any("in use by" in line for line in lines) and
                  any(name.startswith("aten::") for name in calls),
                  "%d names; said: %s" % (len(calls), " / ".join(lines)[:800]))


def check_mode(results, gpuprof, target, mode):
    """Kernels and calls of one kind of work, by CUPTI and by uprobes, against torch.profiler."""
    target.ask("mode " + mode, "mode")
    path = results.path(mode + ".gpuprof")
    capture(gpuprof, target, path, [], STEPS, results.path(mode + ".table.txt"))
    probed = results.path(mode + ".uprobes.gpuprof")
    if results.has_uprobes:
        capture(gpuprof, target, probed, ["--no-inject"], STEPS,
                results.path(mode + ".uprobes.txt"))
    ops, kineto = truth_of(results, target, mode, mode)
    compare(results, kernels_of(events_of(gpuprof, path)), kernels_of(kineto), mode + ": ")
    compare_ops(results, table_of(gpuprof, path)[0], ops, mode + ": ")
    if not results.has_uprobes:
        results.check(mode + " by uprobes", None, "no uprobes here")
        return
    calls, losses = table_of(gpuprof, probed)
    compare_calls(results, mode + " by uprobes", calls, ops)
    results.check(mode + " by uprobes: nothing lost",
                  not losses["ring_full"] and not losses["api_end"] and not losses["probe"],
                  lost(losses))


def mapped(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        return sum("gpuprof" in line or "libcupti" in line for line in maps)


def check_cycles(results, gpuprof, target):
    """Ten attaches: what the first leaves does not grow, and none sees less than it."""
    pid, path = target.facts["pid"], results.path("cycle.gpuprof")
    seen, statuses, kernels = [], [], []
    for _ in range(10):
        status, _ = capture(gpuprof, target, path, [], 2, os.devnull)
        statuses.append(status)
        kernels.append(sum(one["calls"] for one in kernels_of(events_of(gpuprof, path)).values()))
        seen.append((mapped(pid), len(os.listdir("/proc/%d/fd" % pid)),
                     len(os.listdir("/proc/%d/task" % pid))))
    results.check("attach and detach ten times",
                  all(status in (0, 3) for status in statuses) and len(set(seen[1:])) == 1 and
                  0 < max(kernels) * 0.9 <= min(kernels),
                  "status %s; mappings of ours, descriptors and threads %s; pieces of work %s" % (
                      statuses, seen, kernels))


def check_kill(results, gpuprof, target):
    """kill -9 of gpuprof in the middle: the program goes on, and can be attached to again."""
    for _ in range(5):
        profiler = attach(gpuprof, target, results.path("killed.gpuprof"))
        target.ask("step 2", "did")
        profiler.process.kill()
        profiler.process.wait()
        target.ask("step 2", "did")
    status, lines = capture(gpuprof, target, results.path("again.gpuprof"), [], 2, os.devnull)
    found = kernels_of(events_of(gpuprof, results.path("again.gpuprof")))
    results.check("killed five times: the program goes on and has GPU times again",
                  target.process.poll() is None and status in (0, 3) and found,
                  "status %d, %d names; said: %s" % (status, len(found), " / ".join(lines)[:800]))


def check_memory(results, gpuprof, target):
    if not results.has_uprobes:
        results.check("memory outside PyTorch is seen", None, "no uprobes here")
        return
    path, size = results.path("memory.gpuprof"), 64 << 20
    profiler = attach(gpuprof, target, path, "--memory")
    target.ask("take %d" % size, "take")
    target.ask("step 2", "did")
    profiler.interrupt()
    out = path + ".json"
    run([gpuprof, "export", path, "--format", "memory", "-o", out], stderr=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as file:
        devices = {one["device"]: one for one in json.load(file)["devices"]}
    calls = devices.get("cudaMalloc", {"bytes": []})
    results.check("memory outside PyTorch is seen", size in calls["bytes"],
                  {name: one["end_bytes"] for name, one in devices.items()})


def ratios_of(results, gpuprof, target, steps, rounds):
    """Time attached over time alone before and after it, in interleaved rounds."""
    def timed():
        return float(target.ask("time %d" % steps, "took").split()[1])

    ratios, before = [], timed()
    for _ in range(rounds):
        profiler = attach(gpuprof, target, results.path("time.gpuprof"))
        attached = timed()
        profiler.interrupt()
        after = timed()
        ratios.append(2 * attached / (before + after))
        before = after
    return ratios


def said(ratios):
    return "%.3f (%.3f..%.3f)" % (statistics.median(ratios), min(ratios), max(ratios))


def check_cost(results, gpuprof, target):
    name = "GPU-bound training (%s) at most 2 %% slower" % target.facts["deep"]
    target.ask("mode resnet50", "mode")
    plain = float(target.ask("time %d" % STEPS, "took").split()[1])
    if plain < STEPS * LONG_S:
        results.check(name, None, "%.1f ms a step: they are too short" % (1000 * plain / STEPS))
        return
    ratios = ratios_of(results, gpuprof, target, STEPS, 7)
    results.check(name, statistics.median(ratios) <= 1.02, said(ratios))


def check_small(results, gpuprof, target):
    results.fact("time attached / plain, 200 small steps",
                 said(ratios_of(results, gpuprof, target, 200, 5)))


def sampled(results, gpuprof, target, options):
    """Steps, and the table of them."""
    steps = max(STEPS, round(SAMPLED_S * 200 / float(target.ask("time 200", "took").split()[1])))
    path = results.path("sampled.gpuprof")
    capture(gpuprof, target, path, ["--mode", "sample", *options], steps, results.path("sampled.txt"))
    done = run([gpuprof, "table", path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return steps, json.loads(done.stdout)


def check_sampled(results, gpuprof, target):
    """CUPTI's records in windows, its records off in between: what is estimated, and what it costs."""
    name = "sampled: launches as estimated from windows of CUPTI's records"
    if not results.has_uprobes:
        results.check(name, None, "samples need BPF, which does not work here")
        return
    path = results.path("sampled.all.gpuprof")
    capture(gpuprof, target, path, [], STEPS, os.devnull)
    each = table_of(gpuprof, path)[0].get("cudaLaunchKernel", 0) / STEPS
    steps, table = sampled(results, gpuprof, target, [])
    results.fact("sampled: cost", {key: value for key, value in table["overhead"].items()
                                   if key.startswith(("cost_", "share_"))})
    # Without either all was seen.
    windows = 0 if table.get("gpu_unseen") else \
        table.get("gpu_estimated", {}).get("windows", FEW_WINDOWS)
    if windows < FEW_WINDOWS:
        steps, table = sampled(results, gpuprof, target, DEARER)
    row = next((row for row in table.get("gpu_rows", []) if row["name"] == "cudaLaunchKernel"), {})
    found = row.get("estimated", {}).get("calls", {"value": row.get("calls", 0)})
    bound = 0.2 * each * steps + 5 * (found.get("standard_error") or 0)
    results.check(name, each and abs(found["value"] - each * steps) <= bound, "%s of %.0f in %s" % (
        found, each * steps, table.get("gpu_estimated", "all of it")))


def check_assumptions(results):
    """What the collector takes for granted."""
    for name in assumptions.QUESTIONS:
        if left_s() < 2:
            results.check("CUPTI: " + name, None, "no time")
            continue
        told = assumptions.ask(name, left_s())
        results.check("CUPTI: " + name, told["holds"], told["found"])


# ---- all of them ----


def attempt(results, name, seconds, check, *args):
    """A check that breaks or takes too long is a result, and the others still run; so is one that
    has no time. It gets three times the seconds that it takes where nothing is wrong."""
    if ONLY and name not in ONLY + NEEDS:
        return
    if left_s() < seconds:
        results.check(name, None, "no time: %.0f s are left" % left_s())
        return
    try:
        with at_most(3 * seconds):
            check(results, *args)
    except Exception as error:
        results.check("%s: ran to its end" % name, False, repr(error)[:2000])
    finally:
        Program.end_all()


def with_workload(results, gpuprof, name, check, *more):
    with workload(results, name) as target:
        check(results, gpuprof, target, *more)


def check_gpuprof(results, gpuprof):
    """Whether it starts at all, with the libraries that are here."""
    done = run([gpuprof, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    results.check("gpuprof starts", not done.returncode, done.stdout[-1000:])
    return not done.returncode


def check_doctor(results, gpuprof):
    doctor = run([gpuprof, "doctor"], stdout=subprocess.PIPE).stdout
    works = {line.split()[0]: line.split()[1] for line in doctor.splitlines()
             if len(line.split()) > 2 and line[:1].isalpha()}
    results.has_uprobes = works.get("bpf") == "yes" and \
        "yes" in (works.get("uprobe_multi"), works.get("uprobe"))
    results.fact("works here", works)


def check_pytorch(results):
    """Whether there is anything to attach to."""
    with workload(results, "pytorch") as target:
        results.facts.update(target.facts)
        results.fact("libraries", libraries_of(target.facts["pid"]))
    results.check("PyTorch uses a GPU", True, target.facts["gpu"])


def libraries_of(pid):
    names = ("libcuda.so", "libcudart", "libcupti", "libtorch_cuda", "libnccl")
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        return sorted({line.split(None, 5)[5].strip() for line in maps
                       if any(name in line for name in names)})


# With a program to attach to; the most telling first, and the seconds that each takes.
CHECKS = (
    ("first", 40, check_first), ("cost", 70, check_cost), ("resnet18", 40, check_mode, "resnet18"),
    ("graph", 30, check_mode, "graph"), ("kill", 30, check_kill), ("cycles", 40, check_cycles),
    ("transformer", 30, check_mode, "transformer"), ("streams", 30, check_mode, "streams"),
    ("during", 30, check_during), ("after", 30, check_after),
    ("nvtx", 20, check_nvtx), ("memory", 25, check_memory), ("small", 30, check_small),
    ("churn", 30, check_mode, "churn"), ("sampled", 40, check_sampled))


def check_all(results, gpuprof):
    """Whatever does not work is said, and what needs it is not tried."""
    works = [False, False]

    def check_needs(results):
        works[0] = check_gpuprof(results, gpuprof)

    def check_target(results):
        check_pytorch(results)
        works[1] = True

    attempt(results, "gpuprof", 10, check_needs)
    attempt(results, "doctor", 10, check_doctor, gpuprof)
    attempt(results, "pytorch", 20, check_target)
    for name, seconds, check, *more in CHECKS if all(works) else ():
        attempt(results, name, seconds, with_workload, gpuprof, name, check, *more)
        # Whether the first has worked or not: these tell why.
        if name == "first":
            attempt(results, "assumptions", 40, check_assumptions)
            attempt(results, "run", 30, check_run, gpuprof)
    if not all(works):
        attempt(results, "assumptions", 40, check_assumptions)


def main():
    work = tempfile.mkdtemp(prefix="gpuprof-gpu-")
    results = Results(sys.argv[2], work)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    try:
        check_all(results, sys.argv[1])
    except Exception as error:  # the account of a failure is a result too
        results.check("ran to its end", False, repr(error)[:2000])
    finally:
        Program.end_all()
        results.archive()
        shutil.rmtree(work, ignore_errors=True)
    return results.status()


if __name__ == "__main__":
    sys.exit(main())
