#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Prints the version of this tree: from the tag vX.Y.Z if the commit has one ("0.2.0"), else from the
# last tag and the number of commits since ("0.2.0+3.g1234567890ab"), else from the release in the
# file `version` and the commit ("0.1.0+g1234567890ab"). Uncommitted changes add "dirty". Without git,
# `version` holds what `git archive` wrote into it.
#
# usage: version.sh		the version
#        version.sh --time	the commit's time in seconds since 1970, for SOURCE_DATE_EPOCH;
#				1 if it is not known

set -u

LENGTH=12
here=$(cd "$(dirname "$0")" && pwd)

in_git()
{
	git -c safe.directory='*' -C "$here" "$@" 2>/dev/null
}

# Whether this tree is a git repository of its own, not only inside of one.
has_git()
{
	[ "$(in_git rev-parse --show-prefix)" = userspace/share/ ]
}

# A field of the file; empty if `git archive` has not filled it in.
field()
{
	sed -n "s/^$1 //p" "$here/version" | grep -v '^[$%]'
}

# v0.2.0-3-g1234 -> 0.2.0+3.g1234
from_tag()
{
	sed -E 's/^v//; s/-([0-9]+)-g([0-9a-f]+)/+\1.g\2/'
}

describe()
{
	if has_git; then
		tag=$(in_git describe --tags --match 'v[0-9]*' --abbrev=$LENGTH)
		commit=$(in_git rev-parse HEAD)
		changed=$(in_git status --porcelain --untracked-files=no)
	else
		tag=$(field tag)
		commit=$(field commit)
		changed=
	fi
	version=$(field release)
	if [ -n "$tag" ]; then
		version=$(echo "$tag" | from_tag)
	elif [ -n "$commit" ]; then
		version=$version+g$(echo "$commit" | cut -c 1-$LENGTH)
	fi
	case $version,${changed:+changed} in
	*+*,changed) version=$version.dirty ;;
	*,changed) version=$version+dirty ;;
	esac
	echo "$version"
}

commit_time()
{
	if has_git; then
		in_git log -1 --format=%ct
	else
		field time || echo 1
	fi
}

case ${1:-} in
--time) commit_time ;;
*) describe ;;
esac
