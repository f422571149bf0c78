# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Who may ask a `gpuprof daemon`, by which address, socket or token; what it can do itself once it has
started; and that requests which mean harm do none.
"""

import base64
import contextlib
import grp
import os
import random
import signal
import socket
import stat
import subprocess

import pytest

import harness
from daemon_client import (SHORT, TOKEN, Daemon, daemon, kept_capabilities, open_below, target,
                           token_file)


def test_needs_a_token(daemon):
    refused = daemon.sum("gpuprof_http_refused_total")
    basic = base64.b64encode
    wrong = [{}, {"Authorization": "Bearer " + TOKEN[:-1]},
             {"Authorization": "Bearer " + TOKEN + "x"}, {"Authorization": "Basic " + TOKEN},
             {"Authorization": "Basic " + basic(b"x:" + TOKEN[:-1].encode()).decode()},
             {"Authorization": "Basic " + basic(TOKEN.encode() + b":x").decode()}]
    for headers in wrong:
        for path in ("/metrics", "/recordings", "/debug/pprof/profile?seconds=1", "/"):
            status, got, body = daemon.ask(path, headers=headers, tcp=True)
            assert status == 401 and TOKEN.encode() not in body
            assert got.get_all("WWW-Authenticate") == ['Bearer realm="gpuprof"',
                                                       'Basic realm="gpuprof"']
            assert b"as the password of any user" in body and body.count(b"\n") == 1
    assert daemon.sum("gpuprof_http_refused_total") == refused + 4 * len(wrong)
    assert daemon.ask("/healthz", tcp=True)[2] == b"ok\n"
    for right in ("Bearer " + TOKEN, "Basic " + basic(b"any:" + TOKEN.encode()).decode()):
        status, got, body = daemon.ask("/metrics", headers={"Authorization": right}, tcp=True)
        assert status == 200 and b"gpuprof_build_info" in body
        # What another site's page has a browser fetch is not given to that page.
        assert got["Cross-Origin-Resource-Policy"] == "same-origin"
    assert TOKEN not in daemon.told()
    with open("/proc/%d/cmdline" % daemon.pid, "rb") as cmdline:
        assert TOKEN.encode() not in cmdline.read()


def test_by_a_name_of_somebody_elses(daemon):
    """A browser here may be led to us by a name that leads here (DNS rebinding), and may know the
    token."""
    headers = {"Authorization": "Bearer " + TOKEN, "Host": "evil.example:%d" % daemon.port}
    for path in ("/metrics", "/healthz"):
        status, _, body = daemon.ask(path, headers=headers, tcp=True)
        assert status == 403 and b"127.0.0.1 or localhost" in body
    headers["Host"] = "localhost:%d" % daemon.port
    assert daemon.ask("/metrics", headers=headers, tcp=True)[0] == 200


def test_an_address_that_others_reach(target):
    with Daemon("--pid", target.pid, listen="0.0.0.0:0") as daemon:
        daemon.host = "127.0.0.1"
        assert daemon.ask("/metrics", tcp=True)[0] == 401
        # By which name it is known there we do not know.
        headers = {"Authorization": "Bearer " + TOKEN, "Host": "node1.example"}
        assert daemon.ask("/metrics", headers=headers, tcp=True)[0] == 200
        assert daemon.end() == 0, daemon.told()


AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534"]


def fetch_as(daemon, *setpriv):
    """What another user's curl gets at the socket: (exit status, what came)."""
    done = subprocess.run([*AS_NOBODY, *setpriv, "curl", "-s", "-w", "%{http_code}",
                           "--unix-socket", daemon.socket, "http://localhost/metrics"],
                          check=False, capture_output=True, text=True, timeout=harness.LIMIT)
    return done.returncode, done.stdout


def test_who_may_ask_at_the_socket(target):
    """Root and the group; the kernel says who asks, whatever the mode of the socket says."""
    group = grp.getgrnam("games")
    with Daemon("--pid", target.pid, "--group", "games") as daemon:
        os.chmod(daemon.folder, 0o755)
        seen = os.stat(daemon.socket)
        assert stat.S_ISSOCK(seen.st_mode) and stat.S_IMODE(seen.st_mode) == 0o660
        assert (seen.st_uid, seen.st_gid) == (0, group.gr_gid)
        line, _ = daemon.wait_line("stderr", lambda text: "curl " in text)
        assert "root and the group games" in line
        member = ("--groups=%d" % group.gr_gid,)
        assert daemon.sum("gpuprof_build_info") == 1
        status, text = fetch_as(daemon, *member)
        assert status == 0 and text.endswith("200") and "gpuprof_build_info" in text
        assert fetch_as(daemon, "--clear-groups")[0] == 7  # no connection
        os.chmod(daemon.socket, 0o666)
        status, text = fetch_as(daemon, "--clear-groups")
        assert text.endswith("\n403") and "gpuprof_build_info" not in text
        assert text.count("\n") == 1 and "usermod -aG games USER" in text
        assert fetch_as(daemon, *member)[1].endswith("200")
        assert daemon.end() == 0, daemon.told()
        assert not os.path.exists(daemon.socket)


