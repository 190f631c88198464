# make            the library (libddbmutex.a), build/ddbmutex and the examples
# make demo       sets this machine up, builds, shows what the lock is for
# make engine     sets up, runs a DynamoDB engine for your programs until Ctrl-C
# make test       sets up, builds, runs every test; ONLY=suite/case SEED=...
# make soak       sets up, builds, runs every long bar in full (over 1 h)
# make torture    sets up, processes under all faults: MINUTES=10, SEED=...
# make world      simulated hosts, clocks, networks: MINUTES=10; SEED=n replays
# make aws        tests against AWS itself, with your keys: TABLE=... REGION=...
# make mutants    takes one protection away at a time: does a test notice?
# make fuzz       feeds what reads foreign bytes (clang++): MINUTES=1 each
# make bench      sets up, builds, measures; writes build/bench.tsv
# make setup-bench  fetches what make bench measures the lock beside
# make size       says what the library costs; writes build/size.tsv
# make model      sets up, runs every variant of the protocol's model
# make pictures   draws README's pictures anew; RUN=build/torture/minute.txt
# make amalgamation  writes the library as two files: build/amalgamation
# make install    library, headers, command: PREFIX=/usr/local LIBDIR, DESTDIR
# make uninstall  takes all of that away again: the same three
# make deb        the Debian packages, in build/deb
# make ways       sets up, runs every way of packaging/README.md, each recipe
# make cross      sets up, builds for other machines and with other compilers
# make systems    as root, README's commands and builds on other releases
# make small      sets up, runs the steps of packaging/small.md
# make abi        sets up, says what breaks programs of the last version
# make format     lays out all C++ as .clang-format says
# make clean
#
# Five variables: config=release|debug|asan|tsan|size|noexcept, CXX, cxxstd,
# V=1 (shows each command), and WITH, the optional parts: "hosts" (keys of
# containers and instances), "profiles" (the config and credentials files,
# roles, web identities, single sign-on, programs that give keys), "endpoints"
# (FIPS and dual-stack ones, those of accounts and of other partitions),
# "layouts" (tables that are shared with other libraries' programs).
# "make WITH=" leaves out all four, and builds the library alone.
.DEFAULT_GOAL := all
config ?= release
cxxstd ?= c++17
PARTS := hosts profiles endpoints layouts
WITH ?= $(PARTS)
ifeq ($(origin CXX),default)
CXX := g++
endif

WITHOUT := $(filter-out $(WITH),$(PARTS))
empty :=
BUILD := build/$(config)-$(notdir $(CXX))-$(cxxstd)$(subst $(empty) ,,$\
  $(addprefix -no-,$(WITHOUT)))

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
CXXFLAGS_release := -O2 -DNDEBUG
# The tests wait more than they work, and are compiled more often than run; with
# sanitizers, optimizing them takes two to four times as long.
TESTFLAGS_release := -O0
TESTFLAGS_asan := -O0
TESTFLAGS_tsan := -O0
# As some distributions compile all they have: v[v.size()] ends the program,
# even if only its address is taken.
ASSERTIONS := -D_GLIBCXX_ASSERTIONS
CXXFLAGS_debug := -O0 -g $(ASSERTIONS)
CXXFLAGS_asan := -O1 -g -fno-omit-frame-pointer $(ASSERTIONS) \
  -fsanitize=address,undefined -fno-sanitize-recover=all
# clang++ reports what RapidJSON 1.1's stack does with a null pointer and 0.
ifneq ($(findstring clang,$(CXX)),)
CXXFLAGS_asan += -fno-sanitize=pointer-overflow
else
# g++ 12 takes what std::regex moves for uninitialised under ASan.
CXXFLAGS_asan += -Wno-maybe-uninitialized
endif
CXXFLAGS_tsan := -O1 -g -fsanitize=thread
CXXFLAGS_size := -Os -DNDEBUG -ffunction-sections -fdata-sections
# Compiled by every `make test` to see that it can be, and run by an example.
CXXFLAGS_noexcept := -O0
# What a program without exceptions compiles the library with; the tests
# themselves need both (Boost.Test throws).
LIBFLAGS_noexcept := -fno-exceptions -fno-rtti
# Not to be chosen: `make fuzz` does.
CXXFLAGS_fuzz := -O1 -g -fno-omit-frame-pointer $(ASSERTIONS) \
  -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
  -fno-sanitize=pointer-overflow
