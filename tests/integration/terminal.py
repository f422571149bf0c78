# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A terminal (a tmux of its own) in which gpuprof runs, read as a user reads it."""

import os
import shlex
import shutil
import subprocess
import tempfile

import harness

DONE_MARK = "ended with status"


class Terminal:
    """
    Runs `gpuprof ARGS...` in a window of this size, and afterwards says its status. `kind` is what
    the terminal is said to be (TERM).
    """

    def __init__(self, *args, columns=80, rows=24, kind=None, **env):
        self.folder = tempfile.mkdtemp(prefix="gpuprof-terminal-")
        self.socket = os.path.join(self.folder, "tmux")
        settings = dict(harness.environment(), **env)
        settings.pop("TMUX", None)
        words = " ".join(shlex.quote(str(word)) for word in (harness.GPUPROF, *args))
        if kind:
            words = "TERM=%s %s" % (shlex.quote(kind), words)
        script = ("stty -g > {0}/before; echo $$ > {0}/shell; {1} 2> {0}/stderr; status=$?; "
                  "stty -g > {0}/after; echo {2} $status; exec sleep 1000")
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "sh", "-c",
                   script.format(self.folder, words, DONE_MARK), env=settings)

    def _tmux(self, *args, env=None):
        done = subprocess.run(["tmux", "-u", "-S", self.socket, *map(str, args)], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=harness.LIMIT, env=env)
        assert done.returncode == 0, done
        return done.stdout

    def keys(self, *keys):
        self._tmux("send-keys", *keys)

    def resize(self, columns, rows):
        self._tmux("resize-window", "-x", columns, "-y", rows)

    def lines(self, *options):
        return self._tmux("capture-pane", "-p", *options).rstrip("\n").split("\n")

    def text(self, *options):
        return "\n".join(self.lines(*options))

    def wait(self, what, condition, meanwhile=lambda: None):
        """Until condition(lines); `meanwhile` is called again and again."""
        found = []

        def look():
            meanwhile()
            found[:] = self.lines()
            return condition(found)

        try:
            harness.wait_until(what, look)
        except harness.HarnessError as error:
            raise harness.HarnessError("%s\n%s\n%s" % (error, "\n".join(found), self.stderr()))
        return found

    def file(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def stderr(self):
        return self.file("stderr")

    def pid(self):
        """Of gpuprof, the shell's only child."""
        shell = int(self.file("shell"))
        with open("/proc/%d/task/%d/children" % (shell, shell), encoding="ascii") as file:
            return int(file.read())

    def status(self):
        """Of gpuprof once it has ended; the terminal is as it was before."""
        lines = self.wait("end of gpuprof", lambda seen: any(DONE_MARK in line for line in seen))
        assert self.file("before") == self.file("after")
        assert self._tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}") == "0 1\n"
        return int([line for line in lines if DONE_MARK in line][0].split()[-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False,
                       stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)
