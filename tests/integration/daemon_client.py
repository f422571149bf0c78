# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A `gpuprof daemon` and whoever asks it, for the tests."""

import contextlib
import http.client
import os
import re
import shutil
import socket
import tempfile

import pytest

import harness

SHORT = ("--mode", "trace", "--period", "0.5")
TOKEN = "a-secret-of-the-tests-0123456789"

SAMPLE = re.compile(r'^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)')


def parse(text):
    """[(name, labels, value)] of Prometheus' text format."""
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels, value = SAMPLE.match(line).groups()
            found.append((name, dict(LABEL.findall(labels or "")), float(value)))
    return found


def connected(path):
    """A connection to a socket of this machine. It waits where a timeout would have it fail: while
    many others are waiting to be accepted."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.settimeout(harness.LIMIT)
    return connection


class UnixConnection(http.client.HTTPConnection):
    """HTTP to a socket of this machine."""

    def __init__(self, path):
        super().__init__("localhost", timeout=harness.LIMIT)
        self.path = path

    def connect(self):
        self.sock = connected(self.path)


def token_file(folder, text=TOKEN):
    """A file with the token that nobody else may read."""
    path = os.path.join(folder, "token")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    return path


def open_below(pid, begin):
    """What the process has open whose name begins so."""
    found = []
    for name in os.listdir("/proc/%d/fd" % pid):
        # It may be closed by now.
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink("/proc/%d/fd/%s" % (pid, name)))
    return [path for path in found if path.startswith(begin)]


def kept_capabilities():
    return sum(1 << number for number in (1, 19, 21, 38, 39))


class Daemon(harness.Gpuprof):
    """Answers at a socket of its own; with `listen` also at (host, port), who sends TOKEN."""

    def __init__(self, *options, listen=None, **popen):
        self.folder = tempfile.mkdtemp(prefix="gpuprof-daemon-")
        self.socket = os.path.join(self.folder, "daemon.sock")
        self.token_file = token_file(self.folder)
        tcp = ("--listen", listen, "--token-file", self.token_file) if listen else ()
        super().__init__("daemon", "--socket", self.socket, *tcp, *options, **popen)
        self.wait_line("stderr", lambda text: text.startswith("profiling"))
        if listen:
            line, _ = self.wait_line("stderr", lambda text: text.startswith("answering at http"))
            self.url = line.split()[2].rstrip(",").rstrip("/")
            self.host, port = self.url[len("http://"):].rsplit(":", 1)
            self.port = int(port)

    def __exit__(self, *_):
        super().__exit__()
        shutil.rmtree(self.folder)

    def connect(self, tcp=False):
        """A connection on which nothing has been said."""
        if tcp:
            return socket.create_connection((self.host.strip("[]"), self.port),
                                            timeout=harness.LIMIT)
        return connected(self.socket)

    def ask(self, path, method="GET", headers=None, tcp=False):
        """(status, headers, body); by TCP without a token."""
        if tcp:
            connection = http.client.HTTPConnection(self.host.strip("[]"), self.port,
                                                    timeout=harness.LIMIT)
        else:
            connection = UnixConnection(self.socket)
        try:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.ask(path)
        assert status == 200, (path, status, body)
        return body

    def metrics(self):
        return parse(self.get("/metrics").decode("utf-8"))

    def sum(self, name, **labels):
        """Of all samples of that name that have these labels."""
        return sum(value for found, has, value in self.metrics()
                   if found == name and labels.items() <= has.items())

    def wait_sum(self, least, name, **labels):
        harness.wait_until("%s %r of %s: %s" % (name, labels, least, self.told()),
                           lambda: self.sum(name, **labels) >= least)

    def wait_processes(self, count):
        harness.wait_until("%d processes: %s" % (count, self.told()),
                           lambda: self.sum("gpuprof_processes") == count)

    def end(self):
        """Ends it as systemd does; returns the exit status."""
        self.signal(15)
        return self.wait()


@pytest.fixture(scope="module")
def target():
    with harness.Target("mlp") as started:
        yield started
        started.leave()


@pytest.fixture(scope="module")
def daemon(target):
    """One that knows this target alone, of which other tests on this machine are no part."""
    with Daemon("--pid", target.pid, "--memory", *SHORT, listen="127.0.0.1:0") as started:
        started.wait_processes(1)
        yield started
        assert started.end() == 0, started.told()
