#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes the golden files of tests/unit/test_output_table_text.c with PyTorch's own table code.

Run it with a PyTorch of 2.14 or later (table(time_unit=) is as young as that):

    python3 -B tests/golden/make_table.py [--events]

table_events.tsv   one event a line, tab separated; what the C test builds a recording from.
                   op: instance parent tid start_ns end_ns scope flags sequence name overload
                   mem: time_ns instance tid address bytes flags
                   --events makes it anew; without, it is read.
table_text.txt     sections "### OPTIONS" and the table that PyTorch prints for these events.
table_gpu_events.tsv, table_gpu_text.txt   the same with API calls and what they made the GPU do:
                   api: instance tid start_ns end_ns correlation cbid flags name
                   gpu: kind correlation device stream start_ns end_ns bytes copy_kind src dst name
table_stack_events.tsv, table_stack_text.txt   ops with stacks, forward and backward:
                   frame: id line file function
                   stack: id frames, innermost first, with commas between
                   sop: instance parent tid start_ns end_ns scope sequence forward_thread
                        thread_number stack name overload
                   PyTorch does not say that a stack is that of a forward op; we do, so its code
                   gets the text with the mark in it.
table_cuda.tsv     rows with GPU times, as numbers, and table_cuda.txt what PyTorch prints for them.
"""
import os
import random
import sys

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, _filter_name, _rewrite_name

HERE = os.path.dirname(os.path.abspath(__file__))
FUNCTION, BACKWARD, USER = 0, 1, 7
ASYNC = 4
FREE, SIZE_UNKNOWN = 1, 2

CASES = [
    "",
    "limit=0",
    "limit=3",
    "sort=self_cpu_time_total limit=10",
    "sort=cpu_time_total",
    "sort=cpu_time",
    "sort=count",
    "sort=cpu_memory_usage limit=8",
    "sort=self_cpu_memory_usage limit=-1",
    "sort=cuda_time_total",
    "sort=self_cuda_memory_usage limit=4",
    "sort=flops limit=4",
    "unit=s limit=5",
    "unit=ms limit=5",
    "unit=us limit=5",
    "top=1",
    "top=1 header=All_of_it sort=cpu_time_total",
    "header=Profile",
    "overload=1",
    "overload=1 sort=count limit=12",
    "memory=0 sort=self_cpu_time_total",
    "width=20 limit=6",
]

GPU_CASES = [
    "",
    "limit=4",
    "sort=cuda_time_total",
    "sort=self_cuda_time_total limit=8",
    "sort=cuda_time",
    "sort=device_time_total top=1",
    "sort=self_cpu_time_total",
    "sort=count limit=12",
    "unit=s sort=cuda_time_total",
    "unit=us",
    "top=1",
    "overload=1",
    "memory=0",
    "width=75",
]

STACK_CASES = [
    "stack=1",
    "stack=2 sort=cpu_time_total",
    "stack=3 limit=4",
    "stack=7",
    "stack=7 memory=0 sort=count",
    "stack=2 overload=1",
    "stack=2 top=1",
    "stack=1 width=20 unit=ms",
]

BACKWARD_MARK = " [backward]"
FRAMES = [
    (1, 37, "train.py", "<module>"),
    (2, 12, "train.py", "step"),
    (3, 13, "train.py", "step"),
    (4, 1194, "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", "Module._call_impl"),
    (5, 114, "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py",
     "Linear.forward.<locals>.a_name_that_makes_it_longer_than_the_column"),
    (6, 488, "/usr/lib/python3/dist-packages/torch/_tensor.py", "Tensor.backward"),
    (7, 0, "modell_größe.py", "vorwärts"),
]
STACKS = {1: (5, 4, 2, 1), 2: (7, 4, 2, 1), 3: (6, 3, 1), 4: (3, 1), 5: (1,)}

# CUPTI's kinds: of work, of copies, of memory.
KERNEL, COPY, SET = 0, 1, 2
CUPTI, DRIVER = 1, 2
KERNELS = [
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEvi"
    "T0_T1_",
    "_Z6reducePKfPfi",
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_functor"
    "IfffEclERNS_14TensorIteratorEEUlffE_EEjfLi4EEEEEvT1_",
    "ampere_sgemm_32x128_tn",
    "_Znot_a_mangled_name",
    "f",
    "_ZN12_GLOBAL__N_16kernelIJidEEEvDpT_",
]
COPIES = [
    (COPY, 1, 1, 3, "cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)"),
    (COPY, 2, 3, 2, "cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)"),
    (COPY, 8, 3, 3, "cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)"),
    (SET, 0, 3, 0, "cudaMemsetAsync", "Memset (Device)"),
]


# ---- events ----

class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.serial = 0
        self.address = 0x1000
        self.live = {}

    def between(self, low, high):
        return self.random.randint(low, high)

    def memory(self, instance, tid, time_ns):
        # Freed on its own thread: times of different threads are made one after the other.
        live = self.live.setdefault(tid, [])
        if live and self.random.random() < 0.4:
            address = live.pop(self.random.randrange(len(live)))
            self.lines.append(("mem", time_ns, instance, tid, address, 0, FREE | SIZE_UNKNOWN))
            return
        size = self.random.choice([4, 1000, 1024, 40960, 1048576, 3 << 20, 5 << 28])
        self.address += 64
        live.append(self.address)
        self.lines.append(("mem", time_ns, instance, tid, self.address, size, 0))

    def op(self, tid, parent, at, spec):
        """One op and what is in it; the time when it has ended."""
        name, overload, scope, children = spec
        self.serial += 1
        instance = (tid << 32) + self.serial
        start, at = at, at + self.between(300, 4000)
        sequence = self.serial if scope == BACKWARD else -1
        for child in children:
            if self.random.random() < 0.5:
                self.memory(instance, tid, at)
                at += self.between(50, 900)
            at = self.op(tid, instance, at, child) + self.between(100, 2500)
        if self.random.random() < 0.3:
            self.memory(instance, tid, at)
            at += self.between(1, 900000)
        self.lines.append(("op", instance, parent, tid, start, at, scope, 0, sequence, name,
                           overload))
        return at


class GpuMaker(Maker):
    """Ops that launch: each call lies between the op's children."""

    def __init__(self, seed):
        super().__init__(seed)
        self.correlation = 0
        self.free_at = {}

    def work(self, at, kind, sizes, name):
        stream = self.random.choice([7, 7, 7, 13])
        start = max(at + self.between(900, 90000), self.free_at.get(stream, 0))
        end = self.free_at[stream] = start + self.between(800, 700000)
        self.lines.append(("gpu", kind, self.correlation, 0, stream, start, end, *sizes, name))

    def call(self, instance, tid, at, name, flags=CUPTI):
        end = at + self.between(1500, 30000)
        self.correlation += 1
        self.lines.append(("api", instance, tid, at, end, self.correlation, 211, flags, name))
        return end

    def calls(self, instance, tid, at):
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            choice = self.random.random()
            begin = at + self.between(100, 900)
            if choice < 0.7:
                driver = choice < 0.1
                at = self.call(instance, tid, begin,
                               "cuLaunchKernel" if driver else "cudaLaunchKernel",
                               CUPTI | (DRIVER if driver else 0))
                self.work(begin, KERNEL, (0, 0, 0, 0), self.random.choice(KERNELS))
            elif choice < 0.9:
                kind, copy, source, target, function, name = self.random.choice(COPIES)
                at = self.call(instance, tid, begin, function)
                self.work(begin, kind, (self.between(4, 1 << 20), copy, source, target), name)
            else:
                at = self.call(instance, tid, begin, "cudaStreamSynchronize")
        return at

    def op(self, tid, parent, at, spec):
        name, overload, scope, children = spec
        self.serial += 1
        instance = (tid << 32) + self.serial
        start, at = at, at + self.between(300, 4000)
        for child in children:
            if scope != USER and not _filter_name(name):
                at = self.calls(instance, tid, at) + self.between(50, 900)
            if self.random.random() < 0.2:
                self.memory(instance, tid, at)
                at += self.between(50, 900)
            at = self.op(tid, instance, at, child) + self.between(100, 2500)
        # What PyTorch leaves out of its list launches nothing, so it has no rule for that.
        if scope != USER and not _filter_name(name):
            at = self.calls(instance, tid, at)
        at += self.between(1, 90000)
        self.lines.append(("op", instance, parent, tid, start, at, scope, 0, -1, name, overload))
        return at


