# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Folders in which the static gpuprof runs by chroot: a Debian release, or the image that the
Containerfile describes. A release's folder is laid under an overlay, as a container's root is, so
nothing that happens here stays in it. Everything is mounted in the mount namespace of the caller.
"""
import json
import os
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Trouble(AssertionError):
    """What is not as promised."""


def ran(*command, **kwargs):
    """What a command printed; Trouble where its exit status is not 0."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False,
                          errors="replace", **kwargs)
    if done.returncode:
        raise Trouble("%s: status %d\n%s" % (shlex.join(map(str, command)), done.returncode,
                                             done.stdout[-3000:]))
    return done.stdout


class Place:
    """A folder with /proc, /sys and this machine's /var/tmp in it."""

    def __init__(self, name, folder):
        self.name = name
        self.root = folder / name / "root"
        self.program = "/usr/bin/gpuprof"
        self.scratch = folder / name
        self.root.mkdir(parents=True)

    def mount(self):
        for name in ("proc", "sys", "var/tmp"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        ran("mount", "-t", "proc", "proc", self.root / "proc")
        ran("mount", "--rbind", "/sys", self.root / "sys")
        ran("mount", "--bind", "/var/tmp", self.root / "var/tmp")

    def gpuprof(self, *args):
        return ran("chroot", self.root, self.program, *args)

    def command(self):
        """A program outside that runs gpuprof inside."""
        path = self.scratch / "gpuprof"
        path.write_text("#!/bin/sh\nexec chroot %s %s \"$@\"\n"
                        % (shlex.quote(str(self.root)), self.program))
        path.chmod(0o755)
        return path


class Release(Place):
    """One of Debian's, with its own PyTorch, and gpuprof installed by dpkg."""

    def __init__(self, name, folder, debian, deb):
        super().__init__(name, folder)
        changes = self.scratch / "changes"
        changes.mkdir()
        # In memory: an overlay cannot lie on another one, as a container's root is.
        ran("mount", "-t", "tmpfs", "none", changes)
        (changes / "upper").mkdir()
        (changes / "work").mkdir()
        ran("mount", "-t", "overlay", "-o", "lowerdir=%s,upperdir=%s,workdir=%s"
            % (debian, changes / "upper", changes / "work"), "none", self.root)
        self.mount()
        self.torch = (self.root / "etc/gpuprof-torch").read_text().strip()
        (self.root / "deb").write_bytes(deb.read_bytes())
        self.installed = ran("chroot", self.root, "dpkg", "-i", "/deb")
        (self.root / "mnt/tests").mkdir()
        ran("mount", "--bind", "-o", "ro", ROOT / "tests", self.root / "mnt/tests")

    def own_python(self, *args):
        """Runs a script of the tests by the release's own Python, in the folder."""
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "GPUPROF": self.program}
        return ran("chroot", self.root, "/usr/bin/python3", "-B", *args, env=env)

    def uninstall(self):
        ran("chroot", self.root, "dpkg", "-r", "gpuprof")
        if (self.root / "usr/bin/gpuprof").exists():
            raise Trouble("dpkg -r leaves /usr/bin/gpuprof")


class Image(Place):
    """What a builder of images makes of the Containerfile in DIST: it begins with nothing."""

    def __init__(self, folder, dist):
        super().__init__("image", folder)
        self.torch = None
        for line in (dist / "Containerfile").read_text().splitlines():
            word, _, rest = line.partition(" ")
            if word == "COPY":
                *sources, target = rest.split()
                self._copy(dist, sources, target)
            elif word == "ENTRYPOINT":
                self.program, = json.loads(rest)
            elif line != "FROM scratch" and word not in ("", "CMD") and line[0] != "#":
                raise Trouble("Containerfile: '%s' is not understood here" % line)
        self.mount()

    def _copy(self, dist, sources, target):
        for source in sources:
            path = self.root / target.lstrip("/")
            path = path / source if target.endswith("/") else path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((dist / source).read_bytes())
            path.chmod((dist / source).stat().st_mode & 0o777)
