# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Figures of the tree below userspace/, for a look before and after a change: `python3 -B tests/lint/house.py`. What must hold is
checked elsewhere (circles.py, layers.py).
"""

import collections
import os
import re
import statistics

import calls
import files

FUNCTION = re.compile(r"^(?!typedef\b|struct \w+ \{|enum |union |#)[A-Za-z_][^;{}]*\)\s*\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def stems_of(names):
    """Folder -> stems of its files: a name up to its first underscore, so that x.c and x_part.c are one."""
    found = collections.defaultdict(set)
    for name in names:
        found[os.path.dirname(name)].add(os.path.basename(name).split(".")[0].split("_")[0])
    return found


def files_in(names):
    found = collections.defaultdict(int)
    for name in names:
        found[os.path.dirname(name)] += 1
    return found


def members_of(body):
    """Members of a struct, without those of structs within it."""
    while True:
        flat = re.sub(r"\{[^{}]*\}", "", body)
        if flat == body:
            break
        body = flat
    return sum(line.count(",") + 1 if "(" not in line else 1 for line in re.findall(r"[^;]*;", body))


def main():
    root = files.ROOT
    names = [name for name in files.c_files(root) if name.startswith("userspace/")]
    circles = calls.circles(calls.graph(root))
    lengths, structs = [], []
    for name in names:
        text = files.without_comments(files.read(root, name))
        lengths += [body.count("\n") for body in FUNCTION.findall(text)]
        structs += [(members_of(body), tag, name) for tag, body in STRUCT.findall(text)]
    homes = collections.defaultdict(set)
    for name in names:
        if name.endswith(".c"):
            homes[os.path.basename(name)].add(name)
    lengths.sort()
    print("files: %d .c and .h, %d lines" % (len(names), sum(files.read(root, name).count("\n") for name in names)))
    print("circles of calls between .c files: %d, files in them: %s" % (len(circles), ", ".join(str(len(one)) for one in circles) or "none"))
    print("files in a folder, most: %s" % ", ".join("%s %d" % (folder[10:], nr) for folder, nr in
                                                    sorted(files_in(names).items(), key=lambda one: -one[1])[:5]))
    print("stems in a folder, most: %s" % ", ".join("%s %d" % (folder[10:], len(stems)) for folder, stems in
                                                    sorted(stems_of(names).items(), key=lambda one: -len(one[1]))[:5]))
    print(".c files whose name another folder has too: %d" % sum(len(found) > 1 for found in homes.values()))
    print("functions: %d, median %d lines, p90 %d, longest %d" % (len(lengths), statistics.median(lengths),
                                                                 lengths[int(len(lengths) * 0.9)], lengths[-1]))
    print("structs with the most members: %s" % ", ".join("%s %d" % (tag, nr) for nr, tag, _ in sorted(structs, reverse=True)[:12]))


if __name__ == "__main__":
    main()
