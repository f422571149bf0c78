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

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import assumptions
import beside
import stress
from attached import (STEPS, WORKLOAD, attach, attach_s, capture, detach_s, device_of, drop, end, events_of,
                      holds, kernels_of, loaded, lost, own_device, prepare, slower, table_of, truth_of, workload)
from compare import (compare, compare_calls, compare_device, compare_ops, compare_traces,
                     lost_events)
from programs import Program, at_most, left_s, limit, run
from results import Results

HERE = os.path.dirname(os.path.abspath(__file__))
# Names of checks, comma between; empty: all.
ONLY = [name for name in os.environ.get("GPU_CHECK_ONLY", "").split(",") if name]
NEEDS = ["gpuprof", "doctor", "pytorch"]
SAMPLED_S = float(os.environ.get("GPU_CHECK_SAMPLED_S", 12))  # about
FEW_WINDOWS = 10  # of fewer, the error that an estimate tells may be off by as much as itself
DEARER = ["--overhead", "10"]  # where the default's percent paid for few windows
LONG_S = 0.01  # of a step that the GPU is busy with
DEEP_STEPS = 8


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
                  not lost_events(losses), lost(losses))
    ops, kineto = truth_of(results, target, "gpu")
    compare(results, ours, kernels_of(kineto))
    compare_ops(results, rows, ops)
    compare_device(results, device_of(gpuprof, path), own_device(results, "gpu"))
    compare_traces(results, trace, kineto)


def check_run(results, gpuprof):
    """GPU times of a program from its first call on: CUDA loads the collector."""
    if not results.has_uprobes:
        results.check("gpuprof run has GPU times", None, "no uprobes here, which it needs")
        return
    path = results.path("run.gpuprof")
    program = Program([gpuprof, "run", "-v", "-o", path, "--", sys.executable, "-B", WORKLOAD],
                      "stdout", results.path("run.txt"))
    program.line("loaded")
    program.ask("begin", "ready ")
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
    end(profiler)
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
    rows, losses = table_of(gpuprof, path)
    compare_ops(results, rows, ops, mode + ": ")
    compare_device(results, device_of(gpuprof, path), own_device(results, mode), mode + ": ")
    results.check(mode + ": nothing lost, all matched", not lost_events(losses), lost(losses))
    if not results.has_uprobes:
        results.check(mode + " by uprobes", None, "no uprobes here")
        return
    calls, losses = table_of(gpuprof, probed)
    compare_calls(results, mode + " by uprobes", calls, ops)
    results.check(mode + " by uprobes: nothing lost",
                  not losses["ring_full"] and not losses["api_end"] and not losses["probe"],
                  lost(losses))


