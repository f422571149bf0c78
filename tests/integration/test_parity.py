# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The set of ops, the calls of each and their memory equal what torch.profiler records for the same
steps, on each version of PyTorch.
"""

import pytest

import harness
import reference
from conftest import MODES, STEPS

pytestmark = pytest.mark.versions

# What may be counted in a capture at an ordinary pace; every other counter is zero.
EXPECTED = {("raiser", "probes"): {"exception"},
            ("boxed", "probes"): {"exception", "script_unseen"}}


SPACES = ("aten::", "gpuprof_test::")


def aten(calls):
    return {name: count for name, count in calls.items() if name.startswith(SPACES)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_every_call_is_in_the_trace(sample, mode, name):
    one = sample(name)
    ours = aten(reference.calls(one.recording_of(mode).chrome()["traceEvents"]))
    assert len(ours) > 0
    assert harness.differences(ours, aten(one.truth["raw_calls"])) == {}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_table_counts_the_calls_of_torch_profiler(sample, mode, name):
    one = sample(name)
    ours = {row: value["calls"] for row, value in one.recording_of(mode).rows().items()}
    theirs = {row: value["calls"] for row, value in one.truth["rows"].items()}
    assert harness.differences(aten(ours), aten(theirs)) == {}


@pytest.mark.parametrize("name", STEPS)
def test_callbacks_see_what_torch_profiler_sees(sample, name):
    """Annotations and autograd nodes too, not operators alone."""
    one = sample(name)
    # The targets wait for orders while gpuprof attaches: there is always a safe moment.
    assert "by callback" in one.captures["default"].stderr
    ours = {row: value["calls"] for row, value in one.recording.rows().items()}
    theirs = {row: value["calls"] for row, value in one.truth["rows"].items()}
    assert harness.differences(ours, theirs) == {}


def nested(events, categories):
    """(name, names of the slices around it) -> how often."""
    found = {}
    for slices in reference.slices_by_thread(events, categories).values():
        walk = [(one, ()) for one in reference.roots(slices)]
        while walk:
            one, around = walk.pop()
            found[one.name, around] = found.get((one.name, around), 0) + 1
            walk += [(child, around + (one.name,)) for child in one.children]
    return found


@pytest.mark.parametrize("name", ["boxed", "mlp"])
def test_ranges_are_told_by_probes_as_by_callbacks(sample, name):
    """record_function() and Optimizer.step#..., and how they nest."""
    one = sample(name)
    ours = nested(one.recording_of("probes").chrome()["traceEvents"], ["user_annotation"])
    theirs = nested(one.recording.chrome()["traceEvents"], ["user_annotation"])
    assert len(ours) > 0
    assert ours == theirs
    names = {row for row, _ in ours}
    assert {row: one.truth["raw_calls"][row] for row in names} == {
        row: sum(count for (other, _), count in ours.items() if other == row) for row in names}


def test_operators_lie_in_their_ranges(sample):
    one = sample("boxed")
    for mode in MODES:
        around = nested(one.recording_of(mode).chrome()["traceEvents"], None)
        twice = [parents for (row, parents), _ in around.items() if row == "gpuprof_test::twice"]
        assert twice == [("outer", "inner", "gpuprof_test::a_name_that_is_not_short")], mode


def test_script_functions_are_counted_where_they_are_not_told(sample):
    one = sample("boxed")
    assert one.recording.rows()["scripted"]["calls"] == one.steps
    assert one.recording_of("probes").losses()["script_unseen"] == one.steps
    assert one.recording_of("probes").losses()["boxed_unseen"] == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["alloc", "mlp", "lstm"])
@pytest.mark.parametrize("column", ["cpu_mem", "self_cpu_mem"])
def test_memory_columns_equal(sample, mode, name, column):
    one = sample(name)
    ours = {row: value[column] for row, value in one.recording_of(mode).rows().items()}
    theirs = {row: value[column] for row, value in one.truth["rows"].items()}
    assert any(aten(theirs).values())
    assert harness.differences(aten(ours), aten(theirs)) == {}


