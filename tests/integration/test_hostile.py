# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
An unprivileged process that does what it can to mislead gpuprof, which is root (tests/fake/hostile_target.c). Whatever it
does: no file but gpuprof's own changes, gpuprof ends by itself, and the process is never left stopped.

    pytest tests/integration/test_hostile.py --attaches=1000 -s      # the long run, with its figures
"""

import collections
import contextlib
import glob
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
import time

import pytest

import harness
from test_inject import ETIMEDOUT, FAKE, INJECTED, NOBODY, Target, injector, must

STAND_IN = os.path.join(os.path.dirname(FAKE), "fake-torch-new", "libtorch_cpu.so")
ALL_MEANS = ("descriptors", "files", "mappings", "rings")
# What gpuprof may end with: done, failed with a reason, done but events were lost.
ORDERLY = (harness.DONE, harness.FAILED, harness.LOST)
INJECTIONS = 200
# Far beyond what is allowed (inject/tracer.h has 1.9 s): a machine may be busy, but what is left stopped stays so.
LEFT_STOPPED_S = 10


class Decoys:
    """Files of root's that a hostile process would like to have changed."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="gp-decoys-", dir="/dev/shm")
        os.chmod(self.folder, 0o711)
        self.first = self.make("decoy", 4096)
        self.make("empty", 0)
        self.make("large", 1 << 20)
        self.before = self.look()

    def make(self, name, size):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(os.urandom(size))
        os.chmod(path, 0o600)
        return path

    def look(self):
        """All that a change would change: content, owner, mode, links, and when any of them changed."""
        seen = {}
        for path in sorted(glob.glob(self.folder + "/*")):
            st = os.lstat(path)
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            seen[path] = (digest, st.st_mode, st.st_uid, st.st_nlink, st.st_ino, st.st_mtime_ns, st.st_ctime_ns)
        return seen

    def check(self):
        assert self.look() == self.before

    def remove(self):
        shutil.rmtree(self.folder)


def thread_state(path):
    """The letter in a thread's stat file; None if it has gone."""
    with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]
    return None


def stopped_threads(pid):
    """The stat files of the threads that a tracer has stopped."""
    return [path for path in glob.glob("/proc/%d/task/*/stat" % pid) if thread_state(path) == "t"]


class StopWatch:
    """For how long any thread of a process was seen stopped by a tracer without a pause."""

    def __init__(self, pid):
        self.pid = pid
        self.longest = 0.0
        self.since = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._over.wait(0.005):
            now = time.monotonic()
            stopped = stopped_threads(self.pid)
            self.since = {path: self.since.get(path, now) for path in stopped}
            self.longest = max([self.longest, *(now - since for since in self.since.values())])

    def end(self):
        self._over.set()
        self._thread.join()


@contextlib.contextmanager
def hostile(*means):
    """The process, in a folder of its own; the decoys; and how long it was stopped."""
    decoys = Decoys()
    folder = tempfile.mkdtemp(prefix="gp-hostile-")
    program = os.path.join(folder, "hostile_target")
    for source, name in ((STAND_IN, "libtorch_cpu.so"), (STAND_IN, "libswapped.so"), (STAND_IN, "libother.so"),
                         (os.path.join(FAKE, "hostile_target"), "hostile_target")):
        shutil.copy(source, os.path.join(folder, name))
        os.chown(os.path.join(folder, name), NOBODY, NOBODY)
    os.chown(folder, NOBODY, NOBODY)
    os.chmod(folder, 0o755)
    target = harness.Child([program, folder, decoys.first, *means], "hostile", user=NOBODY, group=NOBODY,
                           extra_groups=[])
    try:
        target.wait_line("stdout", lambda text: text.startswith("ready"))
        watch = StopWatch(target.pid)
        yield target, decoys, watch
        watch.end()
        assert target.running(), target.told()
        decoys.check()
        assert watch.longest < LEFT_STOPPED_S, watch.longest
    finally:
        target.kill()
        decoys.remove()
        shutil.rmtree(folder)


def test_descriptors():
    """What is written to is gpuprof's own memory file, whatever stands in its place the moment before and after."""
    seen = collections.Counter()
    with hostile("descriptors") as (target, decoys, _):
        for _ in range(INJECTIONS):
            seen[injector("inject", target.pid, INJECTED, 1000)[0]] += 1
            injector("remove", target.pid, 1000)
            decoys.check()
    # Some must have come so far that there was something to be written to.
    assert seen[0], seen


def test_files():
    """A FIFO in the place of a mapped file is not opened: nobody would ever write to it."""
    with hostile("files") as (target, _, watch):
        for _ in range(INJECTIONS // 2):
            must(injector("inject", target.pid, INJECTED, 30000))
            injector("remove", target.pid, 30000)
        assert not watch.since or watch.longest < LEFT_STOPPED_S


def attach(pid, folder, *options):
    """A short capture. Its exit status; what it said where that is not in order."""
    path = os.path.join(folder, "hostile.gpuprof")
    done = subprocess.run([harness.GPUPROF, "attach", "--pid", str(pid), "--duration", "0.1", "-o", path, *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.environment(), check=False,
                          timeout=harness.LIMIT)
    assert done.returncode in ORDERLY, (done.returncode, done.stderr.decode(errors="replace"))
    if done.returncode == harness.FAILED:
        assert done.stderr.strip(), "it failed and said nothing"
    return done.returncode


@pytest.mark.parametrize("means", [pytest.param(("rings",), marks=pytest.mark.san), ALL_MEANS],
                         ids=lambda means: "-".join(means))
def test_attach(request, tmp_path, means):
    """gpuprof itself, again and again; with --attaches=1000 -s that is the long run."""
    options = ([], ["--no-inject"], ["--memory", "--stack", "native"], ["--mode", "sample"])
    nr = request.config.getoption("--attaches")
    seen = collections.Counter()
    with hostile(*means) as (target, decoys, watch):
        for i in range(nr):
            # Mostly the way that does most in the process.
            seen[attach(target.pid, str(tmp_path), *options[i // 2 % 4 if i % 2 else 0])] += 1
            decoys.check()
    print("\n%s: %d attaches, by exit status %s; longest stop %.0f ms" % (
        ", ".join(means), nr, dict(sorted(seen.items())), 1000 * watch.longest))
    assert seen[harness.DONE] + seen[harness.LOST], seen


@pytest.mark.parametrize("verb", ["inject", "still"])
@pytest.mark.parametrize("mode", [("read",), ("threads", 6)], ids=str)
def test_a_tracer_that_waits_for_ever(verb, mode):
    """In the middle of its work, whatever it waits for: it is ended, and the process goes on as if nothing had been."""
    args = (INJECTED, 1000) if verb == "inject" else ("no such library", 10)
    with Target(*mode) as target:
        for number in (3, 6, 20, 45) if verb == "inject" else (3, 5):
            watch = StopWatch(target.pid)
            status, out, err = injector(verb, target.pid, *args, env={"HANG_AT": str(number)})
            watch.end()
            assert status == ETIMEDOUT, (number, status, out, err)
            harness.wait_until("no thread is stopped", lambda: not stopped_threads(target.pid))
            assert watch.longest < LEFT_STOPPED_S, watch.longest
        must(injector("inject", target.pid, INJECTED, 30000))
        if mode[0] == "read":
            target.send("still there")
            target.expect("got still there")
        target.end()
