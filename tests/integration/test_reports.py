# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What other tools' users know: the report of Lightning's SimpleProfiler, folders for TensorBoard's
plugin, and headers above tables.
"""

import collections
import re

import pytest

import harness

MARK = "[pl][profile]"
STEPS = 4
# Which files the plugin takes, and what is the worker's name.
TRACE = re.compile(r"^(.*?)(\.\d+)?\.pt\.trace\.json(\.gz)?$")


@pytest.fixture(scope="module")
def marked(recordings):
    path = recordings / "actions.gpuprof"
    with harness.Target("actions") as target:
        capture = harness.attach(target, path, "--memory", orders=lambda: target.step(STEPS))
        target.leave()
    assert capture.status == harness.DONE, capture.told
    return capture.recording


def report_of(recording):
    done = harness.gpuprof("export", recording.path, "--format", "lightning", "-o", "-")
    assert done.status == harness.DONE, done
    return done.stdout


def simple_report(actions, wall_ns):
    """SimpleProfiler's text, from its documented form: name -> durations in nanoseconds."""
    wide = max(len(name) for name in actions)

    def row(name, mean, calls, total, share):
        return "\n|  %s\t|  %s\t|  %s\t|  %s\t|  %s\t|" % (
            name.ljust(wide), *(text.ljust(15) for text in (mean, calls, total, share)))

    head = row("Action", "Mean duration (s)", "Num calls", "Total time (s)", "Percentage %")
    line = "\n" + "-" * len(head.expandtabs())
    wall = wall_ns / 1e9
    text = "Profiler Report\n" + line + head + line
    text += row("Total", "-", str(sum(map(len, actions.values()))), f"{wall:.5}", "100 %") + line
    for name, durations in sorted(actions.items(), key=lambda item: -sum(item[1])):
        total = sum(durations) / 1e9
        text += row(name, f"{total / len(durations):.5}", str(len(durations)), f"{total:.5}",
                    f"{100.0 * total / wall:.5}")
    return text + line + "\n"


def test_lightning_report_is_the_simple_profilers(marked):
    actions = collections.defaultdict(list)
    for event in marked.chrome()["traceEvents"]:
        if event["name"].startswith(MARK):
            actions[event["name"][len(MARK):]].append(int(event["dur"] * 1000))
    assert {name: len(all_) for name, all_ in actions.items()} == {
        "run_training_batch": STEPS,
        "[Strategy]SingleDeviceStrategy.training_step": STEPS,
        "[Strategy]SingleDeviceStrategy.backward": STEPS,
        "[LightningModule]Model.optimizer_step": STEPS,
        "[Strategy]SingleDeviceStrategy.validation_step": 2 * STEPS,
    }
    wall_ns = round(marked.table()["wall_us"] * 1000)
    assert report_of(marked) == simple_report(actions, wall_ns)


def test_hooks_from_python_stacks(recordings):
    """Without ranges: the time of operators in each hook, and nothing that was not measured."""
    path = recordings / "hooks.gpuprof"
    with harness.Target("actions", "--plain") as target:
        capture = harness.attach(target, path, "--stack", "python",
                                 orders=lambda: target.step(STEPS))
        target.leave()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]]
            for line in report_of(capture.recording).splitlines() if line.startswith("|")]
    by_name = {row[0]: row[1:] for row in rows[2:]}
    assert {"training_step", "validation_step", "backward"} <= set(by_name)
    for name in ("training_step", "validation_step"):
        mean, calls, total, share = by_name[name]
        assert (mean, calls) == ("-", "-")
        assert float(total) > 0 and 0 < float(share) < 100


def test_a_report_for_each_process(recordings, tmp_path):
    with harness.Target("actions") as one, harness.Target("actions") as other:
        with harness.Gpuprof("attach", "--pid", "%d,%d" % (one.pid, other.pid), "-o",
                             tmp_path / "two.gpuprof") as profiler:
            profiler.wait_recording()
            one.step(1)
            other.step(2)
            assert profiler.finish() == harness.DONE
        text = report_of(harness.Recording(tmp_path / "two.gpuprof"))
        for target, steps in ((one, 1), (other, 2)):
            part = text.split("Profile stats for: pid %d\nProfiler Report\n" % target.pid)[1]
            found = re.search(r"run_training_batch\s*\|\s*\S+\s*\|\s*(\d+)", part)
            assert int(found.group(1)) == steps
        folder = tmp_path / "runs"
        done = harness.gpuprof("export", tmp_path / "two.gpuprof", "--format", "tensorboard",
                               "-o", folder)
        assert done.status == harness.DONE, done
        workers = {}
        for file in folder.iterdir():
            name = TRACE.match(file.name)
            assert name and name.group(2)
            workers[name.group(1)] = loadable(file.read_text(encoding="utf-8"))
        assert {re.match("^(.*)_([0-9]+)", worker).group(2) for worker in workers} == {
            str(one.pid), str(other.pid)}
        for worker, pids in workers.items():
            assert pids == {int(worker.rsplit("_", 1)[1])}
        # The folder may be there already.
        again = harness.gpuprof("export", tmp_path / "two.gpuprof", "--format", "tensorboard",
                                "-o", folder)
        assert again.status == harness.DONE
        one.leave()
        other.leave()


def loadable(text):
    """What the plugin's loader needs, or it fails; the processes of the events."""
    assert '"traceEvents": [' in text
    trace = harness.parse_json(text)
    pids = set()
    for event in trace["traceEvents"]:
        assert "name" in event
        if event["ph"] != "X":
            continue
        pids.add(event["pid"])
        assert isinstance(event["cat"], str)
        assert isinstance(event["ts"], float) and isinstance(event["dur"], float)
        assert int(event["tid"]) >= 0
    return pids


def test_tensorboard_of_memory(marked, tmp_path):
    done = harness.gpuprof("export", marked.path, "--format", "tensorboard", "-o", tmp_path / "x")
    assert done.status == harness.DONE
    (file,) = (tmp_path / "x").iterdir()
    loadable(file.read_text(encoding="utf-8"))
    memory = [event["args"] for event in
              harness.parse_json(file.read_text(encoding="utf-8"))["traceEvents"]
              if event["name"] == "[memory]"]
    assert memory
    for args in memory:
        assert args["Device Type"] in (0, 1)
        assert {"Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved"} <= set(args)


def test_header_above_the_table(marked):
    plain = harness.gpuprof("table", marked.path, "--limit", "3").stdout
    headed = harness.gpuprof("table", marked.path, "--limit", "3", "--header", "Run 5").stdout
    rule, title, rest = headed.split("\n", 2)
    assert set(rule) == {"="} and title == "Run 5"
    assert rest == plain


def test_torch_profilers_sort_keys(marked):
    for key in ("cpu_time", "device_time_total", "self_device_memory_usage", "xpu_time_total",
                "self_cpu_memory_usage", "count"):
        assert harness.gpuprof("table", marked.path, "--sort", key).status == harness.DONE, key
