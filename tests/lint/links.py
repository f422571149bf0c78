# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Links in the pages lead to files and headings that are there, files and functions that the developers' pages name exist, and README.md
stays one page.
"""

import os
import re

import files

MOST_README_LINES = 200
# Pages that name files, by their path in the repository or below userspace/, and functions of C.
MAPS = ("userspace/README.md", ".github/CONTRIBUTING.md")
SOURCE = re.compile(r"`((?:[\w-]+/)+[\w-]+\.(?:c|h|bpf\.c|py|md|\d))`")
FUNCTION = re.compile(r"`(\w+)\(\)`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def prose(text):
    """Markdown without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    """The names that headings have as targets of links, as GitHub makes them."""
    for heading in re.findall(r"^#+ +(.*)$", prose(text), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]|\]\([^)]*\)", "", heading).lower())
        yield plain.replace(" ", "-")


def complaint(root, name, link, every):
    """What is wrong with one link, or None."""
    if re.match(r"[a-z]+:", link):
        return None
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
    if target not in every and not any(one.startswith(target + "/") for one in every):
        return "leads to no file"
    if anchor and (not target.endswith(".md") or anchor not in anchors(files.read(root, target))):
        return "leads to no heading"
    return None


def absent(root, name, text, every):
    """What a developers' page names and is not there."""
    for path in SOURCE.findall(text):
        if not {path, "userspace/" + path, "userspace/capture/" + path, "userspace/output/" + path} & every:
            yield "%s: no file '%s'" % (name, path)
    code = "\n".join(files.read(root, one) for one in every if one.endswith((".c", ".h")) and not one.startswith(("tests/", "vmlinux/")))
    for function in set(FUNCTION.findall(text)):
        if not re.search(r"^(?:#define |[a-z][^;={}]*\b)%s\(" % function, code, re.MULTILINE):
            yield "%s: no function '%s()'" % (name, function)


def check(root):
    """Complaints, each as text."""
    bad = []
    every = set(files.every(root))
    for name in sorted(every):
        if not name.endswith(".md"):
            continue
        text = files.read(root, name)
        for link in LINK.findall(prose(text)):
            why = complaint(root, name, link, every)
            if why:
                bad.append("%s: '%s' %s" % (name, link, why))
        if name in MAPS:
            bad += absent(root, name, text, every)
        if name == "README.md" and text.count("\n") > MOST_README_LINES:
            bad.append("%s: %d lines, more than %d" % (name, text.count("\n"), MOST_README_LINES))
    return bad