@pytest.mark.parametrize("mode", MODES)
def test_known_allocations(sample, mode):
    one = sample("alloc")
    rows = one.recording_of(mode).rows()
    for name, per_step in one.facts["allocated"].items():
        assert rows[name]["cpu_mem"] == per_step * one.steps, name
    # What the ops allocated was freed outside any op.
    freed = sum(row["self_cpu_mem"] for name, row in rows.items() if name.startswith("aten::"))
    assert rows["[memory]"]["cpu_mem"] == -freed


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_nothing_was_lost(sample, mode, name):
    losses = sample(name).recording_of(mode).losses()
    counted = {loss for loss, count in losses.items() if count}
    # What a step frees may be what the step before the capture allocated.
    counted.discard("free_unknown")
    assert counted == EXPECTED.get((name, mode), set()), losses


def test_overhead_is_measured(sample):
    one = sample("mlp")
    cost = one.recording_of("probes").table()["overhead"]
    events = sum(row["calls"] for row in one.recording_of("probes").rows().values())
    # An entry and an exit each, more for what the table leaves out.
    assert cost["probe_hits"] >= 2 * events - one.recording_of("probes").rows()["[memory]"]["calls"]
    assert 0 < cost["probe_program_runs"] <= cost["probe_hits"]
    assert cost["probe_trap_ns"] > 0 and cost["probe_program_ns"] > 0
    assert cost["probe_ns_per_hit"] >= cost["probe_program_ns"]
    assert cost["callback_ops"] == 0 and 0 < cost["share_of_wall"] < 1
    cost = one.recording.table()["overhead"]
    assert cost["callback_ops"] >= events / 2
    assert cost["callback_timed"] > 0 and cost["callback_ns"] > 0
    assert 0 < cost["share_of_wall"] < 1


@pytest.fixture(scope="module")
def long_enough(tmp_path_factory):
    """A mean needs a hundred callbacks that were timed, of 251 each."""
    folder = tmp_path_factory.mktemp("compensate")
    with harness.Target("mlp") as target:
        capture = harness.attach(target, folder / "trace.gpuprof", orders=lambda: target.step(100))
        windows = harness.attach(target, folder / "windows.gpuprof", "--overhead", "50",
                                 orders=lambda: target.step(100))
        samples = harness.attach(target, folder / "samples.gpuprof", "--mode", "sample",
                                 orders=lambda: target.step(100))
        target.leave()
    return [one.recording for one in (capture, windows, samples)]


def self_total_ns(recording, *options):
    done = harness.gpuprof("table", recording.path, "--time-unit", "us", *options)
    line = next(line for line in done.stdout.splitlines() if line.startswith("Self CPU time total: "))
    return round(float(line.split()[-1].removesuffix("us")) * 1000)


def number_within_others(events):
    """How many lie within another one of their thread."""
    spans = sorted((event["tid"], start, -end) for event in events
                   for start in [round(event["ts"] * 1000)] for end in [start + round(event["dur"] * 1000)])
    number, ends, thread = 0, [], None
    for tid, start, end in spans:
        if tid != thread:
            thread, ends = tid, []
        while ends and ends[-1] <= start:
            ends.pop()
        number += bool(ends)
        ends.append(-end)
    return number


