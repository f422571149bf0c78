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

mkdir -p /lower /layer /root
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose machine /lower
mount -t tmpfs -o size=3g layer /layer
mkdir -p /layer/upper /layer/work
mount -t overlay -o lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work overlay /root

mkdir -p /root/job
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 job /root/job
for kind in proc sysfs devtmpfs; do
	case $kind in
	proc) at=proc ;;
	sysfs) at=sys ;;
	devtmpfs) at=dev ;;
	esac
	mount -t $kind $kind /root/$at
done
mkdir -p /root/dev/shm /root/dev/pts
mount -t devpts devpts /root/dev/pts
for at in dev/shm tmp run; do
	mount -t tmpfs tmpfs /root/$at
done
mount -t tracefs tracefs /root/sys/kernel/tracing
mount -t bpf bpf /root/sys/fs/bpf
ip link set lo up

env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	chroot /root /bin/bash /job/run >/root/job/output 2>&1
echo $? >/root/job/status
sync
poweroff -f