def test_at_its_usual_place(target):
    """Nothing answers over TCP unless that is asked for, and no stranger is answered."""
    with harness.Gpuprof("daemon", "--pid", target.pid) as daemon:
        daemon.wait_line("stderr", lambda text: text.startswith("profiling"))
        folder, place = os.stat("/run/gpuprof"), os.stat("/run/gpuprof/daemon.sock")
        assert (folder.st_uid, stat.S_IMODE(folder.st_mode)) == (0, 0o755)
        assert (place.st_uid, stat.S_IMODE(place.st_mode) & 0o117) == (0, 0)
        with open("/proc/%d/net/tcp" % daemon.pid, encoding="ascii") as table:
            inodes = {line.split()[9] for line in list(table)[1:]}
        sockets = open_below(daemon.pid, "socket:[")
        assert len(sockets) >= 1 and not inodes & {one[len("socket:["):-1] for one in sockets}
        second = harness.gpuprof("daemon", "--pid", target.pid)
        assert second.status == harness.FAILED and "--socket" in second.stderr, second
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0, daemon.told()
    assert not os.path.exists("/run/gpuprof/daemon.sock")


@pytest.mark.parametrize("options, why", [
    (("--listen", "127.0.0.1:0"), "needs --token-file FILE"),
    (("--listen", "0.0.0.0:0"), "needs --token-file FILE"),
    (("--token-file", "/nowhere"), "goes with --listen"),
    (("--listen", "127.0.0.1:0", "--token-file", "/nowhere", "--group", "games"),
     "give --socket"),
])
def test_access_that_makes_no_sense(options, why):
    done = harness.gpuprof("daemon", *options)
    assert done.status == harness.USAGE and why in done.stderr, done


@pytest.mark.parametrize("options, why", [
    (("--listen", "localhost:1", "--token-file", "TOKEN"), "as a number"),
    (("--listen", "127.0.0.1:0", "--token-file", "/nowhere"), "No such file"),
    (("--listen", "127.0.0.1:0", "--token-file", os.devnull), "no regular file"),
    (("--socket", "SOCKET", "--recordings", "/nowhere"), "No such file"),
    (("--socket", "SOCKET", "--group", "no-such-group"), "groupadd --system no-such-group"),
])
def test_refuses_to_start(tmp_path, options, why):
    known = {"TOKEN": token_file(tmp_path), "SOCKET": tmp_path / "s"}
    done = harness.gpuprof("daemon", *[known.get(word, word) for word in options])
    assert done.status == harness.FAILED and why in done.stderr, done
    assert not os.path.exists(tmp_path / "s")


@pytest.mark.parametrize("spoil, why", [
    (lambda path: os.chmod(path, 0o640), "chmod 600"),
    (lambda path: os.chmod(path, 0o602), "chmod 600"),
    (lambda path: os.chown(path, 65534, 0), "chown root"),
    (lambda path: (os.rename(path, path + "2"), os.symlink(path + "2", path)), "symbolic link"),
    (lambda path: (os.unlink(path), os.mkfifo(path, 0o600)), "no regular file"),
])
def test_token_files_that_others_can_have(tmp_path, spoil, why):
    path = token_file(tmp_path)
    spoil(path)
    done = harness.gpuprof("daemon", "--listen", "127.0.0.1:0", "--token-file", path)
    assert done.status == harness.FAILED and why in done.stderr and TOKEN not in done.stderr, done


def test_two_of_one_place(daemon):
    done = harness.gpuprof("daemon", "--socket", daemon.socket)
    assert done.status == harness.FAILED and "Address already in use" in done.stderr, done
    done = harness.gpuprof("daemon", "--listen", "%s:%d" % (daemon.host, daemon.port),
                           "--token-file", daemon.token_file)
    assert done.status == harness.FAILED and "Address already in use" in done.stderr, done
    assert daemon.get("/healthz") == b"ok\n"


def threads(pid):
    """Name -> the status of each thread."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        # It may have ended.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                open("/proc/%d/task/%s/status" % (pid, tid), encoding="utf-8") as status:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in status)
            found[fields["Name"]] = fields
    return found


def test_privileges_are_given_away(daemon, target):
    """While it is asked, records and reads what it has recorded."""
    seen = {}
    with daemon.connect() as asks:
        asks.sendall(b"GET /debug/pprof/profile?seconds=500 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        daemon.wait_sum(1, "gpuprof_profiles_running")
        recordings = daemon.sum("gpuprof_recordings_total")
        while daemon.sum("gpuprof_recordings_total") < recordings + 2:
            target.step(1)
            for name, fields in threads(daemon.pid).items():
                seen.setdefault(name, []).append(fields)
    for name, every in seen.items():
        for fields in every:
            assert fields["NoNewPrivs"] == "1", name
            for field in ("CapBnd", "CapPrm", "CapEff"):
                assert not int(fields[field], 16) & ~kept_capabilities(), (name, field)
            assert int(fields["CapInh"], 16) == int(fields["CapAmb"], 16) == 0, name
    # The one that serves and the one that reads recordings; all others belong to the capture.
    have_none = {name for name, every in seen.items()
                 if not any(int(fields["CapPrm"], 16) for fields in every)}
    assert have_none == {"gp-http", "gp-reader"}
    assert set(seen) - have_none <= {"gpuprof", "gp-unwind", "gp-closer", "gp-sampler", "gp-beat",
                                     "gp-hold", "gp-inject"}


OF_ANOTHER_USER = """
import ctypes, os, sys, torch
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
print("ready", flush=True)
for line in sys.stdin:
    torch.ones(2).sinh()
    print("did", flush=True)
