# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What gpuprof writes: whose it is, who may read it, and that nothing that others put in the way leads
root elsewhere.
"""

import os
import re
import stat
import subprocess

import pytest

import harness
from harness import DONE, FAILED, GPUPROF, Gpuprof, Target, environment, gpuprof
from recording_file import RecordingFile

NOBODY = 65534
SECRET = b"what root alone may change"
CALLER = {"SUDO_UID": "12345", "SUDO_GID": "23456"}
FORMATS = {"chrome": "t.json", "perfetto": "t.pftrace", "lightning": "t.txt"}


@pytest.fixture(scope="module")
def idle():
    with Target("mlp") as target:
        yield target
        target.leave()


@pytest.fixture
def recording(tmp_path):
    made = RecordingFile()
    made.op("aten::mm", 10, 40, 1)
    return made.save(tmp_path / "small.gpuprof")


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def theirs(tmp_path):
    """A folder of nobody's."""
    path = tmp_path / "theirs"
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)
    for folder in (path, *list(tmp_path.parents)[:-1], tmp_path):
        folder.chmod(folder.stat().st_mode | 0o555)
    return path


def plant(target, link):
    """As nobody."""
    def become_nobody():
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    subprocess.run(["ln", "-s", target, link], check=True, preexec_fn=become_nobody)


def is_refused(done, status=FAILED):
    assert done.status == status and "a symbolic link leads there" in done.stderr, done
    assert "name the file that is meant" in done.stderr, done


@pytest.mark.parametrize("form", FORMATS)
def test_export_follows_no_planted_link(recording, secret, theirs, form):
    path = theirs / FORMATS[form]
    plant(secret, path)
    plant(secret.parent, theirs / "folder")
    is_refused(gpuprof("export", recording, "--format", form, "-o", path))
    is_refused(gpuprof("export", recording, "--format", form, "-o", theirs / "folder" / "new"))
    is_refused(gpuprof("merge", recording, recording, "-o", path))
    assert secret.read_bytes() == SECRET and not (secret.parent / "new").exists()


def test_tensorboard_follows_no_planted_link(recording, secret, theirs):
    (secret.parent / "mine").mkdir()
    plant(secret.parent / "mine", theirs / "board")
    is_refused(gpuprof("export", recording, "--format", "tensorboard", "-o", theirs / "board"))
    assert os.listdir(secret.parent / "mine") == []


def test_attach_follows_no_planted_link(idle, secret, theirs):
    path = theirs / "r.gpuprof"
    plant(secret, path)
    options = ("attach", "--pid", idle.pid, "--duration", "1")
    is_refused(gpuprof(*options, "-o", path))
    for option, name in (("--trace", "t.json"), ("--memory-timeline", "m.html")):
        plant(secret, theirs / name)
        is_refused(gpuprof(*options, "-o", theirs / "own.gpuprof", option, theirs / name))
    assert secret.read_bytes() == SECRET
    assert not (theirs / "own.gpuprof").exists()


def test_link_that_comes_meanwhile(idle, secret, theirs):
    """The name that root has checked becomes a link while root records: the link is replaced."""
    path, trace = theirs / "r.gpuprof", theirs / "t.json"
    with Gpuprof("attach", "--pid", idle.pid, "-o", path, "--trace", trace) as profiler:
        profiler.wait_recording()
        path.rename(theirs / "moved")
        plant(secret, path)
        plant(secret, trace)
        idle.step(1)
        assert profiler.finish() == FAILED, profiler.told()
    assert secret.read_bytes() == SECRET
    assert harness.Recording(theirs / "moved").table()["rows"]


def seen(path):
    found = os.stat(path)
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def test_outputs_belong_to_the_caller(idle, recording, tmp_path):
    """And to nobody else: neither recordings nor what is made of them is for all to read."""
    env = dict(environment(), **CALLER)
    out = tmp_path / "out"
    out.mkdir()
    done = gpuprof("attach", "--pid", idle.pid, "--duration", "1", "--memory", "-o",
                   out / "r.gpuprof", "--trace", out / "t.json.gz", "--memory-timeline",
                   out / "m.html", env=env)
    assert done.status == DONE, done
    for form, name in FORMATS.items():
        done = gpuprof("export", recording, "--format", form, "-o", out / ("e" + name), env=env)
        assert done.status == DONE, done
    done = gpuprof("merge", recording, recording, "-o", out / "both.gpuprof", env=env)
    assert done.status == DONE, done
    done = gpuprof("export", recording, "--format", "tensorboard", "-o", out / "board", env=env)
    assert done.status == DONE, done
    assert len(os.listdir(out)) == 8
    assert seen(out / "board") == (12345, 23456, 0o700)
    for folder in (out, out / "board"):
        for name in set(os.listdir(folder)) - {"board"}:
            assert seen(folder / name) == (12345, 23456, 0o600), name


