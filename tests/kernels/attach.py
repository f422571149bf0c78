# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What a guest does with gpuprof: each way of recording, against what the target itself says. Prints a
line for each: its name, "ok" or "failed", and why, tab-separated. Exit status 1 if one has failed.

usage: attach.py [CASE...]      (environment as in tests/integration/harness.py)
"""
import os
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

import harness  # noqa: E402

STEPS = 3
SPACES = ("aten::",)


def differences(ours, theirs):
    """name -> (ours, the target's) where they are not equal."""
    return {name: (ours.get(name), theirs.get(name)) for name in sorted(set(ours) | set(theirs))
            if ours.get(name) != theirs.get(name)}


def operators(rows, column="calls"):
    return {name: row[column] for name, row in rows.items() if name.startswith(SPACES)}


class Cases:
    """One target serves all of them."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.target = harness.Target("mlp")
        self.truth = self.target.truth(STEPS)["rows"]

    def record(self, name, *options):
        capture = harness.attach(self.target, self.folder / name, *options,
                                 orders=lambda: self.target.step(STEPS))
        assert capture.status in (harness.DONE, harness.LOST), capture.told
        return capture

    def probes_see(self, capture, column="calls"):
        """
        All operators, or where each probe has a price of its own those that were chosen, are counted
        as torch.profiler does; what is left out is counted.
        """
        ours = operators(capture.recording.rows(), column)
        theirs = operators(self.truth, column)
        if capture.recording.table()["capture"]["probe_method"] == "perf_event":
            assert capture.recording.losses()["probe"], capture.told
            theirs = {name: calls for name, calls in theirs.items() if name in ours}
        wrong = differences(ours, theirs)
        assert ours and not wrong, (column, wrong, capture.told)

    def callback(self):
        """Operators, annotations and autograd nodes, by callback."""
        capture = self.record("callback")
        assert "by callback" in capture.stderr, capture.told
        ours = {name: row["calls"] for name, row in capture.recording.rows().items()}
        theirs = {name: row["calls"] for name, row in self.truth.items() if name[0] != "["}
        assert not differences(ours, theirs), (differences(ours, theirs), capture.told)

    def no_inject(self):
        """By probes alone."""
        self.probes_see(self.record("no-inject", "--no-inject"))

    def memory_and_stacks(self):
        """Memory by operator, and Python's and native frames of the operators."""
        capture = self.record("memory", "--memory", "--stack", "both")
        self.probes_see(capture)
        if "uprobe_multi" in capture.stderr:
            self.probes_see(capture, "cpu_mem")
        done = harness.gpuprof("export", self.folder / "memory", "--format", "stacks", "-o",
                               self.folder / "stacks")
        text = (self.folder / "stacks").read_text()
        assert done.status in (harness.DONE, harness.LOST), done
        assert "mlp.py" in text and "libtorch" in text, text[-2000:]

    def sample(self):
        """Samples of a thread that computes, with its Python stack."""
        with harness.Gpuprof("attach", "--pid", self.target.pid, "-o", self.folder / "sample",
                             "--mode", "sample", "--no-inject") as profiler:
            profiler.wait_recording()
            self.target.command("ops 20")
            self.target.step(20 * STEPS)
            self.target.command("ops 1")
            status = profiler.finish()
            assert status in (harness.DONE, harness.LOST), profiler.told()
        done = harness.gpuprof("export", self.folder / "sample", "--format", "stacks", "-o",
                               self.folder / "sampled")
        text = (self.folder / "sampled").read_text()
        assert done.status in (harness.DONE, harness.LOST) and "mlp.py" in text, (done, text[-2000:])

    def run(self):
        """From the first instruction on."""
        path = self.folder / "run"
        script = "import torch\nfor _ in range(%d):\n torch.mm(torch.ones(2, 2), torch.ones(2, 2))"
        done = harness.gpuprof("run", "-o", path, "--", harness.PYTHON, "-c", script % STEPS)
        assert done.status in (harness.DONE, harness.LOST), done
        assert harness.Recording(path).rows()["aten::mm"]["calls"] == STEPS, done

    def detach(self):
        """No probe is left, and the target ends in good order."""
        assert harness.text_differences(self.target.pid) == {}
        self.target.step(1)
        self.target.leave()


CASES = ("callback", "no_inject", "memory_and_stacks", "sample", "run", "detach")


def main():
    failed = False
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        cases = Cases(folder)
        for name in sys.argv[1:] or CASES:
            words = "ok"
            try:
                getattr(cases, name)()
            except Exception as error:  # noqa: BLE001: the others are tried all the same
                traceback.print_exc()
                lines = str(error).splitlines() or [type(error).__name__]
                words = "failed\t" + lines[0][:160]
                failed = True
            print("%s\t%s" % (name, words), flush=True)
        harness.kill_all()
    harness.close_inside()
    return failed


if __name__ == "__main__":
    os.environ.setdefault("GPUPROF", harness.GPUPROF)
    sys.exit(main())
