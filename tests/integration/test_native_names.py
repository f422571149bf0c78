# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Names of native and kernel frames: lines and inlined functions of a library that has debug
information, in itself or beside it; functions of one that has only what distributions leave in
stripped files; and what the kernel does for a program.
"""

import os
import subprocess

import pytest

import harness
from test_native_stacks import let_tables_come
from test_pprof import pprof

SOURCE = os.path.join(harness.TESTS, "unwind", "lines.c")
# Each library calls another operator, by which its stacks are known.
OPERATORS = {"whole": "sinh", "linked": "tanh", "mini": "tan", "bare": "cosh"}


def run(*argv, cwd):
    subprocess.run([str(word) for word in argv], check=True, cwd=cwd, timeout=harness.LIMIT)


def build(folder):
    """The same library four times."""
    for name in OPERATORS:
        os.mkdir(folder / name)
        run("gcc", "-g", "-O2", "-fPIC", "-shared", SOURCE, "-o", folder / name / "lib.so",
            cwd=folder)
    linked, mini = folder / "linked", folder / "mini"
    os.mkdir(linked / ".debug")
    run("objcopy", "--only-keep-debug", "lib.so", ".debug/lib.debug", cwd=linked)
    run("objcopy", "--strip-all", "--remove-section=.note.gnu.build-id",
        "--add-gnu-debuglink=.debug/lib.debug", "lib.so", cwd=linked)
    run("objcopy", "--only-keep-debug", "--strip-debug", "lib.so", "symbols", cwd=mini)
    run("xz", "symbols", cwd=mini)
    run("objcopy", "--strip-all", "--add-section=.gnu_debugdata=symbols.xz", "lib.so", cwd=mini)
    run("objcopy", "--strip-all", "lib.so", cwd=folder / "bare")


def line_of(words):
    with open(SOURCE, encoding="utf-8") as file:
        return 1 + [words in line for line in file].index(True)


@pytest.fixture(name="capture", scope="module")
def capture_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    path = str(folder / "names.gpuprof")
    build(folder)
    with harness.Target("plugins") as target:
        def call(name):
            target.command("stay %s/%s/lib.so entry %s" % (folder, name, OPERATORS[name]))

        def orders():
            let_tables_come(target, path)
            # At first to have their tables read.
            for _ in range(3):
                size = os.path.getsize(path)
                for name in OPERATORS:
                    call(name)
                harness.wait_until("more of the recording", lambda before=size:
                                   os.path.getsize(path) > before)

        done = harness.attach(target, path, "--no-inject", "--stack", "native", orders=orders)
        target.leave()
    assert done.status == harness.DONE, done.told
    return done.recording


def frames_of(recording, name):
    """The longest stack of the library's operator, innermost first."""
    stacks = [event["args"]["Call stack"].split(";")[::-1]
              for event in recording.chrome()["traceEvents"]
              if event["ph"] == "X" and event["name"] == "aten::" + OPERATORS[name]]
    assert stacks
    return max(stacks, key=len)


@pytest.mark.parametrize("name", ["whole", "linked"])
def test_lines(capture, name):
    frames = frames_of(capture, name)
    expected = ["%s(%d): %s" % (SOURCE, line_of("in " + function), function + suffix)
                for function, suffix in (("innermost", " (inlined)"), ("middle", " (inlined)"),
                                         ("hidden", ""), ("entry", ""))]
    at = frames.index(expected[0])
    assert frames[at:at + 4] == expected
    assert capture.losses()["lines"] == 0


def test_names_of_stripped_libraries(capture):
    frames = frames_of(capture, "mini")
    at = frames.index("lib.so: hidden")
    assert frames[at + 1] == "lib.so: entry"
    frames = frames_of(capture, "bare")
    at = frames.index("lib.so: entry")
    assert frames[at - 1].startswith("lib.so: 0x")


def test_outputs(capture, tmp_path):
    """One function in one frame where outputs are by function; lines where they are by line."""
    table = capture.table("--group-by", "stack:30")
    lines = [frame for row in table["rows"] if row["name"] == "aten::sinh"
             for frame in row["stack"]]
    assert "%s(%d): hidden" % (SOURCE, line_of("in hidden")) in lines
    folded, profile = tmp_path / "folded.txt", tmp_path / "profile.pb.gz"
    for form, path in (("stacks", folded), ("pprof", profile)):
        options = ["--metric", "calls"] if form == "stacks" else []
        assert harness.gpuprof("export", capture.path, "--format", form, *options, "-o",
                               path).status == harness.DONE
    text = folded.read_text()
    assert (";lib.so:_entry;lib.so:_hidden;lib.so:_middle_(inlined);lib.so:_innermost_(inlined);"
            in text)
    places = [line.split() for line in pprof(profile, "-raw").splitlines()]
    of = {function: "%s:%d" % (SOURCE, line_of("in " + function))
          for function in ("innermost", "middle", "hidden")}
    # One location: the first line has its number, address and mapping in front.
    first = [i for i, words in enumerate(places) if "innermost" in words[3:]]
    assert first
    for at in first:
        assert places[at][3:5] == ["innermost", of["innermost"]] or \
            places[at][4].startswith(of["innermost"])
        assert places[at + 1][0] == "middle" and places[at + 1][1].startswith(of["middle"])
        assert places[at + 2][0] == "hidden" and places[at + 2][1].startswith(of["hidden"])


def kernel_has_names():
    with open("/proc/kallsyms", encoding="ascii") as file:
        return any(int(line.split()[0], 16) for line in file)


def stacks_of(recording, metric, folder):
    """Each stack, innermost first, with its number."""
    path = folder / metric
    assert harness.gpuprof("export", recording.path, "--format", "stacks", "--metric", metric,
                           "-o", path).status == harness.DONE
    for line in path.read_text().splitlines():
        stack, number = line.rsplit(" ", 1)
        yield stack.split(";")[::-1], int(number)


@pytest.mark.versions
@pytest.mark.parametrize("by,seconds", [("timer", 0.5), ("tick", 2)])
def test_kernel_frames(tmp_path, by, seconds):
    path = str(tmp_path / "kernel.gpuprof")
    with harness.Target("in_kernel") as target:
        done = harness.attach(target, path, "--mode", "sample", "--hz", harness.SAMPLED_BY[by],
                              orders=lambda: target.command("spend %g" % seconds))
        target.leave()
    assert done.recording.table()["capture"]["sampled_by"] == by
    assert done.status == harness.DONE, done.told
    assert done.recording.losses()["kernel_stack"] == 0
    # A thread that has slept waits for Python's lock, too.
    names = (("readv",), ("fault", "map"), ("sleep", "futex"))
    if not kernel_has_names():
        names = (("[kernel]",),) * 3
    for metric, function, named in (("samples", ":_zeros", names[0]),
                                    ("samples", ":_touch", names[1]),
                                    ("off_cpu_time_total", ":_sleeps", names[2])):
        inside, wrong = 0, {}
        for frames, number in stacks_of(done.recording, metric, tmp_path):
            kernel = [frame for frame in frames if frame.endswith("_[k]")]
            # The kernel's frames come first, and nothing else is between them.
            assert kernel == frames[:len(kernel)], frames
            # What interrupts a thread to sample it is not where the thread was.
            assert not any("gp_sample_tick" in frame for frame in kernel), frames
            if not any(frame.endswith(function) for frame in frames) or not kernel:
                continue
            inside += number
            if not any(name in frame for frame in kernel for name in named):
                wrong[";".join(kernel)] = wrong.get(";".join(kernel), 0) + number
        assert inside > 0 and sum(wrong.values()) <= 0.1 * inside, (function, inside, wrong)
