# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Runs workloads and gpuprof for the tests. Nothing here depends on the machine's pace: every wait is
for a state (a line said, a process gone), and LIMIT only ends what hangs.

A workload does steps when it is told to and nothing in between (tests/workloads/protocol.py), so a
capture holds exactly the steps that were ordered while it ran.

Environment: GPUPROF the binary; GPUPROF_ROOT_DIR a folder with another Debian whose PyTorch the
workloads use (they are started in it by chroot, gpuprof stays outside).
"""

import contextlib
import decimal
import functools
import glob
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = 180
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TESTS)
WORKLOADS = os.path.join(TESTS, "workloads")
GPUPROF = os.path.abspath(os.environ.get("GPUPROF", os.path.join(ROOT, "build", "gpuprof")))
ROOT_DIR = os.environ.get("GPUPROF_ROOT_DIR", "").rstrip("/")
PYTHON = "/usr/bin/python3"

# Exit status of a sanitizer's report, told apart from gpuprof's own statuses.
SANITIZER_STATUS = 99

DONE, FAILED, USAGE, LOST = 0, 1, 2, 3


@functools.lru_cache(maxsize=None)
def is_sanitized():
    """Whether gpuprof was built with the sanitizers."""
    with open(GPUPROF, "rb") as file:
        return b"__asan_init" in file.read()


class HarnessError(AssertionError):
    """What was waited for did not come; carries what the child said."""


# By what samples are taken -> how many a second of each CPU are then to be: more seldom than the scheduler's tick
# comes they are taken within it.
SAMPLED_BY = {"timer": "997", "tick": str(int(1 / (1.5 * time.clock_getres(6))))}


def environment():
    """What gpuprof and the workloads get: ours, less what would change what they do."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GPUPROF")}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env["LC_ALL"] = "C.UTF-8"
    # What is freed stays in a quarantine: one that tests of memory that grows can tell from that.
    env["ASAN_OPTIONS"] = "exitcode=%d:abort_on_error=0:quarantine_size_mb=4" % SANITIZER_STATUS
    env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1:exitcode=%d" % SANITIZER_STATUS
    return env


@contextlib.contextmanager
def busy(number):
    """So many processes that compute, meanwhile."""
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()


class Child:
    """A process whose lines are collected as they come; always killed in the end."""

    alive = []

    def __init__(self, argv, name, **popen):
        self.name = name
        self.argv = argv
        self.lines = {"stdout": [], "stderr": []}
        self._change = threading.Condition()
        self._open = 2
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=popen.pop("env", environment()), start_new_session=True, **popen)
        self._readers = [threading.Thread(target=self._read, args=(stream,), daemon=True)
                         for stream in ("stdout", "stderr")]
        for reader in self._readers:
            reader.start()
        Child.alive.append(self)

    @property
    def pid(self):
        return self.process.pid

    def _read(self, stream):
        for line in getattr(self.process, stream):
            with self._change:
                self.lines[stream].append(line.decode("utf-8", "replace").rstrip("\n"))
                self._change.notify_all()
        with self._change:
            self._open -= 1
            self._change.notify_all()

    def text(self, stream):
        with self._change:
            return "\n".join(self.lines[stream])

    def told(self):
        """All that the child said, for a failure's message."""
        return "\n".join("---- %s of %s: %s\n%s" % (stream, self.name, " ".join(self.argv),
                                                    self.text(stream)[-6000:])
                         for stream in ("stdout", "stderr"))

    def fail(self, what):
        raise HarnessError("%s (status %s)\n%s" % (what, self.process.poll(), self.told()))

    def wait_line(self, stream, wanted, start=0):
        """The first line at or after index start for which wanted(line), and the next index."""
        deadline = time.monotonic() + LIMIT
        with self._change:
            while True:
                for index in range(start, len(self.lines[stream])):
                    if wanted(self.lines[stream][index]):
                        return self.lines[stream][index], index + 1
                start = len(self.lines[stream])
                left = deadline - time.monotonic()
                if self._open == 0 or left <= 0:
                    break
                self._change.wait(left)
        return self.fail("%s did not say it" % self.name)

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def signal(self, number):
        self.process.send_signal(number)

    def running(self):
        return self.process.poll() is None

    def wait(self):
        """The exit status, once all that the child said was read."""
        try:
            status = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.fail("%s did not end" % self.name)
        for reader in self._readers:
            reader.join(LIMIT)
        return status

    def kill(self):
        """Ends it and what it started, which holds our pipes open as well."""
        if self not in Child.alive:
            return
        Child.alive.remove(self)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        for reader, stream in zip(self._readers, (self.process.stdout, self.process.stderr)):
            reader.join(10)
            # To close what another thread reads would wait for that.
            if not reader.is_alive():
                stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def kill_all():
    for child in list(Child.alive):
        child.kill()