def test_compensated_for_callbacks(long_enough):
    """Exactly what was measured of them is taken off, of all rows together."""
    recording = long_enough[0]
    plain, less = (recording.table("--limit", "-1", *options) for options in ((), ("--compensate",)))
    each, plain_rows = less["compensated"]["callback_ns"], {row["name"]: row for row in plain["rows"]}
    assert each == plain["overhead"]["callback_ns"] and "compensated" not in plain
    assert less["compensated"]["callback_timed"] == plain["overhead"]["callback_timed"] >= 100
    for row in less["rows"]:
        before = plain_rows[row["name"]]
        assert {key for key in row if row[key] != before[key]} <= {"self_cpu_us", "cpu_total_us"}
        assert 0 <= row["self_cpu_us"] <= before["self_cpu_us"]
        assert row["self_cpu_us"] <= row["cpu_total_us"] <= before["cpu_total_us"]
        callbacks = (before["self_cpu_us"] - row["self_cpu_us"]) / (each / 1000)
        assert row["self_cpu_us"] == 0 or abs(callbacks - 2 * round(callbacks / 2)) < 0.1
    within = number_within_others([event for event in recording.chrome()["traceEvents"]
                     if event["ph"] == "X" and event["cat"] in ("cpu_op", "user_annotation")])
    assert within > 10000
    for options in ((), ("--group-by", "overload"), ("--group-by", "module")):
        assert self_total_ns(recording, *options) - self_total_ns(recording, "--compensate", *options) \
            == 2 * each * within
    linear, addmm = (plain_rows["aten::" + name] for name in ("linear", "addmm"))
    short = next(row for row in less["rows"] if row["name"] == "aten::linear")
    assert linear["calls"] == addmm["calls"]
    assert round((linear["self_cpu_us"] - short["self_cpu_us"]) * 1000) == 4 * each * linear["calls"]
    shown = harness.gpuprof("table", recording.path, "--compensate").stdout
    assert "without gpuprof's callbacks, two for each operator at %d ns each" % each in shown


def test_compensation_says_why_not(sample, long_enough, tmp_path):
    recording, windows, samples = (one.path for one in long_enough)
    cut, merged = tmp_path / "cut.gpuprof", tmp_path / "merged.gpuprof"
    with open(recording, "rb") as whole:
        cut.write_bytes(whole.read()[:100000])
    done = harness.gpuprof("merge", recording, sample("mlp").recording.path, "-o", merged)
    assert done.status == harness.DONE, done
    for path, options, why in (
            (sample("mlp").recording_of("probes").path, (), "came from probes; attach"),
            (cut, (), "its end, which has that, is missing"), (merged, (), "put together from several"),
            (windows, (), "between the windows of --overhead"),
            (recording, ("--group-by", "between"), "not for the time between"),
            (recording, ("--distributed",), "goes with --json, --limit, --steps and --losses alone"),
            (samples, (), "of samples: no callbacks are in them"),
            (samples, ("--group-by", "line"), "of samples: no callbacks are in them")):
        done = harness.gpuprof("table", "--compensate", path, *options)
        assert done.status == harness.USAGE and not done.stdout and why in done.stderr, done


def test_overhead_where_the_kernel_times_all_programs(tmp_path):
    """As it does while another one profiles: what ran before the capture is no part of its cost."""
    with open("/proc/sys/kernel/bpf_stats_enabled", "r+", encoding="ascii") as switch:
        before = switch.read()
        switch.write("1")
        switch.flush()
        try:
            with harness.Target("mlp") as target:
                capture = harness.attach(target, tmp_path / "timed.gpuprof", "--no-inject",
                                         orders=lambda: target.step(2))
                target.leave()
        finally:
            switch.write(before)
    cost = capture.recording.table()["overhead"]
    assert 0 < cost["probe_program_runs"] <= cost["probe_hits"]


def test_errors_in_ops_harm_nothing(sample):
    one = sample("raiser")
    # Warm-up, each capture and the truth caught four a step, and the script left in good order.
    assert one.caught == "caught %d" % (4 * (3 + (len(MODES) + 1) * one.steps))
    for mode in MODES:
        assert one.recording_of(mode).rows()["aten::relu"]["calls"] == one.steps, mode
    # An exit probe does not see an exception pass; those ends are bounds, and counted.
    assert one.recording_of("probes").losses()["exception"] > 0
