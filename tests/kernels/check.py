# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
gpuprof on Debian's stock kernels: loads each BPF program of the object, as each suite's clang makes
it, on each suite's kernel and on this machine's, makes an element of each task storage, and records
in guests. Writes what came out to tests/kernels/RESULTS.md.

usage: check.py [--fetch] [--attach SUITE,SUITE|all|none] [--results FILE] [SUITE...]
       --fetch only gets the packages; RESULTS.md is written when all suites were tried
exit status: 0 as promised, 1 not, 3 the package registry cannot be reached
"""
import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import guest
import packages

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("RESULTS.md")
# What has no BPF programs of ours: gpuprof goes on by callback there.
BY_CALLBACK = ("bullseye",)
KERNELS = ("bullseye", "bookworm", "bookworm-backports", "trixie", "unstable")
CLANGS = ("trixie", "unstable")
ATTACHED = ("bookworm", "trixie")
HERE = "here"


def say(text):
    print("kernels: " + text, flush=True)


# ---- objects ----

def build_objects(build, folder):
    """Builds the object by this machine's clang and those of other suites: version -> file."""
    objects = {}
    commands = [["clang"]]
    for name in CLANGS:
        root = packages.Suite(name).clang()
        llvm = max(root.glob("usr/lib/llvm-*"))
        number = llvm.name.removeprefix("llvm-")
        library = f"{root}/usr/lib/x86_64-linux-gnu"
        # By its own loader and libraries: it is not of this machine's suite.
        commands.append([f"{root}/usr/lib64/ld-linux-x86-64.so.2", "--library-path",
                         f"{library}:{llvm}/lib", f"{llvm}/bin/clang", "-resource-dir",
                         f"{llvm}/lib/clang/{number}"])
    for command in commands:
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        version = re.search(r"version (\d+)", said.stdout)[1]
        out = folder / f"clang-{version}"
        subprocess.run(["make", "--no-print-directory", "-s", f"O={out}", "GPUPROF_NO_SETUP=1",
                        "WERROR=1", f"CLANG={' '.join(command)}", f"{out}/gpuprof.bpf.o"],
                       cwd=ROOT, check=True)
        objects[version] = out / "gpuprof.bpf.o"
    return objects


# ---- guests ----

LOAD = """
for object in /job/*.bpf.o; do
	/job/load_programs $object >$object.answers 2>/dev/null
done
true
"""
ATTACH = """
cd {root}
export GPUPROF=/job/gpuprof
/usr/bin/python3 -B tests/kernels/attach.py {cases} 2>/job/attach.err >/job/attach.answers
true
"""


def read_answers(path):
    if not path.exists():
        return []
    return [line.split("\t") for line in path.read_text(errors="replace").splitlines()
            if "\t" in line]


def is_map(name):
    return name.startswith("map ")


class Outcome:
    """What one kernel said."""

    def __init__(self, suite, release):
        self.suite = suite
        self.release = release
        # clang -> (programs loaded in all configurations, programs, name -> refusal); of a task
        # storage that gives no elements the name is "map NAME"
        self.loaded = {}
        self.attached = []  # (case, "ok" | "failed", words)
        self.trouble = ""

    def take_loads(self, version, answers):
        programs = {name for _, name, *_ in answers if not is_map(name)}
        refused = {name: words for _, name, verdict, words in answers if verdict == "refused"}
        self.loaded[version] = (len(programs - set(refused)), len(programs), refused)

    @property
    def by_callback(self):
        return self.suite in BY_CALLBACK

    def wrong(self):
        """What is not as promised, in lines."""
        lines = [self.trouble] if self.trouble else []
        for version, (_, programs, refused) in self.loaded.items():
            if not programs:
                lines.append(f"clang {version}: nothing was tried")
            if not self.by_callback:
                lines += [f"clang {version}: {name}: {words}" for name, words in refused.items()]
        lines += [f"{case}: {words}" for case, verdict, words in self.attached if verdict != "ok"]
        return lines


def cases_of(suite):
    return "callback detach" if suite in BY_CALLBACK else ""


