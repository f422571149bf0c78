# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What `make dist` made, where people install it: that the executable needs nothing of the machine, that
each package installs and its gpuprof records, that two builds are the same to the byte. Writes what
came out to tests/dist/RESULTS.md.

usage: check.py [--build DIR] [--results FILE] [PART...]
       a part is symbols, packages, wheel, image, reproducible, speed, or a release of Debian;
       RESULTS.md is written when all parts were tried
exit status: 0 as promised, 1 not, 3 the package registry cannot be reached
"""
import argparse
import base64
import csv
import datetime
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/dist"), str(ROOT / "tests/integration")]

import harness  # noqa: E402
from daemon_client import TOKEN, Daemon  # noqa: E402
from places import Image, Release, Trouble, ran  # noqa: E402
from terminal import Terminal  # noqa: E402

RESULTS = Path(__file__).with_name("RESULTS.md")
ATTACH = "tests/kernels/attach.py"
RELEASES = ("bullseye", "bookworm", "trixie", "unstable")
# Below these what gpuprof is compared with does not exist: torch.profiler came with 1.8.1.
WITHOUT_PROFILER = ("bullseye",)
OLDEST_GLIBC = (2, 17)
# Those that `run` starts are the folder's; the others attach to a process of this machine.
ATTACHING = ("callback", "no_inject", "memory_and_stacks", "sample", "detach")
STARTS = 60


def say(text):
    print("dist: " + text, flush=True)


def require(truth, words):
    if not truth:
        raise Trouble(words)


class Check:
    """One part after another; each returns cells of its table."""

    def __init__(self, build, folder):
        self.build = build
        self.dist = build / "dist"
        self.folder = folder
        self.exe = self.dist / "gpuprof"
        self.version = ran(self.exe, "--version").split()[1]

    def package(self, pattern):
        found = sorted(self.dist.glob(pattern))
        require(len(found) == 1, "%s in %s: %d files" % (pattern, self.dist, len(found)))
        return found[0]

    def recorded(self, gpuprof, *cases):
        """attach.py here with this gpuprof; the cases that it found good."""
        env = dict(os.environ, GPUPROF=str(gpuprof))
        return good_cases(ran(sys.executable, "-B", ROOT / ATTACH, *cases, env=env), cases)

    # ---- parts ----

    def symbols(self):
        """Nothing of the machine is needed, and what hardens gpuprof is there."""
        headers = ran("readelf", "-lW", self.exe)
        dynamic = ran("readelf", "-dW", self.exe)
        require("INTERP" not in headers, "the executable asks for a loader")
        require("NEEDED" not in dynamic, "the executable needs libraries:\n" + dynamic)
        for word, where in (("GNU_RELRO", headers), ("NOW", dynamic), ("PIE", dynamic)):
            require(word in where, "the executable lacks %s" % word)
        stack = re.search(r"GNU_STACK.* (\S+) +0x", headers)
        require(stack and "E" not in stack[1], "the stack is executable")
        require(not ran("nm", self.exe).replace("nm: %s: no symbols" % self.exe, "").strip(),
                "the executable is not stripped")
        self._debug_file()
        collector = self.build / "libgpuprof-cupti.so"
        require(collector.read_bytes() in self.exe.read_bytes(),
                "the collector that was built is not inside")
        newest = max(tuple(map(int, found.split("."))) for found in
                     re.findall(r"GLIBC_([0-9.]+)", ran("readelf", "-VW", collector)))
        require(newest <= OLDEST_GLIBC, "the collector needs glibc %d.%d" % newest)
        return [("libraries and loader that the executable needs", "none"),
                ("glibc that the collector needs in the process", "%d.%d" % newest),
                ("hardening", "position-independent, RELRO, bound at start, no executable stack")]

    def _debug_file(self):
        """gdb and perf find it by its name and sum, or by the build id."""
        debug = self.dist / "gpuprof.debug"
        link = subprocess.run(["objcopy", "-O", "binary", "--only-section=.gnu_debuglink",
                               "--set-section-flags", ".gnu_debuglink=alloc", self.exe,
                               "/dev/stdout"], capture_output=True, check=True).stdout
        require(link.startswith(b"gpuprof.debug\0"), "the executable names no debug file")
        require(int.from_bytes(link[-4:], "little") == zlib.crc32(debug.read_bytes()),
                "the debug file is another executable's")
        ids = {re.search(r"Build ID: (\S+)", ran("readelf", "-nW", path))[1]
               for path in (self.exe, debug)}
        require(len(ids) == 1, "the build ids differ")
        require("main.c" in ran("addr2line", "-fe", debug, address_of(debug, "main")),
                "the debug file knows no lines")

    def packages(self):
        """tar.gz and .rpm; the .deb has its turn in the releases."""
        sums = ran("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=self.dist)
        require(sums.count(": OK") == len(list(self.dist.iterdir())) - 1, sums)
        local = self.folder / "local"
        local.mkdir()
        ran("tar", "-C", local, "--strip-components=1", "-xf", self.package("*.tar.gz"))
        self.same(local / "bin/gpuprof")
        unit = (local / "lib/systemd/system/gpuprof.service").read_text()
        require("ExecStart=/usr/local/bin/gpuprof " in unit, "the unit starts another gpuprof")
        rpm = self.package("*.rpm")
        promised = set(ran("rpm", "-qpl", rpm).splitlines())
        needs = ran("rpm", "-qp", "--requires", rpm).splitlines()
        require(all(need.startswith("rpmlib(") for need in needs), "the .rpm needs %s" % needs)
        root = self.folder / "rpm"
        root.mkdir()
        ran("rpm", "--root", root, "--install", rpm)
        for path in promised:
            require((root / path.lstrip("/")).exists(), "the .rpm does not install %s" % path)
        self.same(root / "usr/bin/gpuprof")
        ran("rpm", "--root", root, "--erase", "gpuprof")
        require(not (root / "usr/bin/gpuprof").exists(), "rpm --erase leaves gpuprof")
        return [("tar.gz", "unpacked, starts"), (".rpm", "rpm --root installs it, needs nothing; starts; "
                                                 "removed")]

    def same(self, path):
        require(path.read_bytes() == self.exe.read_bytes(), "%s is another executable" % path)
        require(os.access(path, os.X_OK), "%s cannot be executed" % path)
        require(ran(path, "--version").split()[1] == self.version, "%s has another version" % path)

    def wheel(self):
        """pip into a fresh virtual environment; attach by that command."""
        home = self.folder / "venv"
        ran(sys.executable, "-m", "venv", home)
        pip = [home / "bin/pip", "--disable-pip-version-check", "--isolated"]
        said = ran(*pip, "install", "--no-index", self.package("*.whl"))
        # pip does not compare what it installs with RECORD.
        record = self.installed_record(home)
        for name, digest in record:
            found = hashlib.sha256(name.read_bytes()).digest()
            require(digest == found.hex(), "%s is not what RECORD says" % name)
        self.same(home / "bin/gpuprof")
        shown = ran(*pip, "show", "--files", "gpuprof")
        require("Version: " + self.version in shown, shown + said)
        found = ran("sh", "-c", ". %s/bin/activate && command -v gpuprof" % home).strip()
        good = self.recorded(found, "callback", "no_inject", "detach")
        ran(*pip, "uninstall", "--yes", "gpuprof")
        require(not (home / "bin/gpuprof").exists(), "pip uninstall leaves gpuprof")
        return [("wheel", "pip installs it into a fresh virtual environment; recorded: %s; removed" % good)]

    @staticmethod
    def installed_record(home):
        """(file, hex digest) of what pip installed."""
        site = next(home.glob("lib/python*/site-packages"))
        with next(site.glob("gpuprof-*.dist-info/RECORD")).open(newline="") as file:
            rows = [row for row in csv.reader(file) if row[1]]
        require(any(row[0].endswith("bin/gpuprof") for row in rows), "RECORD lacks the command")
        return [((site / name), base64.urlsafe_b64decode(
            digest.removeprefix("sha256=") + "=").hex()) for name, digest, _ in rows]

    def image(self):
        """The Containerfile's: a folder with gpuprof and nothing else."""
        place = Image(self.folder, self.dist)
        require("programs       yes" in place.gpuprof("doctor"), place.gpuprof("doctor"))
        good = self.recorded(place.command(), *ATTACHING)
        self.terminal(place, has_utf8=False)
        self.daemon(place)
        return [("image by the Containerfile", "an empty folder with gpuprof; recorded: %s; `top` on a "
                 "terminal that no file describes; the daemon answers at its socket and by TCP" % good)]

    @staticmethod
    def daemon(place):
        """The HTTP server without the TLS that it is built with: both doors, and a password."""
        harness.GPUPROF = str(place.command())
        with harness.Target("mlp") as target, Daemon("--pid", target.pid, listen="127.0.0.1:0") as daemon:
            daemon.wait_processes(1)
            require(daemon.ask("/metrics", tcp=True)[0] == 401, "who names no token is answered")
            password = base64.b64encode(b"x:" + TOKEN.encode()).decode()
            status, _, body = daemon.ask("/metrics", headers={"Authorization": "Basic " + password},
                                         tcp=True)
            require(status == 200 and b"gpuprof_build_info" in body, "by TCP: status %d" % status)
            require(daemon.end() == harness.DONE, daemon.told())
            target.leave()

    def terminal(self, place, has_utf8):
        """`top` by a user whose terminal and language the machine may not know."""
        harness.GPUPROF = str(place.command())
        with harness.Target("mlp") as target, \
                Terminal("top", "--pid", target.pid, LC_ALL="de_DE.UTF-8") as terminal:
            lines = terminal.wait("operators", lambda seen: any("aten::addmm" in line for line in seen),
                                  lambda: target.step(5))
            require(any("\u25be" in line for line in lines) == has_utf8,
                    "`top` draws wrongly:\n" + "\n".join(lines))
            terminal.keys("q")
            target.leave()

    def release(self, name):
        """One of Debian's: dpkg -i, then both its own PyTorch and this machine's."""
        done = subprocess.run([ROOT / "tests/matrix/rootfs.sh", name], stdout=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode == 3:
            raise ConnectionError(name)
        require(not done.returncode, "no folder of %s" % name)
        place = Release(name, self.folder, Path(done.stdout.strip()), self.package("*.deb"))
        require(place.gpuprof("--version").split()[1] == self.version, "another version is installed")
        require("programs       yes" in place.gpuprof("doctor"), place.gpuprof("doctor"))
        if name in WITHOUT_PROFILER:
            own = "not compared: PyTorch %s is older than torch.profiler" % place.torch
        else:
            own = good_cases(place.own_python("/mnt/" + ATTACH), ())
        theirs = self.recorded(place.command(), *ATTACHING)
        self.terminal(place, has_utf8=True)
        libc = re.search(r"(\d+\.\d+)\s", ran("chroot", place.root, "ldd", "--version"))[1]
        place.uninstall()
        return [name, libc, place.torch, own, theirs]

    def reproducible(self):
        """Two clones, in folders, umasks and at times of their own."""
        commit = ran("git", "-c", "safe.directory=*", "-C", ROOT, "rev-parse", "HEAD").strip()
        sums = []
        for folder, umask, out in (("one", "077", "build"), ("another/and-deeper", "022", "out")):
            tree = self.folder / folder
            ran("git", "-c", "safe.directory=*", "clone", "--quiet", ROOT, tree)
            ran("git", "-C", tree, "checkout", "--quiet", "--detach", commit)
            ran("sh", "-c", "umask %s; exec make -s -j2 O=%s dist GPUPROF_NO_SETUP=1" % (umask, out),
                cwd=tree)
            sums.append((tree / out / "dist/SHA256SUMS").read_text())
        require(sums[0] == sums[1], "two builds differ:\n%s\n%s" % tuple(sums))
        return [("two builds in two folders", "%d files, the same bytes" % len(sums[0].splitlines()))]

    def speed(self):
        """Size, and the time of a start that does nothing, beside the dynamic executable."""
        rows = []
        for name, path in (("dynamic (`make`)", self.build / "gpuprof"), ("static (`make dist`)", self.exe)):
            stripped = self.folder / "stripped"
            ran("strip", "-o", stripped, path)
            took = float("inf")
            for _ in range(STARTS):
                begin = time.perf_counter()
                subprocess.run([stripped, "--version"], stdout=subprocess.DEVNULL, check=True)
                took = min(took, time.perf_counter() - begin)
            rows.append((name, "%.1f MB" % (stripped.stat().st_size / 1e6), "%.1f ms" % (took * 1e3)))
        return rows


def address_of(path, symbol):
    return "0x" + re.search(r"^(\S+) T %s$" % symbol, ran("nm", path), re.MULTILINE)[1]


def good_cases(answers, expected):
    """The names in attach.py's answers, which are all to be good."""
    lines = [line.split("\t") for line in answers.splitlines() if "\t" in line]
    good = [case for case, *words in lines if words == ["ok"]]
    require(good and len(good) == len(lines) and (not expected or good == list(expected)), answers)
    return ", ".join(case.replace("_", " ") for case in good)


# ---- results ----

def markdown(rows, *titles):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def text_of(found):
    lines = ["# What `make dist` makes", "",
             "Written by `make check-dist` (tests/dist/check.py) on %s, Linux %s, %d CPUs. \"Recorded\" means "
             "that" % (datetime.date.today().isoformat(), platform.release().split("-")[0], os.cpu_count()),
             "names and calls of operators, memory and stacks are those that the process itself counted with",
             "torch.profiler (tests/kernels/attach.py).", ""]
    pairs = [row for part in ("symbols", "packages", "wheel", "image", "reproducible") for row in found[part]]
    lines += markdown(pairs, "what", "found")
    lines += ["The .deb is installed by dpkg in the folder of each release, and removed again.", ""]
    lines += markdown([found[name] for name in RELEASES], "release", "glibc", "its PyTorch",
                      "recorded there", "recorded from there, of this machine's PyTorch")
    lines += ["Both stripped; the time is that of the fastest of %d `gpuprof --version`." % STARTS, ""]
    lines += markdown(found["speed"], "executable", "size", "start")
    return "\n".join(lines)


PARTS = ("symbols", "packages", "wheel", "image", *RELEASES, "reproducible", "speed")


def tried(check, part, found):
    """Whether a part is as promised; its cells go into `found`."""
    begin = time.monotonic()
    try:
        found[part] = check.release(part) if part in RELEASES else getattr(check, part)()
    except (Trouble, AssertionError) as error:
        traceback.print_exc()
        say("%s: %s" % (part, str(error).splitlines()[0]))
        return False
    say("%s: as promised, %.0f s" % (part, time.monotonic() - begin))
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("parts", nargs="*", default=PARTS)
    args = parser.parse_args()
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error("no such part: %s" % ", ".join(sorted(unknown)))
    found = {}
    # Of this machine's folders, the places have only this one.
    tempfile.tempdir = "/var/tmp"
    with tempfile.TemporaryDirectory(prefix="gpuprof-dist-") as folder:
        try:
            check = Check(args.build.resolve(), Path(folder))
            failed = [part for part in args.parts if not tried(check, part, found)]
        except ConnectionError as error:
            say("PACKAGE REGISTRY NOT REACHED: no folder of %s" % error)
            return 3
        finally:
            harness.kill_all()
            harness.close_inside()
            unmount(folder)
    if not failed and set(args.parts) == set(PARTS):
        args.results.write_text(text_of(found), encoding="utf-8")
    say("%d passed, %d failed" % (len(found), len(failed)))
    return int(bool(failed))


def unmount(folder):
    """Before the folder is removed: what is mounted in it is not its own."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed([point for point in points if point.startswith(folder + "/")]):
        ran("umount", "-l", point)


if __name__ == "__main__":
    # What is mounted here is seen by nobody else, and goes when this ends.
    if os.environ.get("GPUPROF_DIST_NAMESPACE") != str(os.getpid()):
        os.environ["GPUPROF_DIST_NAMESPACE"] = str(os.getpid())
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, "-B",
                              *sys.argv])
    sys.exit(main())
