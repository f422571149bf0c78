# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Libraries that come, call an operator back, and go again, each at the address of the one before.
"""

import _ctypes
import ctypes

import protocol
import torch

X = torch.ones(4)
CALLBACK = ctypes.CFUNCTYPE(None)


class Plugins(protocol.Workload):
    def step(self):
        """Through what a library's call comes through, without one."""
        CALLBACK(lambda: torch.exp(X))()

    @staticmethod
    def through(what, path, name, operator):
        """Where the library's function lay."""
        library = ctypes.CDLL(path)
        function = library[name]
        function(CALLBACK(lambda: getattr(torch, operator)(X)))
        # As often as it was opened, where it has stayed.
        for _ in range({"stay": 0, "through": 1, "leave": 2}[what]):
            _ctypes.dlclose(library._handle)
        return ctypes.cast(function, ctypes.c_void_p).value

    def command(self, words):
        if words[0] in ("stay", "through", "leave") and len(words) == 4:
            return "at %x" % self.through(*words)
        return None


if __name__ == "__main__":
    protocol.main(Plugins)
