#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A Debian folder with another PyTorch in it: bullseye (1.7, Python 3.9), bookworm (1.13, Python 3.11),
# trixie (2.6, Python 3.13) or unstable (2.14, Python 3.14). Made once by debootstrap and kept; the
# stamp file is written last, so that a folder without it is a half-made one and is made again.
#
# usage: rootfs.sh bullseye|bookworm|trixie|unstable...      makes what is missing, prints each folder
# exit status: 0 all there, 3 the package registry cannot be reached, 1 anything else

set -uo pipefail

readonly BASE=${GPUPROF_MATRIX_DIR:-/var/cache/gpuprof/matrix}
readonly STAMP=.gpuprof-complete
readonly RECIPE=1		# raise it when the set of packages changes
readonly PACKAGES="python3-torch python3-torchvision python3-numpy"
readonly TRIES=3
readonly APT_OPTIONS=(-q -y -o Acquire::Check-Valid-Until=false -o Acquire::Retries=3
	-o DPkg::Options::=--force-unsafe-io -o APT::Install-Recommends=false)

say()
{
	echo "matrix: $*" >&2
}

# The mirror is the one that this machine's own apt uses for its release.
mirror()
{
	local uri codename label own

	own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	while read -r uri codename label; do
		if [ "$label" = Debian ] && [ "$codename" = "$own" ]; then
			echo "${uri%/}"
			return 0
		fi
	done < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(LABEL)' \
		'Identifier: Packages' 2>/dev/null)

	# No index was fetched yet: read what apt is configured with.
	sed -n -E 's/^(URIs: *|deb +(\[[^]]*\] +)?)([a-z]+:[^ ]*\/debian)\/?( .*)?$/\3/p' \
		/etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1
}

retry()
{
	local try

	for try in $(seq "$TRIES"); do
		"$@" && return 0
		[ "$try" -lt "$TRIES" ] && sleep $((try * 5))
	done
	return 1
}

reachable()
{
	local suite=$1 uri=$2

	retry /usr/lib/apt/apt-helper -o Acquire::http::Timeout=30 download-file \
		"$uri/dists/$suite/Release" "$BASE/.$suite.release" >/dev/null 2>&1
}

unmount_all()
{
	local root=$1 dir

	for dir in proc sys dev/shm dev; do
		if mountpoint -q "$root/$dir"; then
			umount -l "$root/$dir"
		fi
	done
}

bootstrap()
{
	local suite=$1 root=$2 uri=$3 log=$4

	debootstrap --variant=minbase --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
		"$suite" "$root" "$uri" >>"$log" 2>&1 || return 1
	cat >"$root/etc/dpkg/dpkg.cfg.d/small" <<-END
		path-exclude=/usr/share/doc/*
		path-exclude=/usr/share/man/*
		path-exclude=/usr/share/locale/*
	END
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
}

install_torch()
{
	local root=$1 log=$2

	mount -t proc proc "$root/proc" || return 1
	retry env DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root" \
		apt-get "${APT_OPTIONS[@]}" update >>"$log" 2>&1 &&
	retry env DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root" \
		apt-get "${APT_OPTIONS[@]}" install $PACKAGES >>"$log" 2>&1 &&
	chroot "$root" apt-get clean &&
	rm -rf "$root"/var/lib/apt/lists/* &&
	chroot "$root" /usr/bin/python3 -B -c 'import numpy, torch, torchvision
print(torch.__version__)' >"$root/etc/gpuprof-torch" 2>>"$log"
}

make_one()
{
	local suite=$1 root=$BASE/$1 log=$BASE/$1.log uri=$2 rc=0

	say "making $root (minutes, once; log in $log)"
	unmount_all "$root"
	rm -rf --one-file-system "$root"
	: >"$log"
	mkdir -p "$root"
	bootstrap "$suite" "$root" "$uri" "$log" && install_torch "$root" "$log" || rc=1
	unmount_all "$root"
	if [ "$rc" != 0 ]; then
		say "making $root failed; the log's end:"
		tail -n 25 "$log" >&2
		return 1
	fi
	echo "$RECIPE" >"$root/$STAMP"
	say "$root has PyTorch $(cat "$root/etc/gpuprof-torch")"
}

complete()
{
	[ "$(cat "$BASE/$1/$STAMP" 2>/dev/null)" = "$RECIPE" ]
}

one()
{
	local suite=$1 uri

	case $suite in
	bullseye|bookworm|trixie|unstable) ;;
	*)
		say "no such suite: '$suite' (bullseye, bookworm, trixie or unstable)"
		return 2
		;;
	esac

	# One maker at a time; a second one waits and then finds the folder complete.
	exec 9>"$BASE/.$suite.lock"
	flock 9
	if complete "$suite"; then
		echo "$BASE/$suite"
		return 0
	fi
	uri=$(mirror)
	if [ -z "$uri" ]; then
		say "apt on this machine names no Debian mirror"
		return 3
	fi
	if ! reachable "$suite" "$uri"; then
		say "PACKAGE REGISTRY NOT REACHED: no $suite folder can be made"
		return 3
	fi
	make_one "$suite" "$uri" || return 1
	echo "$BASE/$suite"
}

main()
{
	local suite rc status=0

	if [ "$(id -u)" != 0 ]; then
		exec sudo --preserve-env=GPUPROF_MATRIX_DIR "$0" "$@"
	fi
	if [ $# = 0 ]; then
		say "usage: rootfs.sh bullseye|bookworm|trixie|unstable..."
		exit 2
	fi
	mkdir -p "$BASE"
	for suite in "$@"; do
		(one "$suite")
		rc=$?
		[ "$rc" = 0 ] || status=$rc
	done
	exit "$status"
}

main "$@"
