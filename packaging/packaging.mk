# Read by the Makefile: the library as two files, without exceptions, and as it
# is installed.

# Both are said in the header alone.  A version that breaks programs which are
# not compiled anew has another namespace, and so another soname.
said = $(shell sed -n 's/^$(1)/\1/p' ddbmutex.hpp)
VERSION = $(call said,.define DDBMUTEX_VERSION_STRING "\(.*\)")
ABI = $(call said,inline namespace v\([0-9]*\) {)

# The core as two files, and the whole library (ddbmutex_all).
TWO_FILES := build/amalgamation
ALL_IN_ONE := $(TWO_FILES)/ddbmutex_all.cpp
amalgamation: $(ALL_IN_ONE)
$(TWO_FILES)/ddbmutex.cpp $(ALL_IN_ONE) &: packaging/amalgamate LICENSE \
  $(shell find ddbmutex* sigv4 extras -name '*.?pp')
	$(SAY) AMALGAMATE $(@D)
	$(Q)packaging/amalgamate $(@D)

# The two files, compiled once for several tests: without exceptions, for a
# program that has none, and as the shared library, which they install.  As
# C++23, because all else is C++17.
NOEXCEPT := build/noexcept-$(notdir $(CXX))-$(cxxstd)
noexcept: amalgamation
	+@$(MAKE) --no-print-directory config=noexcept \
	  CXXFLAGS_noexcept='-O0 -std=c++2b' LIB_OBJECTS=$(NOEXCEPT)/libddbmutex.so.o \
	  CORE_OBJECTS=$(NOEXCEPT)/$(TWO_FILES)/ddbmutex.o \
	  $(addprefix $(NOEXCEPT)/,libddbmutex.so libddbmutex-core.a \
	    examples/without_exceptions)
# This program has no exceptions, even if the library has.  UBSan's check of
# vptrs needs RTTI.
$(BUILD)/examples/without_exceptions.o: private CXXFLAGS += -fno-exceptions \
  $(if $(filter asan,$(config)),,-fno-rtti)

HIDING = -fPIC -fvisibility=hidden -fvisibility-inlines-hidden
SHARING = -shared -Wl,-soname,libddbmutex.so.$(ABI) \
  -Wl,--version-script=packaging/exported.map
SHARED = $(BUILD)/libddbmutex.so
$(SHARED).o: $(ALL_IN_ONE) packaging/packaging.mk
	$(COMPILE) $(HIDING) -include $(<D)/visible.hpp -c $<
$(SHARED): $(SHARED).o packaging/exported.map
	$(SAY) LINK $@
	$(Q)$(CXX) $(CXXFLAGS) $(LDFLAGS) $(SHARING) $< $(LDLIBS) -o $@

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDE := $(PREFIX)/include
SHARE := $(PREFIX)/share
CONFIG := $(LIBDIR)/cmake/ddbmutex
# Each shell looks for completions in a place of its own.
COMPLETION_bash := $(SHARE)/bash-completion/completions/ddbmutex
COMPLETION_zsh := $(SHARE)/zsh/site-functions/_ddbmutex
COMPLETION_fish := $(SHARE)/fish/vendor_completions.d/ddbmutex.fish
SHELLS := bash zsh fish
TEMPLATES := $(LIBDIR)/pkgconfig/ddbmutex.pc \
  $(addprefix $(CONFIG)/,ddbmutex-config.cmake ddbmutex-config-version.cmake)
REAL_NAME = libddbmutex.so.$(VERSION)
LINKS = $(addprefix $(LIBDIR)/,libddbmutex.so.$(ABI) libddbmutex.so)
FILL_IN = sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; \
  s|@VERSION@|$(VERSION)|; s|@ABI@|$(ABI)|; \
  s|@INCLUDE@|$(shell realpath -m --relative-to=$(LIBDIR) $(INCLUDE))|'

PUBLIC := $(addsuffix .hpp,admin any_of guarded_write layouts recursive stored)
install: $(COMMAND) $(LIB) $(CORE) $(SHARED)
	$(Q)install -D $< $(DESTDIR)$(PREFIX)/bin/ddbmutex
	$(Q)install -Dm 644 -t $(DESTDIR)$(SHARE)/man/man1 \
	  examples/ddbmutex/ddbmutex.1
	$(Q)$(foreach name,$(SHELLS),$< completion $(name) | \
	  install -Dm 644 /dev/stdin $(DESTDIR)$(COMPLETION_$(name)) &&) :
	$(Q)install -Dm 644 -t $(DESTDIR)$(INCLUDE) ddbmutex.hpp
	$(Q)install -Dm 644 -t $(DESTDIR)$(INCLUDE)/ddbmutex \
	  $(addprefix extras/,$(PUBLIC))
	$(Q)install -Dm 644 -t $(DESTDIR)$(LIBDIR) $(LIB) $(CORE)
	$(Q)install -Dm 644 $(SHARED) $(DESTDIR)$(LIBDIR)/$(REAL_NAME)
	$(Q)$(foreach name,$(LINKS),ln -sf $(REAL_NAME) $(DESTDIR)$(name) &&) :
	$(Q)$(foreach file,$(TEMPLATES),\
	  $(FILL_IN) packaging/$(notdir $(file)).in | \
	  install -Dm 644 /dev/stdin $(DESTDIR)$(file) &&) :
uninstall:
	$(Q)rm -f $(addprefix $(DESTDIR),$(PREFIX)/bin/ddbmutex \
	  $(SHARE)/man/man1/ddbmutex.1 \
	  $(foreach name,$(SHELLS),$(COMPLETION_$(name))) \
	  $(INCLUDE)/ddbmutex.hpp $(addprefix $(INCLUDE)/ddbmutex/,$(PUBLIC)) \
	  $(addprefix $(LIBDIR)/,libddbmutex.a libddbmutex-core.a $(REAL_NAME)) \
	  $(LINKS) $(TEMPLATES))
	$(Q)rmdir $(addprefix $(DESTDIR),$(INCLUDE)/ddbmutex $(CONFIG)) \
	  2>/dev/null || :

# Debian's own flags are given by its own tools.
deb:
	$(Q)packaging/deb

# What programs that are not compiled anew rely on: the description of the last
# version, and the library of today.  Of structs, g++ then tells those that are
# defined in a file of the source's own name, which are the public ones.
LAST = packaging/abi/libddbmutex.so.$(ABI).abi.xz
TODAY := $(BUILD)/abi/libddbmutex.so
$(TODAY): $(ALL_IN_ONE) packaging/packaging.mk packaging/exported.map
	$(SAY) CXX $@
	$(Q)mkdir -p $(@D)
	$(Q)cp $(TWO_FILES)/visible.hpp $(@D)/ddbmutex_all.hpp
	$(Q){ echo '#include "ddbmutex_all.hpp"'; echo '#line 1 "inside"'; cat $<; } \
	  >$(@D)/ddbmutex_all.cpp
	$(Q)g++ $(CXXFLAGS) -O0 -g -femit-struct-debug-baseonly $(HIDING) $(SHARING) \
	  $(@D)/ddbmutex_all.cpp $(LDLIBS) -o $@
abi: setup-ways
	@$(MAKE) $(BUILDING) $(TODAY)
	@xz -dc $(LAST) >$(BUILD)/abi/last
	@abidiff --leaf-changes-only --harmless --no-added-syms \
	  $(BUILD)/abi/last $(TODAY) || \
	  { echo 'Programs break that are not compiled anew: that takes another' \
	      'namespace in ddbmutex.hpp (see CHANGELOG.md).'; exit 1; }
# For a new version.
describe: setup-ways
	@$(MAKE) $(BUILDING) $(TODAY)
	@abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed \
	  --no-parameter-names --exported-interfaces-only --type-id-style hash \
	  $(TODAY) | xz -9 >$(LAST)

ways: setup-ways
	@$(MAKE) $(BUILDING) amalgamation programs
	@BUILD=$(BUILD) CXX='$(CXX)' CXXFLAGS='$(CXXFLAGS)' packaging/ways $(ONLY)

cross: setup-cross
	@tests/cross/run $(ONLY)

small: setup-small
	@packaging/small $(ONLY)

.PHONY: amalgamation noexcept install uninstall deb ways abi describe
.PHONY: cross small
