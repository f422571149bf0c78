# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes .gpuprof files from recording/FORMAT.md and bpf/wire.h alone: what gpuprof makes of such a
file tests the specification as well as the reader."""

import struct
import zlib

MAGIC = b"\x89gpuprof"
META, PROCESS, NAMES, EVENTS, LOSSES, WINDOW, END = range(1, 8)
OP, MEMORY, THREAD = 1, 2, 3
FREE, NO_OP = 1, 0


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<I", len(data)) + data


def head(kind, tid, time_ns, flags=0, process=0):
    return struct.pack("<BBHIQ", kind, flags, process, tid, time_ns)


class RecordingFile:
    """Gathers contents; save() puts them into chunks."""

    def __init__(self, mode="trace", memory="1"):
        self.meta = {"mode": mode, "memory": memory, "host": "testhost"}
        self.names = {}
        self.events = []
        self.losses = {"ring_full": 0}
        self.window = (1_000_000_000, 2_000_000_000, 1_700_000_000_000_000_000)
        self.pid = 4242

    def name_id(self, name, overload):
        return self.names.setdefault((name, overload), len(self.names) + 1)

    def op(self, name, start_us, end_us, instance, parent=0, tid=4242, overload=""):
        """One operator; times in microseconds after the start of the window."""
        begin = self.window[0]
        self.events.append(
            head(OP, tid, begin + end_us * 1000)
            + struct.pack("<QQQqQIIII", begin + start_us * 1000, instance, parent, -1, 0,
                          self.name_id(name, overload), 0, 0, 0))

    def memory_event(self, at_us, address, size, instance=NO_OP, tid=4242):
        """size > 0: an allocation, < 0: a free."""
        self.events.append(
            head(MEMORY, tid, self.window[0] + at_us * 1000, FREE if size < 0 else 0)
            + struct.pack("<QQqQQhhI", instance, address, size, 0, 0, 0, -1, 0))

    def chunks(self):
        """(type, payload) of each, in order."""
        yield META, b"".join(text(k) + text(v) for k, v in self.meta.items())
        yield PROCESS, (struct.pack("<IiiiQ", 0, self.pid, -1, -1, 12345) + text("python3")
                        + text("python3 train.py"))
        yield NAMES, b"".join(struct.pack("<I", number) + text(name) + text(overload)
                              for (name, overload), number in self.names.items())
        yield WINDOW, struct.pack("<QQQ", *self.window)
        if self.events:
            yield EVENTS, b"".join(struct.pack("<II", len(event), 1) + event
                                   for event in self.events)
        yield LOSSES, b"".join(struct.pack("<Q", n) + text(name)
                               for name, n in self.losses.items())
        yield END, struct.pack("<Q", len(self.events))

    def data(self):
        start = MAGIC + struct.pack("<III", 1, 1, 0)
        parts = [start, struct.pack("<I", zlib.crc32(start))]
        for index, (kind, payload) in enumerate(self.chunks()):
            frame = struct.pack("<IHHIII", 0x6b6e6863, kind, 0, len(payload), len(payload), index)
            parts += [frame, struct.pack("<I", zlib.crc32(payload, zlib.crc32(frame))), payload]
        return b"".join(parts)

    def save(self, path):
        with open(path, "wb") as file:
            file.write(self.data())
        return path
