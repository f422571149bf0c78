# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
`gpuprof daemon`: what it tells is what the processes did; Prometheus and pprof take it as it is;
processes come, go and die as they like. Who may ask is tested in test_daemon_access.py.
"""

import contextlib
import gzip
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest

import harness
from daemon_client import SHORT, TOKEN, Daemon, daemon, kept_capabilities, open_below, target

CROWD = os.path.join(os.path.dirname(harness.GPUPROF), "tests", "fake", "crowd")
SAMPLED = ("--period", "0.5")


class Crowd(harness.Child):
    """So many processes with the stand-in for PyTorch; see tests/fake/crowd.c."""

    def __init__(self, number, library=harness.FAKE_TORCH):
        super().__init__([CROWD, str(library), str(number)], "crowd")
        self._next = 0
        self.pids = self.read_pids()

    def answer(self):
        line, self._next = self.wait_line("stdout", lambda text: True, self._next)
        return line.split()

    def read_pids(self):
        word, *pids = self.answer()
        assert word == "ready"
        return pids

    def call(self, calls):
        self.send("call %d" % calls)
        assert self.answer() == ["called"]

    def flicker(self):
        self.send("flicker")
        self.pids = self.read_pids()


# ---- what it tells ----

def test_metrics_are_what_was_done(daemon, target):
    pid = str(target.pid)
    before = {name: daemon.sum(name, **labels) for name, labels in (
        ("gpuprof_op_calls_total", {"pid": pid, "op": "aten::addmm"}),
        ("gpuprof_step_duration_seconds_count", {"pid": pid}))}
    per_step = 3
    rounds, steps = 4, 25
    for _ in range(rounds):
        recordings = daemon.sum("gpuprof_recordings_total")
        target.step(steps)
        daemon.wait_sum(recordings + 2, "gpuprof_recordings_total")
    calls = daemon.sum("gpuprof_op_calls_total", pid=pid, op="aten::addmm")
    assert (calls - before["gpuprof_op_calls_total"]) == per_step * rounds * steps
    # Of the first step's beginning nothing is known.
    found = daemon.sum("gpuprof_step_duration_seconds_count", pid=pid)
    assert found - before["gpuprof_step_duration_seconds_count"] in (rounds * steps - 1,
                                                                     rounds * steps)
    assert daemon.sum("gpuprof_op_cpu_seconds_total", pid=pid) > 0
    assert daemon.sum("gpuprof_memory_allocated_bytes_total", pid=pid, device="cpu") > 0
    assert daemon.sum("process_cpu_seconds_total") > 0
    assert daemon.sum("process_resident_memory_bytes") > 1 << 20
    # Zeros are told, too.
    assert ("gpuprof_losses_total", {"loss": "ring_full"}, 0.0) in daemon.metrics()
    assert daemon.sum("gpuprof_errors_total") == 0


def test_metrics_are_well_formed(daemon, target):
    target.step(1)
    text = daemon.get("/metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          check=False, timeout=harness.LIMIT)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def prometheus(folder, daemon):
    """A real one that scrapes the daemon; gives what asks it."""
    port = free_port()
    config = folder / "prometheus.yml"
    config.write_text("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"
                      "scrape_configs:\n- job_name: gpuprof\n"
                      "  authorization: {credentials_file: %s}\n  static_configs:\n"
                      "  - targets: ['%s:%d']\n" % (daemon.token_file, daemon.host, daemon.port))
    argv = ["prometheus", "--config.file=%s" % config, "--storage.tsdb.path=%s" % (folder / "db"),
            "--web.listen-address=127.0.0.1:%d" % port]

    def query(expression):
        url = "http://127.0.0.1:%d/api/v1/query?query=%s" % (port,
                                                           urllib.parse.quote(expression))
        try:
            with urllib.request.urlopen(url, timeout=harness.LIMIT) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []

    with harness.Child(argv, "prometheus") as child:
        yield query
        child.signal(signal.SIGTERM)
        child.wait()


def test_prometheus_scrapes_it(daemon, target, tmp_path):
    pid = str(target.pid)
    with prometheus(tmp_path, daemon) as query:
        harness.wait_until("a scrape", lambda: query("up{job='gpuprof'} == 1"))
        wanted = daemon.sum("gpuprof_op_calls_total", pid=pid, op="aten::addmm") + 3 * 5
        target.step(5)
        expression = "gpuprof_op_calls_total{pid='%s',op='aten::addmm'} >= %d" % (pid, wanted)
        harness.wait_until("the calls", lambda: query(expression))
        quantile = "histogram_quantile(0.5, gpuprof_step_duration_seconds_bucket)"
        harness.wait_until("a quantile", lambda: query(quantile))


@pytest.fixture(scope="module")
def pprof(tmp_path_factory):
    """Runs 'go tool pprof', made once: the target is at work meanwhile."""
    folder = tmp_path_factory.mktemp("pprof")
    env = {**os.environ, "HOME": str(folder), "PPROF_TMPDIR": str(folder)}
    subprocess.run(["go", "build", "-o", folder / "pprof", "cmd/pprof"], check=True, env=env,
                   timeout=2 * harness.LIMIT)

    def run(*args):
        done = subprocess.run([folder / "pprof", *args], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False, text=True, env=env,
                              timeout=harness.LIMIT)
        assert done.returncode == 0, done
        return done.stdout

    return run


def with_token(daemon):
    """The daemon's address, for those who can send no header of their choice."""
    return daemon.url.replace("http://", "http://x:%s@" % TOKEN)


