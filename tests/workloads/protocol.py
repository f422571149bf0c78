# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
How a workload talks: it prints "ready {json}" when its warm-up is done, then obeys one command
a line on its standard input and answers each with one line. No work is done between commands,
so what happens inside a capture is exactly what was ordered.

    step N          N steps                                   "did N"
    time N          N steps, timed; all threads' CPU time too "took SECONDS CPU_SECONDS"
    stamps N FILE   N steps, with the times of its parts      "stamps N"
    truth N FILE    N steps under torch.profiler, see truth   "truth N"
    times N FILE    the same without following memory         "times N"
    shapes N FILE   the same with record_shapes, see truth    "shapes N"
    categories N FILE
                    the same with its memory timeline, see truth
                                                              "categories N"
    flops N FILE    the same with with_flops, see truth       "flops N"
    cycles N FILE   N steps under a schedule, see truth       "cycles N"
    modules N FILE  N steps, by module, see truth             "modules N"
    functions N FILE
                    N steps, by Python function, see truth    "functions N"
    profile N [F]   the same under torch.profiler; with a file also its stop, table and trace
                                                              "profiled LOOP CPU STOP TABLE TRACE"
    profile_shapes N
                    the same with shapes                      "profiled LOOP CPU STOP"
    profile_all N   the same with stacks, shapes and memory   "profiled LOOP CPU STOP"
    exit            leave with status 0                       "bye"
"""

import argparse
import json
import os
import sys
import threading
import time

import torch


class Workload:
    """One named workload: step() does the work of one step. Subclasses add commands."""

    warmup = 3

    @classmethod
    def add_arguments(cls, parser):
        """Options of this workload alone."""

    def __init__(self, args):
        self.args = args
        self.stamps = None

    def step(self):
        raise NotImplementedError

    def steps(self, count):
        for _ in range(count):
            if self.stamps is not None:
                self.stamp("step")
            self.step()

    def begin_stamps(self):
        """From now on stamp(part) is to be called where a part of the work begins; steps do for one."""

    def stamp(self, part):
        """That a part of the work, one with the same name in each step, begins on this thread."""
        if self.stamps is not None:
            self.stamps.append((threading.get_native_id(), time.monotonic_ns(),
                                time.thread_time_ns(), part))

    def facts(self):
        """What the ready line tells besides pid and versions."""
        return {}

    def close(self):
        """Called before the workload leaves in good order."""

    def command(self, words):
        """A command of this workload alone; returns the answer, None when there is no such."""
        return None


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def ready_line(workload):
    facts = {
        "pid": os.getpid(),
        "tid": threading.get_native_id(),
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }
    facts.update(workload.facts())
    return "ready " + json.dumps(facts)


def profile(workload, steps, path=None, **extras):
    """Seconds of the loop under torch.profiler (its CPU seconds next), of its stop, its table and
    its trace."""
    from torch.profiler import ProfilerActivity

    prof = torch.profiler.profile(activities=[ProfilerActivity.CPU], **extras)
    prof.__enter__()
    cpu, begin = time.process_time(), time.monotonic()
    workload.steps(steps)
    marks, cpu = [begin, time.monotonic()], time.process_time() - cpu
    prof.__exit__(None, None, None)
    marks.append(time.monotonic())
    if path:
        prof.key_averages().table(sort_by="self_cpu_time_total")
        marks.append(time.monotonic())
        prof.export_chrome_trace(path)
        marks.append(time.monotonic())
    spans = ["%.9f" % (after - before) for before, after in zip(marks, marks[1:])]
    return "profiled " + " ".join([spans[0], "%.9f" % cpu, *spans[1:]])


def stamped(workload, steps, path):
    """Writes, a line each: thread, nanoseconds of the monotonic clock and of the thread's CPU time, part."""
    if workload.stamps is None:
        workload.begin_stamps()
    workload.stamps = []
    workload.steps(steps)
    workload.stamp("end")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines("%d %d %d %s\n" % stamp for stamp in workload.stamps)


def obey(workload, words):
    """The answer to one command line."""
    if words[0] == "step" and len(words) == 2:
        workload.steps(int(words[1]))
        return "did " + words[1]
    if words[0] == "time" and len(words) == 2:
        cpu, begin = time.process_time(), time.monotonic()
        workload.steps(int(words[1]))
        return "took %.9f %.9f" % (time.monotonic() - begin, time.process_time() - cpu)
    if words[0] == "stamps" and len(words) == 3:
        stamped(workload, int(words[1]), words[2])
        return "stamps " + words[1]
    if words[0] == "profile" and len(words) in (2, 3):
        return profile(workload, int(words[1]), words[2] if len(words) == 3 else None)
    if words[0] == "profile_shapes" and len(words) == 2:
        return profile(workload, int(words[1]), record_shapes=True)
    if words[0] == "profile_all" and len(words) == 2:
        return profile(workload, int(words[1]), with_stack=True, record_shapes=True,
                       profile_memory=True)
    if words[0] in ("truth", "times") and len(words) == 3:
        import truth

        truth.record(workload, int(words[1]), words[2], memory=words[0] == "truth")
        return "%s %s" % (words[0], words[1])
    if words[0] == "categories" and len(words) == 3:
        import truth

        truth.record_categories(workload, int(words[1]), words[2])
        return "categories " + words[1]
    if words[0] == "shapes" and len(words) == 3:
        import truth

        truth.record_shapes(workload, int(words[1]), words[2])
        return "shapes " + words[1]
    if words[0] in ("flops", "cycles", "modules", "functions") and len(words) == 3:
        import truth

        record = {"flops": truth.record_flops, "cycles": truth.record_cycles,
                  "modules": truth.record_modules,
                  "functions": truth.record_functions}[words[0]]
        record(workload, int(words[1]), words[2])
        return "%s %s" % (words[0], words[1])
    answer = workload.command(words)
    return answer if answer is not None else "unknown command: " + " ".join(words)


def arguments(cls):
    parser = argparse.ArgumentParser(description=cls.__doc__)
    parser.add_argument("--threads", type=int, default=1, help="intra-op threads")
    parser.add_argument("--truth", metavar="FILE", help="torch.profiler's account, then leave")
    parser.add_argument("--steps", type=int, default=None,
                        help="do this many steps and leave (no commands are read)")
    parser.add_argument("--endless", action="store_true", help="steps until it is killed")
    cls.add_arguments(parser)
    return parser.parse_args()


def main(cls):
    args = arguments(cls)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    workload = cls(args)
    if args.truth is None and args.steps is not None:
        workload.steps(args.steps)
        workload.close()
        say("did %d" % args.steps)
        return
    workload.steps(cls.warmup)
    if args.truth is not None:
        import truth

        truth.record(workload, args.steps or 10, args.truth)
        workload.close()
        return

    say(ready_line(workload))
    while args.endless:
        workload.step()
    for line in sys.stdin:
        words = line.split()
        if not words:
            continue
        if words == ["exit"]:
            break
        say(obey(workload, words))
    workload.close()
    say("bye")
