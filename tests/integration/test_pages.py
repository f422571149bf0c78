# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The examples of the pages, as they stand there. In a block marked `console` each line that begins with "$ " is a command, and all
blocks of a page are one session in a folder of its own. What needs a GPU, a container or hours is in blocks marked `text`.

An example names process 4242, which is a training here. --duration is cut to a second, so that the test is over in time; a command that
ends in "&" goes on beside the others until one of them ends it.
"""

import json
import os
import re
import shlex
import subprocess

import pytest

import harness
from harness import DONE, GPUPROF, LIMIT, WORKLOADS

DOC = os.path.join(harness.ROOT, "userspace", "share", "doc")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(name for name in os.listdir(DOC) if name.endswith(".md"))
# A program that examples start; and what its commands are called.
TRAIN = "import runpy, sys\nsys.path.insert(0, %r)\nsys.argv = ['train.py', '--steps', '2', '--batch', '2', '--size', '32']\n" \
    "runpy.run_path(%r, run_name='__main__')\n" % (WORKLOADS, os.path.join(WORKLOADS, "resnet18_train.py"))

# Options of other programs in the pages.
FOREIGN = {"--cap-add", "--custom", "--from-literal", "--image", "--overwrite", "--privileged", "--profile", "--rm", "--show-labels",
           "--strip-components", "--target", "--unix-socket"}


def text_of(name):
    with open(os.path.join(DOC, name), encoding="utf-8") as file:
        return file.read()


def commands_of(text):
    """The commands of a page's console blocks, in order."""
    return [line[2:] for kind, block in BLOCK.findall(text) if kind == "console"
            for line in block.split("\n") if line.startswith("$ ")]


def words_of(command, pid):
    """What is run for an example (the binary under test, our process, one second), and whether it goes on beside the others."""
    words = shlex.split(command)
    beside = words[-1] == "&"
    words = words[:-1] if beside else words
    words = words[1:] if words[0] == "sudo" else words
    assert words[0] == "gpuprof", command
    words = [GPUPROF, *(str(pid) if word == "4242" else word for word in words[1:])]
    if "--duration" in words:
        words[words.index("--duration") + 1] = "1"
    return [harness.PYTHON if word == "python3" else word for word in words], beside


@pytest.fixture(scope="module")
def training():
    child = harness.Child([harness.PYTHON, "-B", os.path.join(WORKLOADS, "resnet18_train.py"), "--endless", "--batch", "2",
                           "--size", "32"], "training")
    child.wait_line("stdout", lambda line: line.startswith("ready"))
    yield child
    child.kill()


def run(words, folder):
    return subprocess.run(words, cwd=folder, env=harness.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT, check=False)


@pytest.mark.parametrize("page", [name for name in PAGES if commands_of(text_of(name))])
def test_examples(page, training, tmp_path):
    """Each is done, and every file that one says it writes is there and not empty."""
    (tmp_path / "train.py").write_text(TRAIN)
    beside = []
    for command in commands_of(text_of(page)):
        words, goes_on = words_of(command, training.pid)
        if goes_on:
            beside.append(harness.Child(words, command, cwd=tmp_path))
            beside[-1].wait_line("stderr", lambda line: line.startswith("recording "))
            continue
        done = run(words, tmp_path)
        assert done.returncode == DONE, (command, done)
        if "-o" in words and words[words.index("-o") + 1] != "-":
            assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 0, command
        else:
            assert done.stdout or words[1] == "ctl", command
    for child in beside:
        assert child.wait() == DONE, child.told()


def test_pages_have_examples():
    """Nothing above is done where the blocks are marked otherwise by mistake."""
    assert len(commands_of(text_of("guide.md"))) > 30
    for page in PAGES:
        for kind, block in BLOCK.findall(text_of(page)):
            assert kind in ("console", "text"), (page, block)
            assert kind == "text" or all(line.startswith("$ ") for line in block.rstrip("\n").split("\n")), (page, block)


def test_pages_name_options_that_exist():
    """In README.md's tables and in the text of the pages as well."""
    known = {word for command in run([GPUPROF, "__complete", ""], None).stdout.split()
             for word in run([GPUPROF, "__complete", command, "--"], None).stdout.split()} | {"--version"}
    assert len(known) > 40
    with open(os.path.join(harness.ROOT, "README.md"), encoding="utf-8") as file:
        texts = {"README.md": file.read(), **{name: text_of(name) for name in PAGES}}
    for name, text in texts.items():
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) <= known | FOREIGN, name


def keys_of(value):
    """All keys of an object and of the objects in it."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield key
            yield from keys_of(below)
    elif isinstance(value, list):
        for below in value:
            yield from keys_of(below)


@pytest.mark.parametrize("options, table", [(("--memory", "--flops", "--modules"), ()), (("--stack", "python"), ("--group-by", "stack:2")),
                                            (("--mode", "sample"), ()), (("--overhead", "5"), ())])
def test_reference_has_every_key(options, table, training, tmp_path):
    """What table --json prints is in the reference, but for what other pages have: counters, costs, and the capture's own keys."""
    done = run([GPUPROF, "attach", "--pid", str(training.pid), "--duration", "1", "-o", "r.gpuprof", *options], tmp_path)
    assert done.returncode == DONE, done
    found = json.loads(run([GPUPROF, "table", "r.gpuprof", "--json", *table], tmp_path).stdout)
    for elsewhere in ("losses", "overhead", "capture"):
        assert found.pop(elsewhere)
    known = set(re.findall(r"`([a-z_]+)`", text_of("reference.md")))
    missing = {key for key in keys_of(found) if re.sub("_error_us$", "_us", key) not in known}
    assert not missing and len(set(keys_of(found))) > 10
