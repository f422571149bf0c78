#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The collector against every CUPTI that NVIDIA offers as a wheel: offsets, sizes and numbers (abi.py),
records of each kind (records.c), the functions that the library exports, and what a process that has
it and no GPU is told. Nothing is skipped but what a wheel does not have, which the table tells.

usage: check.py [VERSION...]        all of VERSIONS when none is named; a full run writes RESULTS.md
Environment: GPUPROF the binary, CC, CUPTI_LINK what records.c is linked with, GPUPROF_WHEEL_DIR where the
wheels are kept.
"""

import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import zipfile

import abi

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COLLECTOR = os.path.join(ROOT, "userspace", "collector")
WHEELS = os.path.join(os.environ.get("GPUPROF_WHEEL_DIR", "/var/cache/gpuprof/wheels"), "cupti")
GPUPROF = os.path.abspath(os.environ.get("GPUPROF", os.path.join(ROOT, "build", "gpuprof")))
FAKE = os.path.join(os.path.dirname(GPUPROF), "fake")
RESULTS = os.path.join(HERE, "RESULTS.md")
TRIES = 3
LIMIT = 60

# CUPTI -> the runtime of its CUDA, whose wheel has cuda.h. The last of every minor version, and the
# first of 13.0, which is known to hang.
VERSIONS = {
    "11.7.101": "11.7.99", "11.8.87": "11.8.89", "12.0.146": "12.0.146", "12.1.105": "12.1.105",
    "12.2.142": "12.2.140", "12.3.101": "12.3.101", "12.4.127": "12.4.127",
    "12.5.82": "12.5.82", "12.6.80": "12.6.77", "12.8.90": "12.8.90", "12.9.79": "12.9.79",
    "13.0.48": "13.0.96", "13.0.85": "13.0.96", "13.1.115": "13.1.80", "13.2.86": "13.2.86",
    "13.3.75": "13.3.29", "13.4.92": "13.4.92", "13.5.25": "13.5.37",
}

BEFORE_12_2 = "the CUPTI of CUDA before 12.2 may crash a process that runs CUDA graphs"
FIRST_13_0 = "the first CUPTI of CUDA 13.0 may hang the process"
RECURSES = "the CUPTI of CUDA 13.2 crashes a process in which it cannot initialize"
NOT_READY = "; compare libcupti's CUDA with the driver's, which nvidia-smi shows"
NO_DRIVER = "the process's libcupti cannot initialize; compare its CUDA with the driver's"
NOT_IN_USE = "CUDA is not in use in the process yet"


class CheckError(Exception):
    """What differs, in a sentence."""


def major(version):
    return int(version.split(".")[0])


def wheel_name(kind, version):
    return "nvidia-cuda-%s%s" % (kind, "" if major(version) >= 13 else "-cu%d" % major(version))


def wheel(kind, version):
    """The path of a wheel; downloaded, where it is not there yet."""
    name = wheel_name(kind, version)
    pattern = "%s/%s-%s-*.whl" % (WHEELS, name.replace("-", "_"), version)
    os.makedirs(WHEELS, exist_ok=True)
    for attempt in range(TRIES):
        found = glob.glob(pattern)
        if found:
            return found[0]
        if attempt:
            time.sleep(5 * attempt)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", WHEELS,
                        "%s==%s" % (name, version)], check=False, stdin=subprocess.DEVNULL)
    raise CheckError("%s %s cannot be downloaded" % (name, version))


def unpack(path, folder, *patterns):
    """Of a wheel what fits a pattern, without the folders above include and lib."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            inner = re.sub(r"^nvidia/[^/]+/", "", name)
            if any(re.match(pattern, inner) for pattern in patterns):
                target = os.path.join(folder, inner)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "wb") as file:
                    file.write(archive.read(name))


def check_versions(version, headers):
    """enum cupti_version: each of ours and this version stand in the same order by both counts."""
    with open(COLLECTOR + "/cupti/cupti_library.h", encoding="utf-8") as file:
        ours = re.findall(r"CUPTI_VERSION_(\d+)_(\d+) = (\d+)", file.read())
    cuda = tuple(int(part) for part in version.split(".")[:2])
    for first, second, number in ours:
        if (cuda >= (int(first), int(second))) != (headers.version >= int(number)):
            raise CheckError("CUPTI_VERSION_%s_%s is not %s" % (first, second, number))
    return len(ours)


def check_facts(headers, folder):
    facts, absent = abi.facts(headers, COLLECTOR, folder, os.environ.get("CC", "gcc"))
    wrong = ["%s: %d, not %d" % fact for fact in facts if fact.ours != fact.theirs]
    if wrong:
        raise CheckError("; ".join(wrong[:5]))
    return len(facts), absent


def newest(headers):
    """The records that this version writes, and which younger fields they have, for records.c."""
    names = {"KERNEL": "cupti_kernel", "COPY": "cupti_copy", "PEER_COPY": "cupti_peer_copy",
             "SET": "cupti_set", "SYNC": "cupti_sync", "EVENT": "cupti_event",
             "OVERHEAD": "cupti_overhead"}
    found = {short: headers.generations(*abi.STRUCTS[struct][:2])[-1]
             for short, struct in names.items()}
    defines = ["-D%s=%s" % pair for pair in found.items()]
    if headers.has_field(found["SYNC"], "cudaEventSyncId"):
        defines.append("-DRECORD_ID")
    return found, defines


