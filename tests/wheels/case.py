# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
One wheel, in this process's environment (run.py made it): each check by each way, as a JSON object on standard
output. A check is "yes", or why it is "no".

usage: case.py PYTHON [FOLDER BOUND]        FOLDER is to be seen at BOUND, inside GPUPROF_ROOT_DIR
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import harness  # noqa: E402
import reference  # noqa: E402
import stack_truth  # noqa: E402

WAYS = {"callback": (), "uprobes": ("--no-inject",)}
STEPS = 5
NAMED = ("mlp", "lstm", "alloc", "raiser", "boxed")
SPACES = ("aten::", "gpuprof_test::")
# Counted at an ordinary pace, and no event less for it.
EXPECTED = {"free_unknown"}
EXPECTED_OF = {("raiser", "uprobes"): {"exception"},
               ("boxed", "uprobes"): {"exception", "script_unseen"}}
# How autograd's engine calls a node that torch.profiler does not tell as an operator of its own.
OURS_ALONE = ("autograd::engine::evaluate_function: ", "[memory]", "profiler::")


def operators(counts):
    return {name: count for name, count in counts.items() if name.startswith(SPACES)}


def differences(ours, theirs):
    return {name: (ours.get(name, 0), theirs.get(name, 0))
            for name in sorted(set(ours) | set(theirs)) if ours.get(name, 0) != theirs.get(name, 0)}


def verdict(what):
    """Of differences: "yes", or the first of them."""
    if not what:
        return "yes"
    first = "; ".join("%s %s" % item for item in list(what.items())[:3])
    return "no: %d differ: %s" % (len(what), first)


class Checks:
    """The checks of one way; what fails is a "no", not an end."""

    def __init__(self, way, folder):
        self.way, self.folder, self.found = way, folder, {}
        self.garbled, self.names = set(), set()

    def attach(self, target, name, *options, orders):
        done = harness.attach(target, self.folder / ("%s-%s.gpuprof" % (name, self.way)),
                              *options, *WAYS[self.way], orders=orders)
        assert done.status == harness.DONE, done.told
        assert ("by callback" in done.stderr) == (self.way == "callback"), done.stderr
        return done.recording

    def note(self, what, verdict_text):
        if self.found.get(what, "yes") == "yes":
            self.found[what] = verdict_text

    def run(self, what, function):
        try:
            function()
        except Exception as error:  # what goes wrong is the result
            self.note(what, "no: %s: %s" % (type(error).__name__, str(error)[:300]))
        harness.kill_all()

    def calls(self, name):
        with harness.Target(name) as target:
            recording = self.attach(target, name, "--memory", orders=lambda: target.step(STEPS))
            truth = target.truth(STEPS)
            target.leave()
        raw = reference.calls(recording.chrome()["traceEvents"])
        rows = recording.rows()
        self.note("calls", verdict(differences(operators(raw), operators(truth["raw_calls"]))))
        self.note("calls", verdict(differences(
            operators({row: value["calls"] for row, value in rows.items()}),
            operators({row: value["calls"] for row, value in truth["rows"].items()}))))
        self.names |= set(raw)
        self.garbled |= {row for row in set(raw) | set(rows) if row not in truth["raw_calls"] and
                         not row.startswith(OURS_ALONE)}
        lost = {loss: count for loss, count in recording.losses().items() if count}
        expected = EXPECTED | EXPECTED_OF.get((name, self.way), set())
        self.note("lost", verdict({"%s of %s" % (loss, name): count for loss, count in lost.items()
                                   if loss not in expected}))
        if name in ("mlp", "alloc", "lstm"):
            for column in ("cpu_mem", "self_cpu_mem"):
                ours = operators({row: value[column] for row, value in rows.items()})
                theirs = operators({row: value[column] for row, value in truth["rows"].items()})
                self.note("memory", verdict(differences(ours, theirs)))
        if name == "boxed":
            self.note("boxed", verdict(differences(
                {row: raw.get(row, 0) for row in ("gpuprof_test::a_name_that_is_not_short",
                                                  "gpuprof_test::twice", "aten::mul")},
                {row: truth["raw_calls"][row] for row in (
                    "gpuprof_test::a_name_that_is_not_short", "gpuprof_test::twice", "aten::mul")})))
            ranges = reference.calls(recording.chrome()["traceEvents"], ("user_annotation",))
            wanted = {row: truth["raw_calls"][row] for row in (
                "outer", "inner", "inside", "left by an error", "Optimizer.step#SGD.step")}
            self.note("ranges", verdict(differences(
                {row: ranges.get(row, 0) for row in wanted}, wanted)))

    def shapes(self, name):
        with harness.Target(name) as target:
            recording = self.attach(target, name + "-shapes", "--shapes",
                                    orders=lambda: target.step(STEPS))
            truth = target.truth(STEPS, "shapes")
            target.leave()
        rows = recording.table("--group-by", "shape")["rows"]
        ours = {row["name"] + " " + row["input_shapes"]: row["calls"] for row in rows
                if row["device"] == "CPU"}
        theirs = {row + " " + shapes: calls for row, shapes, calls in truth["rows"]}
        self.note("shapes", verdict(differences(ours, theirs)))

    def stacks(self):
        with harness.Target("stacks") as target:
            target.step(1)
            stack_truth.told(target)
            recording = self.attach(target, "stacks", "--stack", "python",
                                    orders=lambda: target.step(STEPS))
            expected = stack_truth.told(target)
            target.leave()
        number = stack_truth.compare(expected, stack_truth.recorded(recording))
        assert number > 100 * STEPS
        self.note("stacks", "yes")

    def modules(self):
        with harness.Target("modules") as target:
            recording = self.attach(target, "modules", "--modules",
                                    orders=lambda: target.step(STEPS))
            truth = target.truth(STEPS, "modules")
            target.leave()
        rows = {row["name"]: row["calls"] for row in
                recording.table("--group-by", "module")["rows"]
                if row["name"].startswith("nn.Module: ") and
                not row["name"].endswith(" [backward]")}
        assert len(truth["calls"]) > 5
        self.note("modules", verdict(differences(rows, truth["calls"])))

    def all(self):
        for name in NAMED:
            self.run("calls", lambda name=name: self.calls(name))
        if self.way == "callback":
            for name in ("mlp", "inputs", "layouts"):
                self.run("shapes", lambda name=name: self.shapes(name))
            self.run("modules", self.modules)
        self.run("stacks", self.stacks)
        self.found["garbled"] = sorted(self.garbled)
        self.found["names"] = len(self.names)
        return self.found


def main():
    harness.PYTHON = sys.argv[1]
    if len(sys.argv) > 2:
        os.makedirs(sys.argv[3], exist_ok=True)
        subprocess.run(["mount", "--bind", sys.argv[2], sys.argv[3]], check=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuprof-wheels-"))
    with harness.Target("mlp") as target:
        result = {"facts": target.facts}
        target.leave()
    for way in WAYS:
        result[way] = Checks(way, folder).all()
    harness.close_inside()
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
