# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gpuprof ctl: collection off and on during a capture, and what it leaves out meanwhile."""

import os
import socket
import stat
import subprocess
import threading
import time

import pytest

import harness
import test_gpu

STEP_OP = "aten::mse_loss"


def ctl(path, *words):
    return harness.gpuprof("ctl", "--socket", path, *words)


def status(path):
    done = ctl(path, "status")
    assert done.status == harness.DONE, done
    return [line.split(None, 1) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def switched(recordings):
    """3 steps on, 4 off, 2 with the GPU's side off, 1 on."""
    path = str(recordings / "ctl.sock")
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path, "--memory", "-o",
                             recordings / "switched.gpuprof", "--metadata",
                             "run=7,model=tiny,traceEvents=x") as profiler:
            profiler.wait_recording()
            facts = {"pid": target.pid, "mode": os.stat(path).st_mode}
            for command, steps in ((None, 3), (["stop"], 4), (["start"], 0),
                                   (["stop", "gpu"], 2), (["start", "gpu"], 1)):
                if command:
                    done = ctl(path, *command)
                    assert done.status == harness.DONE, done
                    facts[" ".join(command)] = status(path)
                target.step(steps)
            facts["dump"] = ctl(path, "dump")
            facts["dumped"] = harness.Recording(facts["dump"].stdout.strip()).rows()
            assert ctl(path, "metadata", "run=8,note=a b").status == harness.DONE
            assert ctl(path, "end").status == harness.DONE
            assert profiler.wait() == harness.DONE, profiler.told()
            facts["told"] = profiler.told()
        target.leave()
    assert not os.path.exists(path)
    facts["recording"] = harness.Recording(recordings / "switched.gpuprof")
    return facts


def test_words_of_ones_own(switched):
    """As add_metadata() has them in the trace; the last of one key counts."""
    trace = switched["recording"].chrome()
    assert (trace["run"], trace["model"], trace["note"]) == ("8", "tiny", "a b")
    assert isinstance(trace["traceEvents"], list)
    capture = switched["recording"].table()["capture"]
    assert capture["user:run"] == "8" and capture["user:traceEvents"] == "x"


@pytest.mark.parametrize("text", ["", "=x", "key", "a=1,,b=2", "a=\x1b"])
def test_words_that_are_none(text):
    for words in (["attach", "--pid", "1", "--metadata", text], ["ctl", "metadata", text]):
        done = harness.gpuprof(*words)
        assert done.status == harness.USAGE, done
        assert "KEY=VALUE" in done.stderr


@pytest.mark.versions
def test_nothing_is_recorded_while_it_is_off(switched):
    rows = switched["recording"].rows()
    assert rows[STEP_OP]["calls"] == 3 + 2 + 1
    assert switched["dumped"][STEP_OP]["calls"] == 3 + 2 + 1


def test_pauses_are_no_time(switched):
    table = switched["recording"].table()
    cpu = [pause for pause in table["pauses"] if pause["cpu"]]
    gpu = [pause for pause in table["pauses"] if pause["gpu"]]
    assert len(cpu) == 1 and len(gpu) == 2
    assert cpu[0]["us"] > 0
    # Two steps in three, one of the two, and none across the pause.
    assert sum(series["count"] for series in table["steps"]) == 2 + 2
    whole = cpu[0]["us"] + table["wall_us"]
    times = [float(event["ts"]) for event in switched["recording"].chrome()["traceEvents"]
             if event["ph"] == "X" and event["cat"] == "cpu_op"]
    assert max(times) - min(times) < whole
    assert any(after - before >= cpu[0]["us"] for before, after in
               zip(sorted(times), sorted(times)[1:]))


def test_status_tells(switched):
    assert ["process", str(switched["pid"])] in switched["stop"]
    assert ["cpu", "off"] in switched["stop"] and ["gpu", "off"] in switched["stop"]
    assert ["cpu", "on"] in switched["start"] and ["gpu", "on"] in switched["start"]
    assert ["cpu", "on"] in switched["stop gpu"] and ["gpu", "off"] in switched["stop gpu"]