def test_pprof_fetches_it(daemon, target, pprof):
    target.order("step 400")
    shown = pprof("-top", "-sample_index=calls", with_token(daemon) +
                  "/debug/pprof/profile?seconds=1&pid=%d" % target.pid)
    target.answer()
    assert "Type: calls" in shown


def test_curl_fetches_it(daemon, target, pprof, tmp_path):
    """By the command that the daemon gives, and a profile for pprof without a token."""
    line, _ = daemon.wait_line("stderr", lambda text: "curl " in text)
    command = line[line.index("curl "):].split()
    page = subprocess.run(command, check=True, capture_output=True, timeout=harness.LIMIT).stdout
    assert page.startswith(b"<!doctype html>")
    profile = tmp_path / "p.pb.gz"
    target.order("step 400")
    subprocess.run([*command[:-1], "-sfo", profile, command[-1] +
                    "debug/pprof/profile?seconds=1&pid=%d" % target.pid], check=True,
                   timeout=harness.LIMIT)
    target.answer()
    assert "Type: calls" in pprof("-top", "-sample_index=calls", profile)


@pytest.mark.parametrize("kind", ["profile", "gpu", "allocs"])
def test_profiles_as_go_gives_them(daemon, kind):
    status, headers, body = daemon.ask("/debug/pprof/%s?seconds=1" % kind)
    assert status == 200
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"] == 'attachment; filename="profile"'
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert gzip.decompress(body)


def test_profile_of_nobody(daemon):
    status, headers, body = daemon.ask("/debug/pprof/profile?seconds=1&pid=%d" % os.getpid())
    assert (status, headers["X-Go-Pprof"]) == (404, "1")
    assert body == b"no process of this pid is being profiled\n"


def test_recordings(daemon, target, tmp_path):
    target.step(3)
    daemon.wait_sum(daemon.sum("gpuprof_recordings_total") + 2, "gpuprof_recordings_total")
    listed = harness.parse_json(daemon.get("/recordings").decode())["recordings"]
    assert listed
    names = set()
    for number, one in enumerate(listed[:8]):
        status, headers, body = daemon.ask("/recordings/" + one["id"])
        if status == 404:  # gone meanwhile
            continue
        assert headers["Content-Disposition"] == 'attachment; filename="%s.gpuprof"' % one["id"]
        assert len(body) == one["bytes"]
        path = tmp_path / ("%d.gpuprof" % number)
        path.write_bytes(body)
        names |= {row["name"] for row in harness.Recording(path).table()["rows"]}
    assert "aten::addmm" in names
    page = daemon.get("/").decode()
    assert "<td>%d<td>" % target.pid in page


