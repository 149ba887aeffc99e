# The front door. CMake does the building (see CMakePresets.json), tools/ci.sh the checking; this file only names the things one does.
SHELL := /bin/bash
BUILD ?= build
PREFIX ?= /usr/local
CMAKE_FLAGS ?=
FUZZ_SECONDS ?= 60
# The system's own: the one that setup.sh installs modules for.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)

.DEFAULT_GOAL := build
.PHONY: build setup demo test bench parity soak demo-score fuzz asan tsan style install clean help

build: $(BUILD)/build.ninja ## build the library and the program: build/stencil
	@cmake --build $(BUILD)

$(BUILD)/build.ninja: CMakeLists.txt $(wildcard cmake/*.cmake)
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DST_TESTS=OFF $(CMAKE_FLAGS)

setup: ## install what a build needs (Debian 12, Ubuntu 24.04)
	@tools/setup.sh build

demo: setup ## set up, build, segment the bundled picture with the bundled model
	@$(MAKE) --no-print-directory build
	@tools/demo.sh $(BUILD)/stencil $(BUILD)/demo.png

test: ## set up, then every check that fits in a few minutes: style, build, tests, readers of labels, sanitizers, CPU levels, Arm, install
	@tools/setup.sh test
	@tools/ci.sh all

bench: build ## measure every stage, one picture and phrase, and masks (BENCH_THREADS=2)
	@tools/bench.sh $(BUILD)

parity: ## full-size comparison with the reference in PyTorch (ST_REFERENCE_PYTHON: a Python with torch)
	@tools/parity.sh

soak: ## hours of it: new seeds, threads, memory over many pictures, fuzzing
	@tools/soak.sh

demo-score: ## recall and precision of the demo model on generated scenes, and of small objects in large ones with tiles
	@tools/setup.sh score
	@$(MAKE) --no-print-directory build
	@$(PYTHON) models/demo/score.py --stencil $(BUILD)/stencil
	@$(PYTHON) models/demo/tile_score.py --stencil $(BUILD)/stencil --check

fuzz: ## every fuzz target with libFuzzer, FUZZ_SECONDS each
	@tools/setup.sh test
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/ci.sh fuzz

asan: ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/setup.sh test
	@tools/ci.sh asan

tsan: ## the threaded tests under ThreadSanitizer
	@tools/setup.sh test
	@tools/ci.sh tsan

style: ## the checks that need no build
	@tools/ci.sh style

install: build ## install to PREFIX (default /usr/local), below DESTDIR if given
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

clean: ## remove everything that was built
	@rm -rf $(BUILD)

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'
