#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# usage: run.sh [RESULTS]: on a machine with a GPU and PyTorch. Says what works there (BPF, uprobes,
# CUPTI), attaches to a CUDA program, and compares with torch.profiler. Leaves results.json and
# results.md in RESULTS (default: $OUT, else ./gpu-results). Status 0 only if every check passed.

here=$(cd "$(dirname "$0")" && pwd)
# From a checkout the bundle is elsewhere.
[ -x "$here/gpuprof" ] || here=$here/../../build/gpu-bundle
results=${1:-${OUT:-gpu-results}}
mkdir -p "$results"

{
	uname -a
	nvidia-smi -L 2>&1
	nvidia-smi --query-gpu=driver_version,name,memory.total --format=csv 2>&1
	"$here/gpuprof" --version 2>&1
	"$here/gpuprof" doctor 2>&1
	ls -l /sys/kernel/btf/vmlinux 2>&1
	cat /proc/sys/kernel/yama/ptrace_scope /proc/sys/kernel/perf_event_paranoid 2>&1
	id 2>&1
	grep -i -e capeff -e seccomp /proc/self/status
} >"$results/machine.txt" 2>&1
cat "$results/machine.txt"
exec "${PYTHON:-python3}" -B "$here/check.py" "$here/gpuprof" "$results"