# ---- by samples, as it does unless it is told otherwise ----

@pytest.fixture(scope="module")
def sampled():
    """A daemon, and a target that spends its time on what its orders say."""
    with harness.Target("sampled") as target, \
            Daemon("--pid", target.pid, "--hz", "997", *SAMPLED, listen="127.0.0.1:0") as started:
        started.wait_processes(1)
        # Unwind tables are made when the first stack comes to a file.
        while not started.sum("gpuprof_op_samples_total", op="aten::mm"):
            target.command("spend 0.2")
        yield started, target
        target.leave()
        assert started.end() == 0, started.told()


def test_metrics_by_samples(sampled):
    daemon, target = sampled
    pid = str(target.pid)
    target.command("spend 0.5")
    recordings = daemon.sum("gpuprof_recordings_total")
    daemon.wait_sum(recordings + 2, "gpuprof_recordings_total")
    for op in ("aten::mm", "aten::exp", "aten::tanh"):
        samples = daemon.sum("gpuprof_op_samples_total", pid=pid, op=op)
        estimate = daemon.sum("gpuprof_op_cpu_estimated_seconds_total", pid=pid, op=op)
        assert samples > 0 and abs(estimate - samples / 997) < 1e-3
    assert daemon.sum("gpuprof_op_off_cpu_estimated_seconds_total", pid=pid) > 0
    # Nothing that is estimated goes by a name of what is measured, and what is not known is not 0.
    names = {name for name, _, _ in daemon.metrics()}
    assert not {"gpuprof_op_cpu_seconds_total", "gpuprof_op_calls_total",
                "gpuprof_step_duration_seconds_count"} & names
    text = daemon.get("/metrics")
    assert b"gpuprof_op_cpu_estimated_seconds_total CPU time of an operator itself, without " \
        b"those that it called: an estimate" in text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          check=False, timeout=harness.LIMIT)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done


