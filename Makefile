# make            the library (libddbmutex.a) and the examples
# make test       sets this machine up, builds, runs every test
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
TEST_SOURCES := $(wildcard tests/*.cpp tests/support/*.cpp)
EXAMPLES := $(patsubst %.cpp,$(BUILD)/%,$(wildcard examples/*.cpp))
BENCHES := $(patsubst %.cpp,$(BUILD)/%,$(wildcard tests/bench/*.cpp))

LIB := $(BUILD)/libddbmutex.a
objects = $(patsubst %.cpp,$(BUILD)/%.o,$(1))

# Tests and benchmarks talk to servers of their own, past any proxy.
comma := ,
export no_proxy := \
  127.0.0.1,localhost$(addprefix $(comma),$(or $(no_proxy),$(NO_PROXY)))

.PHONY: all setup test bench model format clean
.SECONDARY:
.DELETE_ON_ERROR:

all: $(LIB) $(EXAMPLES)

# Installs what is missing (root or sudo on Debian and Ubuntu), else says what
# to install.  A second make then builds with what it installed.
setup:
	@tests/setup

test: setup
	@$(MAKE) --no-print-directory config=noexcept all
	@$(MAKE) --no-print-directory all $(BUILD)/tests/tests
	@BUILD=$(BUILD) tests/run

bench: setup
	@$(MAKE) --no-print-directory all $(BENCHES)
	@BUILD=$(BUILD) tests/bench/run

model: setup
	@MODEL_BUILD=build/model tests/model/run full

$(LIB): $(call objects,$(LIB_SOURCES))
	@rm -f $@
	$(AR) rcs $@ $^

# The scripted server of the tests speaks TLS and has its CRC-32 from zlib.
$(BUILD)/tests/tests: $(call objects,$(TEST_SOURCES)) $(LIB)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ -lssl -lz $(LDLIBS) -o $@

$(BUILD)/examples/%: $(BUILD)/examples/%.o $(LIB)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(LIB)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(call objects,$(LIB_SOURCES)) $(BUILD)/examples/%.o: \
  CXXFLAGS += $(LIBFLAGS_$(config))

$(BUILD)/%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -c $< -o $@

format:
	clang-format -i $$(git ls-files '*.cpp' '*.hpp')

clean:
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
