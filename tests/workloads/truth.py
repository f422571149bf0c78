# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What torch.profiler says about N steps of a workload: the reference that gpuprof is compared
with. The file is one JSON object:

    torch, steps, pid
    rows        name -> calls, cpu_mem, self_cpu_mem, cpu_total_us, self_cpu_us
    raw_calls   name -> calls, before the collapse of same-name only children
    averages    name -> calls as key_averages() prints them, for the log
    inputs      [name, arguments] of every operator in the trace (with record_shapes)
    events      [name, thread, start_ns, dur_ns] of every CPU event, in order, no collapse

PyTorch 1.13 rounds times to a microsecond before it builds the tree that key_averages() sums, so
its own counts and memory columns change from run to run by a call or two: an op and its child
that end in the same microsecond are no longer parent and child. Here the same rules (drop, tree,
collapse, memory by containment) are applied to the tree that the profiler's C++ side builds from
nanoseconds (experimental_event_tree, in each version tested), so that the truth is one truth.
"""

import json
import os

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from dropped import DROPPED

MEMORY = "[memory]"
INPUT_ARGUMENTS = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")


class Node:
    """One op instance: its direct children and the bytes allocated in itself."""

    __slots__ = ("name", "dur_ns", "children", "self_mem")

    def __init__(self, name, dur_ns):
        self.name = name
        self.dur_ns = dur_ns
        self.children = []
        self.self_mem = 0


def _text(value):
    return value() if callable(value) else value


def _alloc_bytes(event):
    fields = event.extra_fields
    return fields.alloc_size if "cpu" in str(fields.device) else 0


def _convert(events, parent, memory, listing):
    """Copies the profiler's tree below parent; dropped nodes hand their children up."""
    for event in events:
        name = _text(event.name)
        if name == MEMORY:
            nbytes = _alloc_bytes(event)
            parent.self_mem += nbytes
            memory.append((parent.name, nbytes))
            continue
        target = parent
        if name not in DROPPED:
            target = Node(name, event.duration_time_ns)
            parent.children.append(target)
            listing.append([name, event.start_tid, event.start_time_ns, event.duration_time_ns])
        _convert(event.children, target, memory, listing)


def _collapse(node):
    for child in node.children:
        while len(child.children) == 1 and child.children[0].name == child.name:
            only = child.children[0]
            child.self_mem += only.self_mem
            child.children = only.children
        _collapse(child)


def _account(node, rows):
    """Adds node's instance and all below it to rows; returns the bytes of the subtree."""
    total = node.self_mem
    below_ns = 0
    for child in node.children:
        total += _account(child, rows)
        below_ns += child.dur_ns
    row = rows.setdefault(node.name, {"calls": 0, "cpu_total_us": 0.0, "self_cpu_us": 0.0,
                                      "cpu_mem": 0, "self_cpu_mem": 0})
    row["calls"] += 1
    row["cpu_total_us"] += node.dur_ns / 1000
    row["self_cpu_us"] += (node.dur_ns - below_ns) / 1000
    row["cpu_mem"] += total
    row["self_cpu_mem"] += node.self_mem
    return total


def _outside(memory):
    """The row of allocator events outside any op; none when there were none."""
    sizes = [nbytes for owner, nbytes in memory if owner == ""]
    if not sizes:
        return {}
    return {MEMORY: {"calls": len(sizes), "cpu_total_us": 0.0, "self_cpu_us": 0.0,
                     "cpu_mem": sum(sizes), "self_cpu_mem": sum(sizes)}}


def account(prof, steps):
    """The account of a finished profile."""
    root, memory, listing = Node("", 0), [], []
    _convert(prof.profiler.kineto_results.experimental_event_tree(), root, memory, listing)
    raw = {}
    for event in listing:
        raw[event[0]] = raw.get(event[0], 0) + 1
    _collapse(root)
    rows = _outside(memory)
    for child in root.children:
        _account(child, rows)
    listing.sort(key=lambda event: (event[2], -event[3]))
    return {"torch": torch.__version__, "steps": steps, "pid": os.getpid(), "rows": rows,
            "raw_calls": raw, "averages": {avg.key: avg.count for avg in prof.key_averages()},
            "events": listing}


