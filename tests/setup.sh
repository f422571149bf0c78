#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Installs the Debian packages that are missing for a purpose. Does nothing, quickly, if none is. With
# --check it only says which are missing and how to install them. GPUPROF_NO_SETUP=1 skips everything.
#
# usage: setup.sh [--check] [build|check|matrix|kernels|bench|demo|dist|check-dist]...
#	(build when none is named)

set -u

TRIES=3
BUILD="gcc make pkg-config clang llvm libc6-dev libbpf-dev bpftool libelf-dev libdw-dev
	libcapstone-dev libiberty-dev zlib1g-dev liblzma-dev libzstd-dev libncurses-dev libmicrohttpd-dev
	libsodium-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler"
TORCH="python3 python3-torch python3-torchvision python3-numpy"
CHECK="$TORCH g++ python3-pytest libcmocka-dev clang-format libclang-rt-14-dev gdb git man-db
	bash-completion util-linux procps chromium chromium-driver golang-go tmux prometheus
	python3-yaml python3-pip systemd linux-perf"
MATRIX="debootstrap debian-archive-keyring util-linux python3-pytest unzip"
KERNELS="qemu-system-x86 busybox-static cpio kmod debian-archive-keyring"

# For `make dist`, and for testing its packages.
DIST="libbz2-dev ncurses-bin binutils rpm"
TRY_DIST="python3-venv python3-pip tmux"

say()
{
	echo "setup: $*" >&2
}

packages_for()
{
	case $1 in
	build) echo "$BUILD" ;;
	check) echo "$BUILD $CHECK" ;;
	matrix) echo "$BUILD $CHECK $MATRIX" ;;
	kernels) echo "$BUILD $TORCH $KERNELS" ;;
	bench) echo "$BUILD $TORCH linux-perf" ;;
	demo) echo "$BUILD $TORCH" ;;
	dist) echo "$BUILD $DIST" ;;
	check-dist) echo "$BUILD $TORCH $MATRIX $DIST $TRY_DIST" ;;
	*)
		say "no such purpose: '$1' (build, check, matrix, kernels, bench, demo, dist or" \
			"check-dist)"
		return 2
		;;
	esac
}

# Node may be installed without its package.
tools()
{
	command -v node >/dev/null || echo nodejs
	command -v npm >/dev/null || echo npm
}

# bpftool is a virtual package in some releases, so the program itself counts, too.
missing()
{
	for package in "$@"; do
		case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
		*" installed") continue ;;
		esac
		if [ "$package" = bpftool ] && [ -x /usr/sbin/bpftool ]; then
			continue
		fi
		echo "$package"
	done
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

apt()
{
	as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y \
		-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -o APT::Install-Recommends=false "$@"
}

install()
{
	log=$(mktemp)
	try=1
	while ! { apt update && apt install "$@"; } >"$log" 2>&1; do
		if [ "$try" -ge "$TRIES" ]; then
			tail -n 25 "$log" >&2
			rm -f "$log"
			say "could not install: $*"
			return 1
		fi
		say "try $try of $TRIES failed, trying again"
		sleep $((try * 5))
		try=$((try + 1))
	done
	rm -f "$log"
}

main()
{
	if [ -n "${GPUPROF_NO_SETUP:-}" ]; then
		return 0
	fi
	only_check=
	if [ "${1:-}" = --check ]; then
		only_check=1
		shift
	fi
	wanted=
	for purpose in "${@:-build}"; do
		list=$(packages_for "$purpose") || return 2
		wanted="$wanted $list"
	done
	wanted="$wanted $(tools)"
	if ! command -v apt-get >/dev/null; then
		[ -z "$only_check" ] || return 0
		say "this is not a Debian system; these packages are needed, by Debian's names:" $wanted
		return 0
	fi
	# The lists are meant to be split into words.
	# shellcheck disable=SC2086
	absent=$(missing $wanted | sort -u)
	if [ -z "$absent" ]; then
		return 0
	fi
	if [ -n "$only_check" ]; then
		case "$*" in
		""|build) ask="make deps" ;;
		*) ask="make deps FOR=\"$*\"" ;;
		esac
		say "packages are missing; '$ask' installs them:" $absent
		return 1
	fi
	say "installing:" $absent
	# shellcheck disable=SC2086
	install $absent
}

main "$@"
