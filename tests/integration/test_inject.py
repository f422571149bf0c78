# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A library goes into running processes and out again; the process must not notice. The targets
(tests/fake/inject_target.c) check themselves; here it is checked that they go on, end well, and that
nothing stays behind.
"""

import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import harness

FAKE = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "fake")
INJECTED = os.path.join(FAKE, "injected.so")
# For the search for a safe moment and for the calls: a slow machine needs long for both.
LIMIT_MS = "120000"
EPERM, ESRCH, EAGAIN, EACCES, EBUSY, ENOSYS, ETIMEDOUT = 1, 3, 11, 13, 16, 38, 110
KILLED = -signal.SIGKILL
READ, EPOLL_WAIT = 0, 232  # system calls
NOBODY = 65534


PTRACE_SEIZE, WALL = 0x4206, 0x40000000


def only_child(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        child, = file.read().split()
    return int(child)


def program_of(pid):
    try:
        return os.readlink("/proc/%d/exe" % pid)
    except OSError:
        return None


class Target(harness.Child):
    def __init__(self, mode, *args, program="inject_target", prefix=(), **popen):
        super().__init__([*prefix, os.path.join(FAKE, program), mode, *map(str, args)],
                         "target " + mode, **popen)
        self.seen = 0
        self.expect("ready")

    def wait_in_call(self, number):
        """Until its main thread is in that system call."""
        deadline = time.monotonic() + harness.LIMIT
        while True:
            with open("/proc/%d/syscall" % self.pid, encoding="ascii") as file:
                if file.read().split()[0] == str(number):
                    return
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def expect(self, line):
        _, self.seen = self.wait_line("stdout", lambda said: said.startswith(line), self.seen)

    def end(self):
        """Lets it end by itself and looks at its own verdict."""
        self.process.stdin.close()
        status = self.wait()
        last = self.lines["stdout"][-1]
        assert status == 0 and last.startswith("end errors=0 "), self.told()
        assert self.text("stderr") == ""
        return {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", last)}


def injector(*args, env=None, program=None, **popen):
    argv = [program or os.path.join(FAKE, "injector"), *map(str, args)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=harness.LIMIT * 2, env={**harness.environment(), **(env or {})},
                          **popen)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def inject(pid, limit=LIMIT_MS, **more):
    return injector("inject", pid, INJECTED, limit, **more)


def must(result):
    status, out, err = result
    assert status == 0, (status, out, err)
    return dict(re.findall(r"(\w+)=(-?\d+)", out.splitlines()[-1]))


def put_in(pid, reused=0):
    said = must(inject(pid))
    assert said["returned"] == "1" and said["reused"] == str(reused)
    return said


def take_out(pid):
    said = must(injector("remove", pid, LIMIT_MS))
    assert said["left"] == "0"


def mappings(pid):
    """All mappings but the heap and the stack, whose size is the target's own affair."""
    with open("/proc/%d/maps" % pid, encoding="ascii", errors="replace") as file:
        return {line.rstrip("\n") for line in file if "[heap]" not in line and
                "[stack]" not in line}


def files_of(pid):
    folder, files = "/proc/%d/fd" % pid, {}
    for name in os.listdir(folder):
        try:
            files[name] = os.readlink(os.path.join(folder, name))
        except FileNotFoundError:
            pass
    return files


def threads_of(pid):
    return set(os.listdir("/proc/%d/task" % pid))


def expect_threads(pid, threads):
    """A thread that was joined can be listed a little longer."""
    harness.wait_until("the threads are as before", lambda: threads_of(pid) == threads)


MODES = [("read",), ("epoll",), ("select",), ("futex", 0), ("futex", 1), ("sleep", 1), ("sleep", 300),
         ("malloc",), ("dlopen",), ("threads", 3), ("threads", 64), ("registers",), ("vfork",)]


