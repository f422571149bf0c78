# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What gpuprof tells of some steps, beside what torch.profiler tells of as many."""

import statistics

# A library that has the runtime linked in (NCCL) calls the driver, which is what uprobes see of it;
# CUPTI, and so torch.profiler, tells of the runtime.
API_CALLS = {
    "kernels launched": ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel",
                         "cuLaunchKernelEx"),
    "copies": ("cudaMemcpyAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
               "cuMemcpyDtoDAsync_v2", "cuMemcpyAsync"),
    "memory set": ("cudaMemsetAsync", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async"),
    "graphs launched": ("cudaGraphLaunch", "cuGraphLaunch"),
    "streams waited for": ("cudaStreamSynchronize", "cuStreamSynchronize"),
}
OPERATORS = ("aten::", "autograd::", "c10d::", "nccl:")


def lost_events(losses):
    """Of what is lost, what should not have been."""
    return [name for name in ("ring_full", "collector_full", "cupti_time", "cupti_clock",
                              "cupti_dropped", "gpu_unmatched", "launch_unmatched", "gpu_early")
            if losses.get(name)]


def compare_calls(results, name, ours, theirs):
    pairs = {what: tuple(sum(calls.get(name, 0) for name in names) for calls in (ours, theirs))
             for what, names in API_CALLS.items()}
    results.check("%s: CUDA calls as often as torch.profiler says" % name,
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
    versions = [key for key in ("cupti_version", "cuda_runtime_version", "cuda_driver_version") if key in theirs]
    lacking += [(key, ours.get(key), theirs[key]) for key in versions if ours.get(key) != theirs[key]]
    results.check("properties of devices and versions as in Kineto's trace",
                  ours["deviceProperties"] and not lacking,
                  "%d versions; different: %s" % (len(versions), lacking))


def compare(results, ours, theirs, what=""):
    counts = {name: (ours.get(name, {"calls": 0})["calls"], theirs.get(name, {"calls": 0})["calls"])
              for name in set(ours) | set(theirs)}
    wrong = {"%s (%d bytes)" % (name[:80], len(name)): pair for name, pair in counts.items()
             if pair[0] != pair[1]}
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
    names = {name for name in set(ours) | set(theirs) if name.startswith(OPERATORS)}
    wrong = {name: (ours.get(name, 0), theirs.get(name, 0)) for name in names
             if ours.get(name, 0) != theirs.get(name, 0)}
    # A graph's launch calls none.
    results.check(what + "operators as often as torch.profiler says",
                  (names or what == "graph: ") and not wrong,
                  "%d names; different: %s" % (len(names), wrong))


def compare_device(results, ours, theirs, what=""):
    """Self CUDA and CUDA total of each operator, of other steps of the same program."""
    if theirs is None:
        return
    names = {name for name in theirs if name.startswith(OPERATORS) and theirs[name][2]}
    # The piece of work in whose launch CUPTI asks for a buffer is under both, and so twice in the
    # total of what is around them.
    twice = theirs.get("Activity Buffer Request", (0, 0, 0))[2]
    wrong = {}
    for name in names:
        calls, *kineto = theirs[name]
        mine = ours.get(name, (0, 0))
        bounds = [max(0.05 * one, 1.0 * calls) for one in kineto]
        if abs(mine[0] - kineto[0]) > bounds[0] or \
                min(abs(mine[1] - kineto[1]), abs(mine[1] + twice - kineto[1])) > bounds[1]:
            wrong[name] = ([round(one, 1) for one in mine], kineto)
    results.check(what + "Self CUDA and CUDA total as torch.profiler's, within 5 % or 1 us a call",
                  (names or what == "graph: ") and not wrong,
                  "%d names with GPU time, the largest %s; different: %s" % (
                      len(names), max(((theirs[name][2], ours.get(name, (0, 0))[1], name)
                                       for name in names), default=None), wrong))
