# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Packages of other suites of Debian, unpacked into folders: kernels and compilers. apt works in a
folder of its own for each suite, so this machine's packages stay as they are. A folder is kept under
the version it holds, and its stamp is written last.
"""
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

BASE = Path(os.environ.get("GPUPROF_KERNELS_DIR", "/var/cache/gpuprof/kernels"))
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
STAMP = ".gpuprof-complete"
TRIES = 3
# Suites that get no security updates of their own.
ALONE = ("unstable", "bookworm-backports")


class Unreachable(Exception):
    """The package registry does not answer, or lacks what was asked for."""


def mirrors():
    """The mirrors that this machine's own apt uses: Debian's, and that of its security updates."""
    wanted = {"Debian": None, "Debian-Security": None}
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)",
                             "Identifier: Packages"], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        uri, _, label = line.partition(" ")
        if label in wanted and not wanted[label]:
            wanted[label] = uri.rstrip("/")
    main = wanted["Debian"]
    if not main:
        raise Unreachable("apt on this machine names no mirror of Debian")
    return main, wanted["Debian-Security"] or re.sub(r"/debian$", "/debian-security", main)


class Suite:
    """apt for one suite."""

    def __init__(self, name):
        self.name = name
        self.folder = BASE / name
        self.apt = self.folder / "apt"

    def _options(self):
        status = self.apt / "var/lib/dpkg/status"
        return ["-o", f"Dir={self.apt}", "-o", f"Dir::State::status={status}",
                "-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Languages=none",
                "-o", "Acquire::Retries=3", "-o", "Acquire::http::Timeout=30",
                "-o", "APT::Install-Recommends=false", "-o", "APT::Sandbox::User=root"]

    def _run(self, tool, *args, cwd=None):
        for attempt in range(TRIES):
            done = subprocess.run([tool, "-q", *self._options(), *args], cwd=cwd, text=True,
                                  capture_output=True, check=False)
            if done.returncode == 0:
                return done.stdout
            if attempt + 1 < TRIES:
                time.sleep(5 * (attempt + 1))
        raise Unreachable(f"{self.name}: {tool} {' '.join(args)}: {done.stderr.strip()[-300:]}")

    def update(self):
        """Reads what the suite has now."""
        for part in ("etc/apt/preferences.d", "etc/apt/apt.conf.d", "etc/apt/sources.list.d",
                     "var/lib/apt/lists/partial", "var/cache/apt/archives/partial",
                     "var/lib/dpkg"):
            (self.apt / part).mkdir(parents=True, exist_ok=True)
        (self.apt / "var/lib/dpkg/status").touch()
        main, security = mirrors()
        lines = [f"deb [signed-by={KEYS}] {main} {self.name} main\n"]
        if self.name not in ALONE:
            lines.append(f"deb [signed-by={KEYS}] {security} {self.name}-security main\n")
        (self.apt / "etc/apt/sources.list").write_text("".join(lines))
        self._run("apt-get", "update", "-o", "APT::Update::Error-Mode=any")

    def _depends(self, package):
        shown = self._run("apt-cache", "depends", package)
        return re.findall(r"^\s*\|?Depends: (\S+)$", shown, re.MULTILINE)

    def kernel_packages(self):
        """The newest generic kernel: its image, and where that is split up its parts."""
        image = next(name for name in self._depends("linux-image-amd64")
                     if re.match(r"linux-image-\d", name))
        version = image.removeprefix("linux-image-")
        return [image] + [name for name in self._depends(image)
                          if name.endswith(version) and name.split("-")[1] in ("binary", "modules")]

    def _kept(self, name, make):
        folder = self.folder / name
        if (folder / STAMP).exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        (folder / STAMP).touch()
        return folder

    @staticmethod
    def _unpack(packages, folder):
        for package in packages:
            subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
            package.unlink()

    def kernel(self):
        """The folder of the newest kernel."""
        names = self.kernel_packages()

        def make(folder):
            self._run("apt-get", "download", *names, cwd=folder)
            self._unpack(sorted(folder.glob("*.deb")), folder)

        return self._kept(names[0], make)

    def clang(self):
        """The folder of the suite's clang, with all that it needs to run."""
        version = re.search(r"^\s*Candidate: (\S+)", self._run("apt-cache", "policy", "clang"),
                            re.MULTILINE)
        if not version:
            raise Unreachable(f"{self.name} has no clang")

        def make(folder):
            archives = self.apt / "var/cache/apt/archives"
            self._run("apt-get", "-y", "install", "--download-only", "clang")
            self._unpack(sorted(archives.glob("*.deb")), folder)

        return self._kept("clang-" + re.sub(r"[^0-9.]", "_", version[1]), make)
