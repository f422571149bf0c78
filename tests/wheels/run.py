#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
PyPI's wheels of PyTorch, each on one CPython: downloaded, unpacked with CUDA's runtime and CUPTI from
wheels too and stand-ins for what is left of CUDA (standins.py), checked by case.py, and taken away again.
What was found is kept, a file a case, and RESULTS.md is made of all that is kept.

usage: run.py [TORCH-PYTHON...]         such as 2.6.0-3.11; all of CASES when none is named
       run.py --write                   RESULTS.md of what is kept, without a run
Environment: GPUPROF, SHOW_PLAN the binaries; GPUPROF_WHEEL_DIR where wheels are kept; GPUPROF_MATRIX_DIR where
the folders of rootfs.sh are.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

import standins

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TESTS, "integration"))

import harness  # noqa: E402

BASE = os.environ.get("GPUPROF_WHEEL_DIR", "/var/cache/gpuprof/wheels")
KEPT = os.path.join(BASE, "torch")
MATRIX = os.environ.get("GPUPROF_MATRIX_DIR", "/var/cache/gpuprof/matrix")
SHOW_PLAN = os.environ.get("SHOW_PLAN", os.path.join(os.path.dirname(harness.GPUPROF), "tests",
                                                     "wheels", "show_plan"))
RESULTS = os.path.join(HERE, "RESULTS.md")
TRIES = 3
PLATFORMS = ("manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64",
             "manylinux_2_25_x86_64", "manylinux_2_28_x86_64")
