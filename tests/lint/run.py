# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs every check on the repository, or the ones named; exit status 1 if one complains."""

import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import files  # noqa: E402

CHECKS = ("selftest", "layers", "circles", "headers", "style", "returns", "opens", "words", "documents", "links")


def main(names):
    failed = 0
    for name in names or CHECKS:
        complaints = importlib.import_module(name).check(files.ROOT)
        print("lint %-9s %s" % (name, "%d complaints" % len(complaints) if complaints else "ok"))
        for line in complaints:
            print("  " + line.rstrip().replace("\n", "\n  "))
        failed += bool(complaints)
    print("lint: %d passed, %d failed" % (len(names or CHECKS) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
