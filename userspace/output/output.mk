# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The pages of the memory timeline and of the flame graphs: npm packages and sources become two lists
# of bytes each, that memory_html.c and flame_html.c include. They do not depend on flags, so every
# build folder shares them. And the messages of pprof and Perfetto, as protobuf-c makes them.

PAGE := build/page
PAGE_SRC := $(addprefix userspace/output/page/,package.json package-lock.json build.mjs build.sh) \
	$(wildcard userspace/output/page/src/*)

PAGE_INC := $(addprefix $(PAGE)/,memory_head.inc memory_tail.inc flame_head.inc flame_tail.inc)

$(PAGE_INC) &: $(PAGE_SRC) | setup-build
	$(call say,PAGE,$(PAGE))
	$(Q)sh userspace/output/page/build.sh $(PAGE)

PB := $(O)/profile.pb-c $(O)/perfetto.pb-c
PB_OBJ := $(addsuffix .o,$(PB))

define PROTO
$(O)/$(2).pb-c.c $(O)/$(2).pb-c.h: userspace/output/$(1)/$(2).proto | setup-build
	$$(call say,PROTO,$$<)
	$$(Q)protoc --proto_path=$$(<D) --c_out=$(O) $$<
endef
$(eval $(call PROTO,pprof,profile))
$(eval $(call PROTO,perfetto,perfetto))

$(PB_OBJ): %.o: %.c $(STAMP)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c $< -o $@

$(addprefix $(O)/,$(addprefix userspace/output/,pprof/pprof.o pprof/pprof_tables.o perfetto/perfetto_packet.o) \
	$(addprefix tests/unit/,test_output_stacks.o \
	test_output_perfetto.o test_output_perfetto_gpu.o perfetto_reading.o)): $(addsuffix .h,$(PB))
LIB_OBJ += $(PB_OBJ)
LIBS += -lprotobuf-c

PAGE_OBJ := $(addprefix $(O)/userspace/output/,memory/memory_html.o flame/flame_html.o)

$(PAGE_OBJ): $(PAGE_INC)
$(PAGE_OBJ): CPPFLAGS_ALL += -I$(PAGE)