class StackMaker(Maker):
    """Ops with stacks; each linear's backward runs on another thread."""

    def stacked(self, parent, at, tid, name, stack, sequence=-1, forward=0, scope=FUNCTION,
                overload="", children=()):
        self.serial += 1
        instance = (tid << 32) + self.serial
        start, at = at, at + self.between(300, 4000)
        for child in children:
            at = self.stacked(instance, at, tid, **child) + self.between(100, 2500)
        self.lines.append(("sop", instance, parent, tid, start, at, scope, sequence, forward,
                           tid // 100, stack, name, overload))
        return at

    def step(self, at, number):
        addmm = {"name": "aten::addmm", "stack": 1, "sequence": 2 * number}
        at = self.stacked(0, at, 100, "aten::linear", 1, 2 * number, children=[
            {"name": "aten::t", "stack": 1}, addmm]) + 900
        at = self.stacked(0, at, 100, "aten::relu", 2, 2 * number + 1) + 900
        for sequence, name in ((2 * number + 1, "Relu"), (2 * number, "Addmm")):
            node = {"name": name + "Backward0", "stack": 3,
                    "children": [{"name": "aten::mm", "stack": 3}] * (1 + (name == "Addmm"))}
            at = self.stacked(0, at, 200, "autograd::engine::evaluate_function: " + name +
                              "Backward0", 3, sequence, 1, BACKWARD, children=[node]) + 300
        for stack in (4, 4, 5, 0):
            at = self.stacked(0, at, 100, "aten::mm", stack, overload="out") + 200
        return at


def leaf(name, overload="", scope=FUNCTION):
    return (name, overload, scope, [])


def step(number):
    linear = ("aten::linear", "", FUNCTION,
              [leaf("aten::t"), ("aten::addmm", "", FUNCTION, [leaf("aten::expand")])])
    # The parent's only child of the same name, twice over; and a name that the table leaves out.
    to = ("aten::to", "dtype", FUNCTION,
          [("aten::to", "dtype_layout", FUNCTION,
            [("aten::to", "other", FUNCTION, [leaf("aten::_to_copy"), leaf("aten::copy_")])])])
    hidden = ("aten::mul", "Tensor", FUNCTION,
              [("aten::_version", "", FUNCTION, [leaf("aten::mul", "out")])])
    recursive = ("aten::sum", "", FUNCTION,
                 [leaf("aten::sum", "dim_IntList"), leaf("aten::sum", "dim_IntList")])
    backward = ("autograd::engine::evaluate_function: AddmmBackward0", "", BACKWARD,
                [("AddmmBackward0", "", FUNCTION, [leaf("aten::mm"), leaf("aten::mm")])])
    long = leaf("a_user_annotation_whose_name_is_longer_than_the_column_of_names_can_be", "", USER)
    return (f"ProfilerStep#{number}", "", USER,
            [linear, to, hidden, long, recursive, leaf("aten::is_leaf"),
             leaf("aten::add", "Tensor"), leaf("aten::add", "Scalar"), backward,
             ("Optimizer.step#SGD.step", "", USER, [leaf("aten::add_", "Tensor")])])


def make_events():
    maker = Maker(20)
    at = 1000003
    for number in range(3):
        at = maker.op(100, 0, at, step(number)) + 777
        maker.memory(0, 100, at)
        at += 13
    other = 1000007
    for _ in range(4):
        other = maker.op(200, 0, other, leaf("aten::mm")) + 40011
    maker.op(200, 0, other, leaf("aten::is_leaf"))
    maker.op(300, 0, 2222222, ("aten::slow", "", FUNCTION, [leaf("aten::copy_")]))
    maker.lines.append(("op", (400 << 32) + 1, 0, 400, 1500000, 9512345, FUNCTION, ASYNC, -1,
                        "rpc_async#work", ""))
    maker.lines.append(("op", (500 << 32) + 1, 0, 500, 1600000, 1600000, USER, 0, -1,
                        "größe ☃", ""))
    return maker.lines


def make_gpu_events():
    # An average right between two printed digits rounds as the errors of PyTorch's sums of doubles
    # have it; with this seed there is none.
    maker = GpuMaker(27)
    at = 1000003
    for number in range(3):
        at = maker.op(100, 0, at, step(number)) + 777
    # Calls of no op.
    maker.calls(0, 100, at)
    for _ in range(3):
        at = maker.calls(0, 300, at) + 1000
    at = 1200000
    for _ in range(5):
        at = maker.op(200, 0, at, leaf("aten::mm")) + 5011
    # Work whose call is not known.
    maker.correlation += 1
    maker.work(at, KERNEL, (0, 0, 0, 0), KERNELS[0])
    return maker.lines


def make_stack_events():
    maker = StackMaker(30)
    at = 1000003
    for number in range(3):
        at = maker.step(at, number)
    return [("frame", *frame) for frame in FRAMES] + \
        [("stack", number, ",".join(map(str, frames))) for number, frames in STACKS.items()] + \
        maker.lines


def save(name, text):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
        file.write(text)


def load_events(name):
    lines = []
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            texts = {"op": 2, "mem": 0, "api": 1, "gpu": 1, "frame": 2, "stack": 1,
                     "sop": 2}[fields[0]]
            numbers = fields[1:len(fields) - texts]
            lines.append((fields[0], *map(int, numbers), *fields[len(fields) - texts:]))
    return lines


# ---- PyTorch's own list of events ----

def memory_records(lines):
    """(time, tid, bytes) of each allocation and free."""
    live, records = {}, []
    for _, time_ns, _, tid, address, size, flags in sorted(
            (line for line in lines if line[0] == "mem"), key=lambda line: line[1]):
        if flags & FREE:
            records.append((time_ns, tid, -live.pop(address)))
        else:
            live[address] = size
            records.append((time_ns, tid, size))
    return records


def event(number, name, tid, start, end, **more):
    return FunctionEvent(id=number, name=_rewrite_name(name, with_wildcard=True), trace_name=name,
                         thread=tid, start_us=start / 1000, end_us=end / 1000, input_shapes=[],
                         **{"overload_name": "", "use_device": "cuda", "stack": [], **more})


def annotation_of(instance, raw):
    """The innermost annotation around an op, itself included; None: there is none."""
    while instance in raw and raw[instance][6] != USER:
        instance = raw[instance][2]
    return instance if instance in raw else None


def gpu_events(lines, ops):
    """API calls and GPU work; the work is noted at the op whose call asked for it, and under the
    annotation on each stream."""
    events, op_of, spans = [], {}, {}
    raw = {line[1]: line for line in lines if line[0] == "op"}
    for line in lines:
        if line[0] == "api":
            _, instance, tid, start, end, correlation, _, _, name = line
            op_of[correlation] = instance
            events.append(event(-1, name, tid, start, end))
    for line in lines:
        if line[0] != "gpu":
            continue
        _, _, correlation, device, stream, start, end, _, _, _, _, name = line
        work = event(-1, name, stream, start, end, device_type=DeviceType.CUDA)
        events.append(work)
        if op_of.get(correlation) in ops:
            ops[op_of[correlation]].append_kernel(work.name, device,
                                                  work.time_range.end - work.time_range.start)
        annotation = annotation_of(op_of.get(correlation), raw)
        if annotation is not None:
            low, high = spans.get((annotation, device, stream), (start, end))
            spans[annotation, device, stream] = min(low, start), max(high, end)
    for (annotation, _, stream), (start, end) in spans.items():
        events.append(event(-1, raw[annotation][9], stream, start, end, device_type=DeviceType.CUDA,
                            is_user_annotation=True))
    return events


def function_events(lines):
    records, events, inside, ops = memory_records(lines), [], set(), {}
    for line in lines:
        if line[0] != "op" or _filter_name(line[9]):
            continue
        _, instance, _, tid, start, end, scope, flags, sequence, name, overload = line
        mine = [i for i, (time_ns, on, _) in enumerate(records)
                if on == tid and start <= time_ns <= end]
        inside.update(mine)
        events.append(event(len(events) + 1, name, tid, start, end, scope=scope, fwd_thread=0,
                            overload_name=overload, sequence_nr=sequence,
                            is_async=bool(flags & ASYNC), is_user_annotation=scope == USER,
                            cpu_memory_usage=sum(records[i][2] for i in mine)))
        ops[instance] = events[-1]
    for i, (time_ns, tid, size) in enumerate(records):
        if i not in inside:
            events.append(event(len(events) + 1, "[memory]", tid, time_ns, time_ns,
                                cpu_memory_usage=size))
    events += gpu_events(lines, ops)
    events.sort(key=lambda e: [e.time_range.start, -e.time_range.end])
    return events


def stacked_events(lines):
    frames = {line[1]: "%s(%d): %s" % (line[3], line[2], line[4])
              for line in lines if line[0] == "frame"}
    stacks = {line[1]: [frames[int(number)] for number in line[2].split(",")]
              for line in lines if line[0] == "stack"}
    events = []
    for line in lines:
        if line[0] != "sop":
            continue
        _, _, _, _, start, end, scope, sequence, forward, thread, stack, name, overload = line
        events.append(event(len(events) + 1, name, thread, start, end, scope=scope,
                            fwd_thread=forward, overload_name=overload, sequence_nr=sequence,
                            is_async=False, is_user_annotation=scope == USER,
                            stack=list(stacks.get(stack, []))))
    events.sort(key=lambda e: [e.time_range.start, -e.time_range.end])
    return events


def mark_backward(events):
    for one in events:
        at = one
        while at is not None and at.scope != BACKWARD:
            at = at.cpu_parent
        if at is not None and one.stack:
            one.stack = [one.stack[0] + BACKWARD_MARK, *one.stack[1:]]


def table(lines, case):
    options = dict(word.split("=") for word in case.split())
    stacked = any(line[0] == "sop" for line in lines)
    events = EventList(stacked_events(lines) if stacked else function_events(lines),
                       use_device="cuda", profile_memory=options.get("memory") != "0")
    events._build_tree()
    mark_backward(events)
    averages = events.key_averages(group_by_overload_name="overload" in options,
                                   group_by_stack_n=int(options.get("stack", 0)))
    return averages.table(sort_by=options.get("sort"), row_limit=int(options.get("limit", 100)),
                          header=options.get("header"), time_unit=options.get("unit"),
                          top_level_events_only="top" in options,
                          max_name_column_width=int(options.get("width", 55)))


# ---- rows with GPU times ----

def cuda_averages():
    """Ops with kernels, kernels, and an annotation's span on the GPU."""
    def cpu(number, name, start, end, memory=0, device_memory=0):
        return event(number, name, 1, start, end, cpu_memory_usage=memory,
                     device_memory_usage=device_memory)

    def gpu(number, name, start, end, annotation=False):
        return event(number, name, 7, start, end, device_type=DeviceType.CUDA,
                     is_user_annotation=annotation)

    ops = [cpu(1, "aten::linear", 0, 90123, 0, 5 << 20),
           cpu(2, "aten::addmm", 1000, 80123, 64, 5 << 20),
           cpu(3, "aten::mm", 100000, 1300456, -2048, -100), cpu(4, "cudaLaunchKernel", 2000, 7000)]
    ops[1].append_kernel("sgemm", 0, 1234.567)
    ops[2].append_kernel("sgemm", 0, 2234.567)
    ops[2].append_kernel("reduce", 0, 2.125)
    events = ops + [gpu(5, "sgemm", 50000, 1284567), gpu(6, "sgemm", 1300000, 3534567),
                    gpu(7, "reduce", 3534567, 3536692), gpu(8, "step", 50000, 3536692, True)]
    events = EventList(events, use_device="cuda", profile_memory=True)
    events._build_tree()
    return events.key_averages()


def cuda_rows(averages):
    lines = []
    for row in averages:
        times = (row.self_cpu_time_total, row.cpu_time_total, row.self_device_time_total,
                 row.device_time_total)
        lines.append("\t".join(map(str, (
            row.key, int(row.device_type == DeviceType.CUDA), int(bool(row.is_user_annotation)),
            row.count, *(round(time * 1000) for time in times), row.self_cpu_memory_usage,
            row.cpu_memory_usage, row.self_device_memory_usage, row.device_memory_usage))))
    return "\n".join(lines) + "\n"


def make(events, text, make_lines, cases):
    if "--events" in sys.argv[1:]:
        save(events, "".join("\t".join(map(str, line)) + "\n" for line in make_lines()))
    lines = load_events(events)
    save(text, "".join(f"### {case}\n{table(lines, case)}" for case in cases))


def main():
    make("table_events.tsv", "table_text.txt", make_events, CASES)
    make("table_gpu_events.tsv", "table_gpu_text.txt", make_gpu_events, GPU_CASES)
    make("table_stack_events.tsv", "table_stack_text.txt", make_stack_events, STACK_CASES)
    averages = cuda_averages()
    save("table_cuda.tsv", cuda_rows(averages))
    save("table_cuda.txt", averages.table())


main()