def run_guest(suite, folder, objects, build, attach):
    kernel = guest.Kernel(packages.Suite(suite).kernel())
    job = folder / suite
    shutil.rmtree(job, ignore_errors=True)
    job.mkdir(parents=True)
    # Copies: what is tested does not change meanwhile.
    shutil.copy(build / "tests/load_programs", job)
    shutil.copy(build / "gpuprof", job)
    for version, path in objects.items():
        shutil.copy(path, job / f"{version}.bpf.o")
    script = LOAD
    if attach:
        script += ATTACH.format(root=ROOT, cases=cases_of(suite))
    begin = time.monotonic()
    status = guest.run(kernel, job, script)
    outcome = Outcome(suite, kernel.release)
    for version in objects:
        outcome.take_loads(version, read_answers(job / f"{version}.bpf.o.answers"))
    for case, verdict, *words in read_answers(job / "attach.answers"):
        outcome.attached.append((case, verdict, words[0] if words else ""))
    if status != 0:
        outcome.trouble = "the guest did not come to its end\n" + guest.tail(job)
    elif attach and not outcome.attached:
        outcome.trouble = "nothing was recorded\n" + (job / "attach.err").read_text()[-2000:]
    say(f"{suite} ({kernel.release}): {time.monotonic() - begin:.0f} s, "
        + ("as promised" if not outcome.wrong() else "NOT as promised"))
    return outcome


def load_here(objects, build):
    outcome = Outcome(HERE, platform.release())
    for version, path in objects.items():
        done = subprocess.run([build / "tests/load_programs", path], capture_output=True, text=True,
                              check=False)
        outcome.take_loads(version, [line.split("\t") for line in done.stdout.splitlines()])
    return outcome


# ---- results ----

def cell(outcome, version):
    loaded, programs, refused = outcome.loaded[version]
    return ", ".join([f"{loaded} of {programs}", *(f"NO {name}" for name in refused if is_map(name))])


def recorded(outcome):
    if not outcome.attached:
        return "not tried"
    good = [case for case, verdict, _ in outcome.attached if verdict == "ok"]
    bad = [case for case, verdict, _ in outcome.attached if verdict != "ok"]
    return ", ".join(case.replace("_", " ") for case in good) + (
        "; NOT " + ", ".join(bad) if bad else "")


def table(outcomes):
    versions = sorted(outcomes[0].loaded, key=int)
    lines = ["# BPF programs and kernels", "",
             "Written by `make check-kernels` (tests/kernels/check.py) on "
             f"{datetime.date.today().isoformat()}. A cell tells how many programs of the object as "
             "that clang makes it", "the kernel's verifier takes in each configuration that they are "
             "loaded in, and names each task storage", "that gives threads no element there. Guests "
             "run by software emulation.", "",
             "| kernel | " + " | ".join(f"clang {version}" for version in versions)
             + " | recorded in a guest |",
             "|---|" + "---|" * (len(versions) + 1)]
    for one in outcomes:
        name = one.release if one.suite != HERE else f"{one.release.split('-')[0]} (not a guest)"
        if one.suite != HERE:
            name += f" ({one.suite})"
        lines.append(f"| {name} | " + " | ".join(cell(one, version) for version in versions)
                     + f" | {recorded(one)} |")
    return "\n".join(lines) + "\n"


def fetch(suites):
    for name in sorted({*suites, *CLANGS}):
        suite = packages.Suite(name)
        suite.update()
        if name in suites:
            suite.kernel()
        if name in CLANGS:
            suite.clang()


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--attach", default="all")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("suites", nargs="*", default=KERNELS)
    return parser.parse_args()


def main():
    args = parse()
    attached = {"all": args.suites, "none": ()}.get(args.attach) or args.attach.split(",")
    try:
        fetch(args.suites)
    except packages.Unreachable as error:
        say(f"PACKAGE REGISTRY NOT REACHED: {error}")
        return 3
    if args.fetch:
        return 0
    build = args.build.resolve()
    folder = build / "kernels"
    objects = build_objects(build, folder)
    outcomes = [run_guest(name, folder / "guests", objects, build, name in attached)
                for name in args.suites]
    outcomes.append(load_here(objects, build))
    wrong = False
    for one in outcomes:
        for line in one.wrong():
            wrong = True
            say(f"{one.suite}: {line}")
    text = table(outcomes)
    print(text)
    if set(args.suites) == set(KERNELS) and args.attach == "all":
        args.results.write_text(text)
    failed = sum(bool(one.wrong()) for one in outcomes)
    say(f"{len(outcomes) - failed} passed, {failed} failed")
    return int(wrong)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
