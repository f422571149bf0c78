# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Reads what test_cli_nasty_names.c had written, as the programs do for which it is: JSON, CSV,
pickles, folded stacks, Prometheus' text. Says what is wrong, and ends with 1 then.

    read_back.py NAMES LIST

NAMES: a line "TEXT LINE IS_UTF8" for each name, the first two in hexadecimal digits. LIST: a line
"KIND PATH" for each file.
"""

import csv
import json
import pickle
import re
import sys

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
SAMPLE = re.compile(r'[a-zA-Z_:][\w:]*(\{[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
                    r'(,[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*")*\})? [-+.\deE]+(Inf|NaN)?$')


class Name:
    def __init__(self, line):
        text, shown, is_utf8 = line.split(" ")
        self.text = bytes.fromhex(text)
        self.line = bytes.fromhex(shown).decode()
        self.is_utf8 = is_utf8 == "1"

    def as_json(self):
        """As a reader of JSON gets it: what is UTF-8 as it was."""
        return self.text.decode() if self.is_utf8 else self.line


def strings(value):
    """All texts in an object of JSON or a pickle, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def read_json(path):
    def refuse(word):
        raise ValueError("the number %s" % word)

    with open(path, encoding="utf-8", newline="") as file:
        value = json.loads(file.read(), parse_constant=refuse)
    for text in strings(value):
        text.encode("utf-8")
    return value


def check_json(path, names):
    read_json(path)


def check_chrome(path, names):
    value = read_json(path)
    got = {event["name"] for event in value["traceEvents"]}
    lacks = [name for name in names if name.as_json() not in got]
    assert "-0." not in path or not lacks, lacks[0].text


def check_page(path, names):
    """The page shows what acts as '?', and all else as it is."""
    shown = set(strings(read_json(path)))
    bad = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")
    assert not [text for text in shown if bad.search(text)]
    if "-0." in path:
        whole = "\n".join(shown)
        assert not [name.line for name in names if name.line not in whole]


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    rows = list(csv.reader(text.splitlines(keepends=True), strict=True))
    assert text.endswith("\r\n") and len(rows) == text.count("\r\n")
    assert {len(row) for row in rows} == {len(rows[0])}
    return rows


def is_number(cell):
    return re.fullmatch(r"-?\d+(\.\d+)?", cell) is not None


def check_csv(path, names):
    rows = rows_of(path)
    texts = [i for i, title in enumerate(rows[0])
             if title in ("name", "overload", "device", "input_shapes", "stack")]
    for row in rows[1:]:
        for i, cell in enumerate(row):
            if i in texts:
                assert not cell.lstrip(" ").startswith(FORMULA), cell
            else:
                assert cell == "" or is_number(cell), cell


def check_csv_names(path, names):
    check_csv(path, names)
    got = {cell for row in rows_of(path) for cell in (row[0], row[0].removeprefix("'"))}
    lacks = [name.line for name in names if name.line not in got]
    assert not lacks, lacks[0]


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError("%s.%s" % (module, name))


def check_pickle(path, names):
    with open(path, "rb") as file:
        value = Plain(file).load()
        assert file.read() == b""
    got = set(strings(value))
    lacks = [name.line for name in names if name.line not in got]
    assert "-0." not in path or not lacks, lacks[0]
    for text in got:
        text.encode("utf-8")
        assert not re.search("[\0-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text), text


def check_folded(path, names):
    """As flamegraph.pl takes a line apart. A stack has three frames."""
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.read().split("\n")
    assert lines.pop() == "" and len(lines) >= len(names) // 2
    for line in lines:
        stack, number = line.rsplit(" ", 1)
        assert number.isdigit() and " " not in stack
        assert len(stack.split(";")) in (3, 4, 5), line


def check_metrics(path, names):
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.read().split("\n")
    assert lines.pop() == ""
    values = set()
    for line in lines:
        if line.startswith("#"):
            continue
        assert SAMPLE.match(line), line
        if line.startswith('nasty{name="'):
            value = line[len('nasty{name="'):].rsplit('"', 1)[0]
            values.add(re.sub(r"\\(.)", r"\1", value))
    lacks = [name.line for name in names if name.line not in values]
    assert not lacks, lacks[0]


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        names = [Name(line) for line in file.read().splitlines()]
    with open(sys.argv[2], encoding="utf-8") as file:
        todo = [line.split(" ", 1) for line in file.read().splitlines()]
    wrong = 0
    for kind, path in todo:
        try:
            globals()["check_" + kind.replace("-", "_")](path, names)
        except (AssertionError, ValueError, csv.Error, pickle.UnpicklingError) as error:
            print("%s (%s): %s: %.200r" % (path, kind, type(error).__name__, str(error)))
            wrong += 1
    return 1 if wrong or not todo else 0


if __name__ == "__main__":
    sys.exit(main())
