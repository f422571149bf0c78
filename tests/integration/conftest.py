# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures: one capture of each workload serves many assertions."""

import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness  # noqa: E402

# How ops are seen: by what gpuprof chooses itself, and by probes alone.
MODES = {"default": (), "probes": ("--no-inject",)}

# Steps ordered in the capture of each workload.
STEPS = {"mlp": 20, "resnet18_infer": 3, "resnet18_train": 2, "lstm": 4, "raiser": 20, "alloc": 10,
         "boxed": 10}


def pytest_addoption(parser):
    parser.addoption("--cycles", type=int, default=20, help="attach/detach cycles")
    parser.addoption("--kills", type=int, default=5, help="kills at a random moment")
    parser.addoption("--attaches", type=int, default=20, help="attaches to a hostile process")
    parser.addoption("--test-limit", type=int, default=900, help="seconds after which a test hangs")


def pytest_configure(config):
    config.addinivalue_line("markers", "versions: depends on the version of PyTorch or Python")
    config.addinivalue_line("markers", "san: part of the selection run under the sanitizers")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """What hangs in spite of harness.LIMIT fails, with the place where it waits."""
    limit = item.config.getoption("--test-limit")

    def hangs(*_):
        raise harness.HarnessError("has not ended within %d s" % limit)

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(limit)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """On failure, what every child that still lives has said."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for child in harness.Child.alive:
            report.sections.append(("child " + child.name, child.told()))


@pytest.fixture(scope="session", autouse=True)
def children():
    """No child outlives the session."""
    yield
    harness.kill_all()
    harness.close_inside()


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    return tmp_path_factory.mktemp("recordings")


class Sample:
    """A workload's captures of exactly `steps` steps, and torch.profiler's account of as many."""

    def __init__(self, name, folder):
        self.steps = STEPS[name]
        self.captures = {}
        with harness.Target(name) as target:
            self.facts = target.facts
            self.pid = target.pid
            for mode, options in MODES.items():
                path = folder / ("%s-%s.gpuprof" % (name, mode))
                self.captures[mode] = harness.attach(target, path, "--memory", *options,
                                                     orders=lambda: target.step(self.steps))
            # The same process once more, without gpuprof.
            self.truth = target.truth(self.steps)
            self.caught = target.command("caught") if name == "raiser" else None
            target.leave()
        for capture in self.captures.values():
            assert capture.status == harness.DONE, capture.told
        self.recording = self.captures["default"].recording

    def recording_of(self, mode):
        return self.captures[mode].recording


@pytest.fixture(scope="session")
def sample(recordings):
    """sample("mlp"): made when it is first asked for."""
    made = {}

    def get(name):
        if name not in made:
            try:
                made[name] = Sample(name, recordings)
            except Exception as error:  # each test that asks for it fails, without another wait
                made[name] = error
        if isinstance(made[name], Exception):
            raise made[name]
        return made[name]

    return get


@pytest.fixture(scope="module")
def idle():
    """A target that waits for orders and is not used up by the tests that share it."""
    with harness.Target("mlp") as target:
        yield target
        target.leave()


@pytest.fixture
def memory_group():
    """A control group below ours, of either version."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        groups = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
    folder, limit = (("/sys/fs/cgroup/memory" + groups["memory"], "memory.limit_in_bytes")
                     if "memory" in groups else ("/sys/fs/cgroup" + groups[""], "memory.max"))
    folder += "/gpuprof-test-%d" % os.getpid()
    try:
        os.mkdir(folder)
    except OSError as error:
        pytest.skip("no group of control can be made: %s" % error)
    try:
        if not os.path.exists(os.path.join(folder, limit)):
            pytest.skip("the groups of control below ours have no limits of memory")
        yield folder, os.path.join(folder, limit)
    finally:
        os.rmdir(folder)
