# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Loads PyTorch on command only: "load" imports it, "step N" then does ten additions N times."""

import json
import os
import sys


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main():
    torch = data = None
    say("ready " + json.dumps({"pid": os.getpid()}))
    for line in sys.stdin:
        words = line.split()
        if words == ["load"]:
            import torch

            data = torch.ones(8, 8)
            say("loaded " + torch.__version__)
        elif words[:1] == ["step"] and torch:
            for _ in range(10 * int(words[1])):
                torch.add(data, data)
            say("did " + words[1])
        else:
            break
    say("bye")


if __name__ == "__main__":
    main()
