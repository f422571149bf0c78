# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Bad input: a clear error that names the next step, the right status, and nothing left behind."""

import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile

import pytest

import harness
from harness import (DONE, FAILED, GPUPROF, LOST, USAGE, Child, Gpuprof, Target, gpuprof,
                     text_differences, wait_until)

pytestmark = pytest.mark.san


def kernel_thread():
    """The pid of one: its command line is empty and its parent is kthreadd."""
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        try:
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as stat:
                parent = stat.read().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if parent == "2":
            return int(name)
    return None


def unused_pid():
    with open("/proc/sys/kernel/pid_max", encoding="utf-8") as file:
        pid = int(file.read()) - 1
    while os.path.exists("/proc/%d" % pid):
        pid -= 1
    return pid


def refused(*args, **more):
    """A run of gpuprof that must fail, in an empty folder in which it must leave nothing."""
    folder = tempfile.mkdtemp(prefix="gpuprof-refused-")
    os.chmod(folder, 0o777)
    try:
        done = gpuprof(*args, cwd=folder, **more)
        assert done.status in (FAILED, USAGE), done
        assert done.stdout == "" and done.stderr.startswith("gpuprof"), done
        assert os.listdir(folder) == [], done
        return done
    finally:
        shutil.rmtree(folder)


def test_no_such_process():
    pid = unused_pid()
    done = refused("attach", "--pid", pid)
    assert done.status == FAILED and str(pid) in done.stderr, done
    assert re.search("no (such )?process", done.stderr), done


def test_no_process_of_that_name():
    done = refused("attach", "--name", "no-program-is-called-this")
    assert done.status == FAILED and "no-program-is-called-this" in done.stderr, done


def test_kernel_thread():
    pid = kernel_thread()
    if pid is None:
        pytest.skip("this PID namespace shows no kernel thread")
    done = refused("attach", "--pid", pid)
    assert done.status == FAILED and "kernel thread" in done.stderr, done


def test_pid_given_twice(idle):
    done = refused("attach", "--pid", "%d,%d" % (idle.pid, idle.pid))
    assert str(idle.pid) in done.stderr and "twice" in done.stderr, done


@pytest.mark.parametrize("args", [("attach", "--pid", "PID"), ("run", "--", "/no/such/program")])
def test_earlier_recording_outlives_a_refusal(tmp_path, args):
    path = tmp_path / "r.gpuprof"
    path.write_text("of an earlier run")
    path.chmod(0o640)
    args = [str(unused_pid()) if arg == "PID" else arg for arg in args]
    done = gpuprof(args[0], "-o", path, *args[1:])
    assert done.status == FAILED, done
    assert path.read_text() == "of an earlier run"
    assert os.listdir(tmp_path) == ["r.gpuprof"]


def test_output_not_writable(idle):
    done = refused("attach", "--pid", idle.pid, "-o", "/no/such/folder/r.gpuprof")
    assert done.status == FAILED and "/no/such/folder" in done.stderr, done
    assert text_differences(idle.pid) == {}
    idle.step(1)


def test_devices_stay(idle, tmp_path):
    """A capture that cannot begin takes its file back, but never a device."""
    null = tmp_path / "null"
    subprocess.run(["mknod", null, "c", "1", "3"], check=True)
    refused("attach", "--pid", "%d,%d" % (idle.pid, idle.pid), "-o", null)
    refused("attach", "--pid", unused_pid(), "-o", null)
    done = refused("attach", "--pid", idle.pid, "-o", null)
    assert "it is no regular file, from which the table could be made" in done.stderr, done
    assert stat.S_ISCHR(os.lstat(null).st_mode)


def test_recording_where_the_table_goes(idle, tmp_path):
    with open(tmp_path / "out", "wb") as out:
        done = subprocess.run([GPUPROF, "attach", "--pid", str(idle.pid), "-o",
                               "/dev/stdout"], stdout=out, stderr=subprocess.PIPE,
                              env=harness.environment(), timeout=harness.LIMIT, check=False)
    assert done.returncode == FAILED and b"the table goes there" in done.stderr, done
    assert not os.path.getsize(tmp_path / "out")


def test_second_signal_says_what_it_leaves(tmp_path):
    """Ctrl-C twice: the first one's work is ended, and that is no silence."""
    path = tmp_path / "r.gpuprof"
    with Target("mlp") as target:
        with Gpuprof("attach", "--pid", target.pid, "-o", path) as profiler:
            profiler.wait_recording()
            target.step(200)
            profiler.signal(signal.SIGSTOP)
            profiler.signal(signal.SIGINT)
            profiler.signal(signal.SIGTERM)
            profiler.signal(signal.SIGCONT)
            assert profiler.wait() < 0, profiler.told()
            assert "ended at once, by a second signal" in profiler.told()
        target.step(1)
        target.leave()
    assert gpuprof("table", path).status == DONE


def test_trace_not_writable(idle):
    """Told before the capture, not after it."""
    done = refused("attach", "--pid", idle.pid, "--trace", "/no/such/folder/t.json")
    assert done.status == FAILED and "/no/such/folder" in done.stderr, done


@pytest.mark.parametrize("paths", [("-o", "same.json", "--trace", "same.json"),
                                   ("--trace", "./same.json", "--memory-timeline", "same.json")])
