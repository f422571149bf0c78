# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A program with functions named like PyTorch's operators, for the tests of probe/. Never built with
# sanitizers: it stands for somebody else's program.

FAKE_CXXFLAGS := -std=c++17 -O2 -g -fno-inline -fno-optimize-sibling-calls -fPIC -Wall -Wextra
# As Debian builds PyTorch; and as wheels are built, where returns have to be single-stepped.
FAKE_FLAGS_debian := -fcf-protection=full -fstack-protector-strong
FAKE_FLAGS_wheel := -fcf-protection=none -fno-stack-protector

# As PyPI's wheels were up to PyTorch 2.6: with the C++ library's old strings too.
FAKE_FLAGS_oldwheel := $(FAKE_FLAGS_wheel) -D_GLIBCXX_USE_CXX11_ABI=0

unit-build: $(O)/fake/debian/ops $(O)/fake/wheel/ops $(O)/fake/oldwheel/ops

$(O)/fake/%/libfakeops.so: tests/fake/ops.cc tests/fake/ops.h tests/fake/ops.mk | setup-build
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)g++ $(FAKE_CXXFLAGS) $(FAKE_FLAGS_$*) -shared -Wl,--build-id=sha1 $< -o $@

$(O)/fake/%/ops: tests/fake/ops_main.cc tests/fake/ops.h $(O)/fake/%/libfakeops.so | setup-build
	$(call say,CXX,$@)
	$(Q)g++ $(FAKE_CXXFLAGS) $(FAKE_FLAGS_$*) $< -L$(@D) -lfakeops -Wl,-rpath,'$$ORIGIN' -ldl \
		-lpthread -o $@
