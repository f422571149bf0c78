# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest: this machine's own files under another kernel, by QEMU's software emulation.

The root comes through 9p, read-only, under a layer in the guest's memory, so nothing that a job
writes reaches this machine but what it puts into /job.
"""
import gzip
import lzma
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
INIT = Path(__file__).with_name("init.sh")
MEMORY_MIB = 4096


class Kernel:
    """An unpacked kernel package: `folder` holds lib/modules/RELEASE and the image."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.modules = next(path for path in (self.folder / "usr/lib/modules",
                                              self.folder / "lib/modules") if path.is_dir())
        self.release = next(self.modules.iterdir()).name
        images = [self.modules / self.release / "vmlinuz", self.folder / f"boot/vmlinuz-{self.release}"]
        self.image = next(path for path in images if path.exists())

    def needed(self):
        """The module files in the order in which they must be loaded."""
        base = self.modules.parent.parent
        subprocess.run(["depmod", "-b", base, self.release], check=True)
        order = []
        for module in MODULES:
            shown = subprocess.run(["modprobe", "-d", base, "-S", self.release,
                                    "--show-depends", module], capture_output=True, text=True)
            for line in shown.stdout.splitlines():
                path = re.match(r"insmod (\S+)", line)
                if path and Path(path[1]) not in order:
                    order.append(Path(path[1]))
        return order


def _plain(path):
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    return gzip.decompress(data) if path.suffix == ".gz" else data


def initramfs(kernel, to):
    """Writes the guest's first files to `to`."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("bin", "proc", "sys", "dev", "modules"):
            (root / folder).mkdir()
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        (root / "bin/sh").symlink_to("busybox")
        shutil.copy(INIT, root / "init")
        (root / "init").chmod(0o755)
        order = []
        for module in kernel.needed():
            file = re.sub(r"\.(xz|gz|zst)$", "", module.name)
            (root / "modules" / file).write_bytes(_plain(module))
            order.append(file)
        (root / "modules/order").write_text("".join(f"{file}\n" for file in order))
        files = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
        packed = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=files,
                                capture_output=True, check=True).stdout
    Path(to).write_bytes(packed)


def run(kernel, job, script, cpus=2, patience_s=2400, parameters=""):
    """
    Runs the shell script in a guest with this kernel, which gets the parameters, with the folder `job`
    as its /job. Returns
    its exit status; None: the guest ended without one, or took longer than patience_s (what its
    kernel said is in job/console).
    """
    job = Path(job)
    job.mkdir(parents=True, exist_ok=True)
    for old in ("status", "output", "console"):
        (job / old).unlink(missing_ok=True)
    (job / "run").write_text(script)
    initramfs(kernel, job / "initramfs")
    share = "local,security_model=none,multidevs=remap"
    command = [
        "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
        "-smp", str(cpus), "-m", str(MEMORY_MIB), "-nodefaults", "-no-reboot", "-display", "none",
        "-serial", f"file:{job / 'console'}",
        "-kernel", str(kernel.image), "-initrd", str(job / "initramfs"),
        "-append", f"console=ttyS0 panic=-1 quiet mitigations=off nokaslr {parameters}",
        "-virtfs", f"{share},path=/,mount_tag=machine,readonly=on,id=machine",
        "-virtfs", f"{share},path={job},mount_tag=job,id=job",
        "-device", "virtio-rng-pci",
    ]
    try:
        subprocess.run(command, timeout=patience_s, check=False,
                       stdout=(job / "qemu").open("w"), stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return None
    finally:
        (job / "initramfs").unlink(missing_ok=True)
    status = job / "status"
    return int(status.read_text()) if status.exists() and status.read_text().strip() else None


def tail(job, lines=15):
    """The end of what a guest's job printed, and of what its kernel did."""
    text = []
    for name in ("output", "console", "qemu"):
        path = Path(job) / name
        if path.exists() and path.stat().st_size:
            text += [f"-- {name}"] + path.read_text(errors="replace").splitlines()[-lines:]
    return "\n".join(text)
