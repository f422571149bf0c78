# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which .c file uses which other one's functions, as far as text shows it."""

import re

import files

DEFINITION = re.compile(r"^(?!typedef\b|#)([A-Za-z_][\w \*\t\n]*?)\b(\w+)\((?:[^(){};]|\([^(){};]*\))*\)\s*\n\{", re.MULTILINE)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
NAME = re.compile(r"\b[A-Za-z_]\w+\b")


def text_of(root, name):
    return STRING.sub('""', files.without_comments(files.read(root, name)))


def program_of(name):
    """The collector is a program of its own: its names may be others' too."""
    return "collector" if name.startswith("userspace/collector/") else "gpuprof"


def graph(root):
    """File -> {file whose functions it uses: sorted names}, of the .c files below userspace/."""
    names = [name for name in files.c_files(root, (".c",)) if name.startswith("userspace/")]
    where, own, used = {}, {}, {}
    for name in names:
        text = text_of(root, name)
        used[name] = set(NAME.findall(text))
        own[name] = set()
        for before, function in DEFINITION.findall(text):
            own[name].add(function)
            if not re.match(r"\s*static\b", before):
                where.setdefault((program_of(name), function), []).append(name)
    edges = {name: {} for name in names}
    for (program, function), homes in where.items():
        for name in names:
            if len(homes) == 1 and function in used[name] - own[name] and program_of(name) == program:
                edges[name].setdefault(homes[0], []).append(function)
    return {name: {to: sorted(found) for to, found in to_all.items()} for name, to_all in edges.items()}


def circles(edges):
    """Groups of files that reach each other, each sorted; the largest first."""
    number, low, stack, found = {}, {}, [], []

    def visit(name):
        number[name] = low[name] = len(number)
        stack.append(name)
        for to in edges[name]:
            if to not in number:
                visit(to)
            if to in stack:
                low[name] = min(low[name], low[to])
        if low[name] == number[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in edges:
        if name not in number:
            visit(name)
    return sorted(found, key=lambda circle: (-len(circle), circle))