def test_profile_by_samples(sampled, pprof):
    daemon, target = sampled
    target.order("spend 1")
    shown = pprof("-raw", with_token(daemon) +
                  "/debug/pprof/profile?seconds=1&pid=%d" % target.pid)
    target.answer()
    assert "PeriodType: cpu nanoseconds" in shown
    assert "Period: %d" % (10**9 // 997) in shown
    assert "samples/count cpu/nanoseconds" in shown
    assert "sampled.py" in shown


@pytest.mark.parametrize("options, why", [
    (("--mode", "sample", "--memory"), "--memory"),
    (("--mode", "trace", "--hz", "9"), "--hz"),
    (("--memory", "--hz", "9"), "--hz"),
    (("--memory", "--overhead", "1"), "--overhead"),
])
def test_modes_that_are_none(options, why):
    done = harness.gpuprof("daemon", *options)
    assert done.status == harness.USAGE and why in done.stderr, done


# ---- processes that come and go ----

def test_many_at_once():
    with Daemon("--name", CROWD, "--no-inject", *SHORT) as daemon, Crowd(200) as crowd:
        daemon.wait_processes(200)
        crowd.call(7)
        daemon.wait_sum(200 * 7, "gpuprof_op_calls_total", op="aten::sinh")
        counts = [labels["pid"] for name, labels, value in daemon.metrics()
                  if name == "gpuprof_op_calls_total" and labels["op"] == "aten::sinh"
                  and value == 7]
        assert sorted(counts) == sorted(crowd.pids)
        assert daemon.sum("gpuprof_losses_total", loss="ring_full") == 0
        crowd.kill()
        daemon.wait_processes(0)
        assert daemon.end() == 0, daemon.told()


def test_those_that_die_meanwhile():
    """With the library put in, which takes a while: many are gone before it is."""
    chance = random.Random(6)
    with Daemon("--name", CROWD, *SHORT) as daemon, Crowd(12) as crowd:
        for _ in range(4):
            joined = daemon.sum("gpuprof_attached_total")
            # At a moment of its own in each round.
            for _ in range(chance.randrange(3)):
                daemon.metrics()
            crowd.flicker()
            daemon.wait_sum(joined + 1, "gpuprof_attached_total")
        daemon.wait_processes(12)
        assert daemon.get("/healthz") == b"ok\n"
        assert daemon.sum("gpuprof_errors_total", error="capture_failed") == 0
        # All of the crowd answers: none was harmed.
        crowd.call(1)
        assert daemon.end() == 0, daemon.told()
        crowd.call(1)


@pytest.fixture
def own():
    """A target that nobody else profiles."""
    with harness.Target("mlp") as started:
        yield started
        started.leave()


def test_killed(own):
    with Daemon("--pid", own.pid, "--no-inject", *SHORT) as daemon:
        daemon.wait_processes(1)
        daemon.signal(signal.SIGKILL)
        daemon.wait()
    own.step(3)
    assert not harness.text_differences(own.pid)


def test_ends_cleanly_while_asked(own):
    """With a profile on its way and a connection that says nothing."""
    with Daemon("--pid", own.pid, *SHORT) as daemon:
        daemon.wait_processes(1)
        with daemon.connect() as asks, daemon.connect():
            asks.sendall(b"GET /debug/pprof/profile?seconds=500 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            daemon.wait_sum(1, "gpuprof_profiles_running")
            assert daemon.end() == 0, daemon.told()
        assert not os.path.exists(daemon.socket)
    assert not harness.text_differences(own.pid)
    own.step(1)


# ---- files ----

def test_files_of_ended_processes_are_let_go(tmp_path):
    """Of a process whose library lies on a disk of its own: that can be taken away again."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "gpuprof-test", disk], check=True)
    try:
        library = disk / "libtorch_cpu.so"
        shutil.copy(harness.FAKE_TORCH, library)
        with Daemon("--name", CROWD, "--hz", "997", *SAMPLED) as daemon:
            for _ in range(2):
                with Crowd(1, library) as crowd:
                    daemon.wait_processes(1)
                    while not daemon.sum("gpuprof_op_samples_total", pid=crowd.pids[0],
                                         op="aten::sinh"):
                        crowd.call(1000000)
                    # Its names come from there.
                    assert open_below(daemon.pid, "%s/" % disk)
                harness.wait_until("the files are closed",
                                   lambda: not open_below(daemon.pid, "%s/" % disk))
            subprocess.run(["umount", disk], check=True)
            assert daemon.end() == 0, daemon.told()
    finally:
        if os.path.ismount(disk):
            subprocess.run(["umount", "-l", disk], check=True)


# ---- the disk ----

@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "gpuprof-test", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.san
def test_full_disk(target, small_disk):
    with Daemon("--pid", target.pid, "--recordings", small_disk, *SHORT) as daemon:
        daemon.wait_processes(1)
        while not daemon.sum("gpuprof_errors_total", error="recording_not_saved"):
            target.step(50)
        # It goes on in memory, and nothing half is left.
        recordings = daemon.sum("gpuprof_recordings_total")
        target.step(50)
        daemon.wait_sum(recordings + 2, "gpuprof_recordings_total")
        assert daemon.sum("gpuprof_recordings_memory_bytes") > 0
        kept = harness.parse_json(daemon.get("/recordings").decode())["recordings"]
        assert {one["id"] + ".gpuprof" for one in kept if one["on_disk"]} == \
            set(os.listdir(small_disk))
        assert daemon.end() == 0, daemon.told()


def test_kept_on_disk(target, tmp_path):
    with Daemon("--pid", target.pid, "--recordings", tmp_path, *SHORT) as daemon:
        daemon.wait_processes(1)
        target.step(2)
        daemon.wait_sum(2, "gpuprof_recordings_total")
        assert daemon.end() == 0, daemon.told()
    names = {name for name in os.listdir(tmp_path) if name.endswith(".gpuprof")}
    assert len(names) >= 2
    assert all((tmp_path / name).stat().st_mode & 0o777 == 0o600 for name in names)
    with Daemon("--pid", target.pid, "--recordings", tmp_path, *SHORT) as daemon:
        kept = harness.parse_json(daemon.get("/recordings").decode())["recordings"]
        assert names <= {one["id"] + ".gpuprof" for one in kept}


# ---- what is installed with it ----

EXAMPLES = os.path.join(harness.ROOT, "userspace", "share", "examples")


def example(name):
    import yaml

    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def test_unit(tmp_path):
    path = tmp_path / "gpuprof.service"
    with open(os.path.join(harness.ROOT, "userspace", "share", "gpuprof.service"),
              encoding="utf-8") as file:
        path.write_text(file.read().replace("@BINDIR@/gpuprof", harness.GPUPROF))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], check=False,
                          capture_output=True, text=True, timeout=harness.LIMIT)
    assert done.returncode == 0 and "gpuprof" not in done.stderr, done
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                           "--threshold=50", path], check=False, capture_output=True, text=True,
                          timeout=harness.LIMIT)
    assert done.returncode == 0, done


def test_prometheus_examples(tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    config = tmp_path / "prometheus.yml"
    with open(os.path.join(EXAMPLES, "prometheus.yml"), encoding="utf-8") as file:
        config.write_text(file.read().replace("/etc/prometheus/gpuprof.token", str(token)))
    for argv in (("config", config), ("rules", os.path.join(EXAMPLES, "prometheus-rules.yml"))):
        done = subprocess.run(["promtool", "check", *argv], check=False, capture_output=True,
                              text=True, timeout=harness.LIMIT)
        assert done.returncode == 0, done


def test_parca_example():
    (config,) = example("parca.yaml")
    (job,) = config["scrape_configs"]
    profiles = job["profiling_config"]["pprof_config"]
    ours = {name: one for name, one in profiles.items() if one["enabled"]}
    assert {one["path"] for one in ours.values()} == {
        "/debug/pprof/profile", "/debug/pprof/gpu", "/debug/pprof/allocs"}
    assert all(one["delta"] is True for one in ours.values())
    # Parca asks for as many seconds as the interval, and must wait for longer.
    assert int(job["scrape_timeout"][:-1]) > int(job["scrape_interval"][:-1])


def test_kubernetes_example():
    namespace, workload = example("kubernetes.yaml")
    assert namespace["kind"] == "Namespace" and workload["kind"] == "DaemonSet"
    pod = workload["spec"]["template"]["spec"]
    assert pod["hostPID"] is True
    (container,) = pod["containers"]
    numbers = {"DAC_OVERRIDE": 1, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "PERFMON": 38, "BPF": 39}
    added = container["securityContext"]["capabilities"]["add"]
    assert sum(1 << numbers[name] for name in added) == kept_capabilities()
    # gpuprof follows no link to a token and takes none that others may read.
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == "token"]
    assert "--token-file=" + mount["mountPath"] in container["args"] and mount["subPath"]
    (secret,) = [one["secret"] for one in pod["volumes"] if one["name"] == "token"]
    assert secret["defaultMode"] == 0o400
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert volumes == {mount["name"] for mount in container["volumeMounts"]}
    # gpuprof itself takes these arguments, but for the place of the token.
    done = harness.gpuprof(*container["args"])
    assert done.status == harness.FAILED and "cannot read the token" in done.stderr, done
