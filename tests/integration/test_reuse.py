# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A pid that another process gets while gpuprof records: it is not the process that was meant."""

import os
import signal

import harness
from harness import DONE, Child, Gpuprof, Recording, Target

REBORN = os.path.join(harness.WORKLOADS, "reborn.py")


def test_another_process_under_the_same_pid(tmp_path):
    path = tmp_path / "reuse.gpuprof"
    with Target("mlp") as target:
        with Gpuprof("attach", "--pid", target.pid, "-o", path, "--no-inject") as profiler:
            profiler.wait_recording()
            target.step(5)
            # gpuprof sees nothing of the moment when nobody has the pid.
            profiler.signal(signal.SIGSTOP)
            target.signal(signal.SIGKILL)
            target.process.wait()
            with Child([harness.PYTHON, "-B", REBORN, str(target.pid),
                        *harness.inside().argv("lstm")], "reborn") as other:
                line, after = other.wait_line("stdout", lambda text: text.startswith("ready "))
                assert '"pid": %d,' % target.pid in line
                profiler.signal(signal.SIGCONT)
                # It ends by itself, and says why.
                assert profiler.wait() == DONE, profiler.told()
                assert "%d (python3) has ended" % target.pid in profiler.text("stderr"), (
                    profiler.told())
                assert harness.text_differences(target.pid) == {}
                other.send("step 1")
                assert other.wait_line("stdout", lambda text: True, after)[0] == "did 1"
    rows = Recording(path).rows()
    assert rows["aten::addmm"]["calls"] > 0 and rows["aten::addmm"]["calls"] % 5 == 0
    assert "aten::lstm" not in rows