def test_rotated_recordings_belong_to_the_caller(idle, tmp_path):
    path = tmp_path / "r.gpuprof"
    # Of an earlier capture: replaced, taken away, and left but spoken of.
    for number in (1, 2, 9):
        (tmp_path / ("r.%d.gpuprof" % number)).write_text("of an earlier run")
    (tmp_path / "r.3.gpuprof").write_text("of an earlier run")
    with Gpuprof("attach", "--pid", idle.pid, "-o", path, "--rotate", "3600",
                 "--socket", tmp_path / "s", env=dict(environment(), **CALLER)) as profiler:
        profiler.wait_recording()
        idle.step(1)
        done = gpuprof("ctl", "--socket", tmp_path / "s", "dump")
        assert done.stdout == "%s/r.1.gpuprof\n" % tmp_path, done
        done = gpuprof("ctl", "--socket", tmp_path / "s", "rotate")
        assert done.status == DONE, done
        done = gpuprof("ctl", "--socket", tmp_path / "s", "status")
        assert "recording %s/r.2.gpuprof\n" % tmp_path in done.stdout, done
        assert profiler.finish() == DONE, profiler.told()
        assert "r.3.gpuprof' is from an earlier capture" in profiler.text("stderr")
    for number in (1, 2):
        # It was root's, in a folder of root's.
        assert seen(tmp_path / ("r.%d.gpuprof" % number))[1:] == (0, 0o644)
        assert harness.Recording(tmp_path / ("r.%d.gpuprof" % number)).table()["capture"]
    assert len(os.listdir(tmp_path)) == 4


def test_numbers_stand_before_the_ending(idle, tmp_path):
    """Also where that is .gz alone, or what is written would not be compressed."""
    with Gpuprof("attach", "--pid", idle.pid, "--schedule", "wait=1,warmup=1,active=1,repeat=2",
                 "-o", tmp_path / "r.gpuprof", "--trace", tmp_path / "t.gz") as profiler:
        profiler.wait_recording()
        for _ in range(12):
            idle.step(1)
        assert profiler.finish() == DONE, profiler.told()
    assert {"r.1.gpuprof", "t.1.gz"} <= set(os.listdir(tmp_path))
    assert (tmp_path / "t.1.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_pipe_without_a_reader(recording, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = gpuprof("export", recording, "--format", "chrome", "-o", tmp_path / "pipe")
    assert done.status == FAILED and "nothing reads from the pipe" in done.stderr, done


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output(recording, tmp_path, name):
    """Whatever it is: a pipe, or a file, after what is in it."""
    want = gpuprof("export", recording, "--format", "lightning", "-o", tmp_path / "want")
    with open(tmp_path / "out", "wb") as out:
        out.write(b"before\n")
        out.flush()
        done = subprocess.run([GPUPROF, "export", recording, "--format", "lightning", "-o", name],
                              stdout=out, env=environment(), check=False)
    assert done.returncode == want.status
    written = (tmp_path / "out").read_bytes()
    assert written.startswith(b"before\n")
    done = gpuprof("export", recording, "--format", "lightning", "-o", name)
    assert done.stdout.encode() == written[len(b"before\n"):], done


def test_process_substitution(recording, tmp_path):
    script = '"$0" export "$1" --format chrome -o >(cat >"$2"); wait $!'
    done = subprocess.run(["bash", "-c", script, GPUPROF, recording, tmp_path / "out"],
                          env=environment(), check=False)
    assert done.returncode == DONE
    harness.parse_json((tmp_path / "out").read_text())
    assert gpuprof("export", recording, "--format", "chrome", "-o", "/dev/null").status == DONE
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_killed_while_it_writes(idle, tmp_path):
    """What was killed before it recorded leaves the recording of that name; later it is its own."""
    path = tmp_path / "r.gpuprof"
    path.write_text("of an earlier run")
    with Gpuprof("attach", "--pid", idle.pid, "-o", path) as profiler:
        profiler.wait_recording()
        profiler.kill()
    assert path.read_bytes()[:8] != b"of an ea"
    assert [name for name in os.listdir(tmp_path) if not re.match(r"r\.gpuprof", name)] == []


def test_daemon_keeps_recordings_in_no_folder_of_others(theirs, tmp_path):
    done = gpuprof("daemon", "--recordings", theirs)
    assert done.status == FAILED and "other users may write there" in done.stderr, done
    plant(tmp_path, theirs / "link")
    is_refused(gpuprof("daemon", "--recordings", theirs / "link"))