"""


def test_privileges_suffice_for_another_user():
    with harness.Child([harness.PYTHON, "-B", "-c", OF_ANOTHER_USER], "user") as user:
        user.wait_line("stdout", lambda line: line == "ready")
        with Daemon("-v", "--pid", user.pid, *SHORT) as daemon:
            daemon.wait_processes(1)
            daemon.wait_line("stderr", lambda line: "collector put in" in line)
            user.send("x")
            daemon.wait_sum(1, "gpuprof_op_calls_total", op="aten::sinh")
            assert daemon.end() == 0, daemon.told()


def raw(daemon, data, tcp=False):
    """The first line that comes back on a connection of its own; none where it hangs up."""
    with daemon.connect(tcp) as s:
        with contextlib.suppress(OSError):
            s.sendall(data)
        got = b""
        with contextlib.suppress(ConnectionError):
            while b"\r\n" not in got and (piece := s.recv(65536)):
                got += piece
        return got.split(b"\r\n")[0]


@pytest.mark.san
@pytest.mark.parametrize("tcp", [False, True])
def test_hostile_requests(daemon, tcp):
    chance = random.Random(1)
    host = b"Host: localhost\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n"
    head = b"GET /metrics HTTP/1.1\r\n" + host
    for data, status in ((b"POST /metrics HTTP/1.1\r\n" + host + b"\r\n", b" 405 "),
                         (b"BREW / HTTP/1.1\r\n" + host + b"\r\n", b" 405 "),
                         (head + b"Content-Length: 5\r\n\r\nhello", b" 413 "),
                         (head + b"Content-Length: 99999999999999\r\n\r\n", b" 413 "),
                         (head + b"Transfer-Encoding: chunked\r\n\r\nfff\r\n", b" 413 "),
                         (head + b"X: " + b"y" * (1 << 20) + b"\r\n\r\n", b" 431 "),
                         (head + b"X: y\r\n" * 100000 + b"\r\n", b" 431 "),
                         (b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n\r\n", b" 414 "),
                         (b"GET /%00/../../etc/passwd HTTP/1.1\r\n" + host + b"\r\n", b" 404 "),
                         (b"GET /debug/pprof/profile?seconds=-1 HTTP/1.1\r\n" + host + b"\r\n",
                          b" 400 ")):
        got = raw(daemon, data, tcp)
        # Where it hangs up on what is still being sent, the answer may be lost.
        assert status in got or (not got and len(data) > 65536), (data[:80], got)
    for _ in range(200):
        with daemon.connect(tcp) as s:
            s.sendall(chance.randbytes(chance.randrange(1, 3000)))
    assert daemon.ask("/healthz", tcp=tcp)[2] == b"ok\n"


def test_too_many_connections(daemon):
    """More than it takes over TCP, all too slow: it ends them, and answers at the socket
    meanwhile."""
    slow = daemon.sum("gpuprof_http_too_slow_total")
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(daemon.connect(tcp=True)) for _ in range(80)]
        for one in many:
            with contextlib.suppress(OSError):
                one.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            one.setblocking(False)

        def all_ended():
            """Each says a little again and again, so that silence is not what ends it."""
            assert daemon.get("/healthz") == b"ok\n"
            ended = 0
            for one in many:
                try:
                    one.send(b"y")
                    ended += one.recv(1) == b""
                except BlockingIOError:
                    pass
                except OSError:
                    ended += 1
            return ended == len(many)

        harness.wait_until("the end of slow connections", all_ended)
    assert daemon.sum("gpuprof_http_too_slow_total") > slow


def test_thousands_of_connections(daemon):
    for _ in range(20):
        many = []
        for _ in range(100):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex((daemon.host, daemon.port))
            many.append(s)
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            s.connect_ex(daemon.socket)
            many.append(s)
        for s in many:
            s.close()
    assert daemon.get("/healthz") == b"ok\n"


@pytest.mark.san
def test_too_many_profiles(daemon):
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(daemon.connect()) for _ in range(8)]
        for one in many:
            one.sendall(b"GET /debug/pprof/profile?seconds=500 HTTP/1.1\r\nHost: localhost"
                        b"\r\n\r\n")
        harness.wait_until("all of them", lambda: daemon.sum("gpuprof_profiles_running") == 8)
        assert daemon.ask("/debug/pprof/profile?seconds=1")[0] == 503
    # Who hangs up gives the place back.
    harness.wait_until("the places", lambda: daemon.sum("gpuprof_profiles_running") == 0)
