# make            the library (libddbmutex.a) and the examples
# make demo       sets this machine up, builds, shows what the lock is for
# make test       sets up, builds, runs every test
# make soak       sets up, builds, runs the long bars in full
# make bench      sets up, builds, measures; writes build/bench.tsv
# make model      sets up, runs every variant of the protocol's model
# make format     lays out all C++ as .clang-format says
# make clean
#
# Three variables: config=release|debug|asan|tsan|size|noexcept, CXX, cxxstd.
config ?= release
cxxstd ?= c++17
ifeq ($(origin CXX),default)
CXX := g++
endif

BUILD := build/$(config)-$(notdir $(CXX))-$(cxxstd)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
CXXFLAGS_release := -O2 -DNDEBUG
CXXFLAGS_debug := -O0 -g
CXXFLAGS_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
  -fno-sanitize-recover=all
# clang++ reports what RapidJSON 1.1's stack does with a null pointer and 0.
ifneq ($(findstring clang,$(CXX)),)
CXXFLAGS_asan += -fno-sanitize=pointer-overflow
else
# g++ 12 takes what std::regex moves for uninitialised under ASan.
CXXFLAGS_asan += -Wno-maybe-uninitialized
endif
CXXFLAGS_tsan := -O1 -g -fsanitize=thread
CXXFLAGS_size := -Os -DNDEBUG -ffunction-sections -fdata-sections
CXXFLAGS_noexcept := -O2
# What a program without exceptions compiles the library with; the tests
# themselves need both (Boost.Test throws).
LIBFLAGS_noexcept := -fno-exceptions -fno-rtti
ifeq ($(CXXFLAGS_$(config)),)
$(error config=$(config): not one of release debug asan tsan size noexcept)
endif

CPPFLAGS += -I. -MMD -MP
CXXFLAGS += -std=$(cxxstd) -pthread $(WARN) $(CXXFLAGS_$(config))
LDLIBS += -lcurl -lcrypto

LIB_SOURCES := $(wildcard ddbmutex.cpp sigv4/*.cpp dynamodb/*.cpp lock/*.cpp)
TEST_SOURCES := $(wildcard tests/*.cpp)
SUPPORT_SOURCES := $(wildcard tests/support/*.cpp)
# What the tests start as processes of their own.
TEST_PROGRAMS := $(patsubst %.cpp,$(BUILD)/%,\
  $(wildcard tests/claims/*.cpp tests/processes/*.cpp))
EXAMPLES := $(patsubst %.cpp,$(BUILD)/%,$(wildcard examples/*.cpp))
BENCHES := $(patsubst %.cpp,$(BUILD)/%,$(wildcard tests/bench/*.cpp))

LIB := $(BUILD)/libddbmutex.a
TEST_SUPPORT := $(BUILD)/tests/libsupport.a
objects = $(patsubst %.cpp,$(BUILD)/%.o,$(1))

DEMO := $(BUILD)/examples/demo/demo
DEMO_OBJECTS := $(call objects,$(wildcard examples/demo/*.cpp))
# Those that the tests look into.
DEMO_PARTS := $(call objects,$(addprefix examples/demo/,\
  claims.cpp event.cpp text.cpp))

# Tests and benchmarks talk to servers of their own, past any proxy.
comma := ,
export no_proxy := \
  127.0.0.1,localhost$(addprefix $(comma),$(or $(no_proxy),$(NO_PROXY)))

.PHONY: all setup demo test soak bench model format clean
.SECONDARY:
.DELETE_ON_ERROR:

all: $(LIB) $(EXAMPLES) $(DEMO)

# Installs what is missing (root or sudo on Debian and Ubuntu), else says what
# to install.  A second make then builds with what it installed.
setup:
	@tests/setup

demo: setup
	@$(MAKE) --no-print-directory $(DEMO)
	@BUILD=$(BUILD) examples/demo/run

test: setup
	@$(MAKE) --no-print-directory config=noexcept all
	@$(MAKE) --no-print-directory all $(BUILD)/tests/tests $(TEST_PROGRAMS)
	@BUILD=$(BUILD) tests/run

soak: setup
	@$(MAKE) --no-print-directory $(TEST_PROGRAMS)
	@BUILD=$(BUILD) tests/claims/soak

bench: setup
	@$(MAKE) --no-print-directory all $(BENCHES)
	@BUILD=$(BUILD) tests/bench/run

model: setup
	@MODEL_BUILD=build/model tests/model/run full

$(LIB): $(call objects,$(LIB_SOURCES))
$(TEST_SUPPORT): $(call objects,$(SUPPORT_SOURCES))
$(LIB) $(TEST_SUPPORT):
	@rm -f $@
	$(AR) rcs $@ $^

# The scripted server of the tests speaks TLS and has its CRC-32 from zlib.
$(BUILD)/tests/tests: $(call objects,$(TEST_SOURCES)) $(DEMO_PARTS)
$(BUILD)/tests/tests $(TEST_PROGRAMS): $(TEST_SUPPORT) $(LIB)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) \
	  -lssl -lz $(LDLIBS) -o $@

$(TEST_PROGRAMS): %: %.o

$(BUILD)/examples/%: $(BUILD)/examples/%.o $(LIB)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(LIB)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(DEMO): $(DEMO_OBJECTS) $(LIB)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(call objects,$(LIB_SOURCES)): CXXFLAGS += $(LIBFLAGS_$(config))

# A program without exceptions, whatever the library has.  UBSan's check of
# vptrs cannot know objects that code without RTTI made.
$(BUILD)/examples/without_exceptions.o: CXXFLAGS += -fno-exceptions \
  $(if $(filter asan,$(config)),,-fno-rtti)

$(BUILD)/%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -c $< -o $@

format:
	clang-format -i $$(git ls-files '*.cpp' '*.hpp')

clean:
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