def check_records(headers, folder):
    binary = folder + "/records"
    found, defines = newest(headers)
    command = [os.environ.get("CC", "gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror",
               "-Wno-unused-function", *defines, "-I", ROOT + "/userspace", "-I", ROOT + "/bpf",
               "-I", ROOT + "/tests", HERE + "/records.c", "-o", binary]
    for include in headers.folders:
        command += ["-isystem", include]
    subprocess.run(command + shlex.split(os.environ["CUPTI_LINK"]), check=True, cwd=ROOT)
    done = subprocess.run([binary], stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        raise CheckError("records: status %d: %s" % (done.returncode, done.stdout.strip()))
    return found


def check_exports(library, headers):
    """Every function that the collector needs; the others where the headers, if any, have them."""
    done = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, check=True,
                          text=True)
    there = {line.split()[2].split("@")[0] for line in done.stdout.splitlines()}
    wanted = {name for name in abi.FUNCTIONS if name not in abi.OPTIONAL or (
        headers and re.search(r"\b%s\b" % name, headers.text))}
    if wanted - there:
        raise CheckError("not exported: " + ", ".join(sorted(wanted - there)))


class App:
    """tests/fake/cuda_app, on the stand-in for the driver, with that libcupti loaded."""

    def __init__(self, library, *args):
        self.process = subprocess.Popen(
            [FAKE + "/cuda_app", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=dict(os.environ, LD_PRELOAD=library))
        self.answer("ready")

    def answer(self, wanted):
        line = self.process.stdout.readline()
        if not line.startswith(wanted):
            self.process.kill()
            raise CheckError("the process said %r, not %r (status %s)" % (
                line, wanted, self.process.wait()))

    def leave(self):
        """It goes on as if nothing had been, and ends in good order."""
        try:
            print("work 1 5", file=self.process.stdin, flush=True)
            self.answer("did work 1 5")
            print("leave", file=self.process.stdin, flush=True)
            if self.process.wait(LIMIT):
                raise CheckError("the process ended with %d" % self.process.returncode)
        except BrokenPipeError:
            raise CheckError("the process has died: status %s" % self.process.wait()) from None
        finally:
            self.process.kill()


def check_binding(library, sentence, folder, *app_args):
    """Attaches to a process that has the library; it must be told so, and live. What it was told."""
    app = App(library, *app_args)
    done = subprocess.run([GPUPROF, "attach", "--pid", str(app.process.pid), "--duration", "0.2", "-o",
                           folder + "/r.gpuprof"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT, check=False, text=True)
    app.leave()
    if done.returncode or sentence not in done.stdout:
        raise CheckError("not told '%s' (status %d): %s" % (sentence, done.returncode, done.stdout))
    return re.search(r"^gpuprof: \d+: gpu activity: (.*)$", done.stdout, re.MULTILINE).group(1)


def sentence_of(version):
    cuda = tuple(int(part) for part in version.split(".")[:2])
    if cuda < (12, 2):
        return BEFORE_12_2
    if version == "13.0.48":
        return FIRST_13_0
    if cuda == (13, 2):
        return RECURSES
    return NOT_READY if cuda < (13, 2) else NO_DRIVER


def check(version, folder):
    """A row of the table."""
    unpack(wheel("cupti", version), folder, r"include/", r"lib/libcupti\.so")
    library = glob.glob(folder + "/lib/libcupti.so*")[0]
    told = check_binding(library, sentence_of(version), folder)
    check_binding(library, NOT_IN_USE, folder, "lazy")
    if not glob.glob(folder + "/include/cupti.h"):
        check_exports(library, None)
        return [version, "-", "no headers in the wheel", "-", "-", told]
    unpack(wheel("runtime", VERSIONS[version]), folder + "/cuda", r"include/")
    headers = abi.Headers(folder + "/include", folder + "/cuda/include")
    check_exports(library, headers)
    facts, absent = check_facts(headers, folder)
    facts += check_versions(version, headers)
    written = check_records(headers, folder)
    guarded = sorted({what.split(" ")[0] for what in absent
                      if what.split(" in ")[1] in written.values()})
    return [version, str(headers.version), "%d equal" % (facts - len(absent)),
            ", ".join(guarded) or "none",
            ", ".join(name.replace("CUpti_Activity", "") for name in written.values()),
            told]


INTRODUCTION = """\
# CUPTI's versions

Written by `make check-cupti`: the collector beside each CUPTI that NVIDIA offers as a wheel, the last of
each minor version. Compared are all offsets, sizes, enumerators, numbers of functions and arguments that
`userspace/collector/` relies on, in every layout of a record that the version's headers have; a record of each kind in
the layout that the version writes goes through the collector, with rubbish behind it; and a process
without a GPU that has the library is attached to, says why there are no GPU times, and goes on.

"Guarded": fields that this version's records end before. The collector reads a field only if the record is
long enough for it. CUDA 11.0 to 11.6 have no wheels: the layouts that they wrote are in the later headers.
The wheel of 11.7 has no headers: only its library is tried.

| CUPTI | API | facts | guarded | records written | no GPU: the process is told |
|---|---|---|---|---|---|
"""


def main():
    missing = abi.uncovered(COLLECTOR)
    if missing:
        print("cupti: not compared: " + ", ".join(missing))
        return 1
    rows, failed = [], 0
    for version in sys.argv[1:] or VERSIONS:
        with tempfile.TemporaryDirectory(prefix="gpuprof-cupti-") as folder:
            try:
                rows.append(check(version, folder))
                print("cupti %s: %s" % (version, rows[-1][2]), flush=True)
            except (CheckError, OSError, subprocess.SubprocessError) as error:
                failed += 1
                rows.append([version, "", "FAILED", "", "", str(error)[:200].replace("\n", " ")])
                print("cupti %s: FAILED: %s" % (version, error), flush=True)
    if not sys.argv[1:]:
        with open(RESULTS, "w", encoding="utf-8") as file:
            file.write(INTRODUCTION)
            file.writelines("| %s |\n" % " | ".join(row) for row in rows)
    print("cupti: %d passed, %d failed, 0 skipped" % (len(rows) - failed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
