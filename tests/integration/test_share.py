# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The manual pages, the completion in a real bash, and what `make install` leaves behind."""

import functools
import os
import re
import shutil
import subprocess

import pytest

from harness import DONE, GPUPROF, LIMIT, environment, gpuprof

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARE = os.path.join(ROOT, "userspace", "share")
MAN = os.path.join(SHARE, "man")
COMMANDS = ("attach", "run", "top", "table", "export", "merge", "ctl", "list", "doctor", "daemon")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def ran(*argv, **more):
    done = subprocess.run([str(arg) for arg in argv], stdin=subprocess.DEVNULL, timeout=LIMIT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          **more)
    assert done.returncode == 0, (argv, done)
    return done


@functools.lru_cache(maxsize=None)
def page_of(name):
    """A manual page as it is shown, without bold and underline."""
    env = dict(environment(), MANWIDTH="200", MAN_KEEP_FORMATTING="", LC_ALL="C.UTF-8",
               MANROFFOPT="-c", GROFF_NO_SGR="1", PAGER="cat", MANPAGER="cat")
    done = ran("man", "--warnings", "--no-hyphenation", "-l", os.path.join(MAN, name), env=env)
    assert done.stderr == "", done.stderr
    return re.sub(".\b", "", done.stdout)


def help_options(command):
    """(letter or None, name) of each option in --help-all."""
    done = gpuprof(command, "--help-all")
    assert done.status == DONE, done
    found = re.findall(r"^ +(?:-(\w), )?--([a-z-]+)", done.stdout, re.MULTILINE)
    assert ("h", "help") in found, done
    return found


def section_of(page, heading):
    part = re.search(r"^%s\n(.*?)(?=^\S)" % heading, page, re.MULTILINE | re.DOTALL)
    assert part, heading
    return part.group(1)


def test_every_page_is_found():
    """gpuprof(1) names every page, and there is no other."""
    pages = set(re.findall(r"gpuprof[a-z-]*\(\d\)", page_of("gpuprof.1")))
    pages.add("gpuprof(1)")
    assert pages == {"gpuprof(1)", "gpuprof-losses(7)"} | {"gpuprof-%s(1)" % one for one in COMMANDS}
    assert {"%s(%s)" % tuple(name.rsplit(".", 1)) for name in os.listdir(MAN)} == pages
    for name in os.listdir(MAN):
        assert set(re.findall(r"gpuprof[a-z-]*\(\d\)", page_of(name))) <= pages, name


@pytest.mark.parametrize("command", COMMANDS)
def test_manual_has_every_option(command):
    # The options that run and attach share are in the page of attach.
    section = section_of(page_of("gpuprof-%s.1" % ("attach" if command == "run" else command)), "OPTIONS")
    common = section_of(page_of("gpuprof.1"), "OPTIONS OF EVERY COMMAND")
    for letter, name in help_options(command):
        where = common if name in ("help", "help-all", "verbose") else section
        heading = ("-%s, " % letter if letter else "") + "--" + name
        assert re.search(r"^ +%s\b" % re.escape(heading), where, re.MULTILINE), heading


def test_manual_has_no_other_option():
    known = {"--version", "--unix-socket"}  # the latter is curl's
    for command in COMMANDS:
        known.update("--" + name for _, name in help_options(command))
    for name in os.listdir(MAN):
        assert set(OPTION.findall(page_of(name))) <= known, name


def test_manual_has_every_sort_key():
    done = gpuprof("table", "x", "--sort", "beauty")
    keys = re.search(r"choose one of ([a-z_, ]+);", done.stderr).group(1).split(", ")
    assert len(keys) > 5
    section = section_of(page_of("gpuprof-table.1"), "SORT KEYS")
    assert all(re.search(r"\b%s\b" % key, section) for key in keys)


# ---- completion ----

DRIVER = r"""
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
compgen_of=$(complete -p gpuprof) || exit 7
[[ $compgen_of == *"-F _gpuprof"* ]] || exit 8
_gpuprof "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}"
printf '%s\n' "${COMPREPLY[@]}"
"""


