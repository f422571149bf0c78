# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make check-kernels`: the BPF programs, and gpuprof, on Debian's stock kernels; also under yama's
# scopes and lockdown.

KERNELS ?=

$(O)/tests/load_programs: $(O)/tests/kernels/load_programs.o $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

.PHONY: kernels-build setup-kernels check-kernels
kernels-build: $(O)/tests/load_programs

setup-kernels:
	$(Q)$(if $(GPUPROF_NO_SETUP),:,sh tests/setup.sh kernels)

check-kernels: setup-kernels all kernels-build
	$(Q)$(AS_ROOT) $(PYTHON) -B tests/kernels/check.py --build $(O) $(KERNELS)
	$(Q)$(AS_ROOT) $(PYTHON) -B tests/kernels/rights.py --build $(O)
