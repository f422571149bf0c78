#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The version-dependent integration tests on each PyTorch of the matrix. GPUPROF names the binary,
# PYTHON the interpreter that runs pytest. A folder that cannot be made because the package registry
# is out of reach is a counted skip, told loudly; any other failure fails.

set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
PYTHON=${PYTHON:-/usr/bin/python3}
failed=0 skipped=0 passed=0

if [ "$(id -u)" != 0 ]; then
	exec sudo --preserve-env=GPUPROF,GPUPROF_MATRIX_DIR,PYTHON "$0" "$@"
fi

for suite in "${@:-trixie unstable}"; do
	for one in $suite; do
		root=$("$here/rootfs.sh" "$one")
		rc=$?
		if [ "$rc" = 3 ]; then
			echo "######## matrix: $one SKIPPED: the package registry cannot be reached ########"
			skipped=$((skipped + 1))
			continue
		elif [ "$rc" != 0 ]; then
			echo "matrix: $one: no folder (rootfs.sh: status $rc)"
			failed=$((failed + 1))
			continue
		fi
		echo "== matrix: $one, PyTorch $(cat "$root/etc/gpuprof-torch")"
		# Its own mount namespace: what is mounted below the folder goes with the tests.
		if GPUPROF_ROOT_DIR=$root unshare --mount --propagation private \
			"$PYTHON" -B -m pytest -q -p no:cacheprovider -m versions --durations=10 \
			"$here/../integration" </dev/null; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
done

echo "matrix: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