class Inside:
    """Where the workloads run: the host, or a folder with another Debian in it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="gpuprof-test-", dir=ROOT_DIR + "/var/tmp")
        os.chmod(self.folder, 0o755)
        self.mounted = False
        if ROOT_DIR:
            shutil.copytree(WORKLOADS, self.folder + "/workloads",
                            ignore=shutil.ignore_patterns("__pycache__"))
            if not os.path.exists(ROOT_DIR + "/proc/self"):
                subprocess.run(["mount", "-t", "proc", "proc", ROOT_DIR + "/proc"], check=True)
                self.mounted = True

    def argv(self, name, *args):
        return self.script_argv(name + ".py", *args)

    def script_argv(self, file, *args):
        """The same for a workload whose file has no ending."""
        if not ROOT_DIR:
            return [PYTHON, "-B", "%s/%s" % (WORKLOADS, file), *args]
        return ["chroot", ROOT_DIR, PYTHON, "-B",
                "%s/workloads/%s" % (self.inner(self.folder), file), *args]

    def workload(self, file):
        """The path of a workload's file as the workloads see it."""
        return self.script_argv(file)[-1]

    @staticmethod
    def inner(path):
        """A path as the workload sees it."""
        return path[len(ROOT_DIR):]

    def close(self):
        if self.mounted:
            subprocess.run(["umount", "-l", ROOT_DIR + "/proc"], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


_INSIDE = []


def inside():
    if not _INSIDE:
        _INSIDE.append(Inside())
    return _INSIDE[0]


def close_inside():
    while _INSIDE:
        _INSIDE.pop().close()


FAKE_TORCH = os.path.join(os.path.dirname(GPUPROF), "tests", "fake-torch-new", "libtorch_cpu.so")
FIRST_PYTHON, LAST_PYTHON = 8, 14


@functools.cache
def pythons():
    """Minor version -> a CPython with it: GPUPROF_PYTHONS (paths, a colon between), or pyenv's, and
    the system's."""
    listed = os.environ.get("GPUPROF_PYTHONS")
    paths = listed.split(":") if listed else glob.glob(
        os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))
    found = {}
    for path in [PYTHON, *sorted(paths)]:
        said = subprocess.run([path, "-c", "import sys; print(sys.version_info[1])"],
                              stdout=subprocess.PIPE, check=False, text=True).stdout
        if said.strip().isdigit():
            found[int(said)] = path
    return found


def python_or_skip(minor):
    """The CPython with that minor version; skips the test, counted, where there is none."""
    import pytest  # benchmarks use this file without it

    found = pythons()
    if minor not in found:
        pytest.skip("there is no CPython 3.%d here" % minor)
    return found[minor]


class Target(Child):
    """A workload that has said "ready"; with `python` in that one, on the stand-in for PyTorch. `prefix`
    comes before its command."""

    def __init__(self, name, *args, python=None, prefix=()):
        argv, env = [*prefix, *inside().argv(name, *args)], environment()
        if python:
            argv = [python, *argv[argv.index("-B"):]]
            env.update(FAKE_TORCH=FAKE_TORCH,
                       PYTHONPATH=os.path.join(TESTS, "fake", "stand_in"))
        super().__init__(argv, name, env=env)
        line, self._next = self.wait_line("stdout", lambda text: text.startswith("ready "))
        self.facts = json.loads(line[len("ready "):])

    def order(self, command):
        """Sends a command without waiting for its answer."""
        self.send(command)

    def answer(self):
        line, self._next = self.wait_line("stdout", lambda text: True, self._next)
        return line

    def command(self, command):
        self.order(command)
        return self.answer()

    def step(self, count):
        answer = self.command("step %d" % count)
        if answer != "did %d" % count:
            self.fail("'step %d' was answered by %r" % (count, answer))

    def truth(self, steps, what="truth"):
        """What torch.profiler says about this many steps of this very process."""
        path = "%s/%s-%d.json" % (inside().folder, what, self.pid)
        answer = self.command("%s %d %s" % (what, steps, inside().inner(path)))
        if answer != "%s %d" % (what, steps):
            self.fail("%r was answered by %r" % (what, answer))
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def leave(self):
        """Ends it in good order; a target that was harmed cannot do that."""
        answer = self.command("exit")
        status = self.wait()
        if answer != "bye" or status != 0:
            self.fail("%s did not leave in good order" % self.name)


