#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# usage: bundle.sh GPUPROF BACKTRACE BESIDE OUT: puts gpuprof, its shared libraries, the library that
# says where a program has died, the program of beside.py, and the GPU checks into one folder.
# GPUPROF is linked so that it looks for its libraries in lib/ beside itself: no variable tells it,
# which what it starts would inherit.

set -eu

gpuprof=$1 backtrace=$2 beside=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)

rm -rf "$out"
mkdir -p "$out/lib"
cp "$gpuprof" "$out/gpuprof"
cp "$backtrace" "$beside" "$out/"
# The C library stays the machine's own (2.34 or newer).
ldd "$gpuprof" | awk '$3 ~ /^\// { print $3 }' |
	grep -Ev '/(libc|libm|libdl|libpthread|librt)\.so' | while read -r file; do
	cp -L "$file" "$out/lib/"
done
cp "$here/run.sh" "$here"/*.py "$out/"
chmod +x "$out/run.sh"
du -sh "$out"
