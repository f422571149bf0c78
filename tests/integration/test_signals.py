# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
SIGTERM, SIGINT and SIGHUP at any moment: what gpuprof began is ended or was never begun. No file is
left half written, no socket, no probe, and the target goes on.
"""

import os
import random
import signal
import subprocess
import time

import pytest

import harness

RUNS = 300
DATA = os.path.join(harness.TESTS, "data", "v1.gpuprof")

# Which call of the C library's is the moment: that of WHEN for a path with PATH_PART in it.
RAISER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void meet(const char *call, const char *path)
{
	const char *when = getenv("WHEN"), *part = getenv("PATH_PART"), *number = getenv("SIGNAL");

	if (!when || !part || strcmp(when, call) || !strstr(path, part))
		return;
	unsetenv("WHEN");
	kill(getpid(), atoi(number));
}

int open(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
	va_list list;
	mode_t mode;
	int fd;

	va_start(list, flags);
	mode = va_arg(list, mode_t);
	va_end(list);
	fd = real(path, flags, mode);
	meet("open", path);
	return fd;
}

int mkdir(const char *path, mode_t mode)
{
	int (*real)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");

	meet("mkdir", path);
	return real(path, mode);
}
"""

ENDS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture(scope="module")
def raiser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raiser")
    source, library = folder / "raiser.c", folder / "raiser.so"
    source.write_text(RAISER)
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True,
                   timeout=harness.LIMIT)
    return library


def ended_at(raiser, number, when, part, *args):
    """gpuprof with the signal at that call: (status, stderr)."""
    env = dict(harness.environment(), LD_PRELOAD=str(raiser), WHEN=when, PATH_PART=part,
               SIGNAL=str(int(number)))
    done = subprocess.run([harness.GPUPROF, *[str(arg) for arg in args]], env=env, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=harness.LIMIT, preexec_fn=undisturbed)
    return done.returncode, done.stderr


def undisturbed():
    """A shell may have us ignore some."""
    for number in ENDS:
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="module")
def target():
    with harness.Target("mlp") as started:
        yield started
        assert not harness.text_differences(started.pid)
        started.step(2)
        started.leave()


# The first call that gpuprof makes of all, and one of a command as it sets up.
MOMENTS = [("open", "/dev/null"), ("mkdir", "gpuprof")]


@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("when, part", MOMENTS)
def test_before_anything_is_begun(raiser, target, tmp_path, number, when, part):
    """What ends in order does so from its first instruction on."""
    recording = tmp_path / "r.gpuprof"
    status, told = ended_at(raiser, number, when, part, "attach", "--pid", target.pid, "-o",
                            recording)
    assert status == harness.FAILED and "before recording began" in told, (status, told)
    marker = tmp_path / "marker"
    status, told = ended_at(raiser, number, when, part, "run", "-o", recording, "--", "touch",
                            marker)
    assert status == harness.FAILED and "before recording began" in told, (status, told)
    status, told = ended_at(raiser, number, when, part, "daemon", "--pid", target.pid, "--socket",
                            tmp_path / "s")
    assert status == harness.DONE, (status, told)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", ENDS)
def test_what_is_not_asked(raiser, tmp_path, number):
    """Those that are done in a moment are ended by the signal itself, as anything else is."""
    status, told = ended_at(raiser, number, "open", "/dev/null", "export", DATA, "--format",
                            "chrome", "-o", tmp_path / "t.json")
    assert (status, told) == (-number, "")
    assert os.listdir(tmp_path) == []


def kept_signals(text):
    """What the program that `gpuprof run` starts has blocked, ignored and handled."""
    return {line.split(":")[0]: int(line.split(":")[1], 16) for line in text.splitlines()
            if line.startswith(("SigBlk", "SigIgn", "SigCgt"))}


