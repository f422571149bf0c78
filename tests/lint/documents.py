# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What recordings hold is documented: each kind of event and type of chunk in FORMAT.md, each counter
in gpuprof-losses(7).
"""

import re

import files

WIRE, FORMAT_H = "bpf/wire.h", "userspace/recording/format.h"
FORMAT, MANUAL = "userspace/recording/FORMAT.md", "userspace/share/man/gpuprof-losses.7"
KIND = re.compile(r"\b(GP_EV_\w+) = (\d+),\s*/\*(.*?)\*/", re.DOTALL)
TYPE = re.compile(r"\bFORMAT_\w+ = (\d+)")
TABLE = re.compile(r"\b(?:recording_loss_name|build_counter_name)\([^;]*?\)\n\{(.*?)\n\}", re.DOTALL)
COUNTER = re.compile(r'\badd_loss\(b, "(\w+)"|\brecording_writer__loss\([^;"]*"(\w+)"|'
                     r'\.counter = "(\w+)"')


def kinds(wire):
    """Kinds of events that a recording may hold: name and number."""
    for name, number, about in KIND.findall(wire):
        if "never in a" not in about:
            yield name, number


def counters(root):
    """Names of counters, as recordings and outputs have them."""
    for name in files.c_files(root, (".c",)):
        if name.startswith("userspace/"):
            text = files.read(root, name)
            yield from ("".join(found) for found in COUNTER.findall(text))
            for table in TABLE.findall(text):
                yield from re.findall(r'\] = "(\w+)"', table)


def check(root):
    """Complaints, each as text."""
    every = files.every(root)
    bad = []
    if FORMAT in every:
        text = files.read(root, FORMAT)
        bad += ["%s: no row '| %s `%s` |'" % (FORMAT, number, name)
                for name, number in kinds(files.read(root, WIRE))
                if "| %s `%s` |" % (number, name) not in text]
        types = re.search(r"enum format_type \{(.*?)\}", files.read(root, FORMAT_H), re.DOTALL)
        bad += ["%s: no heading '### Type %s: ...'" % (FORMAT, number)
                for number in TYPE.findall(types.group(1))
                if "\n### Type %s: " % number not in text]
    if MANUAL in every:
        text = files.read(root, MANUAL)
        bad += ["%s: does not explain the counter '%s'" % (MANUAL, name)
                for name in sorted(set(counters(root)))
                if not re.search(r"^\.R?I.*\b%s\b" % name, text, re.MULTILINE)]
    return bad
