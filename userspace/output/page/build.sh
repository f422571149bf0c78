#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Makes NAME_head.inc and NAME_tail.inc of each page in OUT, and installs packages there: nothing is ever written
# beside the sources. Several builds (plain, sanitizers) share one OUT, so a lock lets one work while
# the others wait, and what is already there for these very sources is kept.
#
# usage: build.sh OUT		packages and the pages
#        build.sh OUT PACKAGES	only the packages of the folder PACKAGES (its package-lock.json)

set -eu

here=$(dirname "$0")
out=$1
packages=${2:-$here}

say()
{
	echo "page: $*" >&2
}

need()
{
	command -v "$1" >/dev/null || {
		say "$1 is needed to build the pages and is not installed (Debian: nodejs, npm)"
		exit 1
	}
}

install_packages()
{
	want=$(cat "$packages/package.json" "$packages/package-lock.json" | sha256sum)
	if [ -e "$out/packages.sum" ] && [ "$want" = "$(cat "$out/packages.sum")" ]; then
		return 0
	fi
	rm -rf "$out/packages.sum" "$out/node_modules"
	cp "$packages/package.json" "$packages/package-lock.json" "$out/"
	# No script of a package runs: none is needed.
	if ! (cd "$out" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) \
		>"$out/npm.log" 2>&1; then
		tail -n 20 "$out/npm.log" >&2
		say "npm could not install the packages of $packages/package-lock.json (its words are" \
			"above); the build needs npm's registry once, see 'npm config get registry'"
		exit 1
	fi
	echo "$want" >"$out/packages.sum"
}

build_page()
{
	want=$(cat "$out/packages.sum" "$here/build.mjs" "$here"/src/* | sha256sum)
	if [ -e "$out/page.sum" ] && [ "$want" = "$(cat "$out/page.sum")" ]; then
		touch "$out"/*_head.inc "$out"/*_tail.inc
		return 0
	fi
	rm -rf "$out/page.sum" "$out/src"
	cp -R "$here/src" "$here/build.mjs" "$out/"
	(cd "$out" && node build.mjs)
	echo "$want" >"$out/page.sum"
}

need node
need npm
mkdir -p "$out"
exec 9>"$out/lock"
flock 9
install_packages
if [ $# -eq 1 ]; then
	build_page
fi