class Gpuprof(Child):
    """A gpuprof in the background."""

    def __init__(self, *args, **popen):
        super().__init__([GPUPROF, *[str(arg) for arg in args]], "gpuprof", **popen)

    def wait_recording(self):
        """Until it says that events are being recorded."""
        self.wait_line("stderr", lambda text: text.startswith("recording"))

    def finish(self):
        """Ends the capture as Ctrl-C does; returns the exit status."""
        if self.running():
            self.signal(signal.SIGINT)
        return self.wait()


class Finished:
    """What a gpuprof that has ended said."""

    def __init__(self, argv, status, stdout, stderr):
        self.argv = argv
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    def __repr__(self):
        return "%s: status %d\n%s\n%s" % (" ".join(self.argv), self.status, self.stdout[-4000:],
                                          self.stderr[-4000:])


def gpuprof(*args, binary=GPUPROF, prefix=(), cwd=None, env=None):
    """Runs gpuprof to its end."""
    argv = [*prefix, binary, *[str(arg) for arg in args]]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=LIMIT, cwd=cwd, check=False,
                          env=env or environment())
    result = Finished(argv, done.returncode, done.stdout.decode("utf-8", "replace"),
                      done.stderr.decode("utf-8", "replace"))
    assert result.status >= 0, "ended by a signal: %r" % result
    assert result.status != SANITIZER_STATUS, "sanitizer: %r" % result
    return result


def no_constants(text):
    raise ValueError("not JSON: %s" % text)


def parse_json(text, number=float):
    """Strict: NaN and infinities, which Python takes, are no JSON."""
    return json.loads(text, parse_constant=no_constants, parse_float=number)


class Recording:
    """A .gpuprof file, read through gpuprof's own table and export."""

    def __init__(self, path):
        self.path = str(path)
        self._cache = {}

    def table(self, *options):
        """The table's JSON object."""
        if ("table", options) not in self._cache:
            done = gpuprof("table", self.path, "--json", "--limit", "-1", *options)
            assert done.status in (DONE, LOST), done
            self._cache["table", options] = parse_json(done.stdout)
        return self._cache["table", options]

    def rows(self):
        """CPU rows by name."""
        rows = {}
        for row in self.table()["rows"]:
            if row["device"] == "CPU":
                assert row["name"] not in rows, "two CPU rows %r" % row["name"]
                rows[row["name"]] = row
        return rows

    def losses(self):
        return self.table()["losses"]

    def chrome_text(self, suffix=".json"):
        if suffix not in self._cache:
            path = self.path + ".trace" + suffix
            done = gpuprof("export", self.path, "--format", "chrome", "-o", path)
            assert done.status in (DONE, LOST), done
            opener = gzip.open if suffix.endswith(".gz") else open
            with opener(path, "rb") as file:
                self._cache[suffix] = file.read().decode("utf-8")
        return self._cache[suffix]

    def chrome(self):
        if "chrome" not in self._cache:
            # Times as they are written: a double rounds nanoseconds at this size.
            self._cache["chrome"] = parse_json(self.chrome_text(), decimal.Decimal)
        return self._cache["chrome"]


class Capture:
    """A finished attach: the recording, what gpuprof printed, and its status."""

    def __init__(self, path, profiler, status):
        self.recording = Recording(path)
        self.status = status
        self.stdout = profiler.text("stdout")
        self.stderr = profiler.text("stderr")
        self.told = profiler.told()