AS_FUZZ := config=fuzz CXX=clang++
FUZZ_BUILD := build/fuzz-clang++-$(cxxstd)
ifneq ($(filter-out $(PARTS),$(WITH)),)
$(error WITH=$(WITH): there are no other parts than $(PARTS))
endif
ifeq ($(CXXFLAGS_$(config)),)
$(error config=$(config): not one of release debug asan tsan size noexcept)
endif

CPPFLAGS += -I. -MMD -MP $(addprefix -DDDBMUTEX_NO_,\
  $(shell echo $(WITHOUT) | tr a-z A-Z))
CXXFLAGS += -std=$(cxxstd) -pthread $(WARN) $(CXXFLAGS_$(config))
LDLIBS += -lcurl -lcrypto

LIB_SOURCES := $(wildcard ddbmutex.cpp ddbmutex/*.cpp ddbmutex/*/*.cpp \
  sigv4/*.cpp sigv4/*/*.cpp)
TEST_SOURCES := $(sort $(wildcard tests/test_*.cpp))
# What the tests start as processes of their own.
TORTURE_PROGRAMS := $(wildcard \
  tests/torture/torture.cpp tests/torture/worker.cpp)
PICTURE_PROGRAM := tests/pictures/draw.cpp
LIVE_PROGRAM := tests/live/live.cpp
# Compares the simulated DynamoDB with an engine.
COMPARE_PROGRAM := $(wildcard tests/world/dynamodb/compare.cpp)
TEST_PROGRAMS := $(patsubst %.cpp,$(BUILD)/%,\
  $(wildcard tests/processes/*.cpp) $(TORTURE_PROGRAMS) \
  $(PICTURE_PROGRAM) $(LIVE_PROGRAM) $(COMPARE_PROGRAM))
DYNAMODB_SOURCES := $(filter-out $(COMPARE_PROGRAM),\
  $(wildcard tests/world/dynamodb/*.cpp))
SUPPORT_SOURCES := $(wildcard tests/support/*.cpp) $(DYNAMODB_SOURCES) \
  $(filter-out $(TORTURE_PROGRAMS) $(PICTURE_PROGRAM) $(LIVE_PROGRAM),\
  $(wildcard tests/torture/*.cpp tests/pictures/*.cpp tests/live/*.cpp))
# Files with tests are compiled five at a time, in little more than half of the
# time: each in a namespace of its own, after what all five include.  Each by
# itself can be made, too, as $(BUILD)/tests/test_this.o.
JOINED :=
define fives
$(eval JOINED += $(BUILD)/tests/joined/$(basename $(notdir $(firstword $(1)))).cpp)
$(eval $(lastword $(JOINED)): $(wordlist 1,5,$(1)))
$(if $(word 6,$(1)),$(call fives,$(wordlist 6,$(words $(1)),$(1))))
endef
$(call fives,$(TEST_SOURCES))

# What works more than it waits is compiled as the library is.
BUSY_SOURCES := tests/support/regex.cpp $(DYNAMODB_SOURCES)
# One target each; main.cpp makes a fuzzer of it, the tests run it by itself.
FUZZ_SOURCES := $(filter-out %/main.cpp,$(wildcard tests/fuzz/*.cpp))
FUZZERS := $(patsubst %.cpp,$(BUILD)/%,$(FUZZ_SOURCES))
EXAMPLES := $(patsubst %.cpp,$(BUILD)/%,$(wildcard examples/*.cpp))
BENCHES := $(patsubst %.cpp,$(BUILD)/%,$(wildcard tests/bench/*.cpp))
# Where Debian's SDK for Go is.
GO_RIVAL = $(if $(and $(shell command -v go),$(wildcard $(addprefix \
  /usr/share/gocode/src/github.com/aws/,aws-sdk-go-v2/service/dynamodb))),\
  $(BUILD)/tests/bench/rivals/cycle_sdk)
# Works more than it waits, too.  Its definitions of clocks, threads and HTTP
# come before the library's, so those are not taken from it.
WORLD := $(BUILD)/tests/world/world
WORLD_OBJECTS := $(patsubst %.cpp,$(BUILD)/%.o,\
  $(wildcard tests/world/*.cpp) $(DYNAMODB_SOURCES))
SIZE_PROGRAMS := $(patsubst %.cpp,$(BUILD)/%,$(wildcard tests/size/*.cpp))

LIB := $(BUILD)/libddbmutex.a
TEST_SUPPORT := $(BUILD)/tests/libsupport.a
objects = $(patsubst %.cpp,$(BUILD)/%.o,$(1))

DEMO := $(BUILD)/examples/demo/demo
DEMO_OBJECTS := $(call objects,$(wildcard examples/demo/*.cpp))
# Those that the tests look into.
DEMO_PARTS := $(call objects,$(addprefix examples/demo/,\
  claims.cpp event.cpp text.cpp))

# `build/ddbmutex` is the one that was built last, whatever the config.
COMMAND := $(BUILD)/examples/ddbmutex/ddbmutex
COMMAND_OBJECTS := $(call objects,$(wildcard examples/ddbmutex/*.cpp))
COMMAND_PARTS := $(call objects,$(addprefix examples/ddbmutex/,\
  completion.cpp group.cpp help.cpp names.cpp options.cpp report.cpp \
  told.cpp watcher.cpp))

BUILDING := --no-print-directory -j$(shell nproc)

# A short line for each command, or the command itself.
SAY := @$(if $(filter 1,$(V)),:,echo)
Q := $(if $(filter 1,$(V)),,@)

# What was asked for besides the usual build.
HOW := $(strip $(filter-out config=release CXX=g++ cxxstd=c++17,\
  config=$(config) CXX=$(CXX) cxxstd=$(cxxstd)))

# Tests and benchmarks talk to servers of their own, past any proxy, and ask no
# EC2 instance for keys.
comma := ,
export no_proxy := \
  127.0.0.1,localhost$(addprefix $(comma),$(or $(no_proxy),$(NO_PROXY)))

metadata_disabled := $(AWS_EC2_METADATA_DISABLED)
export AWS_EC2_METADATA_DISABLED := true

.PHONY: all setup demo engine test soak torture world aws mutants fuzz bench size
.PHONY: model format pictures clean programs fuzzers noexcept setup-fuzz
.PHONY: setup-bench parts sources systems
.PHONY: build/ddbmutex
.SECONDARY:
.DELETE_ON_ERROR:

all: $(LIB) $(if $(WITHOUT),,$(EXAMPLES) $(DEMO) build/ddbmutex)
programs: all $(BUILD)/tests/tests $(TEST_PROGRAMS) $(WORLD)
fuzzers: $(FUZZERS)
# Whatever it is that is tested, this can be done without exceptions.
noexcept: amalgamation
	+@$(MAKE) --no-print-directory config=noexcept ONE_FILE=1 \
	  build/noexcept-$(notdir $(CXX))-$(cxxstd)/examples/without_exceptions

# Installs what is missing (root or sudo on Debian and Ubuntu), else says what
# to install.  A second make then builds with what it installed.
setup:
	@tests/setup test
setup-fuzz:
	@CXX=clang++ tests/setup test
setup-bench:
	@tests/setup bench

demo:
	@tests/setup demo
	@$(MAKE) $(BUILDING) $(DEMO)
	@BUILD=$(BUILD) examples/demo/run

engine:
	@tests/setup engine
	@tests/engines/serve

test: setup
	@$(MAKE) $(BUILDING) $(if $(filter noexcept,$(config)),,noexcept) programs
	@BUILD=$(BUILD) CXX='$(CXX)' CXXFLAGS='$(CXXFLAGS)' HOW='$(HOW)' tests/run

soak: setup setup-fuzz
	@$(MAKE) $(BUILDING) programs
	@$(MAKE) $(BUILDING) $(AS_FUZZ) fuzzers
	@BUILD=$(BUILD) FUZZ_BUILD=$(FUZZ_BUILD) CXX='$(CXX)' \
	  CXXFLAGS='$(CXXFLAGS)' tests/soak

torture: setup
	@$(MAKE) $(BUILDING) programs
	@DDBMUTEX_BUILD=$(BUILD) $(BUILD)/tests/torture/torture \
	  $$(($(or $(MINUTES),10) * 60)) $(SEED)

world: setup
	@$(MAKE) $(BUILDING) $(WORLD)
	@$(WORLD) $(if $(SEED),seed $(SEED) $(if $(filter 1,$(V)),all),\
	  minutes $(or $(MINUTES),10) $(FIRST))

# Your keys may come from an EC2 instance, so this is as you have set it.  With
# ONLY, only those cases are run: no torture (0 seconds).
aws: export AWS_EC2_METADATA_DISABLED := $(metadata_disabled)
aws:
	@[ -n "$$TABLE" ] && [ -n "$$REGION" ] || { \
	  echo 'usage: make aws TABLE=name REGION=region' \
	    '(uses your AWS keys; its tables are deleted again)' >&2; exit 2; }
	@tests/setup test
	@$(MAKE) $(BUILDING) programs
	@DDBMUTEX_BUILD=$(BUILD) $(BUILD)/tests/live/live "$$TABLE" "$$REGION" \
	  $(if $(ONLY),0 $(ONLY))

mutants: setup
	@$(MAKE) $(BUILDING) programs
	@BUILD=$(BUILD) CXX='$(CXX)' CXXFLAGS='$(CXXFLAGS)' tests/mutants/run full

fuzz: setup-fuzz
	@$(MAKE) $(BUILDING) $(AS_FUZZ) fuzzers
	@BUILD=$(FUZZ_BUILD) tests/fuzz/run $$(($(or $(MINUTES),1) * 60))

bench: setup
	@$(MAKE) $(BUILDING) all $(BENCHES) $(GO_RIVAL) $(BUILD)/tests/pictures/draw
	@BUILD=$(BUILD) tests/bench/run

# The library's machine code at -O2 is measured by its objects.
O2_BUILD := build/release-$(notdir $(CXX))-$(cxxstd)
size: setup
	@$(MAKE) $(BUILDING) config=release WITH='$(PARTS)' $(O2_BUILD)/libddbmutex.a
	@$(MAKE) $(BUILDING) $(SIZE_PROGRAMS)
	@BUILD=$(BUILD) O2_BUILD=$(O2_BUILD) CXX='$(CXX)' CXXSTD=$(cxxstd) \
	  MAKE='$(MAKE)' tests/size/run
# Which parts there are, and what those are made of that are not left out.
parts:
	@$(info $(PARTS))
sources:
	@$(info $(LIB_SOURCES) $(filter -D%,$(CPPFLAGS)))

systems:
	@tests/setup systems
	@tests/systems/run

model: setup
	@MODEL_BUILD=build/model tests/model/run full

pictures: setup
	@$(MAKE) $(BUILDING) $(BUILD)/tests/pictures/draw
	@$(BUILD)/tests/pictures/draw $(RUN)

include packaging/packaging.mk

# In one file, the library is compiled in a quarter of the time.
ifdef ONE_FILE
LIB_OBJECTS := $(BUILD)/library.o
$(LIB_OBJECTS): $(TWO_FILES)/ddbmutex.cpp
	$(SAY) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(filter -D%,$(CPPFLAGS)) $(CXXFLAGS) -c $< -o $@
else
LIB_OBJECTS := $(call objects,$(LIB_SOURCES))
endif
$(LIB): $(LIB_OBJECTS)
$(TEST_SUPPORT): $(call objects,$(SUPPORT_SOURCES))
$(LIB) $(TEST_SUPPORT):
	$(SAY) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# The scripted server of the tests speaks TLS and has its CRC-32 from zlib.
$(BUILD)/tests/tests $(TEST_PROGRAMS) $(BUILD)/tests/bench/bench: \
  LDLIBS := -lssl -lz $(LDLIBS)
# Functions are looked up when they are first called, also where the compiler
# would have it otherwise: that saves registers on the stack.
$(BUILD)/tests/processes/what_is_left: LDFLAGS += -Wl,-z,lazy
$(BUILD)/tests/tests: LDLIBS := -l:libboost_unit_test_framework.a $(LDLIBS)
$(BUILD)/tests/tests: $(BUILD)/tests/main.o $(JOINED:.cpp=.o) \
  $(call objects,$(FUZZ_SOURCES) tests/world/odd_rows.cpp tests/world/plan.cpp \
    tests/world/shrink.cpp) \
  $(DEMO_PARTS) $(COMMAND_PARTS)
$(BUILD)/tests/tests $(TEST_PROGRAMS) $(BUILD)/tests/bench/bench: \
  $(TEST_SUPPORT) $(LIB)
$(TEST_PROGRAMS) $(EXAMPLES) $(BENCHES) $(SIZE_PROGRAMS): %: %.o
$(WORLD): $(WORLD_OBJECTS) $(LIB)
# What it is linked of, for tests/mutants.
$(WORLD): $(BUILD)/tests/world/objects
$(BUILD)/tests/world/objects: $(WORLD_OBJECTS)
	$(Q)echo $(WORLD_OBJECTS) >$@
$(DEMO): $(DEMO_OBJECTS)
# Looks functions up when it starts: doing so later saves registers on the stack,
# in which there may be a secret.
$(COMMAND): LDFLAGS += -Wl,-z,relro,-z,now
$(COMMAND): $(COMMAND_OBJECTS)
$(EXAMPLES) $(BENCHES) $(SIZE_PROGRAMS) $(DEMO) $(COMMAND): $(LIB)
build/ddbmutex: $(COMMAND)
	$(Q)ln -sfrn $< $@
$(BUILD)/tests/tests $(TEST_PROGRAMS) $(EXAMPLES) $(BENCHES) \
  $(SIZE_PROGRAMS) $(WORLD) $(DEMO) $(COMMAND):
	$(SAY) LINK $@
	$(Q)$(CXX) $(CXXFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) \
	  $(LDLIBS) -o $@

$(BUILD)/tests/fuzz/%.main.o: tests/fuzz/main.cpp
	$(SAY) CXX $< for $*
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) -DFUZZ_TARGET=$* -c $< -o $@

$(FUZZERS): %: %.o %.main.o $(LIB)
	$(SAY) LINK $@
	$(Q)$(CXX) $(CXXFLAGS) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) -o $@

$(LIB_OBJECTS): private CXXFLAGS += $(LIBFLAGS_$(config))

# What the tests include is compiled once for those with Boost.Test, and once
# for those without.
PRELUDE := $(BUILD)/tests/prelude.hpp
STANDARD := $(BUILD)/tests/standard.hpp
TEST_OBJECTS := $(JOINED:.cpp=.o) $(call objects,tests/support/check.cpp \
  tests/main.cpp $(TEST_SOURCES))
OTHER_OBJECTS := $(filter-out $(TEST_OBJECTS),\
  $(call objects,$(filter-out $(BUSY_SOURCES),$(SUPPORT_SOURCES)) \
  $(FUZZ_SOURCES) $(patsubst $(BUILD)/%,%.cpp,$(TEST_PROGRAMS))))
$(TEST_OBJECTS): $(PRELUDE).gch
$(TEST_OBJECTS): private CXXFLAGS += $(TESTFLAGS_$(config)) -include $(PRELUDE)
$(OTHER_OBJECTS): $(STANDARD).gch
$(OTHER_OBJECTS): private CXXFLAGS += $(TESTFLAGS_$(config)) \
  -include $(STANDARD)
$(PRELUDE).gch $(STANDARD).gch: private CXXFLAGS += $(TESTFLAGS_$(config))
# Beside it the text, for a compiler that has changed since.  (-MD: its headers
# are those of the system.)
$(BUILD)/tests/%.hpp.gch: tests/%.hpp
	$(SAY) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)cp $< $(@:.gch=)
	$(Q)$(CXX) $(CPPFLAGS:-MMD=-MD) $(CXXFLAGS) -x c++-header $< -o $@

# Written anew only if it changes: which five they are is not a matter of times.
$(JOINED): sources-may-have-gone
	@mkdir -p $(@D)
	@{ cat $(filter %.cpp,$^) | grep '^#include' | LC_ALL=C sort -u; \
	  for file in $(filter %.cpp,$^); do \
	    name=$${file##*/}; \
	    printf 'namespace {\nnamespace %s {\n#include "%s"\n}\n}\n' \
	      $${name%.cpp} $$file; \
	  done; } >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
# What was joined of other fives would still be compiled as tests.
.PHONY: sources-may-have-gone
sources-may-have-gone:
	@! [ -d $(BUILD)/tests/joined ] || find $(BUILD)/tests/joined \
	  -name '*.cpp' $(foreach file,$(JOINED),! -path $(file)) -delete

$(BUILD)/%: %.go
	$(SAY) GO $<
	$(Q)mkdir -p $(@D)
	$(Q)GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$(CURDIR)/build/go \
	  go build -o $@ $<

# A program without exceptions, whatever the library has.  UBSan's check of
# vptrs cannot know objects that code without RTTI made.
$(BUILD)/examples/without_exceptions.o: private CXXFLAGS += -fno-exceptions \
  $(if $(filter asan,$(config)),,-fno-rtti)

$(BUILD)/%.o: %.cpp
	$(SAY) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) -c $< -o $@
# What was written here.
$(BUILD)/%.o: $(BUILD)/%.cpp
	$(SAY) CXX $<
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) -c $< -o $@

format:
	clang-format -i $$(git ls-files '*.cpp' '*.hpp')

clean:
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