def test_two_outputs_in_one_file(idle, paths):
    done = refused("attach", "--pid", idle.pid, *paths)
    assert done.status == FAILED and "it is named for two outputs" in done.stderr, done


def test_unknown_sort_key_before_the_capture(idle):
    done = refused("attach", "--pid", idle.pid, "--sort", "beauty")
    assert done.status == USAGE and "beauty" in done.stderr, done
    assert "cpu_time_total" in done.stderr, done


def test_without_pytorch(tmp_path):
    """Ends at once, with the next step, and leaves the process alone; waits only when told to."""
    with Child(["/bin/cat"], "cat") as cat:
        for command in ("attach", "-o", tmp_path / "r.gpuprof"), ("top", "--once"):
            done = gpuprof(*command, "--pid", cat.pid)
            assert done.status == FAILED and "process %d (cat) has no PyTorch" % cat.pid in done.stderr, done
            assert "--wait" in done.stderr and len(done.stderr.splitlines()) == 1, done
        assert not (tmp_path / "r.gpuprof").exists()
        with Gpuprof("attach", "--pid", cat.pid, "--wait", "-o", tmp_path / "r.gpuprof") as profiler:
            profiler.wait_recording()
            assert profiler.finish() == DONE, profiler.told()
            assert "has no PyTorch" in profiler.text("stderr"), profiler.told()
        cat.send("still here")
        cat.wait_line("stdout", lambda text: text == "still here")


@pytest.fixture
def public_binary():
    """A copy of gpuprof that every user may run."""
    folder = tempfile.mkdtemp(prefix="gpuprof-public-")
    os.chmod(folder, 0o755)
    yield shutil.copy(GPUPROF, folder)
    shutil.rmtree(folder)


def test_not_root(idle, public_binary):
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    done = refused("attach", "--pid", idle.pid, binary=public_binary, prefix=nobody)
    assert done.status == FAILED and "sudo" in done.stderr, done
    done = gpuprof("doctor", binary=public_binary, prefix=nobody)
    assert done.status in (DONE, FAILED) and "no" in done.stdout.lower(), done


def test_no_bpf(idle):
    """Root without the capabilities that BPF needs."""
    bare = ("setpriv", "--bounding-set", "-sys_admin,-bpf,-perfmon", "--inh-caps", "-all")
    done = refused("attach", "--pid", idle.pid, "--no-inject", prefix=bare)
    assert done.status == FAILED and "cap_" in done.stderr.lower(), done


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(kib): a folder in which so much has room."""
    mounted = []

    def make(kib):
        folder = tmp_path / ("small-%d" % len(mounted))
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk" % kib, "tmpfs", folder],
                       check=True)
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", "-l", folder], check=True)


def test_disk_full_from_the_start(idle, small_disk):
    """Not even the beginning of a recording has room: refused, and no probe is left."""
    folder = small_disk(16)
    (folder / "filler").write_bytes(bytes(16384))
    done = refused("attach", "--pid", idle.pid, "-o", folder / "r.gpuprof")
    assert done.status == FAILED and "space" in done.stderr.lower(), done
    assert os.listdir(folder) == ["filler"]
    assert text_differences(idle.pid) == {}


def test_disk_full_while_recording(small_disk):
    """The capture ends with the reason; what was written is readable; the target goes on."""
    path = small_disk(1024) / "r.gpuprof"
    with Target("mlp") as target:
        with Gpuprof("attach", "--pid", target.pid, "-o", path) as profiler:
            profiler.wait_recording()
            # Many times what has room.
            target.step(2000)
            status = profiler.finish()
            assert status in (FAILED, LOST), profiler.told()
            assert "space" in profiler.text("stderr").lower(), profiler.told()
        wait_until("the probes are gone", lambda: text_differences(target.pid) == {})
        target.step(10)
        target.leave()
    done = gpuprof("table", path)
    assert done.status in (DONE, FAILED, LOST) and done.stderr, done


def test_disk_full_while_exporting(sample, small_disk):
    """No half trace is left."""
    path = sample("mlp").recording.path
    folder = small_disk(64)
    for form, name in (("chrome", "t.json"), ("memory", "m.json")):
        filler = folder / "filler"
        filler.write_bytes(bytes(64000))
        done = gpuprof("export", path, "--format", form, "-o", folder / name)
        assert done.status == FAILED and "space" in done.stderr.lower(), done
        assert os.listdir(folder) == ["filler"]


def test_table_into_a_closed_pipe(sample):
    """Nobody reads on: it ends without noise, not by a crash."""
    path = sample("mlp").recording.path
    done = subprocess.run(["bash", "-c", '"$0" table "$1" --json | head -c 1 >/dev/null; '
                           'exit ${PIPESTATUS[0]}', GPUPROF, path], stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False, timeout=180)
    assert done.returncode in (DONE, FAILED, 128 + 13), done


def test_stdout_full(sample):
    """A full disk behind stdout is an error, not a success."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([GPUPROF, "table", sample("mlp").recording.path, "--json"],
                              stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                              check=False, timeout=180)
    assert done.returncode == FAILED and b"space" in done.stderr.lower(), done