@pytest.mark.san
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: "-".join(map(str, mode)))
def test_target_does_not_notice(mode):
    with Target(*mode) as target:
        files, threads = files_of(target.pid), threads_of(target.pid)
        put_in(target.pid)
        put_in(target.pid, reused=1)
        assert "memfd:gpuprof-test" in "\n".join(mappings(target.pid))
        if mode[0] == "vfork":
            # One thread waits in the kernel and cannot be asked whether it is in the library.
            assert must(injector("remove", target.pid, LIMIT_MS))["left"] == "1"
            target.end()
            return
        take_out(target.pid)
        # The loader opens and closes files all the time.
        assert mode[0] == "dlopen" or files_of(target.pid) == files
        assert not [path for path in files_of(target.pid).values() if "gpuprof-test" in path]
        expect_threads(target.pid, threads)
        assert "memfd:gpuprof-test" not in "\n".join(mappings(target.pid))
        target.end()


@pytest.mark.parametrize("mode", ["read", "epoll"])
def test_blocked_call_still_answers(mode):
    with Target(mode) as target:
        for number in range(3):
            put_in(target.pid, reused=0)
            target.send("before %d" % number)
            target.expect("got before %d" % number)
            take_out(target.pid)
            target.send("after %d" % number)
            target.expect("got after %d" % number)
        assert target.end()["work"] == 6


@pytest.mark.parametrize("mode,call", [("pause", 34), ("suspend", 130)])
def test_wait_for_a_signal(mode, call):
    with Target(mode, 4) as target:
        for number in range(1, 5):
            if number % 2:
                put_in(target.pid)
            else:
                take_out(target.pid)
            target.wait_in_call(call)
            target.signal(signal.SIGUSR1)
            target.expect("signals %d" % number)
        assert target.end()["signals"] == 4


