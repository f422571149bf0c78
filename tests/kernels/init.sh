#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first process of a guest (see guest.py): puts a writable layer over the machine's own root,
# runs /job/run in it and turns the guest off. What the job prints goes to /job/output, its exit
# status to /job/status.

/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

while read -r module; do
	insmod "/modules/$module" || echo "init: cannot load $module"
done </modules/order

mkdir -p /lower /layer /machine
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose machine /lower
mount -t tmpfs -o size=3g layer /layer
mkdir -p /layer/upper /layer/work
mount -t overlay -o lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work overlay /machine

mkdir -p /machine/job
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 job /machine/job
for kind in proc sysfs devtmpfs; do
	case $kind in
	proc) at=proc ;;
	sysfs) at=sys ;;
	devtmpfs) at=dev ;;
	esac
	mount -t $kind $kind /machine/$at
done
mkdir -p /machine/dev/shm /machine/dev/pts
mount -t devpts devpts /machine/dev/pts
for at in dev/shm tmp run; do
	mount -t tmpfs tmpfs /machine/$at
done
mount -t tracefs tracefs /machine/sys/kernel/tracing
mount -t bpf bpf /machine/sys/fs/bpf
ip link set lo up

env -i HOME=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	chroot /machine /bin/bash /job/run >/machine/job/output 2>&1
echo $? >/machine/job/status
sync
poweroff -f
