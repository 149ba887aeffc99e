#!/usr/bin/env bash
# bench.sh [DIR]: every benchmark, after a line on the machine it ran on. DIR holds the built programs (default build/).
# BENCH_THREADS sets the threads (default 2). Numbers of a busy machine mean little: the load is printed as well.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
threads=${BENCH_THREADS:-2}

echo "CPU: $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
echo "governor: $(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null || echo unknown)"
echo "commit: $(git describe --always --dirty 2>/dev/null || echo unknown)"
echo "compiler: $(sed -n 's/^CMAKE_C_COMPILER:[^=]*=//p' "$build/CMakeCache.txt"), $(sed -n 's/^CMAKE_C_FLAGS_RELEASE:[^=]*=//p' "$build/CMakeCache.txt")"
n=0
for source in bench/*_bench.c; do
    program=$build/$(basename "$source" .c)
    echo
    echo "== $(basename "$program") --threads $threads"
    "$program" --threads "$threads"
    n=$((n + 1))
done
[ $n -gt 0 ] || { echo "bench: there are no benchmarks"; exit 1; }
