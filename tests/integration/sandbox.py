# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Containers for the tests, made of what a container is made of: namespaces, mounts, capabilities and
a seccomp filter, as Docker and Kubernetes set them up by default. There is no daemon in it.

As a program it is the last step into a container: it takes the rest of the rights away from itself
and becomes the command.
"""

import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

CAPABILITIES = ("CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE "
                "NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO "
                "SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG "
                "MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM "
                "BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE").split()

# What Docker leaves to a container's root.
DOCKER = ("CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE "
          "SYS_CHROOT KILL AUDIT_WRITE").split()

EPERM, ENOSYS = 1, 38

# Calls that Docker's default profile refuses on x86-64, by the capabilities with one of which it allows them; of those
# that nobody needs here some.
REFUSED = {
    "bpf": (321, EPERM, ("SYS_ADMIN", "BPF")),
    "perf_event_open": (298, EPERM, ("SYS_ADMIN", "PERFMON")),
    "clone3": (435, ENOSYS, ("SYS_ADMIN",)),
    "mount": (165, EPERM, ("SYS_ADMIN",)),
    "umount2": (166, EPERM, ("SYS_ADMIN",)),
    "unshare": (272, EPERM, ("SYS_ADMIN",)),
    "setns": (308, EPERM, ("SYS_ADMIN",)),
    "syslog": (103, EPERM, ("SYS_ADMIN", "SYSLOG")),
    "kcmp": (312, EPERM, ("SYS_PTRACE",)),
    "pidfd_getfd": (438, EPERM, ("SYS_PTRACE",)),
    "process_madvise": (440, EPERM, ("SYS_PTRACE",)),
    "open_by_handle_at": (304, EPERM, ("DAC_READ_SEARCH",)),
    "add_key": (248, EPERM, ()),
    "keyctl": (250, EPERM, ()),
    "userfaultfd": (323, EPERM, ()),
    "io_uring_setup": (425, EPERM, ()),
}
MEMFD_CREATE = 319

OUT = "/mnt"  # in a container: its folder outside

MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list")
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/sys")

ALLOW, ERRNO = 0x7fff0000, 0x00050000
LOAD_NR, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 24, 38, 22, 2
CAPABILITY_VERSION = 0x20080522


def docker_refuses(capabilities):
    """[(number, errno)]: what the default profile refuses with these capabilities."""
    return [(number, errno) for number, errno, by in REFUSED.values() if not set(by) & set(capabilities)]


def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _must(result, what):
    if result:
        raise OSError(ctypes.get_errno(), what)


def keep_capabilities(kept):
    """Takes all others from this process, and from what it will ever start."""
    libc, mask = _libc(), 0
    for number, name in enumerate(CAPABILITIES):
        if name in kept:
            mask |= 1 << number
        else:
            # What the machine itself lacks is not in the set any more.
            libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    old = ctypes.create_string_buffer(24)
    _must(libc.capget(header, old), "capget")
    have = struct.unpack("=6I", old.raw)
    low, high = mask & 0xffffffff, mask >> 32
    low, high = low & have[1], high & have[4]
    data = struct.pack("=6I", low, low, 0, high, high, 0)
    _must(libc.capset(header, data), "capset")


def refuse_calls(refused):
    """Installs a filter: each of these system calls ends with its errno."""
    code = [(LOAD_NR, 0, 0, 0)]
    for number, errno in refused:
        code += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | errno)]
    code.append((RETURN, 0, 0, ALLOW))
    filters = b"".join(struct.pack("=HBBI", *one) for one in code)
    kept = ctypes.create_string_buffer(filters, len(filters))
    program = struct.pack("@HP", len(code), ctypes.addressof(kept))
    libc = _libc()
    _must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _must(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(program), 0, 0), "seccomp")


def become(spec, argv):
    """The rest of the way: user, capabilities and filter, then the command."""
    if spec.get("capabilities") is not None:
        keep_capabilities(spec["capabilities"])
    if spec.get("user"):
        os.setgroups([])
        os.setgid(spec["user"])
        os.setuid(spec["user"])
    refused = spec.get("refused")
    if refused:
        refuse_calls([tuple(one) for one in refused])
    os.execvp(argv[0], argv)


def inside(capabilities=None, refused=(), user=0):
    """What comes before a command that is to run with these rights alone (None: all there are)."""
    spec = {"capabilities": capabilities, "refused": list(refused), "user": user}
    return [sys.executable, "-B", os.path.abspath(__file__), json.dumps(spec)]


def docker(capabilities=DOCKER):
    """The same for a container of Docker's with these capabilities."""
    return inside(list(capabilities), docker_refuses(capabilities))


# The first process of a container: makes the mounts, says so, and waits.
FIRST = """
set -e
mount --bind {out} {inside}
mount -t proc -o nosuid,nodev,noexec proc /proc
{more}
mount -t tmpfs -o nosuid,nodev,noexec,size=64m shm /dev/shm
for file in {masked}; do if test -e $file; then mount --bind /dev/null $file; fi; done
for folder in {read_only}; do
	if test -e $folder; then mount --rbind $folder $folder; mount -o remount,bind,ro $folder; fi
done
{last}
echo ready
exec sleep infinity
"""


class Container:
    """Namespaces with Docker's mounts, over this machine's own files. `more` and `last` are shell that is
    run before and after the mounts are made. With the number of a process as `pids` its PID namespace is
    shared; 0 stands for the machine's. `user`: it has a user namespace of its own. Its OUT is the folder
    `out` outside."""

    def __init__(self, more="", last="", pids=None, user=False):
        self.user = user
        self.out = tempfile.mkdtemp(prefix="gpuprof-container-", dir="/var/tmp")
        argv = ["unshare", "--mount", "--ipc", "--uts", "--propagation", "private"]
        if user:
            argv += ["--user", "--map-root-user"]
        if pids is None:
            argv += ["--pid", "--fork", "--kill-child"]
        elif pids:
            argv = ["nsenter", "--target", str(pids), "--pid", "--", *argv]
        script = FIRST.format(masked=" ".join(MASKED), read_only=" ".join(READ_ONLY), more=more, last=last,
                              out=self.out, inside=OUT)
        self._outer = subprocess.Popen([*argv, "sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
        if self._outer.stdout.readline() != b"ready\n":
            raise RuntimeError("the container could not be made: %s" % argv)
        self.pid = self._outer.pid if pids == 0 else self._last_child(self._outer.pid)

    @staticmethod
    def _last_child(pid):
        while True:
            with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
                children = file.read().split()
            if not children:
                return pid
            pid = int(children[0])

    def enter(self, *rights):
        """What comes before a command in it: rights is what docker() or inside() gave."""
        more = ["--user", "--preserve-credentials"] if self.user else []
        return ["nsenter", "--target", str(self.pid), *more, "--root", "--mount", "--pid", "--ipc", "--uts", "--", *rights]

    def close(self):
        for pid in {self.pid, self._outer.pid}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._outer.wait()
        self._outer.stdout.close()
        shutil.rmtree(self.out, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    become(json.loads(sys.argv[1]), sys.argv[2:])