def test_the_program_of_run_has_its_own(tmp_path):
    """Blocked and ignored signals are as they were for gpuprof itself."""
    def as_some_shell():
        undisturbed()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR1, signal.SIGHUP})

    def signals_of(*argv):
        done = subprocess.run(argv, check=True, capture_output=True, text=True,
                              timeout=harness.LIMIT, preexec_fn=as_some_shell,
                              env=harness.environment())
        return kept_signals(done.stdout)

    shown = ("grep", "^Sig", "/proc/self/status")
    plain = signals_of(*shown)
    assert plain["SigBlk"] and plain["SigIgn"]
    assert signals_of(harness.GPUPROF, "run", "-o", str(tmp_path / "r.gpuprof"), "--",
                      *shown) == plain


def test_at_any_moment_of_something_quick(tmp_path):
    """From before its first instruction until after its last: the whole output or none."""
    chance, out = random.Random(7), tmp_path / "t.json"
    argv = [harness.GPUPROF, "export", DATA, "--format", "chrome", "-o", str(out)]

    def begin():
        return subprocess.Popen(argv, env=harness.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    start = time.monotonic()
    with begin() as whole:
        told = whole.stderr.read()
    assert whole.returncode == harness.LOST, told  # as the recording says
    takes, wanted = time.monotonic() - start, out.read_bytes()
    seen = set()
    for _ in range(RUNS):
        out.unlink(missing_ok=True)
        with begin() as process:
            time.sleep(chance.random() * 1.2 * takes)
            process.send_signal(signal.SIGTERM)
            told = process.stderr.read()
        assert process.returncode in (harness.LOST, -signal.SIGTERM), (process.returncode, told)
        assert os.listdir(tmp_path) in ([], ["t.json"])
        if out.exists():
            assert out.read_bytes() == wanted
        else:
            assert process.returncode == -signal.SIGTERM
        seen.add(process.returncode)
    assert -signal.SIGTERM in seen


@pytest.mark.parametrize("options", [(), ("--no-inject",)])
def test_at_any_moment_of_a_capture(target, tmp_path, options):
    """Ended before it began, or recorded until then; never a half of either."""
    chance, path = random.Random(11), tmp_path / "r.gpuprof"

    def begin():
        return harness.Gpuprof("attach", "--pid", target.pid, "-o", path, *options,
                               preexec_fn=undisturbed)

    start = time.monotonic()
    with begin() as profiler:
        profiler.wait_recording()
        takes = time.monotonic() - start
        assert profiler.finish() == harness.DONE, profiler.told()
    for _ in range(6):
        path.unlink(missing_ok=True)
        with begin() as profiler:
            time.sleep(chance.random() * 1.2 * takes)
            profiler.signal(chance.choice(ENDS))
            status = profiler.wait()
            if status < 0:
                # It had not come to its first instruction.
                assert profiler.text("stderr") == "" and os.listdir(tmp_path) == []
            elif status == harness.FAILED:
                assert "before recording began" in profiler.text("stderr"), profiler.told()
                assert os.listdir(tmp_path) == []
            else:
                assert status == harness.DONE, profiler.told()
                assert os.listdir(tmp_path) == ["r.gpuprof"]
                assert harness.gpuprof("table", path).status == harness.DONE
            assert not os.path.exists("/run/gpuprof/%d.sock" % profiler.pid)
        harness.wait_until("the probes are gone",
                           lambda: not harness.text_differences(target.pid))
        target.step(1)


def test_a_second_one_leaves_no_socket(target, tmp_path):
    """It ends gpuprof at once, wherever that is."""
    with harness.Gpuprof("attach", "--pid", target.pid, "-o", tmp_path / "r.gpuprof", "--socket",
                         tmp_path / "s", preexec_fn=undisturbed) as profiler:
        profiler.wait_recording()
        assert os.path.exists(tmp_path / "s")
        # Both are there when it goes on.
        profiler.signal(signal.SIGSTOP)
        profiler.signal(signal.SIGTERM)
        profiler.signal(signal.SIGINT)
        profiler.signal(signal.SIGCONT)
        status = profiler.wait()
        assert status in (-signal.SIGTERM, -signal.SIGINT), profiler.told()
    assert not os.path.exists(tmp_path / "s")
    harness.wait_until("the probes are gone", lambda: not harness.text_differences(target.pid))
    target.step(1)
