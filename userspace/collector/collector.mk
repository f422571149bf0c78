# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# libgpuprof-cupti.so, which runs inside traced processes: plain C that uses only old symbols of libc,
# and never sanitizers, whose runtime a process does not have. gpuprof embeds the file.

COLLECTOR_SRC := $(wildcard userspace/collector/*.c userspace/collector/*/*.c)
COLLECTOR_OBJ := $(COLLECTOR_SRC:userspace/collector/%.c=$(O)/collector/%.o)
COLLECTOR_CFLAGS := -std=gnu11 $(OPT) $(WARN) $(HARDEN) $(PREFIX_MAP) -fPIC -fvisibility=hidden -fno-exceptions
COLLECTOR_LDFLAGS := -shared $(if $(DEBUG),,-Wl,--strip-debug) -Wl,-soname,libgpuprof-cupti.so -Wl,-z,defs -Wl,-z,nodelete \
	-Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack -Wl,--hash-style=gnu -Wl,--no-undefined-version

ALL_EXTRA += $(O)/libgpuprof-cupti.so
LIB_OBJ += $(O)/collector_image.o

$(O)/collector/%.o: userspace/collector/%.c $(STAMP) | setup-build
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(COLLECTOR_CFLAGS) -MMD -MP -c $< -o $@

$(O)/libgpuprof-cupti.so: $(COLLECTOR_OBJ) userspace/collector/collector.mk
	$(call say,LINK,$@)
	$(Q)$(CC) $(COLLECTOR_LDFLAGS) $(COLLECTOR_OBJ) -lpthread -ldl -o $@

$(O)/collector_image.o: userspace/collector/collector_image.S $(O)/libgpuprof-cupti.so
	$(call say,AS,$<)
	$(Q)$(CC) -DCOLLECTOR_SO='"$(O)/libgpuprof-cupti.so"' -c $< -o $@

# Unit tests link both ends of the ring. For them the collector is built like everything else.
COLLECTOR_TESTED := $(patsubst %,$(O)/userspace/collector/%.o,runtime/ring_writer runtime/names \
	runtime/fork_guard runtime/libraries torch/async_ops python/modules python/python python/python_calls \
	python/python_modules python/stacks cupti/cupti_clock cupti/cupti_api_filter cupti/cupti_records)
$(O)/tests/test_collector_ring $(O)/tests/test_collector_hostile $(O)/tests/test_collector_gpu_hostile \
	$(O)/tests/test_collector_inputs_hostile $(O)/tests/test_collector_modules \
	$(O)/tests/test_collector_python \
	$(O)/tests/test_collector_stacks $(O)/tests/test_collector_stacks_hostile \
	$(O)/tests/test_collector_cupti_clock $(O)/tests/test_collector_cupti_api_filter \
	$(O)/tests/test_collector_cupti_records $(O)/tests/test_collector_libraries: $(COLLECTOR_TESTED)

# This test stands in for the Python library whose functions the collector looks up.
$(O)/tests/test_collector_stacks: LDFLAGS_ALL += -rdynamic

# The fuzz target of the ring needs both ends, too. tests/fuzz/fuzz.mk has the rule for the objects.
FUZZ_RING_OBJ := $(patsubst %,$(O)/fuzz/userspace/%.o,capture/collector/ring_reader \
	capture/collector/events capture/collector/tid_map collector/runtime/ring_writer)
$(O)/fuzz/fuzz_ring: $(O)/fuzz/tests/fuzz/fuzz_ring.o $(FUZZ_RING_OBJ) $(O)/fuzz/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined $^ $(LIBS) -o $@

# Reads a collector's ring for the integration tests.
ALL_EXTRA += $(O)/tests/collector_reader
$(O)/tests/collector_reader: $(O)/tests/fake/collector_reader.o $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

# Stand-ins for libtorch_cpu: a new one, and one from before PyTorch 1.12.
ALL_EXTRA += $(O)/tests/fake-torch-new/libtorch_cpu.so $(O)/tests/fake-torch-old/libtorch_cpu.so
$(O)/tests/fake-torch%/libtorch_cpu.so: tests/fake/torch.c $(STAMP) | setup-build
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -fPIC -shared \
		$(if $(filter -old,$*),-DFAKE_TORCH_OLD) -Wl,-soname,libtorch_cpu.so $< -o $@

# Another library that wraps libc10's functions.
ALL_EXTRA += $(O)/tests/reporter.so
$(O)/tests/reporter.so: tests/fake/reporter.c $(STAMP) | setup-build
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -fPIC -shared $< -ldl -o $@

# The walk as a library that any Python can load, and the program that gives it the layout.
ALL_EXTRA += $(O)/tests/python_walk.so $(O)/tests/python_layout
$(O)/tests/python_walk.so: userspace/collector/python/python.c $(STAMP) | setup-build
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(OPT) $(WARN) -fPIC -shared $< -o $@

$(O)/tests/python_layout: $(O)/tests/fake/python_layout.o $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

-include $(O)/tests/fake/python_layout.d
# NVIDIA's header, if it is installed, for the one test that uses it.
CUDA_HOME ?= /usr/local/cuda
$(O)/tests/unit/test_timeline_occupancy.o: CPPFLAGS_ALL += \
	$(if $(wildcard $(CUDA_HOME)/include/cuda_occupancy.h),-DHAVE_CUDA -isystem $(CUDA_HOME)/include)
