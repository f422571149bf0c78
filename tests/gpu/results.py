# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What was found, written anew after each check."""

import json
import os
import tarfile
import time

from programs import BEGIN

ARCHIVE_BYTES = 12 << 20


class Results:
    def __init__(self, folder, work):
        self.folder, self.work = folder, work
        self.has_uprobes = False
        self.facts = {"date": time.strftime("%Y-%m-%d")}
        self.checks = []

    def check(self, name, passed, found):
        """`passed` None: it could not be made."""
        passed = None if passed is None else bool(passed)
        self.checks.append({"check": name, "passed": passed, "found": found,
                            "at_s": round(time.monotonic() - BEGIN, 1)})
        print("%-6s %s: %s" % ({None: "-", True: "ok", False: "FAILED"}[passed], name, found),
              flush=True)
        self.write()

    def fact(self, name, value):
        self.facts[name] = value
        print("       %s: %s" % (name, value), flush=True)
        self.write()

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self):
        self.put("results.json", json.dumps({"facts": self.facts, "checks": self.checks}, indent=1))
        rows = ["- %s: %s\n" % pair for pair in self.facts.items()]
        rows.append("\n| check | passed | found |\n|---|---|---|\n")
        word = {None: "could not be made", True: "yes", False: "NO"}
        for one in self.checks:
            rows.append("| %s | %s | %s |\n" % (one["check"], word[one["passed"]],
                                               str(one["found"]).replace("|", "/")[:600]))
        self.put("results.md", "".join(rows))

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def archive(self):
        """Small files first, as far as there is room."""
        paths = sorted((os.path.join(self.work, name) for name in os.listdir(self.work)),
                       key=os.path.getsize)
        path, room = os.path.join(self.folder, "evidence.tar.gz"), 6 * ARCHIVE_BYTES
        with tarfile.open(path, "w:gz", compresslevel=6) as archive:
            for one in paths:
                room -= os.path.getsize(one)
                if room > 0:
                    archive.add(one, os.path.basename(one))
        if os.path.getsize(path) > ARCHIVE_BYTES:
            os.remove(path)

    def status(self):
        return 0 if self.checks and all(one["passed"] is not False for one in self.checks) else 1
