#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# usage: run.sh [RESULTS]: on a machine with a GPU and PyTorch. Says what works there (BPF, uprobes,
# CUPTI), attaches to CUDA programs, and compares with torch.profiler. It takes at most GPU_CHECK_S
# seconds (a whole number, default 520) and half a minute, the most telling checks first, each with a
# time of its own; what there was no time for is said. GPU_CHECK_ONLY: names of checks, comma
# between. RESULTS (default: $OUT, else ./gpu-results) gets results.json and results.md, written anew
# after every check, machine.txt, and at the end evidence.tar.gz: recordings, and what programs said.
# Status 0 only if every check that could be made passed.

here=$(cd "$(dirname "$0")" && pwd)
# From a checkout the bundle is elsewhere.
[ -x "$here/gpuprof" ] || here=$here/../../build/gpu-bundle
results=${1:-${OUT:-gpu-results}}
mkdir -p "$results"

{
	date -u
	uname -a
	timeout 20 nvidia-smi -L
	timeout 20 nvidia-smi --query-gpu=driver_version,name,memory.total --format=csv
	timeout 20 "$here/gpuprof" --version
	timeout 30 "$here/gpuprof" doctor
	ls -l /sys/kernel/btf/vmlinux /sys/kernel/tracing /sys/bus/event_source/devices
	cat /proc/sys/kernel/yama/ptrace_scope /proc/sys/kernel/perf_event_paranoid
	id
	grep -i -e capeff -e seccomp /proc/self/status
	cat /etc/os-release
	ldd --version | head -1
	ldd "$here/gpuprof"
} >"$results/machine.txt" 2>&1 </dev/null
cat "$results/machine.txt"
exec timeout -k 10 $((${GPU_CHECK_S:-520} + 20)) "${PYTHON:-python3}" -B -u "$here/check.py" \
	"$here/gpuprof" "$results"