def test_signals_meanwhile_are_kept():
    with Target("registers", 20000) as target:
        cycle = subprocess.Popen([os.path.join(FAKE, "injector"), "cycle", str(target.pid), INJECTED,
                                  "10", LIMIT_MS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        sent = 0
        # Fewer than any limit for queued signals, each at another moment of the work.
        while sent < 1000 and (cycle.poll() is None or sent < 100):
            os.kill(target.pid, signal.SIGRTMIN)
            sent += 1
            try:
                cycle.wait(0.001)
            except subprocess.TimeoutExpired:
                pass
        assert cycle.wait() == 0, cycle.stderr.read()
        assert target.end()["signals"] == sent


@pytest.mark.parametrize("mode", ["read", "threads"])
def test_cycles_leave_nothing(mode):
    with Target(mode, 8) as target:
        # The first time the C library makes itself at home (a cached stack of the injected library's thread).
        must(injector("cycle", target.pid, INJECTED, 1, LIMIT_MS))
        before, files, threads = mappings(target.pid), files_of(target.pid), threads_of(target.pid)
        must(injector("cycle", target.pid, INJECTED, 25, LIMIT_MS))
        changed = sorted(before ^ mappings(target.pid))
        # The threads' own work makes the allocator map and unmap.
        changed = [line for line in changed if mode == "read" or "/" in line]
        assert not changed
        assert files_of(target.pid) == files
        expect_threads(target.pid, threads)
        target.end()


def killed_everywhere(target, stride, first=1):
    """Kills the injector before each stride-th of its acts, until it comes to its end."""
    number = first
    while True:
        status, _, err = injector("cycle", target.pid, INJECTED, 1, LIMIT_MS,
                                  env={"DIE_AT": str(number)})
        assert target.running(), target.told()
        if status == 0:
            return number
        assert status == KILLED, (status, err)
        number += stride


def still(target, *args, **more):
    return injector("still", target.pid, *args, **more)


def test_threads_are_held_still():
    """All of them, none after, and each goes on where it was."""
    with Target("threads", 6) as target:
        said = must(still(target, "no such library", 300))
        assert (said["held"], said["waiting"]) == ("7", "0") and int(said["held_us"]) >= 300000
        target.end()
    with Target("threads", 200) as target:
        assert must(still(target, "no such library", 10))["held"] == "201"
        target.end()
    with Target("epoll") as target:
        target.wait_in_call(EPOLL_WAIT)
        must(still(target, "no such library", 10))
        target.send("still there")
        target.expect("got still there")
        target.end()


def test_an_allocator_s_own_thread_is_not_held():
    """It never leaves the allocator's code, and calls nobody's."""
    env = dict(harness.environment(), LD_PRELOAD=os.path.join(FAKE, "libown_thread_malloc.so"))
    with Target("threads", 3, env=env) as target:
        for _ in range(3):
            assert must(still(target, "no such library", 10))["held"] == "4"
        target.end()


def test_threads_are_not_held_within():
    """But where they wait there, if that will do."""
    with Target("read") as target:
        target.wait_in_call(READ)
        status, _, err = still(target, "libc.so", 10)
        assert status == EAGAIN and "is within libc.so" in err, err
        said = must(still(target, "libc.so", 10, "read"))
        assert (said["held"], said["waiting"]) == ("1", "1")
        target.send("still there")
        target.expect("got still there")
        target.end()


@pytest.mark.parametrize("mode", [("read",), ("registers",), ("threads", 6), ("epoll", 1)], ids=str)
def test_killed_while_threads_are_held(mode):
    """At every act."""
    with Target(*mode) as target:
        number = 1
        while True:
            status, _, err = still(target, "no such library", 1, env={"DIE_AT": str(number)})
            assert target.running(), target.told()
            if status == 0:
                break
            assert status == KILLED, (status, err)
            number += 1
        assert number > 3
        target.end()


@pytest.mark.parametrize("mode,stride", [(("read",), 1), (("sleep", 20), 3), (("registers",), 3),
                                         (("threads", 6), 5), (("epoll", 1), 7)],
                         ids=lambda part: str(part))
def test_killed_at_every_act(mode, stride):
    with Target(*mode) as target:
        acts = killed_everywhere(target, stride)
        assert acts > 50
        # What the dead ones left is taken up and taken away.
        must(injector("cycle", target.pid, INJECTED, 1, LIMIT_MS))
        assert not [path for path in files_of(target.pid).values() if "gpuprof-test" in path]
        if mode[0] in ("read", "epoll"):
            target.send("still there")
            target.expect("got still there")
        target.end()


def test_killed_at_any_time():
    """Fifty times, wherever the kill finds it."""
    chance = random.Random(4242)
    with Target("registers") as target:
        for _ in range(50):
            driver = subprocess.Popen([os.path.join(FAKE, "injector"), "cycle", str(target.pid),
                                       INJECTED, "-1", LIMIT_MS], stdout=subprocess.PIPE)
            for _ in range(chance.randrange(3)):
                driver.stdout.readline()
            try:
                driver.wait(chance.random() * 0.03)
            except subprocess.TimeoutExpired:
                pass
            driver.kill()
            driver.wait()
            driver.stdout.close()
            assert target.running(), target.told()
        must(injector("cycle", target.pid, INJECTED, 1, LIMIT_MS))
        target.end()


@pytest.mark.parametrize("where", [0, 1, 2, 3],
                         ids=["allocator", "loader", "allocator-handler", "loader-handler"])
def test_never_inside_the_allocator_or_loader(where):
    with Target("inside", where) as target:
        target.expect("inside")
        status, _, err = inject(target.pid, 300)
        assert status == EAGAIN and "safe point" in err, (status, err)
        assert "memfd:gpuprof-test" not in "\n".join(mappings(target.pid))
        target.end()


def test_inside_a_handler_on_its_own_stack():
    with Target("handler") as target:
        target.expect("inside")
        put_in(target.pid)
        take_out(target.pid)
        target.end()


def test_stopped_process_stays_stopped():
    with Target("read") as target:
        target.signal(signal.SIGSTOP)
        os.waitpid(target.pid, os.WUNTRACED)
        status, _, err = inject(target.pid, 200)
        assert status == EAGAIN and "kill -CONT" in err
        with open("/proc/%d/stat" % target.pid, encoding="ascii") as file:
            assert file.read().split(") ")[1][0] == "T"
        target.signal(signal.SIGCONT)
        put_in(target.pid)
        target.send("on")
        target.expect("got on")
        target.end()


def test_stopped_in_the_middle():
    """SIGSTOP while the library starts: all stand still until SIGCONT, then the work goes on."""
    with Target("read", env={**harness.environment(), "INJECTED_STOP": "1"}) as target:
        driver = harness.Child([os.path.join(FAKE, "injector"), "inject", str(target.pid), INJECTED,
                                LIMIT_MS], "injector")
        os.waitpid(target.pid, os.WUNTRACED)
        assert driver.running()
        target.signal(signal.SIGCONT)
        assert driver.wait() == 0, driver.told()
        take_out(target.pid)
        target.send("on")
        target.expect("got on")
        target.end()


def test_call_that_takes_too_long():
    """The thread is let go inside the library, and finds back by itself."""
    reader, writer = os.pipe()
    with Target("read", env={**harness.environment(), "INJECTED_WAIT": str(reader)},
                pass_fds=(reader,)) as target:
        os.close(reader)
        # The limit counts for the steps before too, for which a slow machine may need longer.
        for limit in (1000, 10000, LIMIT_MS):
            status, _, err = inject(target.pid, limit)
            if status == ETIMEDOUT and "loading the library" in err:
                break
        assert status == ETIMEDOUT and "let go" in err, (status, err)
        assert target.running()
        os.close(writer)
        target.send("back")
        target.expect("got back")
        put_in(target.pid, reused=1)
        target.end()


def test_target_dies_in_the_middle():
    chance = random.Random(77)
    for _ in range(10):
        with Target("threads", 4) as target:
            driver = harness.Child([os.path.join(FAKE, "injector"), "cycle", str(target.pid),
                                    INJECTED, "-1", LIMIT_MS], "injector")
            for number in range(chance.randrange(1, 4)):
                driver.wait_line("stdout", lambda line: True, number)
            target.signal(signal.SIGKILL)
            status = driver.wait()
            assert status == ESRCH and driver.text("stderr"), driver.told()


@pytest.mark.parametrize("kind,refused", [(0, "may kill"), (1, None), (2, None),
                                          (3, "fallocate"), (4, "membarrier")])
def test_seccomp_filter(kind, refused):
    with Target("filter", kind) as target:
        if refused:
            status, _, err = inject(target.pid)
            assert status == EPERM and "seccomp" in err and refused in err, err
        else:
            put_in(target.pid)
            take_out(target.pid)
        target.send("alive")
        target.expect("got alive")
        target.end()


def test_traced_already():
    with Target("read") as target:
        holder = harness.Child([os.path.join(FAKE, "injector"), "hold", str(target.pid)], "holder")
        holder.wait_line("stdout", lambda line: line == "held")
        status, _, err = inject(target.pid)
        assert status == EPERM and "traced by process %d" % holder.pid in err
        holder.process.stdin.close()
        assert holder.wait() == 0
        put_in(target.pid)
        target.end()


def test_another_tracer_is_just_ending():
    """One that is killed holds its threads for a moment more, which is waited for."""
    with Target("read") as target:
        holder = harness.Child([os.path.join(FAKE, "injector"), "hold", str(target.pid)], "holder")
        holder.wait_line("stdout", lambda line: line == "held")
        ends = threading.Timer(0.1, holder.process.kill)
        ends.start()
        put_in(target.pid)
        ends.join()
        holder.wait()
        target.end()


def start_ticks(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[19]


@pytest.mark.parametrize("uid,status", [(NOBODY, 0), (0, EBUSY)], ids=["stranger", "root"])
def test_the_name_of_an_attach_is_taken(uid, status):
    """By another gpuprof, which is waited for; or by somebody who only has its name."""
    with Target("read") as target:
        name = "\\0gpuprof-inject-%d-%s" % (target.pid, start_ticks(target.pid))
        code = ("import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM); s.bind('%s'); s.listen(); "
                "print('taken', flush=True); input()" % name)
        with harness.Child([harness.PYTHON, "-c", code], "holder", user=uid) as holder:
            holder.wait_line("stdout", lambda line: line == "taken")
            assert inject(target.pid)[0] == status
        target.end()


def test_zombie_and_missing():
    with Target("zombie") as target:
        line, _ = target.wait_line("stdout", lambda said: said.startswith("child "))
        status, _, err = inject(int(line.split()[1]))
        assert status == ESRCH and err
        target.end()
    status, _, err = inject(target.pid)
    assert status == ESRCH and err


def test_on_its_way_out():
    """A process that has given up its memory and is no zombie yet: the first of a PID namespace waits
    there for the others, and the other one is held by its tracer."""
    libc = ctypes.CDLL(None, use_errno=True)
    with harness.Child(["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c",
                        "import os, time\n"
                        "if os.fork():\n    print('ready', flush=True)\ntime.sleep(1000)"],
                       "namespace") as outer:
        outer.wait_line("stdout", lambda line: line == "ready")
        first = only_child(outer.pid)
        held = only_child(first)
        assert libc.ptrace(PTRACE_SEIZE, held, None, None) == 0, os.strerror(ctypes.get_errno())
        try:
            os.kill(first, signal.SIGKILL)
            deadline = time.monotonic() + harness.LIMIT
            while program_of(first):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            with open("/proc/%d/stat" % first, encoding="ascii") as file:
                assert file.read().rpartition(")")[2].split()[0] != "Z"
            status, _, err = inject(first)
            assert status == ESRCH and "process %d has ended" % first in err, err
        finally:
            os.waitpid(held, WALL)


def test_statically_linked():
    with Target("read", program="inject_target_static") as target:
        status, _, err = inject(target.pid)
        assert status == ENOSYS and "statically linked" in err
        target.end()


@pytest.fixture(name="public")
def public_folder():
    """A folder that an unprivileged user can run the programs from."""
    folder = tempfile.mkdtemp(prefix="gpuprof-inject-")
    for name in ("injector", "injected.so", "inject_target"):
        shutil.copy(os.path.join(FAKE, name), folder)
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder)


AS_NOBODY = {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def inject_as_nobody(pid, folder):
    return injector("inject", pid, os.path.join(folder, "injected.so"), LIMIT_MS, cwd=folder,
                    program=os.path.join(folder, "injector"), **AS_NOBODY)


def test_process_of_another_user(public):
    with Target("read") as target:
        status, _, err = inject_as_nobody(target.pid, public)
        assert status in (EPERM, EACCES) and "sudo" in err, err
        target.end()


def test_hidden_process(public):
    with Target("hidden", program=os.path.join(public, "inject_target"), cwd=public,
                **AS_NOBODY) as target:
        status, _, err = inject_as_nobody(target.pid, public)
        assert status in (EPERM, EACCES) and err.strip(), err
        # Root may.
        put_in(target.pid)
        take_out(target.pid)
        target.end()


def test_other_namespaces():
    """In a PID and a mount namespace of its own, whose files are not ours."""
    with Target("read", prefix=("unshare", "--pid", "--mount", "--fork", "--mount-proc",
                                "--kill-child")) as target:
        with open("/proc/%d/task/%d/children" % (target.pid, target.pid), encoding="ascii") as file:
            pid = int(file.read())
        put_in(pid)
        take_out(pid)
        target.send("inside")
        target.expect("got inside")
        target.end()


PROGRAM = """
import sys
import torch

print("ready", flush=True)
generator = torch.Generator().manual_seed(7)
a = torch.randn(64, 64, generator=generator)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
first = None
rounds = 0
for line in sys.stdin:
    for _ in range(20):
        for parameter in model.parameters():
            parameter.grad = None
        loss = model(a).square().sum()
        loss.backward()
        total = float(loss) + float(sum(p.grad.sum() for p in model.parameters()))
        first = total if first is None else first
        assert total == first, (total, first)
        try:
            torch.mm(a, torch.zeros(3, 3))
        except RuntimeError:
            rounds += 1
    print("rounds", rounds, flush=True)
print("end", flush=True)
"""


def test_pytorch():
    """The real thing: blocked in read and computing, in turn."""
    target = harness.Child([harness.PYTHON, "-B", "-c", PROGRAM], "torch")
    try:
        target.wait_line("stdout", lambda line: line == "ready")
        target.send("warm up")
        target.wait_line("stdout", lambda line: line == "rounds 20")
        must(injector("cycle", target.pid, INJECTED, 1, LIMIT_MS))
        files, threads = files_of(target.pid), threads_of(target.pid)
        for number in range(2, 12):
            if number % 2:
                target.send("compute meanwhile")
            must(injector("cycle", target.pid, INJECTED, 1, LIMIT_MS))
            if not number % 2:
                target.send("compute after")
            target.wait_line("stdout", lambda line, n=number: line == "rounds %d" % (20 * n))
        assert files_of(target.pid) == files
        expect_threads(target.pid, threads)
        target.process.stdin.close()
        assert target.wait() == 0, target.told()
        assert target.lines["stdout"][-1] == "end"
    finally:
        target.kill()
