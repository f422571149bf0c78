# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Makes the packages of `make dist` from a static gpuprof and the trees that `make install` laid out:
WORK/usr is for /usr, WORK/tree for /usr/local. dpkg-deb and rpmbuild make theirs; the rest is made
here. Every time in a package is the commit's, every order is sorted, and every owner is root, so the
same input makes the same bytes.

usage: pack.py --version V --time SECONDS --archives "-lA -lB..." --cc CC WORK DIST
"""
import argparse
import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SUMMARY = "Profiler of running PyTorch and CUDA processes"
WHEEL_TAG = "py3-none-manylinux2014_x86_64"
# What every package manager takes as a version: digits, and after a plus letters too.
VERSION = re.compile(r"\d+(\.\d+)*(\+[a-z0-9]+(\.[a-z0-9]+)*)?")
# zip knows no earlier time.
ZIP_BEGINS = 315532800


class Package:
    """What all packages have in common."""

    def __init__(self, version, when, work, dist):
        self.version = version
        self.when = when
        self.work = work
        self.dist = dist

    def run(self, *command, **kwargs):
        env = dict(os.environ, SOURCE_DATE_EPOCH=str(self.when), TZ="UTC", LC_ALL="C")
        done = subprocess.run([str(word) for word in command], env=env, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)
        if done.returncode:
            sys.exit("dist: %s failed with status %d:\n%s"
                     % (command[0], done.returncode, done.stdout))

    def file(self, ending):
        return self.dist / ("gpuprof-%s%s" % (self.version, ending))


# ---- what is linked in, and under which licence ----

def owner_of(path):
    """The Debian package of a file and its version; exits where nobody knows."""
    real = os.path.realpath(path)
    for name in (path, real, re.sub("^/usr/", "/", real)):
        found = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, check=False)
        if not found.returncode:
            package = found.stdout.split(": ")[0].split(",")[0]
            shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}", package],
                                   capture_output=True, text=True, check=True)
            return shown.stdout.split(" ")
    sys.exit("dist: no Debian package owns '%s', so its licence is not known" % path)


def libraries(cc, archives):
    """The text of LIBRARIES: each package whose archive is linked in, with its copyright file."""
    packages = {}
    for word in archives:
        name = "lib%s.a" % word.removeprefix("-l")
        found = subprocess.run([cc, "-print-file-name=" + name], capture_output=True, text=True,
                               check=True).stdout.strip()
        if not os.path.isabs(found):
            sys.exit("dist: the archive '%s' is not there" % name)
        package, version = owner_of(found)
        packages.setdefault(package, [version])
    texts = ["The executable contains these libraries, as Debian builds them:\n\n"]
    texts += ["    %s %s\n" % (name, packages[name][0]) for name in sorted(packages)]
    texts.append("\nThe terms of each follow.\n")
    for name in sorted(packages):
        path = Path("/usr/share/doc") / name / "copyright"
        if not path.exists():
            sys.exit("dist: '%s' is missing: packages may not leave out the terms of what they "
                     "contain; reinstall %s with its documents" % (path, name))
        texts.append("\n%s\n%s\n%s\n\n%s" % ("-" * 79, name, "-" * 79,
                                             path.read_text(encoding="utf-8")))
    return "".join(texts)


# ---- trees ----

def compressed(data):
    """gzip's form of it, without a name or a time."""
    return gzip.compress(data, 9, mtime=0)


