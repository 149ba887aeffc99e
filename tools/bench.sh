#!/usr/bin/env bash
# bench.sh [DIR]: every benchmark, after a line on the machine it ran on. DIR holds the built programs (default build/).
# BENCH_THREADS sets the threads (default 2); STENCIL_MODEL the model of the last two (default: the demo model). Numbers of a busy machine mean
# little: the load is printed as well. Stencil against PyTorch, interleaved, is tests/reference/speed.py: it needs a Python with torch.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
threads=${BENCH_THREADS:-2}

echo "CPU: $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
echo "governor: $(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null || echo unknown)"
echo "commit: $(git describe --always --dirty 2>/dev/null || echo unknown)"
compile=$(grep -m 1 '"command": .*/src/engine/model\.c' "$build/compile_commands.json" || true)
echo "compiler: $(sed -n 's/^CMAKE_C_COMPILER:[^=]*=//p' "$build/CMakeCache.txt"), $(grep -oE -- ' -(O[^ ]*|g|march=[^ ]*|fsanitize=[^ ]*)' <<<"$compile" | tr -d '\n')"
run() {
    echo
    echo "== $*"
    "$build/$1" "${@:2}" --threads "$threads"
}
run stage_bench
run stencil bench masks
run stencil bench picture -m "${STENCIL_MODEL:-models/demo}"
run label_bench --model "${STENCIL_MODEL:-models/demo}"
echo
echo "Against PyTorch, with random weights of the published sizes: tests/reference/speed.py (docs/SPEED.md says how)"