def record(workload, steps, path, memory=True):
    """Does the steps under torch.profiler and writes the account to path. Following memory takes
    time in whatever allocates: who asks for times goes without."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=memory) as prof:
        workload.steps(steps)
    with open(path + ".part", "w", encoding="utf-8") as out:
        json.dump(account(prof, steps), out)
    os.rename(path + ".part", path)


def _by_value(events, values, default, parent, listing):
    """As _convert; a node's name is here the pair of its name and its value: its inputs' shapes,
    say."""
    for event in events:
        name = _text(event.name)
        if name == MEMORY:
            continue
        target = parent
        if name not in DROPPED:
            value = values.get(event.correlation_id, default)
            target = Node((name, value), event.duration_time_ns)
            parent.children.append(target)
            listing.append(target.name)
        _by_value(event.children, values, default, target, listing)


def _collapse_by_name(node):
    for child in node.children:
        while len(child.children) == 1 and child.children[0].name[0] == child.name[0]:
            child.children = child.children[0].children
        _collapse_by_name(child)


def _count(node, counts):
    for child in node.children:
        counts[child.name] = counts.get(child.name, 0) + 1
        _count(child, counts)


def _list(counts):
    return [[name, shapes, count] for (name, shapes), count in sorted(counts.items())]


def account_shapes(prof, steps):
    """rows, raw_calls and averages as in account(), each a list of [name, shapes, calls]."""
    results = prof.profiler.kineto_results
    shapes = {event.correlation_id(): str(event.shapes()) for event in results.events()}
    root, listing, rows, raw, averages = Node(("", ""), 0), [], {}, {}, {}
    _by_value(results.experimental_event_tree(), shapes, "[]", root, listing)
    for key in listing:
        raw[key] = raw.get(key, 0) + 1
    _collapse_by_name(root)
    _count(root, rows)
    for one in prof.key_averages(group_by_input_shape=True):
        averages[one.key, str(one.input_shapes)] = one.count
    return {"torch": torch.__version__, "steps": steps, "rows": _list(rows),
            "raw_calls": _list(raw), "averages": _list(averages)}


def account_flops(prof):
    """name -> flops, of what is in the table."""
    results = prof.profiler.kineto_results
    flops = {event.correlation_id(): event.flops() for event in results.events()}
    root, counts, sums = Node(("", 0), 0), {}, {}
    _by_value(results.experimental_event_tree(), flops, 0, root, [])
    _collapse_by_name(root)
    _count(root, counts)
    for (name, value), count in counts.items():
        sums[name] = sums.get(name, 0) + value * count
    return sums


def trace_inputs(prof, path):
    """name and arguments about inputs of every operator in the trace, in its order; nothing where
    torch.profiler was built without Kineto, whose trace alone has them."""
    prof.export_chrome_trace(path)
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    os.unlink(path)
    events = trace["traceEvents"] if isinstance(trace, dict) else []
    return [[event["name"], {key: event["args"][key] for key in INPUT_ARGUMENTS
                             if key in event["args"]}]
            for event in events if event.get("cat") == "cpu_op"]


def record_shapes(workload, steps, path):
    """Does the steps under torch.profiler with record_shapes and writes the account to path."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        workload.steps(steps)
    with open(path + ".part", "w", encoding="utf-8") as out:
        told = account_shapes(prof, steps)
        told["inputs"] = trace_inputs(prof, path + ".trace.json")
        json.dump(told, out)
    os.rename(path + ".part", path)


