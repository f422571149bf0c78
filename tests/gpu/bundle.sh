#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# usage: bundle.sh BUILD OUT: puts gpuprof, its shared libraries and the GPU checks into one folder.

set -eu

build=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)

rm -rf "$out"
mkdir -p "$out/lib"
cp "$build/gpuprof" "$out/gpuprof.bin"
# The C library stays the machine's own.
ldd "$build/gpuprof" | awk '$3 ~ /^\// { print $3 }' |
	grep -Ev '/(libc|libm|libdl|libpthread|librt)\.so' | while read -r file; do
	cp -L "$file" "$out/lib/"
done
cat >"$out/gpuprof" <<'END'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
LD_LIBRARY_PATH=$here/lib exec "$here/gpuprof.bin" "$@"
END
cp "$here/run.sh" "$here/check.py" "$here/workload.py" "$out/"
chmod +x "$out/gpuprof" "$out/run.sh"
du -sh "$out"