def attach(target, path, *options, orders=None):
    """Attaches, calls orders() while recording, ends as Ctrl-C does."""
    with Gpuprof("attach", "--pid", target.pid, "-o", path, *options) as profiler:
        profiler.wait_recording()
        if orders is not None:
            orders()
        status = profiler.finish()
        assert status not in (SANITIZER_STATUS,) and status >= 0, profiler.told()
        return Capture(path, profiler, status)


def differences(ours, theirs):
    """name -> (our number, torch.profiler's) where they are not equal."""
    return {name: (ours.get(name, 0), theirs.get(name, 0))
            for name in sorted(set(ours) | set(theirs)) if ours.get(name, 0) != theirs.get(name, 0)}


def text_differences(pid):
    """
    Bytes of the process's executable mappings that differ from the mapped files, per file: probes
    that are in place show as differences. The C library is left out: some virtual machines and
    sandboxes rewrite its system-call stubs while it runs, and gpuprof probes nothing in it.
    """
    found = {}
    with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as maps, \
            open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) < 6 or "x" not in fields[1] or not fields[5].startswith("/"):
                continue
            if os.path.basename(fields[5].strip()) == "libc.so.6":
                continue
            begin, end = (int(part, 16) for part in fields[0].split("-"))
            different = _differences(memory, begin, end, "/proc/%d/map_files/%x-%x" %
                                     (pid, begin, end), int(fields[2], 16))
            if different:
                name = fields[5].strip()
                found[name] = found.get(name, 0) + different
    return found


def _differences(memory, begin, end, path, offset, piece=1 << 22):
    different = 0
    with open(path, "rb", buffering=0) as file:
        for start in range(begin, end, piece):
            size = min(piece, end - start)
            memory.seek(start)
            file.seek(offset + start - begin)
            live, stored = memory.read(size), file.read(size)
            if live[:len(stored)] != stored:
                different += sum(a != b for a, b in zip(live, stored))
    return different


def wait_until(what, condition):
    """Waits for a state that nothing announces."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            raise HarnessError("did not come: " + what)
        time.sleep(0.02)


ACCOUNTS = "/proc/sys/kernel/bpf_stats_enabled"


@contextlib.contextmanager
def program_accounts():
    """The kernel counts runs and nanoseconds of BPF programs meanwhile."""
    with open(ACCOUNTS, encoding="utf-8") as file:
        before = file.read()
    try:
        with open(ACCOUNTS, "w", encoding="utf-8") as file:
            file.write("1")
        yield
    finally:
        with open(ACCOUNTS, "w", encoding="utf-8") as file:
            file.write(before)


def verified(pid):
    """Id of each BPF program that the process holds -> instructions that the kernel's verifier has followed in it, None where it
    does not tell."""
    folder, found = "/proc/%d/fdinfo" % pid, {}
    for name in os.listdir(folder):
        # It may be closed by now.
        with contextlib.suppress(FileNotFoundError), \
                open(os.path.join(folder, name), encoding="utf-8") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
            if "prog_type" in lines:
                nr = lines.get("verified_insns")
                found[int(lines["prog_id"])] = None if nr is None else int(nr)
    return found


def programs():
    """What the kernel says of the BPF programs of the captures that are ours and going on."""
    done = subprocess.run(["/usr/sbin/bpftool", "prog", "show", "--json"], check=True,
                          stdout=subprocess.PIPE, text=True)
    ours = set().union(*(verified(child.pid) for child in Child.alive
                         if isinstance(child, Gpuprof) and child.running()))
    return [one for one in json.loads(done.stdout) if one["id"] in ours]


def program_account(name):
    """Runs and nanoseconds so far of the program, in those captures; it must be there."""
    shown = [one for one in programs() if one.get("name") == name]
    if not shown:
        raise HarnessError("no program '%s' is loaded" % name)
    return (sum(one.get("run_cnt", 0) for one in shown),
            sum(one.get("run_time_ns", 0) for one in shown))


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def anonymous_kib(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    raise HarnessError("no RssAnon in /proc/%d/status" % pid)


sys.path.insert(0, WORKLOADS)