def completed(*words, cwd=None):
    """What bash would offer for the last of the words after `gpuprof`."""
    done = ran("bash", "--norc", "-c", DRIVER, "driver", os.path.join(SHARE, "gpuprof.bash"),
               GPUPROF, *words, cwd=cwd, env=environment())
    assert done.stderr == "", done.stderr
    return set(done.stdout.split("\n")) - {""}


def test_completes_subcommands():
    assert completed("") == {*COMMANDS, "help"}
    assert completed("t") == {"table", "top"}
    assert completed("--v") == {"--version"}
    assert completed("help", "ex") == {"export"}
    assert completed("conjure", "") == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_completes_every_option(command):
    assert completed(command, "--") == {"--" + name for _, name in help_options(command)}


def test_completes_values():
    keys = completed("table", "--sort", "")
    assert {"cpu_time_total", "count"} <= keys
    assert completed("table", "--sort", "cou") == {"count"}
    # As bash cuts "--sort=cou" into words.
    assert completed("table", "--sort", "=", "cou") == {"count"}
    assert completed("table", "--sort", "=") == keys
    assert completed("attach", "--sort", "") == keys
    assert completed("export", "x", "-f", "") == {
        "chrome", "perfetto", "memory", "memory-timeline", "snapshot", "stacks", "speedscope",
        "pprof", "flamegraph", "tensorboard", "lightning"}
    assert completed("table", "--time-unit", "") == {"s", "ms", "us"}
    assert completed("table", "--limit", "") == set()
    assert completed("ctl", "st") == {"status", "stop", "start"}
    assert completed("ctl", "stop", "") == set()


def test_completes_files(tmp_path):
    for name in ("one.gpuprof", "one two.gpuprof", "other"):
        (tmp_path / name).touch()
    assert completed("table", "one", cwd=tmp_path) == {"one.gpuprof", "one two.gpuprof"}
    assert completed("export", "", cwd=tmp_path) == {"one.gpuprof", "one two.gpuprof", "other"}
    assert completed("export", "other", "-o", "on", cwd=tmp_path) == {"one.gpuprof",
                                                                      "one two.gpuprof"}
    # There is one recording only: the next word can be nothing but an option.
    assert "--sort" in completed("table", "other", "", cwd=tmp_path)


def test_completes_what_is_run(tmp_path):
    (tmp_path / "script.py").touch()
    assert "bash" in completed("run", "-q", "--", "bas")
    assert "bash" in completed("run", "bas")
    assert completed("run", "--", "bash", "scr", cwd=tmp_path) == {"script.py"}
    assert completed("run", "bash", "--s", cwd=tmp_path) == set()


def test_completes_processes(idle):
    pid = str(idle.pid)
    assert pid in completed("attach", "--pid", "")
    assert pid in completed("attach", "-p", pid[:1])
    assert "1," + pid in completed("attach", "--pid", "1,")
    with subprocess.Popen(["sleep", "infinity"]) as other:
        try:
            assert str(other.pid) not in completed("doctor", "--pid", "")
        finally:
            other.kill()


# ---- make install ----

def test_install_and_uninstall(tmp_path):
    """A build folder of its own, with the binary under test in it: nothing is built."""
    build, top = tmp_path / "build", tmp_path / "root" / "opt" / "gp"
    build.mkdir()
    binary = shutil.copy(GPUPROF, build / "gpuprof")
    make = ("make", "-C", ROOT, "--no-print-directory", "O=%s" % build, "-o", binary,
            "DESTDIR=%s" % (tmp_path / "root"), "PREFIX=/opt/gp")
    ran(*make, "install", env=dict(os.environ, GPUPROF_NO_SETUP="1"))
    files = {str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}
    examples = {"share/doc/gpuprof/examples/" + name
                for name in os.listdir(os.path.join(SHARE, "examples"))}
    assert len(examples) > 4
    pages = {"share/man/man%s/%s" % (name[-1], name) for name in os.listdir(MAN)}
    docs = {"share/doc/gpuprof/" + name for name in os.listdir(os.path.join(SHARE, "doc"))}
    assert len(docs) > 4
    assert files == {"bin/gpuprof", "share/bash-completion/completions/gpuprof",
                     "lib/systemd/system/gpuprof.service"} | examples | pages | docs
    unit = (top / "lib/systemd/system/gpuprof.service").read_text()
    assert "\nExecStart=/opt/gp/bin/gpuprof daemon " in unit and "@BINDIR@" not in unit
    assert (top / "share/man/man1/gpuprof.1").stat().st_mode & 0o777 == 0o644
    assert ran(top / "bin" / "gpuprof", "--version").stdout.startswith("gpuprof ")
    ran(*make, "uninstall", env=dict(os.environ, GPUPROF_NO_SETUP="1"))
    assert not [path for path in top.rglob("*") if path.is_file()]


