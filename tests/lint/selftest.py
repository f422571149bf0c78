# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each check must be able to fail: small trees with one fault each, and one without."""

import os
import tempfile

import documents
import headers
import layers
import links
import opens
import returns
import style
import words

SIGN = "/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n"


def header(guard, body=""):
    return "%s#ifndef %s\n#define %s\n%s\n#endif /* %s */\n" % (SIGN, guard, guard, body, guard)


# Things that documents.py compares.
LOSS = SIGN + 'int f(void *b)\n{\n\treturn add_loss(b, "%s", 1);\n}\n'
RECORDING = {
    "bpf/wire.h": header("GP_BPF_WIRE_H", "\nenum kind {\n\tGP_EV_A = 1, /* a */\n"
                         "\tGP_EV_B = 2, /* (never in a recording) */\n};\n"),
    "userspace/recording/format.h": header("GP_RECORDING_FORMAT_H",
                                           "\nenum format_type {\n\tFORMAT_A = 1,\n};\n"),
    "userspace/recording/FORMAT.md": "\n### Type 1: a\n| 1 `GP_EV_A` |\n",
    "userspace/timeline/read/y.c": LOSS % "lost",
    "userspace/share/man/gpuprof-losses.7": ".I lost\n",
}

GOOD = {
    "userspace/base/log.h": header("GP_BASE_LOG_H"),
    "userspace/inspect/elf/elf.h": header("GP_INSPECT_ELF_ELF_H", '\n#include "base/log.h"\n'),
    "userspace/probe/plan/plan.c": SIGN + '#include "inspect/elf/elf.h"\n#include "wire.h"\n',
    "userspace/main.c": SIGN + "/* a uretprobe in a comment */\n",
    "README.md": "See [it](userspace/recording/FORMAT.md#type-1-a).\n",
    **RECORDING,
}

# check, file, its content
FAULTS = (
    (layers, "userspace/inspect/elf/x.c", SIGN + '#include "probe/plan/plan.h"\n'),
    (layers, "userspace/base/x.c", SIGN + '#include "inspect/elf/elf.h"\n'),
    (layers, "userspace/timeline/read/x.c", SIGN + '#include "output/format/output.h"\n'),
    (layers, "userspace/inspect/elf/x.c", SIGN + "#include <bpf/libbpf.h>\n"),
    (layers, "userspace/collector/x.c", SIGN + '#include "base/log.h"\n'),
    (layers, "userspace/attic/x.c", SIGN),
    (layers, "userspace/cli/core/x.c", SIGN + '#include "cli/view/x.h"\n'),
    (layers, "userspace/cli/attic/x.c", SIGN),
    (layers, "userspace/main.c", SIGN + '#include "capture/capture.h"\n'),
    (headers, "userspace/base/x.h", header("GP_BASE_X_H", "size_t needs_a_header(void);")),
    (headers, "userspace/base/x.h", header("_X_H_")),
    (style, "userspace/base/x.c", SIGN + "int  f( void ){return 0 ;}\n"),
    (style, "userspace/base/x.c", "int a;\n"),
    (style, "userspace/base/x.c", SIGN + "int a;\n" * 700),
    (style, "tests/x.py", "# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\ndef f(:\n"),
    (style, "tests/x.sh", "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\nif\n"),
    (opens, "userspace/inject/x.c", SIGN + "int f(const char *path)\n{\n\treturn open(path, 0);\n}\n"),
    (opens, "userspace/probe/x.c", SIGN + "int f(struct l *l)\n{\n\treturn stat(l->open_path, 0);\n}\n"),
    (returns, "bpf/x.bpf.c", SIGN + 'SEC("uretprobe.multi")\n'),
    (returns, "userspace/probe/x.c", SIGN + "int f = BPF_F_UPROBE_MULTI_RETURN;\n"),
    (documents, "userspace/recording/FORMAT.md", "\n### Type 1: a\n| 1 `GP_EV_B` |\n"),
    (documents, "userspace/recording/FORMAT.md", "| 1 `GP_EV_A` |\n"),
    (documents, "userspace/timeline/read/x.c", LOSS % "found"),
    (links, "README.md", "See [this](userspace/absent.md).\n"),
    (links, "README.md", "See [this](userspace/recording/FORMAT.md#type-2-b).\n"),
    (links, "README.md", "\n" * 201),
    (links, "userspace/README.md", "See `base/absent.c`.\n"),
    (links, "userspace/README.md", "`absent()` does it.\n"),
    (words, "README.md", "See /" + "work/main for more.\n"),
    (words, "tests/x.sh", "curl http://deb.debian." + "org/\n"),
)


def put(root, tree):
    for name, content in tree.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)


def check(root):
    """Complaints about the checks themselves; root lends its clang-format rules."""
    bad = []
    rules = {}
    with open(os.path.join(root, ".clang-format"), encoding="utf-8") as file:
        rules[".clang-format"] = file.read()
    with tempfile.TemporaryDirectory() as folder:
        put(folder, {**GOOD, **rules})
        for module in (layers, headers, style, returns, words, documents, links):
            bad += ["%s finds a fault where none is: %s" % (module.__name__, line)
                    for line in module.check(folder)]
    for module, name, content in FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            put(folder, {**GOOD, **rules, name: content})
            if not module.check(folder):
                bad.append("%s misses a fault in %s: %r" % (module.__name__, name, content[-60:]))
    return bad