def test_socket_is_private(switched):
    assert stat.S_ISSOCK(switched["mode"])
    assert stat.S_IMODE(switched["mode"]) == 0o600


def test_found_by_pid(tmp_path):
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "-o",
                             tmp_path / "pid.gpuprof") as profiler:
            profiler.wait_recording()
            for pid in (target.pid, profiler.pid):
                done = harness.gpuprof("ctl", "--pid", pid, "status")
                assert done.status == harness.DONE, done
                assert "process %d" % target.pid in done.stdout
            place = "/run/gpuprof/%d.sock" % profiler.pid
            # All may look, for the daemon's socket lies there too; another user may not connect.
            assert stat.S_IMODE(os.stat("/run/gpuprof").st_mode) == 0o755
            assert stat.S_IMODE(os.stat(place).st_mode) == 0o600
            tried = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups",
                                    harness.GPUPROF, "ctl", "--socket", place, "status"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            assert tried.returncode == harness.FAILED and b"Permission denied" in tried.stderr
            # Killed: what it leaves is cleared away.
            profiler.process.kill()
            profiler.process.wait()
            assert os.path.exists(place)
            done = harness.gpuprof("ctl", "--pid", target.pid, "status")
            assert done.status == harness.FAILED and "no capture of process" in done.stderr
            assert not os.path.exists(place)
        target.step(1)
        target.leave()


def test_rude_callers(tmp_path):
    """Who says nothing, too much, or hangs up does no harm."""
    path = str(tmp_path / "rude.sock")
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path, "-o",
                             tmp_path / "rude.gpuprof") as profiler:
            profiler.wait_recording()
            for words in (b"", b"x" * 5000, b"nonsense\n", b"stop\n", b"start\n", b"\0\n"):
                with socket.socket(socket.AF_UNIX) as one:
                    one.connect(path)
                    try:
                        one.sendall(words)
                    except OSError:
                        pass
            assert ["cpu", "on"] in status(path) or ctl(path, "start").status == harness.DONE
            target.step(2)
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()


def test_slow_callers(tmp_path):
    """Who says a little at a time gets no more than the moment that all get: the capture waits
    meanwhile."""
    path = str(tmp_path / "slow.sock")
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path, "-o",
                             tmp_path / "slow.gpuprof") as profiler:
            profiler.wait_recording()
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(path)
                said = 0
                with pytest.raises(OSError):
                    while said < 400:
                        one.send(b"x")
                        said += 1
                        time.sleep(0.05)
            assert ["cpu", "on"] in status(path)
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()


STRANGER = 65534

PLANTED = """
import os, socket, sys
os.umask(0)
if sys.argv[2] == "stranger":
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(8)
print("ready", flush=True)
while True:
    one, _ = server.accept()
    said = one.recv(100)
    print("heard %r" % said, flush=True)
    one.sendall(b"ok\\nprocess 1\\nplanted\\n")
    one.close()
"""


@pytest.mark.parametrize("how", ["socket", "link", "listener"])
def test_what_another_user_planted(tmp_path, how):
    """Root says nothing to it and shows nothing of it."""
    place, folder = tmp_path / "x.sock", tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, STRANGER, STRANGER)
    # Python, the folder above and what is there must be theirs to reach.
    for above in (tmp_path, *tmp_path.parents):
        if str(above).startswith("/tmp/"):
            os.chmod(above, 0o755)
    own = folder / "x.sock"
    with harness.Child([harness.PYTHON, "-c", PLANTED, str(own), "stranger"], "planted") as child:
        child.wait_line("stdout", lambda line: line == "ready")
        if how == "link":
            os.symlink(own, place)
        elif how == "listener":
            # As if the name were root's: who listens is what counts.
            os.chown(own, 0, 0)
        done = ctl(str(place if how == "link" else own), "status")
        assert done.status == harness.FAILED and "planted" not in done.stdout, done
        assert "heard" not in child.text("stdout").replace("heard b''", "")
    wanted = {"socket": "sudo -u #65534", "link": "is no socket", "listener": "another user"}
    assert wanted[how] in done.stderr, done