# ---- packages that a build needs ----

def test_make_installs_nothing(tmp_path):
    """Where no package is there, plain make says what installs them, and apt-get is not called."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, script in (("dpkg-query", "exit 1"), ("apt-get", "echo $* >> %s/called" % tmp_path)):
        (tools / name).write_text("#!/bin/sh\n%s\n" % script)
        (tools / name).chmod(0o755)
    env = dict(os.environ, PATH="%s:%s" % (tools, os.environ["PATH"]))
    env.pop("GPUPROF_NO_SETUP", None)
    for goals, words in ((("all",), "'make deps' installs them"), ((), "'make deps' installs them"),
                         (("dist",), "'make deps FOR=\"dist\"' installs them")):
        done = subprocess.run(["make", "-C", ROOT, "O=%s" % (tmp_path / "build"), *goals], env=env,
                              check=False, capture_output=True, text=True)
        assert done.returncode and words in done.stderr, done
        assert "libbpf-dev" in done.stderr and not (tmp_path / "called").exists(), done
    # What is there to install does.
    done = subprocess.run(["make", "-C", ROOT, "O=%s" % (tmp_path / "build"), "deps"], env=env,
                          check=False, capture_output=True, text=True)
    assert done.returncode == 0 and "libbpf-dev" in (tmp_path / "called").read_text(), done


# ---- the version ----

def version_of(tree, *args):
    return ran("sh", tree / "userspace/share/version.sh", *args).stdout.strip()


def test_version_is_the_tags(tmp_path):
    tree = tmp_path / "tree"
    share = tree / "userspace" / "share"
    share.mkdir(parents=True)
    for name in ("version", "version.sh"):
        shutil.copy(os.path.join(SHARE, name), share / name)
    shutil.copy(os.path.join(ROOT, ".gitattributes"), tree)
    release = (share / "version").read_text().split()[1]
    assert (version_of(tree), version_of(tree, "--time")) == (release, "1")

    def git(*args):
        env = dict(os.environ, GIT_COMMITTER_DATE="@1700000000 +0000", GIT_CONFIG_GLOBAL="/dev/null")
        return ran("git", "-C", tree, "-c", "user.name=x", "-c", "user.email=x@localhost", *args,
                   env=env).stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "HEAD")[:12]
    assert version_of(tree) == "%s+g%s" % (release, commit)
    assert version_of(tree, "--time") == "1700000000"
    git("tag", "v4.5.6")
    assert version_of(tree) == "4.5.6"
    (tree / "more").write_text("")
    assert version_of(tree) == "4.5.6"
    git("add", "more")
    assert version_of(tree) == "4.5.6+dirty"
    git("commit", "-qm", "two")
    commit = git("rev-parse", "HEAD")[:12]
    assert version_of(tree) == "4.5.6+1.g" + commit
    (tree / "more").write_text("changed")
    assert version_of(tree) == "4.5.6+1.g%s.dirty" % commit
    git("checkout", "-q", "more")

    # A tree that came as an archive, in somebody else's repository.
    outer = tmp_path / "outer"
    inner = outer / "inner"
    inner.mkdir(parents=True)
    ran("git", "-C", outer, "init", "-q")
    git("archive", "-o", str(tmp_path / "archive.tar"), "HEAD")
    ran("tar", "-C", inner, "-xf", tmp_path / "archive.tar")
    assert version_of(inner) == "4.5.6+1.g" + git("rev-parse", "--short=12", "HEAD")
    assert version_of(inner, "--time") == "1700000000"
