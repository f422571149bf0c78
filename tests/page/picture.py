# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Makes the picture of README.md from real output: a ResNet-18 training starts, gpuprof records it on a terminal of COLUMNS
columns, and what it prints becomes an SVG. usage: picture.py OUT.svg (as root; GPUPROF names the binary)
"""

import contextlib
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
import xml.sax.saxutils

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPUPROF = os.environ.get("GPUPROF", os.path.join(ROOT, "build", "gpuprof"))
WORKLOADS = os.path.join(ROOT, "tests", "workloads")
COLUMNS, ROWS = 94, 50
# What is shown, as it is typed; PID is the training's.
COMMANDS = ("gpuprof attach --pid PID --duration 5 --memory --limit 10",)
CHAR, LINE, EDGE = 8.4, 19, 20
STYLE = """
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328; white-space: pre; }
.typed { font-weight: 600; fill: #0550ae; }
.head { font-weight: 600; }
.note { fill: #59636e; }
"""


@contextlib.contextmanager
def training():
    with subprocess.Popen(["python3", "resnet18_train.py", "--endless", "--batch", "8"], cwd=WORKLOADS,
                          executable="/usr/bin/python3", env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            while not process.stdout.readline().startswith("ready"):
                if process.poll() is not None:
                    sys.exit("picture: the training did not start")
            yield process.pid
        finally:
            process.kill()


def printed(words, folder):
    """Lines of a command's stdout, a terminal; its recording stays in the folder."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL, cwd=folder,
                          env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1")) as process:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the terminal's end is an error
            while data := os.read(ours, 65536):
                text += data
        os.close(ours)
        if process.wait():
            sys.exit("picture: status %d of %s" % (process.returncode, " ".join(words)))
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode()).replace("\r", "").rstrip("\n").split("\n")


def kind_of(line):
    if line.startswith("$ "):
        return "typed"
    if re.match(r"Name +Self", line.strip()):
        return "head"
    return "note" if " shows all)" in line else ""


def svg(lines):
    width, height = 2 * EDGE + COLUMNS * CHAR, 2 * EDGE + len(lines) * LINE
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">' % (width, height, width, height),
           "<style>%s</style>" % STYLE,
           '<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="#ffffff" stroke="#d1d9e0"/>' % (width - 1, height - 1)]
    for number, line in enumerate(lines):
        if line.strip():
            out.append('<text class="%s" x="%d" y="%d" textLength="%.1f" xml:space="preserve">%s</text>' %
                       (kind_of(line), EDGE, EDGE + number * LINE + 14, len(line) * CHAR, xml.sax.saxutils.escape(line)))
    return "\n".join(out + ["</svg>", ""])


def main(path):
    lines = []
    with training() as pid, tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            words = command.replace("PID", str(pid)).split()
            lines += ["$ sudo " + " ".join(words)]
            lines += [line.rstrip()[:COLUMNS] for line in printed([os.path.abspath(GPUPROF), *words[1:]], folder)] + [""]
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg(lines[:-1]))


if __name__ == "__main__":
    main(sys.argv[1])