def complete_tree(package, prefix):
    """Adds the terms, and makes all modes and times the same everywhere."""
    doc = prefix / "share/doc/gpuprof"
    doc.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "LICENSE", doc / "copyright")
    shutil.copy(package.work / "LIBRARIES", doc / "LIBRARIES")
    for page in sorted((prefix / "share/man").glob("man*/*")):
        page.with_name(page.name + ".gz").write_bytes(compressed(page.read_bytes()))
        page.unlink()
    tree = prefix.parents[0]
    for path in sorted(tree.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
        else:
            path.chmod(0o755 if path.parent.name == "bin" else 0o644)
    for path in sorted(tree.rglob("*"), reverse=True):
        os.utime(path, (package.when, package.when))
    os.utime(tree, (package.when, package.when))


def make_tar(package, prefix):
    top = "gpuprof-%s" % package.version
    raw = io.BytesIO()

    def plain(info):
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        info.mtime = package.when
        return info

    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in [prefix, *sorted(prefix.rglob("*"))]:
            tar.add(path, Path(top) / path.relative_to(prefix), recursive=False, filter=plain)
    package.file("-linux-x86_64.tar.gz").write_bytes(compressed(raw.getvalue()))


# ---- .deb and .rpm ----

CONTROL = """Package: gpuprof
Version: {version}
Architecture: amd64
Maintainer: the gpuprof authors
Section: devel
Priority: optional
Installed-Size: {kib}
Description: {summary}
 Attaches to a running process by eBPF and shows its operators, kernels,
 memory and stacks. One static executable, the daemon's unit for systemd,
 the manual pages, the guide.
"""


def make_deb(package, tree):
    root = package.work / "deb"
    shutil.copytree(tree, root)
    kib = sum((path.stat().st_size + 1023) // 1024 for path in root.rglob("*") if path.is_file())
    control = root / "DEBIAN/control"
    control.parent.mkdir()
    control.write_text(CONTROL.format(version=package.version, kib=kib, summary=SUMMARY))
    control.chmod(0o644)
    for path in [control, control.parent, root]:
        os.utime(path, (package.when, package.when))
    root.chmod(0o755)
    control.parent.chmod(0o755)
    package.run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root,
                package.dist / ("gpuprof_%s_amd64.deb" % package.version))


def make_rpm(package, tree):
    """gzip, since rpm unpacks it everywhere."""
    root = package.work / "rpm"
    root.mkdir()
    settings = {
        "_topdir": root, "_tmppath": root, "_rpmdir": root, "_build_name_fmt": "out.rpm",
        "_buildhost": "localhost", "_binary_payload": "w9.gzdio",
        "use_source_date_epoch_as_buildtime": 1, "clamp_mtime_to_source_date_epoch": 1,
        "gpuprof_version": package.version, "gpuprof_tree": tree,
    }
    words = [word for name, value in settings.items()
             for word in ("--define", "%s %s" % (name, value))]
    package.run("rpmbuild", "-bb", "--nodeps", "--target", "x86_64-linux", *words,
                HERE / "gpuprof.spec", cwd=root)
    shutil.move(root / "out.rpm", package.dist / ("gpuprof-%s-1.x86_64.rpm" % package.version))


# ---- the wheel ----

METADATA = """Metadata-Version: 2.1
Name: gpuprof
Version: {version}
Summary: {summary}
License: GPL-2.0-only OR BSD-2-Clause
License-File: LICENSE
License-File: LIBRARIES
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development
Requires-Python: >=3.6
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """Wheel-Version: 1.0
Generator: gpuprof make dist
Root-Is-Purelib: false
Tag: {tag}
"""


def wheel_files(package, prefix):
    """name -> (bytes, mode), RECORD last as the format asks for."""
    info = "gpuprof-%s.dist-info" % package.version
    data = "gpuprof-%s.data" % package.version
    pages = sorted((prefix / "share/man").glob("man*/*"))
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    files = {
        data + "/scripts/gpuprof": ((prefix / "bin/gpuprof").read_bytes(), 0o755),
        **{data + "/data/" + str(page.relative_to(prefix)): (page.read_bytes(), 0o644) for page in pages},
        info + "/METADATA": (METADATA.format(version=package.version, summary=SUMMARY,
                                             readme=readme).encode(), 0o644),
        info + "/WHEEL": (WHEEL.format(tag=WHEEL_TAG).encode(), 0o644),
        info + "/licenses/LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644),
        info + "/licenses/LIBRARIES": ((package.work / "LIBRARIES").read_bytes(), 0o644),
    }
    record = info + "/RECORD"
    lines = ["%s,sha256=%s,%d\n" % (name, base64.urlsafe_b64encode(
        hashlib.sha256(content).digest()).decode().rstrip("="), len(content))
        for name, (content, _) in sorted(files.items())]
    files[record] = ("".join(lines + [record + ",,\n"]).encode(), 0o644)
    return files


def make_wheel(package, prefix):
    when = time.gmtime(max(package.when, ZIP_BEGINS))[:6]
    with zipfile.ZipFile(package.file("-%s.whl" % WHEEL_TAG), "w") as wheel:
        for name, (content, mode) in wheel_files(package, prefix).items():
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content, compresslevel=9)


def write_sums(dist):
    lines = ["%s  %s\n" % (hashlib.sha256(path.read_bytes()).hexdigest(), path.name)
             for path in sorted(dist.iterdir()) if path.name != "SHA256SUMS"]
    (dist / "SHA256SUMS").write_text("".join(lines))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--time", type=int, required=True)
    parser.add_argument("--archives", type=str.split, required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("work", type=Path)
    parser.add_argument("dist", type=Path)
    args = parser.parse_args()
    if not VERSION.fullmatch(args.version):
        sys.exit("dist: '%s' is no version that pip, dpkg and rpm all take; name the tag vX.Y.Z"
                 % args.version)
    package = Package(args.version, args.time, args.work.resolve(), args.dist.resolve())
    for name in ("deb", "rpm"):
        shutil.rmtree(package.work / name, ignore_errors=True)
    (package.work / "LIBRARIES").write_text(libraries(args.cc, args.archives), encoding="utf-8")
    usr, local = package.work / "usr/usr", package.work / "tree/usr/local"
    complete_tree(package, usr)
    complete_tree(package, local)
    make_tar(package, local)
    make_deb(package, usr.parent)
    make_rpm(package, usr.parent)
    make_wheel(package, usr)
    for path in (package.work / "LIBRARIES", ROOT / "LICENSE", HERE / "Containerfile"):
        shutil.copy(path, package.dist / path.name)
    write_sums(package.dist)


if __name__ == "__main__":
    main()