def record_flops(workload, steps, path):
    """Does the steps under torch.profiler with with_flops and writes the account to path."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
        workload.steps(steps)
    averages = prof.key_averages()
    header = [word for word in averages.table(row_limit=-1).splitlines()[1].split("  ") if word]
    told = {"flops": account_flops(prof), "header": [word.strip() for word in header]}
    with open(path + ".part", "w", encoding="utf-8") as out:
        json.dump(told, out)
    os.rename(path + ".part", path)


def record_cycles(workload, steps, path):
    """Does the steps under torch.profiler with the schedule of its tutorial; the account of each
    cycle to path."""
    cycles = []
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True,
                 schedule=schedule(wait=1, warmup=1, active=3, repeat=2),
                 on_trace_ready=lambda prof: cycles.append(account(prof, 3))) as prof:
        for _ in range(steps):
            workload.step()
            prof.step()
    with open(path + ".part", "w", encoding="utf-8") as out:
        json.dump({"cycles": cycles}, out)
    os.rename(path + ".part", path)


def raw_memory_timeline(prof, device):
    """What export_memory_timeline("X.raw.json.gz") writes: [time_ns, action, bytes, category]; None
    in versions that have no such thing."""
    try:
        from torch.profiler import _memory_profiler
    except ImportError:
        return None
    path = "/tmp/gpuprof-raw-%d.json" % os.getpid()
    timeline = _memory_profiler.MemoryProfileTimeline(
        _memory_profiler.MemoryProfile(prof.profiler.kineto_results))
    timeline.export_memory_timeline_raw(path, device)
    with open(path, encoding="utf-8") as file:
        raw = json.load(file)
    os.unlink(path)
    return raw


def record_categories(workload, steps, path):
    """Does the steps under torch.profiler and writes its memory timeline of the CPU to path."""
    # The Python tracer of 2.6 crashes with Python 3.13.
    traced = not torch.__version__.startswith("2.6")
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
                 with_stack=traced) as prof:
        workload.steps(steps)
    states = [value for state in workload.optimizer.state.values() for value in state.values()
              if torch.is_tensor(value)]
    with open(path + ".part", "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__, "steps": steps, "with_stack": traced,
                   "parameter_bytes": _bytes(workload.model.parameters()),
                   "state_bytes": _bytes(states),
                   "raw": raw_memory_timeline(prof, "cpu")}, out)
    os.rename(path + ".part", path)


def _bytes(tensors):
    return sum(one.numel() * one.element_size() for one in tensors)


MODULE = "nn.Module: "


class ModuleNames:
    """Names of modules as torch.profiler gives them: of each type in the order of first calls."""

    def __init__(self):
        self.names, self.counts = {}, {}

    def of(self, module):
        if id(module) not in self.names:
            kind = type(module).__name__
            number = self.counts[kind] = self.counts.get(kind, -1) + 1
            self.names[id(module)] = "%s%s_%d" % (MODULE, kind, number)
        return self.names[id(module)]


class CalledModule:
    """Wraps what Module.__call__ is, so that hooks lie within its range."""

    def __init__(self):
        self.names, self.call = ModuleNames(), torch.nn.Module.__call__

    def __enter__(self):
        names, call = self.names, self.call

        # record_function() calls operators of its own in 1.13.
        def called(module, *args, **kwargs):
            handle = torch.autograd._record_function_with_args_enter(names.of(module))
            try:
                return call(module, *args, **kwargs)
            finally:
                torch.autograd._record_function_with_args_exit(handle)

        torch.nn.Module.__call__ = called

    def __exit__(self, *_):
        torch.nn.Module.__call__ = self.call


def _by_module(events, around, calls, ops):
    """calls: module -> how often; ops: module, operator -> how often, by the innermost module."""
    for event in events:
        name, inner = _text(event.name), around
        if name.startswith(MODULE):
            inner = name
            calls[name] = calls.get(name, 0) + 1
        elif around and name not in DROPPED and name != MEMORY:
            ops[around, name] = ops.get((around, name), 0) + 1
        _by_module(event.children, inner, calls, ops)


def _traced_modules(events, calls):
    """What torch.profiler's Python tracer calls modules."""
    for event in events:
        name = _text(event.name)
        if name.startswith(MODULE):
            calls[name] = calls.get(name, 0) + 1
        _traced_modules(event.children, calls)


def record_modules(workload, steps, path):
    """Does the steps under torch.profiler with a range for each call of a module, and once more with
    its own Python tracer; writes the calls of each module and the operators in them to path."""
    calls, ops, traced = {}, {}, None
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with CalledModule():
            workload.steps(steps)
    _by_module(prof.profiler.kineto_results.experimental_event_tree(), None, calls, ops)
    # The Python tracer of 2.6 crashes with Python 3.13.
    if not torch.__version__.startswith("2.6"):
        traced = {}
        with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
            workload.steps(steps)
        _traced_modules(prof.profiler.kineto_results.experimental_event_tree(), traced)
    with open(path + ".part", "w", encoding="utf-8") as out:
        json.dump({"calls": calls, "traced": traced,
                   "ops": [[*key, count] for key, count in sorted(ops.items())]}, out)
    os.rename(path + ".part", path)


def _is_operator(event):
    name = _text(event.name)
    return "::" in name and name not in DROPPED and "(" not in name


def _functions(events, calls):
    """calls: name -> how many calls have an operator in them. Whether there is one here."""
    any_here = False
    for event in events:
        name = _text(event.name)
        inner = _functions(event.children, calls)
        if inner and (name.startswith(MODULE) or ".py(" in name):
            calls[name] = calls.get(name, 0) + 1
        any_here |= inner or _is_operator(event)
    return any_here


def record_functions(workload, steps, path):
    """Does the steps under torch.profiler's Python tracer; which functions have calls with operators
    in them, to path. Nothing with 2.6, whose tracer crashes with Python 3.13."""
    calls = {}
    if not torch.__version__.startswith("2.6"):
        with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
            workload.steps(steps)
        _functions(prof.profiler.kineto_results.experimental_event_tree(), calls)
    with open(path + ".part", "w", encoding="utf-8") as out:
        json.dump({"calls": calls}, out)
    os.rename(path + ".part", path)
