# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Floating-point operations: torch.profiler's column to the digit, on each version of PyTorch, and
beside it what it does not count.
"""

import functools

import pytest

import harness

NAMES = ["resnet18_train", "lstm", "transformer"]
SPARSE = "layouts"


class Counted:
    """One capture with --flops, and torch.profiler's account of as many steps."""

    def __init__(self, name, folder):
        self.steps = 2
        with harness.Target(name) as target:
            self.capture = harness.attach(target, folder / (name + "-flops.gpuprof"), "--flops",
                                          orders=lambda: target.step(self.steps))
            self.truth = target.truth(self.steps, "flops")
            target.leave()
        assert self.capture.status == harness.DONE, self.capture.told
        assert "no shapes" not in self.capture.stderr, self.capture.told
        self.recording = self.capture.recording


@pytest.fixture(scope="module")
def counted(recordings):
    """Counted(name), made when it is first asked for."""
    return functools.cache(lambda name: Counted(name, recordings))


def nonzero(flops):
    return {name: value for name, value in flops.items() if value}


@pytest.mark.versions
@pytest.mark.parametrize("name", [*NAMES, SPARSE])
def test_equal_torch_profiler(counted, name):
    one = counted(name)
    ours = {row: value["flops"] for row, value in one.recording.rows().items()}
    assert nonzero(ours) == nonzero(one.truth["flops"])
    assert len(nonzero(ours)) > 1


@pytest.mark.versions
@pytest.mark.parametrize("name", NAMES)
def test_backward_counts_too(counted, name):
    """A layer's backward does the forward's products twice, but for the first layer's input."""
    rows = counted(name).recording.rows()
    # 1.13 runs an LSTM's backward as many small products, later versions as one.
    layer = {"resnet18_train": "Convolution", "lstm": "Addmm", "transformer": "Addmm"}[name]
    forward = {"Convolution": "aten::convolution", "Addmm": "aten::addmm"}[layer]
    backward = "autograd::engine::evaluate_function: %sBackward0" % layer
    assert rows[forward]["flops"] <= rows[forward]["all_flops"]
    assert 1.5 < rows[backward]["all_flops"] / rows[forward]["all_flops"] <= 2


@pytest.mark.versions
def test_attention(counted):
    """Forward, whichever way it is computed: queries by keys, then by values."""
    one = counted("transformer")
    rows = one.recording.rows()
    pairs, width, layers = 2 * 12 * 12, 32, 2
    flops = 2 * (2 * pairs * width) * layers * one.steps
    # 1.13 makes it of products that are counted one by one.
    if "aten::scaled_dot_product_attention" in rows:
        assert rows["aten::scaled_dot_product_attention"]["all_flops"] == flops


@pytest.mark.versions
def test_of_sparse_tensors_nobody_knows(counted):
    """torch.profiler counts them as if all their elements were there."""
    rows = counted(SPARSE).recording.rows()
    # 1.13 multiplies some other elements within.
    assert rows["aten::mm"]["flops"] > 10 * rows["aten::mm"]["all_flops"]


def test_text_has_the_column(counted):
    one = counted("lstm")
    done = harness.gpuprof("table", one.recording.path, "--limit", "-1", "--sort", "flops")
    lines = done.stdout.splitlines()
    header = [word.strip() for word in lines[1].split("  ") if word.strip()]
    assert header[:-2] == one.truth["header"]
    assert header[-2].startswith("All ") and header[-1] == "GFLOP/s"
    rows = one.recording.table("--sort", "flops")["rows"]
    assert lines[3].split()[0] == rows[0]["name"]
    total = one.recording.table()["flops"]
    tops = [row for row in rows if row["all_flops"]]
    assert 0 < max(row["all_flops"] for row in tops) <= total["all"]
    assert '"with_flops": 1' in one.recording.chrome_text()


@pytest.mark.parametrize("options, reason", [
    (["attach", "--pid", "1", "--flops", "--no-inject"], "--no-inject forbids"),
    (["run", "--flops", "--", "true"], "use attach once it runs"),
])
def test_refused_where_it_cannot_be(options, reason):
    done = harness.gpuprof(*options)
    assert done.status == harness.USAGE, done
    assert reason in done.stderr and "--flops" in done.stderr
