#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The demonstration: a ResNet-18 training that knows nothing of gpuprof, and gpuprof attached to it
# for some seconds. usage: demo.sh OUTDIR (GPUPROF names the binary)

set -euo pipefail

out=$1
here=$(cd "$(dirname "$0")" && pwd)
PYTHON=${PYTHON:-/usr/bin/python3}
seconds=${DEMO_SECONDS:-5}
gpuprof=${GPUPROF#"$PWD"/}

mkdir -p "$out"
rm -f "$out"/resnet18.*
"$PYTHON" -B "$here/resnet18_train.py" --endless --batch 8 </dev/null >"$out/resnet18.log" 2>&1 &
target=$!
trap 'kill "$target" 2>/dev/null || true' EXIT

echo "A ResNet-18 training starts as process $target; it is an ordinary PyTorch script."
until grep -q '^ready' "$out/resnet18.log"; do
	kill -0 "$target" || { cat "$out/resnet18.log"; exit 1; }
	sleep 0.2
done

set -- attach --pid "$target" --duration "$seconds" --memory --limit 15 -o "$out/resnet18.gpuprof" \
	--trace "$out/resnet18.trace.json" --memory-timeline "$out/resnet18.memory.html"
echo "\$ sudo $gpuprof $*"
"$GPUPROF" "$@"
kill -0 "$target" && echo "The training goes on, undisturbed; this script ends it (process $target)."

cat <<END

Open:
  $out/resnet18.trace.json    in ui.perfetto.dev or speedscope.app
  $out/resnet18.memory.html   in any browser: memory over time

And from the recording, now or later:
  $gpuprof table --sort cpu_memory_usage --limit 10 $out/resnet18.gpuprof
  $gpuprof export $out/resnet18.gpuprof --format perfetto -o $out/resnet18.pftrace
  $gpuprof top $out/resnet18.gpuprof
END
