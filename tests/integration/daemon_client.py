# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A `gpuprof daemon` and whoever asks it, for the tests."""

import http.client
import re

import harness

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


class Daemon(harness.Gpuprof):
    """Answers at (host, port)."""

    def __init__(self, *options, listen="127.0.0.1:0", token=None, **popen):
        super().__init__("daemon", "--listen", listen, *options, **popen)
        line, _ = self.wait_line("stderr", lambda text: text.startswith("answering at "))
        self.url = line.split()[2].rstrip(";").rstrip("/")
        self.host, port = self.url[len("http://"):].rsplit(":", 1)
        self.port = int(port)
        self.token = token

    def ask(self, path, method="GET", headers=None):
        """(status, headers, body)."""
        connection = http.client.HTTPConnection(self.host.strip("[]"), self.port,
                                                timeout=harness.LIMIT)
        headers = dict(headers or {})
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()
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