@pytest.mark.parametrize("mode, owner", [(0o777, 0), (0o770, 0), (0o755, STRANGER)])
def test_folders_that_others_write_to(tmp_path, mode, owner):
    """No socket is made there, and nothing is taken away; the capture goes on without."""
    folder = tmp_path / "common"
    folder.mkdir()
    path = folder / "x.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    before = os.stat(path).st_ino
    os.chown(folder, owner, owner)
    os.chmod(folder, mode)
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path, "-o",
                             tmp_path / "r.gpuprof") as profiler:
            profiler.wait_recording()
            assert "name one in a folder of your own" in profiler.text("stderr"), profiler.told()
            assert os.stat(path).st_ino == before
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()


SWAPPER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Between a look at a path and what is then done to it, somebody swaps the folder. */
static void swap(void)
{
	const char *folder = getenv("SWAPPED"), *victim = getenv("VICTIM");
	char aside[4096];

	if (!folder)
		return;
	snprintf(aside, sizeof(aside), "%s.aside", folder);
	if (rename(folder, aside) || symlink(victim, folder))
		return;
	unsetenv("SWAPPED");
}

int unlink(const char *path)
{
	int (*real)(const char *) = dlsym(RTLD_NEXT, "unlink");

	if (strstr(path, "x.sock"))
		swap();
	return real(path);
}

int unlinkat(int at, const char *path, int flags)
{
	int (*real)(int, const char *, int) = dlsym(RTLD_NEXT, "unlinkat");

	if (strstr(path, "x.sock"))
		swap();
	return real(at, path, flags);
}

int bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
	int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");

	if (address->sa_family == AF_UNIX &&
	    strstr(((const struct sockaddr_un *)address)->sun_path, "x.sock"))
		swap();
	return real(fd, address, bytes);
}
"""


@pytest.mark.parametrize("left", [True, False])
def test_a_folder_that_is_swapped(tmp_path, left):
    """Whatever its name leads to by then, nothing is made or taken away there."""
    folder, victim = tmp_path / "folder", tmp_path / "victim"
    folder.mkdir(mode=0o700)
    victim.mkdir(mode=0o700)
    source, library = tmp_path / "swap.c", tmp_path / "swap.so"
    source.write_text(SWAPPER)
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True,
                   timeout=harness.LIMIT)
    if left:
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(folder / "x.sock"))
        (victim / "x.sock").write_text("of somebody else")
    env = dict(harness.environment(), LD_PRELOAD=str(library), SWAPPED=str(folder),
               VICTIM=str(victim))
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", folder / "x.sock", "-o",
                             tmp_path / "r.gpuprof", env=env) as profiler:
            profiler.wait_recording()
            assert os.path.islink(folder), profiler.told()
            assert os.listdir(victim) == (["x.sock"] if left else [])
            assert not left or (victim / "x.sock").is_file()
            # It listens where it looked.
            assert os.path.exists(tmp_path / "folder.aside" / "x.sock"), profiler.told()
            assert ["cpu", "on"] in status(str(tmp_path / "folder.aside" / "x.sock"))
            assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    assert os.listdir(victim) == (["x.sock"] if left else [])
    if left:
        assert (victim / "x.sock").read_text() == "of somebody else"
    assert not os.path.exists(tmp_path / "folder.aside" / "x.sock")


def test_it_asks_again_where_it_was_not_heard(tmp_path):
    """gpuprof waits for a moment alone, and who asks may stand still for longer."""
    heard = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.sock"))
        server.listen(8)

        def serve():
            for answer in (None, None, b"ok\nrecording 7\n"):
                one, _ = server.accept()
                with one:
                    if answer:
                        heard.append(one.recv(100))
                        one.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = ctl(str(tmp_path / "s.sock"), "status")
        thread.join(harness.LIMIT)
    assert done.status == harness.DONE and "recording 7" in done.stdout, done
    assert heard == [b"status\n"]


def test_schedules_are_not_switched(tmp_path):
    path = str(tmp_path / "steps.sock")
    with harness.Target("mlp") as target:
        with harness.Gpuprof("attach", "--pid", target.pid, "--socket", path, "--steps", "3", "-o",
                             tmp_path / "steps.gpuprof") as profiler:
            profiler.wait_recording()
            done = ctl(path, "stop")
            assert done.status == harness.FAILED and "goes by its schedule" in done.stderr
            profiler.finish()
        target.leave()


@pytest.mark.parametrize("words", [["--pid", "1"], ["--pid", "1", "resume"],
                                   ["--pid", "1", "stop", "disk"], ["--pid", "1", "status", "x"],
                                   ["--pid", "1", "--socket", "x", "status"]])
def test_usage(words):
    assert harness.gpuprof("ctl", *words).status == harness.USAGE


def test_nobody_there(tmp_path):
    done = harness.gpuprof("ctl", "--socket", tmp_path / "none", "status")
    assert done.status == harness.FAILED and "nobody answers" in done.stderr


@pytest.mark.parametrize("words", [[], ["gpu"]])
def test_gpus_off_and_on(tmp_path, words):
    """CUPTI is let go and taken again; what it told before is all there."""
    path = str(tmp_path / "gpu.sock")
    with test_gpu.App() as app:
        with harness.Gpuprof("attach", "--pid", app.pid, "--socket", path, "-o",
                             tmp_path / "gpu.gpuprof") as profiler:
            profiler.wait_recording()
            for command, rounds in ((None, 5), ("stop", 7), ("start", 3)):
                if command:
                    done = ctl(path, command, *words)
                    assert done.status == harness.DONE, done
                app.do("work 1 %d" % rounds)
            status_now = status(path)
            assert profiler.finish() == harness.DONE, profiler.told()
        app.leave()
    assert ["gpu", "on"] in status_now
    with test_gpu.App() as app:
        done, _ = test_gpu.capture(app, tmp_path, "work 1 8", name="whole.gpuprof")
        app.leave()

    def calls(recording):
        return {row["name"]: row["calls"] for row in recording.table()["rows"]
                if row["device"] == "CUDA"}

    whole = calls(done.recording)
    assert whole and calls(harness.Recording(tmp_path / "gpu.gpuprof")) == whole
    losses = harness.Recording(tmp_path / "gpu.gpuprof").losses()
    assert not losses["cupti_dropped"] and not losses["gpu_unmatched"]


def test_a_library_that_is_loaded_while_it_is_off(tmp_path):
    """What PyTorch's library tells by callback is not told by uprobes too from then on."""
    source, library = tmp_path / "entry.c", tmp_path / "entry.so"
    source.write_text("void entry(void (*call)(void)) { call(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True,
                   timeout=harness.LIMIT)
    place = tmp_path / "ctl.sock"
    with harness.Target("plugins") as target, \
            harness.Gpuprof("attach", "-v", "--pid", target.pid, "--socket", place, "--memory",
                            "-o", tmp_path / "r.gpuprof") as profiler:
        profiler.wait_recording()
        assert ctl(place, "stop").status == harness.DONE
        target.command("stay %s entry tanh" % library)
        # Each answer comes after a look at what was loaded.
        for _ in range(5):
            status(place)
        assert ctl(place, "start").status == harness.DONE
        target.step(3)
        assert profiler.finish() == harness.DONE, profiler.told()
        target.leave()
    recording = harness.Recording(tmp_path / "r.gpuprof")
    assert recording.rows()["aten::exp"]["calls"] == 3
    assert recording.table()["overhead"]["probe_hits"] == 0
