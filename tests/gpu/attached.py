# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gpuprof attached to the program that is profiled, and what comes out of both."""

import contextlib
import json
import os
import subprocess
import sys
import time

from programs import Program, limit, run

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOAD = os.environ.get("GPU_CHECK_WORKLOAD", os.path.join(HERE, "workload.py"))
BACKTRACE = os.path.join(HERE, "backtrace.so")
STEPS = 20
# How long every attach took until it recorded, and every end of one, in seconds.
attach_s, detach_s = [], []
# What was said of threads that were held so that CUPTI could come or go, and of a CUPTI that was
# not taken down.
holds, slower = [], []


_waiting = []


def begun(results):
    """The program that is profiled, as it begins to load PyTorch; it says where it is if it dies."""
    name = "workload-%d.txt" % len(os.listdir(results.work))
    tell = {"LD_PRELOAD": BACKTRACE} if os.path.exists(BACKTRACE) else {}
    return Program([sys.executable, "-B", WORKLOAD], "stdout", results.path(name), **tell)


def prepare(results):
    """The next program loads PyTorch while another is looked at; it does nothing with the GPU."""
    if not _waiting:
        program = begun(results)
        Program.alive.remove(program)
        _waiting.append(program)


def loaded(results):
    """Nothing is being prepared any more: for what measures time."""
    prepare(results)
    if "loaded" not in _waiting[0].lines:
        _waiting[0].line("loaded")


def drop():
    """What was prepared for nothing."""
    while _waiting:
        _waiting.pop().kill()


def take(results):
    prepare(results)
    program = _waiting.pop()
    Program.alive.append(program)
    if "loaded" not in program.lines:
        program.line("loaded")
    return program


@contextlib.contextmanager
def workload(results, name):
    """The program that is profiled, ready; at the end it leaves in good order, if it still obeys."""
    target = take(results)
    try:
        target.facts = json.loads(target.ask("begin", "ready ")[len("ready "):])
        yield target
        bye = target.ask("exit", "bye")
        with limit():
            status = target.process.wait()
        if bye != "bye" or status:
            results.check("%s: the program leaves in good order" % name, False,
                          "status %d: %s" % (status, target.tail()))
    except Exception:
        # One that has closed its end of the pipe may take a moment longer to go.
        with contextlib.suppress(subprocess.TimeoutExpired):
            target.process.wait(1)
            results.check("%s: the program lives" % name, False, died(target))
        raise
    finally:
        target.kill()


def died(target):
    """How, and where it was: see backtrace.c."""
    with open(target.log, encoding="utf-8", errors="replace") as file:
        said = file.read()
    where = said[max(0, said.find("ended by signal")):][:2000] or target.tail()[-1000:]
    return "status %d: %s" % (target.process.wait(), where.replace("\n", " / "))


def start(gpuprof, target, path, *options, log=os.devnull):
    """gpuprof, told to record the program; with any CUPTI, because the program is ours."""
    return Program([gpuprof, "attach", "-v", "--any-cupti", "--pid", str(target.facts["pid"]), "-o", path,
                    *options], "stderr", log)


def attach(gpuprof, target, path, *options, log=os.devnull):
    """gpuprof that records the program."""
    begin = time.monotonic()
    profiler = start(gpuprof, target, path, *options, log=log)
    try:
        profiler.line("recording ")
    except RuntimeError:
        profiler.interrupt()
        raise
    attach_s.append(time.monotonic() - begin)
    return profiler


def note(lines):
    """What gpuprof said of CUPTI by its end."""
    holds.extend(line for line in lines if "were held for" in line or "no moment was" in line)
    slower.extend(line for line in lines if "not taken down" in line)


def end(profiler):
    """Ends it as Ctrl-C does; its status."""
    begin = time.monotonic()
    status = profiler.interrupt()
    detach_s.append(time.monotonic() - begin)
    note(profiler.lines)
    return status


def capture(gpuprof, target, path, options, steps, log):
    """gpuprof attached around exactly `steps` steps; its status and what it said."""
    profiler = attach(gpuprof, target, path, *options, log=log)
    try:
        target.ask("step %d" % steps, "did")
    finally:
        status = end(profiler)
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


def device_of(gpuprof, path):
    """Self CUDA and CUDA total of rows of the CPU by name, in us."""
    done = run([gpuprof, "table", path, "--json", "--limit", "-1"], stdout=subprocess.PIPE,
               stderr=subprocess.DEVNULL)
    return {row["name"]: (row.get("self_cuda_us", 0), row.get("cuda_total_us", 0))
            for row in json.loads(done.stdout)["rows"] if row["device"] == "CPU"}


def lost(losses):
    return {name: count for name, count in losses.items() if count}


def own_truth(results, target, name):
    """What torch.profiler says of the steps of this process: calls by name, and its trace."""
    path = results.path(name + ".truth.json")
    target.ask("truth %d %s" % (STEPS, path), "truth")
    with open(path, encoding="utf-8") as file:
        ops = json.load(file)
    with open(path + ".trace.json", encoding="utf-8") as file:
        return ops, json.load(file)


def own_device(results, name):
    """The same of the GPU's times: self and total in us by operator. None: it was not asked."""
    path = results.path(name + ".truth.json.device.json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


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