PURE = ("filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "setuptools")
# Where Debian has that CPython: in a folder of rootfs.sh. Others are taken from where harness.pythons()
# finds them.
SUITES = {"3.13": "trixie", "3.14": "unstable"}

CASES = ("1.13.1-3.9", "2.0.1-3.10", "2.2.2-3.12", "2.4.1-3.11", "2.6.0-3.11", "2.7.1-3.13",
         "2.9.1-3.12", "2.11.0-3.13", "2.15.0-3.14")
# CUDA's runtime and CUPTI of a cuda-toolkit, which newer wheels ask for.
TOOLKITS = {"13.0.2": ("13.0.96", "13.0.85"), "13.2.2": ("13.2.86", "13.2.86")}


def pip(*args):
    for attempt in range(TRIES):
        if attempt:
            time.sleep(5 * attempt)
        done = subprocess.run([sys.executable, "-m", "pip", *args, "-q"], check=False,
                              stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return
    raise OSError("pip %s failed" % " ".join(args))


def download(requirement, python):
    """The path of that wheel."""
    name, version = requirement.split("==")
    tag = "cp" + python.replace(".", "")
    pattern = "%s/%s-%s-*.whl" % (KEPT, name.replace("-", "_"), version)
    found = [path for path in glob.glob(pattern) if name != "torch" or "-%s-" % tag in path]
    if found:
        return found[0]
    pip("download", "--no-deps", "--only-binary=:all:", "--python-version", python,
        *["--platform=" + one for one in PLATFORMS], "-d", KEPT, requirement)
    return download(requirement, python)


def unpack(wheel, folder, *names):
    subprocess.run(["unzip", "-qo", wheel, *names, "-d", folder], check=True)


def cuda_wheels(site):
    """CUDA's runtime and CUPTI as the unpacked PyTorch wants them."""
    (path,) = glob.glob(site + "/torch-*.dist-info/METADATA")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    toolkit = re.search(r"^Requires-Dist: cuda-toolkit\[.*?\]==([0-9.]+)", text, re.MULTILINE)
    if toolkit:
        return ["nvidia-cuda-%s==%s" % pair
                for pair in zip(("runtime", "cupti"), TOOLKITS[toolkit.group(1)])]
    return ["%s==%s" % pair for pair in re.findall(
        r"^Requires-Dist: (nvidia-cuda-(?:runtime|cupti)-cu\d+) ?\(?==([0-9.]+)", text, re.MULTILINE)]


def prepare(torch, python, folder):
    """Makes the folder: site/, pure/, cuda/. The SONAMEs of stand-ins."""
    site, cuda = folder + "/site", folder + "/cuda"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(cuda)
    unpack(download("torch==" + torch, python), site)
    for requirement in cuda_wheels(site):
        unpack(download(requirement, python), cuda + "/wheel", "nvidia/*/lib/*")
    for path in glob.glob(cuda + "/wheel/nvidia/*/lib/lib*.so*"):
        shutil.move(path, cuda)
    pip("install", "--root-user-action=ignore", "--target", folder + "/pure", "--only-binary=:all:", "--python-version", python,
        *["--platform=" + one for one in PLATFORMS], "--no-compile", *PURE)
    return standins.make_all(site + "/torch/lib", cuda, os.listdir(cuda))


def plans(site):
    """(operators and the like with probes, without, probes, single-stepped, "old" or "new" strings) of
    all of PyTorch's libraries."""
    libraries = sorted(glob.glob(site + "/torch/lib/lib*.so*"))
    done = subprocess.run([SHOW_PLAN, *libraries], check=True, stdout=subprocess.PIPE,
                          text=True)
    sums, strings = [0, 0, 0, 0], "?"
    for line in done.stdout.splitlines():
        path, *numbers, kind = line.split("\t")
        sums = [one + int(number) for one, number in zip(sums, numbers)]
        if path.endswith("/libtorch_cpu.so"):
            strings = kind
    return [*sums, strings]


def interpreter(python):
    """The CPython, and the folder that it is the root of, or ""."""
    if python in SUITES:
        subprocess.run([TESTS + "/matrix/rootfs.sh", SUITES[python]], check=True,
                       stdout=subprocess.DEVNULL)
        return "/usr/bin/python3", os.path.join(MATRIX, SUITES[python])
    return harness.pythons()[int(python.split(".")[1])], ""


def run(case):
    torch, python = case.split("-")
    folder = os.path.join(BASE, "case-" + case)
    path, root = interpreter(python)
    stand_ins = prepare(torch, python, folder)
    bound = root + "/var/cache/gpuprof-wheel" if root else folder
    inner = bound[len(root):]
    env = dict(os.environ, GPUPROF_ROOT_DIR=root, LD_LIBRARY_PATH=inner + "/cuda",
               PYTHONPATH=inner + "/site:" + inner + "/pure")
    command = [sys.executable, "-B", HERE + "/case.py", path, *([folder, bound] if root else [])]
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", *command], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True)
    result = json.loads(done.stdout.splitlines()[-1])
    result.update(plan=plans(folder + "/site"), stand_ins=stand_ins, root=os.path.basename(root))
    shutil.rmtree(folder)
    return result


CHECKS = ("calls", "garbled", "boxed", "ranges", "lost", "memory", "stacks", "shapes", "modules")


def is_good(result):
    return all(value == "yes" for way in ("callback", "uprobes")
               for key, value in result[way].items() if key not in ("garbled", "names")) and \
        not any(result[way]["garbled"] for way in ("callback", "uprobes"))


def cell(found, check):
    if check == "garbled":
        return "%d of %d" % (len(found["garbled"]), found["names"])
    return found.get(check, "-").split(":")[0]


def table(results):
    lines = ["| PyTorch | CPython | way | " + " | ".join(CHECKS) + " |",
             "|---|---|---|" + "---|" * len(CHECKS)]
    notes = []
    for case, result in results.items():
        for way in ("callback", "uprobes"):
            found = result[way]
            lines.append("| %s | %s | %s | %s |" % (
                result["facts"]["torch"], result["facts"]["python"], way,
                " | ".join(cell(found, check) for check in CHECKS)))
            notes += ["- %s, %s, %s: %s" % (case, way, check, found[check].replace("\n", " "))
                      for check in CHECKS if str(found.get(check, "")).startswith("no")]
            if found["garbled"]:
                notes.append("- %s, %s, garbled: %s" % (case, way, ", ".join(found["garbled"][:5])))
    return lines, notes


def probe_table(results):
    lines = ["| PyTorch | strings | functions with probes | without | probes | single-stepped |",
             "|---|---|---|---|---|---|"]
    for result in results.values():
        placed, unplaced, sites, stepped, strings = result["plan"]
        lines.append("| %s | %s | %d | %d | %d | %d |" % (
            result["facts"]["torch"], strings, placed, unplaced, sites, stepped))
    return lines


INTRODUCTION = """\
# PyPI's wheels of PyTorch

Written by `make check-wheels`. No GPU: CUDA's runtime and CUPTI are the real libraries of the wheels that
PyTorch asks for, the rest of CUDA is stand-ins by SONAME. Each cell compares a capture with what
torch.profiler records of as many steps of the same process: "calls" the names and calls of all operators, before
and after the table's collapse of same-name children, of a training, an LSTM, allocations, errors, and operators called boxed
(`torch.ops`, TorchScript, a library of operators); "garbled" names in the recording that torch.profiler does not
have; "boxed" and "ranges" the names of operators without a function of their own and of record_function();
"lost" that no counter but the expected ones is above zero (TorchScript functions are counted, not
told, by uprobes); "memory" both columns; "stacks" Python stacks
against a program that knows its own; "shapes" the rows by shape; "modules" the calls of each nn.Module. "-": not
offered by that way (`--shapes` and `--modules` come by callback alone).

Not tried: free-threaded CPython (3.13t, 3.14t), which neither Debian nor PyPI has. gpuprof says of one that its
stacks cannot be walked: to walk them it would have to know the offsets of that build, and lines from
3.14t's copies of the code, of which each thread runs its own; and there is nothing to test it on.
Nor CPython 3.9, 3.10 and 3.12 as a suite of Debian has them: those here are pyenv's, 3.11 is
Debian 12's or pyenv's, 3.13 and 3.14 Debian's.

"""


def kept(case):
    return "%s/%s.json" % (BASE, case)


def write():
    """RESULTS.md of what is kept."""
    results = {}
    for case in CASES:
        if os.path.exists(kept(case)):
            with open(kept(case), encoding="utf-8") as file:
                results[case] = json.load(file)
    missing = [case for case in CASES if case not in results]
    lines, notes = table(results)
    with open(RESULTS, "w", encoding="utf-8") as file:
        file.write(INTRODUCTION + "\n".join(lines) + "\n\n")
        if notes:
            file.write("What is not equal:\n\n" + "\n".join(notes) + "\n\n")
        if missing:
            file.write("No result yet: %s.\n\n" % ", ".join(missing))
        file.write("## Probes\n\nIn all of PyTorch's libraries, as `--no-inject` plans them.\n\n")
        file.write("\n".join(probe_table(results)) + "\n")


def main():
    cases = sys.argv[1:] or CASES
    failed = 0
    os.makedirs(KEPT, exist_ok=True)
    if cases == ["--write"]:
        write()
        return 0
    for case in cases:
        if os.path.exists(kept(case)):
            os.unlink(kept(case))
        try:
            result = run(case)
        except (OSError, subprocess.SubprocessError) as error:
            failed += 1
            print("wheels %s: FAILED: %s" % (case, error), flush=True)
            continue
        with open(kept(case), "w", encoding="utf-8") as file:
            json.dump(result, file)
        failed += not is_good(result)
        print("wheels %s: %s" % (case, "equal" if is_good(result) else "NOT EQUAL"), flush=True)
        print("\n".join(table({case: result})[1]), flush=True)
    write()
    print("wheels: %d passed, %d failed, 0 skipped" % (len(cases) - failed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
