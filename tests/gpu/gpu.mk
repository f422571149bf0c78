# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What runs on a machine with a GPU: gpuprof with every library it needs but the C library, and the
# checks. `make gpu-bundle`, copy build/gpu-bundle there, run gpu-bundle/run.sh.

$(O)/gpu/gpuprof: $(GPUPROF_OBJ) $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -Wl,--disable-new-dtags '-Wl,-rpath,$$ORIGIN/lib' \
		$^ $(LIBS) -o $@

$(O)/gpu/backtrace.so: tests/gpu/backtrace.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -fPIC -shared $< -o $@

$(O)/gpu/beside: tests/gpu/beside.c userspace/collector/cupti/cupti_abi.h userspace/collector/cupti/cupti_api_filter.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -O2 -Wall -Wextra -Wno-unused-parameter -Werror -Iuserspace $< -ldl -lpthread -o $@

ALL_EXTRA += $(O)/gpu/beside

.PHONY: gpu-bundle check-gpu
gpu-bundle: $(O)/gpu/gpuprof $(O)/gpu/backtrace.so $(O)/gpu/beside
	$(Q)sh tests/gpu/bundle.sh $^ $(O)/gpu-bundle

check-gpu: gpu-bundle
	$(Q)$(O)/gpu-bundle/run.sh $(O)/gpu-results
