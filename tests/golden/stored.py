# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What gpuprof makes of recordings that are stored here: NAME.gpuprof, and NAME.outputs.json.gz with what each command wrote, of
the version that made it. `stored.py --write GPUPROF [NAME...]` writes the outputs anew: for a text that was meant to change.
"""

import base64
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stored")
GROUPS = ("overload", "shape", "rank", "process", "stack:3", "module", "module-tree", "between", "line", "function", "thread", "activity")
# What is written for people to read is compared as all else is, but it may be meant to change.
TABLES = [["table", "--losses"], ["table", "--json", "--losses"], ["table", "--csv"], ["table", "--json", "--steps"], ["table", "--json", "--compensate"],
          ["table", "--distributed", "--json"]] + [["table", "--json", "--group-by", group] for group in GROUPS]
EXPORTS = [("chrome", "x.json"), ("perfetto", "x.pftrace"), ("memory", "x.json"), ("memory-timeline", "x.json"), ("snapshot", "x.pickle"),
           ("pprof", "x.pb"), ("speedscope", "x.json"), ("stacks", "x.txt"), ("lightning", "x.txt"), ("chrome", "--steps", "x.json"),
           ("stacks", "--metric", "calls", "x.txt")]


def recordings():
    return sorted(name[:-len(".gpuprof")] for name in os.listdir(FOLDER) if name.endswith(".gpuprof"))


def ran(gpuprof, argv, folder):
    done = subprocess.run([gpuprof, *argv], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": folder})
    return {"status": done.returncode, "stdout": done.stdout.decode("utf-8", "surrogateescape")}


def outputs(gpuprof, name):
    """Command -> its exit status and what it wrote: as text, or as base64 where it is none."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(os.path.join(FOLDER, name + ".gpuprof"), os.path.join(folder, "r"))
        for argv in TABLES:
            found[" ".join(argv)] = ran(gpuprof, [*argv, "r"], folder)
        for kind, *options, out in EXPORTS:
            argv = ["export", "r", "--format", kind, *options, "-o", out]
            one = found[" ".join(argv)] = ran(gpuprof, argv, folder)
            path = os.path.join(folder, out)
            if os.path.exists(path):
                with open(path, "rb") as file:
                    data = file.read()
                os.remove(path)
                try:
                    one["text"] = data.decode()
                except UnicodeDecodeError:
                    one["base64"] = base64.b64encode(data).decode()
    return found


def expected(name):
    with gzip.open(os.path.join(FOLDER, name + ".outputs.json.gz"), "rt", encoding="utf-8") as file:
        return json.load(file)


def write(gpuprof, name):
    data = json.dumps(outputs(gpuprof, name), indent=1, sort_keys=True).encode("utf-8", "surrogateescape")
    with open(os.path.join(FOLDER, name + ".outputs.json.gz"), "wb") as file:
        file.write(gzip.compress(data, 9, mtime=0))


if __name__ == "__main__":
    assert sys.argv[1] == "--write", __doc__
    for each in sys.argv[3:] or recordings():
        write(os.path.abspath(sys.argv[2]), each)
