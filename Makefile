# make            the library, the core alone, build/ddbmutex and the examples
# make demo       sets this machine up, builds, shows what the lock is for
# make engine     sets up, runs a DynamoDB engine for your programs until Ctrl-C
# make test       sets up, builds, runs every test; ONLY=suite/case SEED=...
# make install    library, headers, command: PREFIX=/usr/local LIBDIR, DESTDIR
# make uninstall  removes what install installed; takes the same variables
# make format     lays out all C++ as .clang-format says
# make clean
#
# More in tests/README.md: make soak, sanitizers, torture, world, aws, mutants,
# fuzz, bench, size, model, systems; in packaging/README.md: make amalgamation,
# deb, ways, cross, small, abi.
#
# Variables: config=release|debug|asan|tsan|size|noexcept, CXX, cxxstd, V=1.
config ?= release
cxxstd ?= c++17
CXX := $(if $(filter default,$(origin CXX)),g++,$(CXX))
BUILD := build/$(config)-$(notdir $(CXX))-$(cxxstd)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
# Some distributions compile everything with this: v[v.size()] ends the program,
# even if only its address is taken.
ASSERTIONS := -D_GLIBCXX_ASSERTIONS
CXXFLAGS_release := -O2 -DNDEBUG
CXXFLAGS_debug := -O0 -g $(ASSERTIONS)
CXXFLAGS_asan := -O1 -g -fno-omit-frame-pointer $(ASSERTIONS) \
  -fsanitize=address,undefined -fno-sanitize-recover=all
# RapidJSON 1.1's stack adds 0 to a null pointer, which clang++'s UBSan reports.
ifneq ($(findstring clang,$(CXX)),)
CXXFLAGS_asan += -fno-sanitize=pointer-overflow
else
# g++ 12 warns of std::regex under ASan, without reason.
CXXFLAGS_asan += -Wno-maybe-uninitialized
endif
CXXFLAGS_tsan := -O1 -g -fsanitize=thread
CXXFLAGS_size := -Os -DNDEBUG -ffunction-sections -fdata-sections
# The library alone: the tests need exceptions.
CXXFLAGS_noexcept := -O0
LIBFLAGS_noexcept := -fno-exceptions -fno-rtti
CXXFLAGS_fuzz = $(CXXFLAGS_asan) -fsanitize=fuzzer-no-link
ifeq ($(CXXFLAGS_$(config)),)
$(error config=$(config): not one of release debug asan tsan size noexcept)
endif

CPPFLAGS += -I. -MMD -MP -DDDBMUTEX_EXTRAS
CXXFLAGS += -std=$(cxxstd) -pthread $(WARN) $(CXXFLAGS_$(config))
LDLIBS += -lcurl -lcrypto

# --- Files --------------------------------------------------------------------

objects = $(patsubst %.cpp,$(BUILD)/%.o,$(wildcard $(1)))
programs = $(patsubst %.cpp,$(BUILD)/%,$(wildcard $(1)))

CORE := $(BUILD)/libddbmutex-core.a
LIB := $(BUILD)/libddbmutex.a
CORE_SOURCES := $(wildcard ddbmutex.cpp ddbmutex/*.cpp ddbmutex/*/*.cpp \
  sigv4/*.cpp sigv4/*/*.cpp)
EXTRAS_SOURCES := $(wildcard extras/*.cpp extras/*/*.cpp)
LIB_OBJECTS = $(call objects,$(CORE_SOURCES) $(EXTRAS_SOURCES))
# One source knows whether there are extras, and so has two objects.
CORE_OBJECTS = $(patsubst $(BUILD)/ddbmutex.o,$(BUILD)/ddbmutex.core.o,\
  $(call objects,$(CORE_SOURCES)))
