# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The stand-ins for CUDA in $(O)/fake and a program that uses them. They are part of the profiled
# process, so they are built plain and by one compiler, whatever SAN= and CC= say: whether the end of a function
# can be probed depends on its code. Also the reader of a recording's events for the tests.

FAKE := $(O)/fake
FAKE_CUDA := $(FAKE)/libcuda.so.1 $(FAKE)/libcudart.so.12 $(FAKE)/libcupti.so.12
FAKE_NCCL := $(FAKE)/libnccl.so.2
FAKE_NVTX := $(FAKE)/libnvToolsExt.so.1 $(FAKE)/libnvtx_client.so
FAKE_CC := gcc
FAKE_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden $(WARN) -Itests -Iuserspace
ALL_EXTRA += $(FAKE_CUDA) $(FAKE_NCCL) $(FAKE_NVTX) $(FAKE)/cuda_app $(O)/tests/fake/events

$(FAKE)/libcuda.so.1: tests/fake/fake_cuda.c tests/fake/fake_driver.c tests/fake/fake_gpu.h tests/fake/fake_runtime.h $(STAMP)
$(FAKE)/libcudart.so.12: tests/fake/fake_cudart.c tests/fake/fake_gpu.h tests/fake/fake_runtime.h $(FAKE)/libcuda.so.1
$(FAKE)/libcupti.so.12: tests/fake/fake_cupti.c tests/fake/fake_gpu.h \
	userspace/collector/cupti/cupti_abi.h $(FAKE)/libcuda.so.1

$(FAKE_CUDA): | setup-build
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(FAKE_CC) $(FAKE_CFLAGS) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' \
		$(filter %.c,$^) $(filter $(FAKE)/libcuda.so.1,$^) -lpthread -ldl -o $@

$(FAKE_NCCL): tests/fake/fake_nccl.c tests/fake/fake_gpu.h tests/fake/fake_runtime.h \
		$(FAKE)/libcudart.so.12 | setup-build
	$(call say,CC,$@)
	$(Q)$(FAKE_CC) $(FAKE_CFLAGS) -fno-optimize-sibling-calls -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' \
		$(filter %.c %.12,$^) -o $@

$(FAKE)/libnvToolsExt.so.1: tests/fake/fake_nvtx.c
$(FAKE)/libnvtx_client.so: tests/fake/nvtx_client.c
$(FAKE_NVTX): tests/fake/fake_gpu.h | setup-build
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(FAKE_CC) $(FAKE_CFLAGS) -shared -Wl,-soname,$(@F) $(filter %.c,$^) -lpthread -ldl -o $@

$(FAKE)/cuda_app: tests/fake/cuda_app.c tests/fake/fake_gpu.h tests/fake/fake_runtime.h \
		userspace/collector/cupti/cupti_abi.h $(FAKE)/libcudart.so.12 \
		$(FAKE)/libcuda.so.1 $(STAMP) | setup-build
	$(call say,CC,$@)
	$(Q)$(FAKE_CC) $(FAKE_CFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,--no-as-needed -rdynamic \
		$(filter %.c %.12 %.1,$^) -lpthread -ldl -o $@

$(O)/tests/fake/events: $(O)/tests/fake/events.o $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

-include $(O)/tests/fake/events.d
