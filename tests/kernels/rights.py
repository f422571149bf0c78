# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What gpuprof does where the kernel itself gives less rights: yama's scopes and lockdown, in guests.

usage: rights.py [--build DIR] [--rows FILE]    boots the guests; writes rows for tests/rights/RESULTS.md
       rights.py --inside LOCKDOWN              what a guest does
exit status: 0 as promised, 1 not
"""
import argparse
import os
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

import guest  # noqa: E402
import less_rights  # noqa: E402
import packages  # noqa: E402
from less_rights import Case, docker, in_docker  # noqa: E402

SUITE = "trixie"
LOCKDOWNS = ("integrity", "confidentiality")
NEEDS_PTRACE = r"ptrace_scope is %d and CAP_SYS_PTRACE is missing; .*--cap-add SYS_PTRACE .*\[SYS_PTRACE\]"
INSIDE = """
mount -t securityfs none /sys/kernel/security
cd {root}
export GPUPROF=/job/gpuprof
/usr/bin/python3 -B tests/kernels/rights.py --inside {lockdown} >/job/rows 2>/job/rights.err
"""


def at_scope(scope):
    """Cases of yama's scopes; each may only be raised to 3."""
    needs = NEEDS_PTRACE % scope
    if scope < 3:
        cases = [Case("yama %d, root" % scope, ("attach",)),
                 in_docker("yama %d, default capabilities" % scope, ("attach",), 1, needs),
                 Case("yama %d, CAP_SYS_PTRACE added" % scope, ("attach",), 0, less_rights.BARE, docker(),
                      docker(("SYS_PTRACE",)), {})]
        if scope == 1:
            cases.append(in_docker("yama 1, default capabilities", ("run",), 0, less_rights.BARE))
        return cases
    forbidden = "ptrace_scope is 3, which forbids it to everybody"
    return [Case("yama 3, root", ("attach",), 0, forbidden),
            in_docker("yama 3, default capabilities", ("attach",), 1, forbidden)]


def set_scope(scope):
    Path("/proc/sys/kernel/yama/ptrace_scope").write_text(str(scope), encoding="ascii")


LOCKED = {
    "integrity": [Case("lockdown integrity, root", ("attach",)),
                  Case("lockdown integrity, root", ("attach", "--no-inject")),
                  Case("lockdown integrity, root", ("attach", "--mode", "sample"))],
    "confidentiality": [Case("lockdown confidentiality, root", ("attach",), 0, "kernel lockdown .confidentiality."),
                        Case("lockdown confidentiality, root", ("attach", "--no-inject"), 1,
                             "kernel lockdown .confidentiality.*boot with lockdown=integrity"),
                        Case("lockdown confidentiality, root", ("attach", "--mode", "sample"), 1,
                             "kernel lockdown .confidentiality.*boot with lockdown=integrity")],
}


def inside(lockdown):
    said = Path("/sys/kernel/security/lockdown").read_text(encoding="ascii")
    assert "[%s]" % lockdown in said, said
    where = os.uname().release
    failed = False
    steps = [(None, LOCKED[lockdown])]
    if lockdown == "integrity":
        steps += [(scope, at_scope(scope)) for scope in (1, 2, 3)]
    for scope, cases in steps:
        if scope:
            set_scope(scope)
        failed |= less_rights.write_rows(cases, where)
    less_rights.harness.kill_all()
    less_rights.harness.close_inside()
    return failed


def boot(lockdown, build):
    kernel = guest.Kernel(packages.Suite(SUITE).kernel())
    job = build / "kernels/guests" / ("lockdown-" + lockdown)
    shutil.rmtree(job, ignore_errors=True)
    job.mkdir(parents=True)
    shutil.copy(build / "gpuprof", job)
    begin = time.monotonic()
    status = guest.run(kernel, job, INSIDE.format(root=ROOT, lockdown=lockdown),
                       parameters="lockdown=" + lockdown)
    print("rights: lockdown=%s: %.0f s, status %s" % (lockdown, time.monotonic() - begin, status), flush=True)
    rows = (job / "rows").read_text(encoding="utf-8") if (job / "rows").exists() else ""
    if status != 0:
        errors = job / "rights.err"
        print(errors.read_text(encoding="utf-8")[-4000:] if errors.exists() else guest.tail(job))
    return status == 0, rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inside")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("lockdowns", nargs="*", default=LOCKDOWNS)
    args = parser.parse_args()
    if args.inside:
        return inside(args.inside)
    done = [boot(lockdown, args.build.resolve()) for lockdown in args.lockdowns]
    text = "".join(rows for _, rows in done)
    print(text)
    if args.rows:
        args.rows.write_text(text, encoding="utf-8")
    passed = sum(good for good, _ in done)
    print("kernels: %d passed, %d failed" % (passed, len(done) - passed))
    return passed < len(done)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