EXAMPLES := $(call programs,examples/*.cpp)
DEMO := $(BUILD)/examples/demo/demo
DEMO_OBJECTS := $(call objects,examples/demo/*.cpp)
COMMAND := $(BUILD)/examples/ddbmutex/ddbmutex
COMMAND_OBJECTS := $(call objects,examples/ddbmutex/*.cpp)

# The first has all cases, the second those that need no extras.
TESTS := $(BUILD)/tests/tests
CORE_TESTS := $(BUILD)/tests/core_tests
CORE_TEST_FILES := $(call objects,tests/main.cpp tests/core/*.cpp)
TEST_FILES := $(sort $(CORE_TEST_FILES) \
  $(call objects,tests/*.cpp tests/extras/*.cpp))
PRELUDE := $(BUILD)/tests/prelude.hpp.gch
# What the tests start as processes of their own.
TEST_PROGRAMS := $(call programs,tests/processes/*.cpp tests/live/live.cpp \
  tests/torture/torture.cpp tests/torture/worker.cpp)
DYNAMODB_OBJECTS := $(call objects,tests/world/dynamodb/*.cpp)
TEST_SUPPORT := $(BUILD)/tests/libsupport.a
SUPPORT_OBJECTS := $(DYNAMODB_OBJECTS) $(filter-out $(TEST_PROGRAMS:=.o),\
  $(call objects,tests/support/*.cpp tests/torture/*.cpp tests/live/*.cpp))
# One fuzz target each; main.cpp makes a fuzzer of it, the tests call it.
FUZZERS := $(filter-out %/main,$(call programs,tests/fuzz/*.cpp))
# Linked before the library: its clocks, threads and HTTP replace the library's.
WORLD := $(BUILD)/tests/world/world
WORLD_OBJECTS := $(call objects,tests/world/*.cpp) $(DYNAMODB_OBJECTS)
BENCHES := $(call programs,tests/bench/*.cpp)
SIZE_PROGRAMS := $(call programs,tests/size/*.cpp)
# Includes parts of other programs that the tests check from the inside.
TEST_OBJECTS := $(TEST_FILES) $(call objects,tests/world/odd_rows.cpp \
  tests/world/plan.cpp) $(FUZZERS:=.o) \
  $(filter-out %/main.o,$(DEMO_OBJECTS) $(COMMAND_OBJECTS))

# Prints a short line for each command, or with V=1 the command itself.
SAY := @$(if $(filter 1,$(V)),:,echo)
Q := $(if $(filter 1,$(V)),,@)
BUILDING := --no-print-directory -j$(shell nproc)
AS_FUZZ := config=fuzz CXX=clang++
FUZZ_BUILD := build/fuzz-clang++-$(cxxstd)

# Tests and benchmarks talk to servers of their own, past any proxy, and ask no
# EC2 instance for keys.
comma := ,
export no_proxy := \
  127.0.0.1,localhost$(addprefix $(comma),$(or $(no_proxy),$(NO_PROXY)))
metadata_disabled := $(AWS_EC2_METADATA_DISABLED)
export AWS_EC2_METADATA_DISABLED := true
OF_BUILD = BUILD=$(BUILD) DDBMUTEX_BUILD=$(BUILD) FUZZ_BUILD=$(FUZZ_BUILD) \
  CXX='$(CXX)' CXXFLAGS='$(CXXFLAGS)'
# What was set besides the defaults: tests/run prints it in the command that
# repeats a failed test.
HOW := $(strip $(filter-out config=release CXX=g++ cxxstd=c++17,\
  config=$(config) CXX=$(CXX) cxxstd=$(cxxstd)))

.PHONY: all programs fuzzers demo engine test soak sanitizers torture world
.PHONY: aws mutants fuzz bench size model systems sources format clean
.PHONY: build/ddbmutex
.SECONDARY:
.DELETE_ON_ERROR:

all: $(LIB) $(CORE) $(EXAMPLES) $(DEMO) build/ddbmutex
programs: all $(TESTS) $(CORE_TESTS) $(TEST_PROGRAMS) $(WORLD)
fuzzers: $(FUZZERS)

setup-%:
	@tests/setup $*

demo: setup-demo
	@$(MAKE) $(BUILDING) $(DEMO)
	@BUILD=$(BUILD) examples/demo/run
engine: setup-engine
	@tests/engines/serve

test: setup-test
	@$(MAKE) $(BUILDING) $(if $(filter noexcept,$(config)),,noexcept) programs
	@$(OF_BUILD) HOW='$(HOW)' tests/run
soak: setup-test setup-fuzz
	@$(MAKE) $(BUILDING) programs
	@$(MAKE) $(BUILDING) $(AS_FUZZ) fuzzers
	@$(OF_BUILD) tests/soak
sanitizers:
	@tests/sanitizers
torture: setup-test
	@$(MAKE) $(BUILDING) programs
	@$(OF_BUILD) $(BUILD)/tests/torture/torture \
	  $$(($(or $(MINUTES),10) * 60)) $(SEED)
world: setup-test
	@$(MAKE) $(BUILDING) $(WORLD)
	@$(WORLD) $(if $(SEED),seed $(SEED) $(if $(filter 1,$(V)),all),\
	  minutes $(or $(MINUTES),10) $(FIRST))
# Your keys may come from an EC2 instance, so your own setting is restored.
aws: export AWS_EC2_METADATA_DISABLED := $(metadata_disabled)
aws:
	@[ -n "$$TABLE" ] && [ -n "$$REGION" ] || \
	  { echo 'usage: make aws TABLE=name REGION=region' >&2; exit 2; }
	@tests/setup test
	@$(MAKE) $(BUILDING) programs
	@$(OF_BUILD) $(BUILD)/tests/live/live "$$TABLE" "$$REGION" $(ONLY)
mutants: setup-test
	@$(MAKE) $(BUILDING) programs
	@$(OF_BUILD) tests/mutants/run full
fuzz: setup-fuzz
	@$(MAKE) $(BUILDING) $(AS_FUZZ) fuzzers
	@BUILD=$(FUZZ_BUILD) tests/fuzz/run $$(($(or $(MINUTES),1) * 60))
bench: setup-test
	@$(MAKE) $(BUILDING) all $(BENCHES)
	@$(BUILD)/tests/bench/bench $(BUILD)/tests/bench build/bench.tsv
size: setup-test
	@$(MAKE) $(BUILDING) $(LIB) $(SIZE_PROGRAMS)
	@BUILD=$(BUILD) CXX='$(CXX)' tests/size/run
model: setup-test
	@MODEL_BUILD=build/model tests/model/run full
systems: setup-systems
	@tests/systems/run

# For other build systems: the core's sources, then those of the extras.
sources:
	@$(info $(CORE_SOURCES))$(info $(EXTRAS_SOURCES))

format:
	clang-format -i $$(git ls-files '*.cpp' '*.hpp')
clean:
	rm -rf build

include packaging/packaging.mk

define COMPILE
$(SAY) CXX $<
$(Q)mkdir -p $(@D)
$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) -o $@
endef
$(BUILD)/%.o: %.cpp
	$(COMPILE) -c $<
$(BUILD)/%.core.o: %.cpp
	$(COMPILE) -UDDBMUTEX_EXTRAS -c $<
$(CORE_OBJECTS) $(LIB_OBJECTS): private CXXFLAGS += $(LIBFLAGS_$(config))
# Tests mostly wait, and are compiled more often than run.
$(filter-out $(DYNAMODB_OBJECTS) %/support/regex.o,$(SUPPORT_OBJECTS)) \
  $(TEST_PROGRAMS:=.o) $(TEST_FILES) $(PRELUDE): private CXXFLAGS += -O0
# The simulated world computes while it runs.
$(call objects,tests/world/*.cpp): private CXXFLAGS += -O1
$(TEST_FILES): $(PRELUDE)
$(TEST_FILES): private CXXFLAGS += -include $(PRELUDE:.gch=)
$(PRELUDE): tests/prelude.hpp
	$(COMPILE) -x c++-header $<

$(LIB): $(LIB_OBJECTS)
$(CORE): $(CORE_OBJECTS)
$(TEST_SUPPORT): $(SUPPORT_OBJECTS)
$(LIB) $(CORE) $(TEST_SUPPORT):
	$(SAY) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(DEMO): $(DEMO_OBJECTS)
$(COMMAND): $(COMMAND_OBJECTS)
$(WORLD): $(WORLD_OBJECTS)
$(TESTS): $(TEST_OBJECTS)
$(CORE_TESTS): $(CORE_TEST_FILES) $(CORE)
$(TEST_PROGRAMS) $(EXAMPLES) $(BENCHES) $(SIZE_PROGRAMS): %: %.o
$(TESTS) $(CORE_TESTS) $(TEST_PROGRAMS) $(BUILD)/tests/bench/bench \
  $(BUILD)/tests/size/server: $(TEST_SUPPORT)
# The tests' scripted server speaks TLS and uses zlib's CRC-32.
$(TESTS) $(CORE_TESTS) $(TEST_PROGRAMS) $(BUILD)/tests/bench/bench: \
  LDLIBS := -lssl -lz $(LDLIBS)
$(TESTS) $(CORE_TESTS): LDLIBS := -l:libboost_unit_test_framework.a $(LDLIBS)
WITH_EXTRAS := $(TESTS) $(TEST_PROGRAMS) $(EXAMPLES) $(BENCHES) \
  $(SIZE_PROGRAMS) $(WORLD) $(DEMO) $(COMMAND)
$(WITH_EXTRAS): $(LIB)
$(WITH_EXTRAS) $(CORE_TESTS):
	$(SAY) LINK $@
	$(Q)$(CXX) $(CXXFLAGS) $(LDFLAGS) $(filter %.o,$^) \
	  $(filter $(TEST_SUPPORT),$^) $(filter $(LIB) $(CORE),$^) $(LDLIBS) -o $@
# The command that was built last, whatever the config.
build/ddbmutex: $(COMMAND)
	$(Q)ln -sfrn $< $@

$(BUILD)/tests/fuzz/%.main.o: tests/fuzz/main.cpp
	$(COMPILE) -DFUZZ_TARGET=$* -c $<
$(FUZZERS): %: %.o %.main.o $(LIB)
	$(SAY) LINK $@
	$(Q)$(CXX) $(CXXFLAGS) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) -o $@

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
