#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs the unit test programs named, shows what fails whole, and adds up their counts.

set -u

passed=0 failed=0 skipped=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

count()
{
	sed -n "s/^\[ *$1 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$out" | awk '{ n += $1 } END { print n + 0 }'
}

for program in "$@"; do
	"$program" >"$out" 2>&1
	rc=$?
	p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED)
	if [ "$rc" != 0 ]; then
		cat "$out"
		# A program that ends before it counts has failed once at least.
		[ "$f" -gt 0 ] || f=1
	fi
	echo "unit $(basename "$program"): status $rc, $p passed"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done

echo "unit: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
