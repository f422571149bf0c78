# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `make check`, `make check-matrix`, `make bench` and `make demo` run. Set-up first; the tests
# that attach need root.

AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo --preserve-env=GPUPROF,GPUPROF_ROOT_DIR,GPUPROF_MATRIX_DIR,GPUPROF_KERNELS_DIR,PYTHON)
PYTEST = $(AS_ROOT) env GPUPROF=$(abspath $(1))/gpuprof $(PYTHON) -B -m pytest -q \
	-p no:cacheprovider --durations=15 $(2) tests/integration
BENCH ?=

.PHONY: setup-check setup-matrix setup-bench setup-demo setup-check-dist
setup-check setup-matrix setup-bench setup-demo setup-check-dist: setup-%:
	$(Q)$(if $(GPUPROF_NO_SETUP),:,sh tests/setup.sh $*)

.PHONY: check
check: setup-check
	$(Q)$(MAKE) --no-print-directory check-lint
	$(Q)$(MAKE) --no-print-directory check-unit
	$(Q)$(MAKE) --no-print-directory check-fuzz
	$(Q)$(MAKE) --no-print-directory check-integration
	$(Q)$(MAKE) --no-print-directory check-page
	$(Q)$(MAKE) --no-print-directory check-san

.PHONY: check-lint check-style check-headers check-layers
check-lint: setup-check
	$(Q)$(PYTHON) -B tests/lint/run.py
check-style check-headers check-layers: check-%: setup-check
	$(Q)$(PYTHON) -B tests/lint/run.py $*

.PHONY: check-unit
check-unit: setup-check unit-build
	$(Q)$(AS_ROOT) sh tests/unit.sh $(UNIT_BIN)

.PHONY: check-integration
check-integration: setup-check all
	$(Q)$(call PYTEST,$(O),$(PYTEST_ARGS))

# The same code by the other compiler, with the sanitizers: all unit tests, some of the integration
# tests.
.PHONY: check-san
check-san: setup-check
	$(Q)$(MAKE) --no-print-directory O=$(O)/san SAN=address,undefined CC=$(CLANG) WERROR=1 \
		all check-unit
	$(Q)$(call PYTEST,$(O)/san,-m san)

.PHONY: check-matrix
check-matrix: setup-matrix all
	$(Q)$(AS_ROOT) env GPUPROF=$(abspath $(O))/gpuprof PYTHON=$(PYTHON) tests/matrix/run.sh

.PHONY: bench
bench: setup-bench all
	$(Q)$(AS_ROOT) env GPUPROF=$(abspath $(O))/gpuprof $(PYTHON) -B tests/bench/bench.py $(BENCH)
	$(Q)for part in sampling sampling_truth budget launches; do \
		$(AS_ROOT) env GPUPROF=$(abspath $(O))/gpuprof $(PYTHON) -B tests/bench/$$part.py \
			|| exit 1; done

# Nanoseconds per Python stack, per hit of each probe, and of gpuprof per operator; seconds to begin; operators' shares beside torch.profiler's; CPU time in a twin's; and many stacks, each
# compared with the truth.
.PHONY: bench-walk bench-hits bench-drain bench-setup bench-share bench-twins soak
bench-walk bench-hits bench-drain bench-setup bench-share bench-twins soak: setup-bench all
	$(Q)$(AS_ROOT) env GPUPROF=$(abspath $(O))/gpuprof $(PYTHON) -B \
		tests/bench/$(@:bench-%=%).py $(BENCH)

.PHONY: demo
demo: setup-demo setup-build $(O)/gpuprof
	$(Q)mkdir -p $(O)/demo
	$(Q)$(AS_ROOT) env GPUPROF=$(abspath $(O))/gpuprof PYTHON=$(PYTHON) \
		tests/workloads/demo.sh $(O)/demo