def check_memory(results, gpuprof, target):
    """What PyTorch's allocator has, what the program takes past it, and what is refused."""
    if not results.has_uprobes:
        results.check("memory outside PyTorch is seen", None, "no uprobes here")
        return
    path, size = results.path("memory.gpuprof"), 64 << 20
    profiler = attach(gpuprof, target, path, "--memory")
    target.ask("take %d" % size, "take")
    target.ask("step 2", "did")
    has = json.loads(target.ask("memory", "memory").split(None, 1)[1])
    target.ask("refuse", "refuse")
    end(profiler)
    out = path + ".json"
    run([gpuprof, "export", path, "--format", "memory", "-o", out], stderr=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as file:
        told = json.load(file)
    devices = {one["device"]: one for one in told["devices"]}
    calls = devices.get("cudaMalloc", {"bytes": []})
    results.check("memory outside PyTorch is seen",
                  size in calls["bytes"] and
                  calls.get("outside_pytorch_end_bytes", 0) == size * ("cuda:0" in devices),
                  {name: one["end_bytes"] for name, one in devices.items()})
    if "allocated" not in has:
        return
    last = {name: devices["cuda:0"][name][-1] for name in ("allocator_bytes", "reserved_bytes")}
    results.check("PyTorch's allocator has what it says itself",
                  [last["allocator_bytes"], last["reserved_bytes"]] ==
                  [has["allocated"], has["reserved"]], (last, has))
    refused = [(one["bytes"], one["op"]) for one in told.get("out_of_memory", [])]
    results.check("memory that is refused", refused == [(1 << 40, "aten::empty")], refused)


def timed(target, steps):
    return float(target.ask("time %d" % steps, "took").split()[1])


def ratios_of(results, target, steps, rounds, begin, finish):
    """Time between begin() and finish(what it gave) over time before and after, in interleaved
    rounds."""
    loaded(results)
    ratios, before = [], timed(target, steps)
    for _ in range(rounds):
        begun = begin()
        between = timed(target, steps)
        finish(begun)
        # The call in which CUPTI is taken down.
        target.ask("step 1", "did")
        after = timed(target, steps)
        ratios.append(2 * between / (before + after))
        before = after
    return ratios


def ratios_attached(results, gpuprof, target, steps, rounds, *options):
    path = results.path("time.gpuprof")
    return ratios_of(results, target, steps, rounds,
                     lambda: attach(gpuprof, target, path, *options), end)


def ratios_held(results, target, steps, rounds):
    """The same of torch.profiler."""
    return ratios_of(results, target, steps, rounds, lambda: target.ask("hold", "hold"),
                     lambda _: target.ask("release", "release"))


def said(ratios):
    return "%.3f (%.3f..%.3f)" % (statistics.median(ratios), min(ratios), max(ratios))


def check_cost(results, gpuprof, target):
    """A training in which the GPU is always busy, so that what the CPU does beside it is hidden."""
    name = "GPU-bound training (%s) at most 2 %% slower" % target.facts["deep"]
    target.ask("mode resnet50", "mode")
    plain = timed(target, DEEP_STEPS)
    if plain < DEEP_STEPS * LONG_S:
        results.check(name, None, "%.1f ms a step: they are too short" % (1000 * plain / DEEP_STEPS))
        return
    path = results.path("deep.gpuprof")
    capture(gpuprof, target, path, [], DEEP_STEPS, results.path("deep.table.txt"))
    results.fact("GPU-bound: busy, of %.0f ms that the steps take" % (1000 * plain), "%.0f ms" % (
        events_of(gpuprof, path)["gpuprof"]["gpu"]["busy_us"] / 1000))
    ratios = ratios_attached(results, gpuprof, target, DEEP_STEPS, 7)
    results.check(name, statistics.median(ratios) <= 1.02, said(ratios))
    results.fact("the same by torch.profiler", said(ratios_held(results, target, DEEP_STEPS, 3)))


def check_small(results, gpuprof, target):
    """Steps in which the GPU waits for the CPU: all that is added to a call is seen."""
    loaded(results)
    count = 200
    before = [timed(target, count) for _ in range(5)]
    results.fact("ms a small step", round(1000 * statistics.median(before) / count, 3))
    first = ratios_attached(results, gpuprof, target, count, 5)
    after = [timed(target, count) for _ in range(5)]
    results.fact("time of small steps, attached over plain: gpuprof", said(first))
    results.fact("time of small steps after five attaches, over that before the first",
                 said([one / statistics.median(before) for one in after]))
    for name, options in (("without operators", ("--ops", "none")),
                          ("by uprobes", ("--no-inject",)), ("with memory", ("--memory",))):
        results.fact("time of small steps, attached over plain: " + name,
                     said(ratios_attached(results, gpuprof, target, count, 2, *options)))


def check_kept(results, gpuprof, target):
    """A graph that is launched again and again, while gpuprof comes and goes: it lives, and CUPTI does
    not stay."""
    loaded(results)
    count, left = 2000, len(slower)
    target.ask("mode graph", "mode")
    before = [timed(target, count) for _ in range(5)]
    results.fact("us a launch of a graph", round(1e6 * statistics.median(before) / count, 3))
    results.fact("time of a graph's launches, attached over plain",
                 said(ratios_attached(results, gpuprof, target, count, 5)))
    after = [timed(target, count) for _ in range(5)]
    results.fact("time of a graph's launches after five attaches, over that before the first",
                 said([one / statistics.median(before) for one in after]))
    results.check("CUPTI is taken down where a graph is launched again and again", left == len(slower), slower[left:])
    results.fact("the same by torch.profiler, attached over plain",
                 said(ratios_held(results, target, count, 5)))


def check_held(results, _gpuprof, target):
    """The same by torch.profiler, in a process that gpuprof has never seen."""
    loaded(results)
    count = 200
    before = [timed(target, count) for _ in range(5)]
    results.fact("time of small steps, attached over plain: torch.profiler",
                 said(ratios_held(results, target, count, 5)))
    after = [timed(target, count) for _ in range(5)]
    results.fact("time of small steps after torch.profiler, over that before it",
                 said([one / statistics.median(before) for one in after]))


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
        prepare(results)
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


def check_stacks(results, gpuprof, target):
    """Whether this Python's frames can be read."""
    path = results.path("stacks.gpuprof")
    capture(gpuprof, target, path, ["--stack", "python"], STEPS, results.path("stacks.txt"))
    done = run([gpuprof, "table", path, "--json", "--group-by", "stack:20", "--limit", "-1"],
               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    table = json.loads(done.stdout)
    calls = [row["calls"] for row in table["rows"]
             if row["name"] == "aten::conv2d" and "workload.py" in str(row.get("stack"))]
    results.check("operators at their lines of Python", sum(calls) == STEPS and
                  not lost_events(table["losses"]), "%s of %d; %s; Python %s" % (
                      calls, STEPS, lost(table["losses"]), sys.version.split()[0]))


def check_threads(results, gpuprof, target):
    """torch.profiler follows the thread that started it; we, all."""
    target.ask("mode threads", "mode")
    path = results.path("threads.gpuprof")
    capture(gpuprof, target, path, [], STEPS, results.path("threads.table.txt"))
    rows, losses = table_of(gpuprof, path)
    found = kernels_of(events_of(gpuprof, path))
    pieces, under = (sum(one[key] for one in found.values()) for key in ("calls", "op"))
    calls = {name: rows.get(name) for name in ("aten::matmul", "aten::mm", "aten::relu")}
    results.check("four threads launch at once",
                  set(calls.values()) == {4 * STEPS} and pieces == under == 8 * STEPS and
                  not lost_events(losses), "%s; %d pieces of work, %d under an operator; %s" % (
                      calls, pieces, under, lost(losses)))


def check_foreign(results, gpuprof, kind):
    """CUDA without PyTorch."""
    launches = 100
    target = Program([sys.executable, "-B", os.path.join(HERE, "foreign.py"), kind], "stdout",
                     results.path(kind + ".txt"))
    answer = target.line("")
    if not answer.startswith("ready "):
        results.check(kind + ": kernels of a process without PyTorch", None, answer)
        return
    target.facts = {"pid": target.process.pid}
    path = results.path(kind + ".gpuprof")
    profiler = attach(gpuprof, target, path)
    target.ask("launch %d" % launches, "did")
    status = end(profiler)
    rows, losses = table_of(gpuprof, path)
    found = {name[:60]: one["calls"] for name, one in kernels_of(events_of(gpuprof, path)).items()}
    results.check(kind + ": kernels of a process without PyTorch",
                  status in (0, 3) and launches in found.values() and not lost_events(losses),
                  "status %d; %s; %s; said: %s" % (status, found, lost(losses),
                                                   " / ".join(profiler.lines)[:600]))
    target.ask("exit", "bye")


# With a program to attach to; the most telling first, and about the seconds that each takes.
CHECKS = (
    ("first", 12, check_first),
    ("storm", stress.STORM_S + stress.STORM_WAVE_S, stress.check_storm), ("cost", 30, check_cost),
    ("graph", 10, check_mode, "graph"), ("memory", 8, check_memory), ("stacks", 8, check_stacks),
    ("capture", 18, stress.check_meanwhile, "capture"),
    ("busy", 18, stress.check_meanwhile, "threads"), ("waits", 12, stress.check_waits),
    ("kills", 25, stress.check_kills), ("cycles", 12, stress.check_cycles),
    ("resnet18", 10, check_mode, "resnet18"), ("mixed", 12, check_mode, "mixed"),
    ("transformer", 10, check_mode, "transformer"), ("streams", 10, check_mode, "streams"),
    ("churn", 10, check_mode, "churn"), ("distributed", 12, check_mode, "distributed"),
    ("threads", 8, check_threads), ("small", 25, check_small), ("held", 12, check_held),
    ("kept", 12, check_kept),
    ("kill", 10, stress.check_kill), ("during", 8, check_during), ("after", 8, check_after),
    ("nvtx", 8, check_nvtx), ("compiled", 30, check_mode, "compiled"),
    ("sampled", 30, check_sampled))
FOREIGN = ("cupy", "jax")


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
            attempt(results, "assumptions", 10, check_assumptions)
            attempt(results, "beside", beside.SECONDS + 5, beside.check_beside)
            attempt(results, "run", 15, check_run, gpuprof)
    for kind in FOREIGN if works[0] else ():
        attempt(results, kind, 15, check_foreign, gpuprof, kind)
    if not all(works):
        attempt(results, "assumptions", 40, check_assumptions)
    tell_holds(results)
    for what, took in (("attach until it records", attach_s), ("end of an attach", detach_s)):
        if took:
            results.fact("seconds, %s" % what, "the first %.2f, median %.2f, %.2f..%.2f, of %d" % (
                took[0], statistics.median(took), min(took), max(took), len(took)))


def tell_holds(results):
    took = [int(found[1]) for found in (re.search(r"were held for (\d+) us", line) for line in holds) if found]
    if holds:
        results.fact("us that threads were held for CUPTI", "%s of %d tries; %d with one that waited for the GPU, "
                     "%d not done in time; the last: %s" % (
                         "median %d, %d..%d" % (statistics.median(took), min(took), max(took)) if took else "never",
                         len(holds), sum(", 0 of them" not in line and "were held" in line for line in holds),
                         sum("not done" in line for line in holds), holds[-1]))
    results.fact("ends of an attach where CUPTI was not taken down", "%d; %s" % (len(slower), slower[-1:]))


def main():
    work = tempfile.mkdtemp(prefix="gpuprof-gpu-")
    results = Results(sys.argv[2], work)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    try:
        check_all(results, sys.argv[1])
    except Exception as error:  # the account of a failure is a result too
        results.check("ran to its end", False, repr(error)[:2000])
    finally:
        drop()
        Program.end_all()
        results.archive()
        shutil.rmtree(work, ignore_errors=True)
    return results.status()


if __name__ == "__main__":
    sys.exit(main())
