# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make dist`: a static gpuprof, which runs on any x86-64 Linux, and its packages, in $(O)/dist. The
# build is reproducible: the same commit, packages and compiler give the same bytes.

DIST := $(O)/dist
STATIC := $(O)/static
# The times in the packages: that of the commit, unless SOURCE_DATE_EPOCH is set.
DIST_TIME = $(or $(SOURCE_DATE_EPOCH),$(shell sh userspace/share/version.sh --time))

# Warnings are errors: they say that a library would be loaded at run time, which may not fit.
STATIC_LDFLAGS := -static-pie -Wl,--fatal-warnings $(filter-out -pie,$(LDFLAGS_ALL))

.PHONY: setup-dist
setup-dist:
	$(if $(filter x86_64,$(ARCH)),,$(error the packages are for x86-64, and this machine is $(ARCH)))
	$(Q)$(call setup,dist)

$(STATIC)/absent.o: userspace/share/dist/absent.c $(STAMP) | setup-dist
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c $< -o $@

# The functions of gnutls that libmicrohttpd refers to.
$(STATIC)/absent.ld: userspace/share/dist.mk | setup-dist
	$(Q)mkdir -p $(@D)
	$(Q)nm -u $$($(CC) -print-file-name=libmicrohttpd.a) 2>/dev/null | \
		sed -n 's/^ *U \(gnutls_.*\)/PROVIDE(\1 = absent_tls);/p' | sort -u > $@

$(STATIC)/gpuprof: $(GPUPROF_OBJ) $(STATIC)/absent.o $(O)/libgpuprof.a $(STATIC)/absent.ld
	$(call say,LINK,$@)
	$(Q)$(CC) $(STATIC_LDFLAGS) $^ $(LIBS) -lbz2 -o $@

# The stripped executable. Its debug information lies beside it, where gdb and perf find it by name.
$(DIST)/gpuprof: $(STATIC)/gpuprof
	$(call say,STRIP,$@)
	$(Q)rm -rf $(DIST)
	$(Q)mkdir -p $(DIST)
	$(Q)objcopy --only-keep-debug --compress-debug-sections $< $(DIST)/gpuprof.debug
	$(Q)chmod 644 $(DIST)/gpuprof.debug
	$(Q)cd $(DIST) && objcopy --strip-all --add-gnu-debuglink=gpuprof.debug $(abspath $<) gpuprof

.PHONY: dist-exe dist
dist-exe: $(DIST)/gpuprof

dist: setup-dist dist-exe
	$(call say,PACK,$(DIST))
	$(Q)rm -rf $(STATIC)/tree $(STATIC)/usr
	$(Q)for prefix in usr:/usr tree:/usr/local; do \
		$(MAKE) --no-print-directory -s install DESTDIR=$(STATIC)/$${prefix%:*} \
			PREFIX=$${prefix#*:} INSTALLED=$(DIST)/gpuprof GPUPROF_NO_SETUP=1 || exit 1; done
	$(Q)$(PYTHON) -B userspace/share/dist/pack.py --version $(VERSION) --time $(DIST_TIME) \
		--archives "$(filter -l%,$(LIBS)) -lbz2 -lc" --cc $(CC) $(STATIC) $(DIST)
