# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What runs on a machine with a GPU: gpuprof with every library it needs but the C library, and the
# checks. `make gpu-bundle`, copy build/gpu-bundle there, run gpu-bundle/run.sh.

.PHONY: gpu-bundle check-gpu
gpu-bundle: all
	$(Q)sh tests/gpu/bundle.sh $(O) $(O)/gpu-bundle

check-gpu: gpu-bundle
	$(Q)$(O)/gpu-bundle/run.sh $(O)/gpu-results
