#!/usr/bin/env bash
# ci.sh STAGE...: the checks, one stage or several; a laptop and the CI service run the same ones.
#   style    include rule, banned functions, looks of the text, size gate, commit subjects, and tests of these checks
#   build    with GCC and with Clang, warnings are errors
#   test     all tests, GCC, at the best CPU level
#   levels   the tests whose answers depend on the kernels, again at lower CPU levels
#   asan     all tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan     the threaded tests under ThreadSanitizer
#   arm      kernels and kcheck, cross-built for 64-bit Arm, under qemu-user; and on older x86-64 CPUs
#   readers  exported labels read back by public tools from PyPI (needs a network the first time)
#   install  install into a folder; build and run examples/ against it, shared and static
#   fuzz     every fuzz target with libFuzzer, FUZZ_SECONDS (60) each; not part of `all`
#   all      everything but fuzz
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
started=$SECONDS

# Tests in which several threads work at once; the others would tell ThreadSanitizer nothing new.
threaded='^unit\.(base_pool|base_status|engine|tensor_int8|.*thread|.*session|.*parallel)'

# Tests whose answers depend on the kernels.
level_tests='^(golden\.|unit\.(engine|tensor|vision|mask_upsample|kernels)|cli\.(answers|objects|quantizeanswers)$)'

# kcheck.all checks each level already; other CPUs are stage arm's.
run_elsewhere='^kcheck\.(ref|avx.*|amx|neon.*|emulated\..*)$'

say() {
    printf '\n=== %s (%d s)\n' "$1" $((SECONDS - started))
}

# build PRESET [TARGET...]
build() {
    local preset=$1
    shift
    cmake --preset "$preset" >"$(log "$preset")" || { cat "$(log "$preset")"; return 1; }
    cmake --build --preset "$preset" ${1:+--target "$@"} -- --quiet -k 0
}

log() {
    mkdir -p build
    echo "build/configure-$1.log"
}

# run_tests PRESET [CTEST OPTION...]: no test at all is a failure.
run_tests() {
    local preset=$1
    shift
    ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --timeout 900 -j2 "$@" | grep -vE '^ +Start +[0-9]+:|^ *$'
}

# Some kernels place mappings where older ThreadSanitizers do not expect them.
fixed_addresses() {
    if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

cpu_has() {
    local flag
    for flag in "$@"; do grep -m1 '^flags' /proc/cpuinfo | grep -qw "$flag" || return 1; done
}

stage_style() {
    python3 tools/check_includes.py
    python3 tools/check_text.py
    tools/size_gate.sh
    tools/check_commits.sh
    (cd tools && python3 checks_test.py)
}

stage_build() {
    build gcc
    build clang
}

stage_test() {
    build gcc
    run_tests gcc -E "$run_elsewhere"
}

stage_levels() {
    local levels=(ref) level best
    build gcc
    best=ref
    if [ "$(uname -m)" = x86_64 ]; then
        levels=(ref avx2 avx512)
        cpu_has avx2 fma && best=avx2
        [ $best = avx2 ] && cpu_has avx_vnni && best=avx2-vnni
        [ $best != ref ] && cpu_has avx512f avx512bw avx512dq avx512vl && best=avx512
        [ $best = avx512 ] && cpu_has avx512_vnni && best=avx512-vnni
    fi
    for level in "${levels[@]}"; do
        if [ "$level" = "$best" ]; then
            echo "level $level: the best of this CPU, run by stage test"
        elif { [ "$level" = avx512 ] && [ $best != avx512-vnni ]; } || { [ "$level" = avx2 ] && [ $best = ref ]; }; then
            echo "level $level: NOT RUN, this CPU lacks it"
        else
            echo "level $level:"
            # What does not depend on the level, or goes through all of them by itself, has run already.
            ST_CPU_MASK=$level run_tests gcc -R "$level_tests"
        fi
    done
}

stage_asan() {
    export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:${ASAN_OPTIONS:-}
    export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS:-}
    build asan
    run_tests asan -E "^headers\.|$run_elsewhere"
}

stage_tsan() {
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS:-}
    build tsan
    fixed_addresses ctest --test-dir build/tsan --output-on-failure --no-tests=error --timeout 900 -j2 -R "$threaded"
}

stage_arm() {
    if [ "$(uname -m)" = aarch64 ]; then
        echo "level neon: the best of this CPU, run by stage test"
        return 0
    fi
    local tool
    for tool in aarch64-linux-gnu-gcc qemu-aarch64 qemu-x86_64; do
        command -v $tool >/dev/null || { echo "arm: $tool is not installed: tools/setup.sh test brings it"; return 1; }
    done
    build aarch64
    run_tests aarch64
    # And x86-64 CPUs that lack what this one has: no illegal instruction, and the missing levels are not run.
    build gcc
    run_tests gcc -R '^kcheck\.emulated\.x86_64$'
}

stage_readers() {
    build gcc stencil label_make_store
    tools/label_readers.sh build/gcc
}

stage_install() {
    local prefix=$PWD/build/installed example name
    build gcc
    rm -rf "$prefix"
    cmake --install build/gcc --prefix "$prefix" >/dev/null
    tools/check_install.sh "$prefix"
}

stage_fuzz() {
    local seconds=${FUZZ_SECONDS:-60} target topic n=0 targets=()
    cmake --preset fuzz >"$(log fuzz)" || { cat "$(log fuzz)"; return 1; }
    for target in tests/fuzz/*_fuzz.c; do targets+=("$(basename "$target" .c)"); done
    cmake --build --preset fuzz --target "${targets[@]}" -- --quiet -k 0
    for target in "${targets[@]}"; do
        topic=${target%_fuzz}
        echo "fuzz $topic: $seconds s"
        mkdir -p "build/fuzz/work/$topic" build/fuzz/findings
        # New inputs go to the working folder, findings beside it; the committed corpus is only read.
        "build/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -malloc_limit_mb=2048 -print_final_stats=1 \
            -artifact_prefix="build/fuzz/findings/$topic-" "build/fuzz/work/$topic" "tests/fuzz/corpus/$topic" >"build/fuzz/$topic.log" 2>&1 || {
            tail -60 "build/fuzz/$topic.log"
            echo "fuzz $topic: FAILED, the input is in build/fuzz/findings"
            return 1
        }
        grep -E 'number_of_executed_units|peak_rss' "build/fuzz/$topic.log"
        n=$((n + 1))
    done
    [ $n -gt 0 ] || { echo "fuzz: no targets"; return 1; }
    echo "fuzz: $n targets, nothing found"
}

[ $# -gt 0 ] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
stages=()
for name in "$@"; do
    case $name in
    all) stages+=(style build test readers install asan tsan levels arm) ;;
    style | build | test | readers | levels | asan | tsan | arm | install | fuzz) stages+=("$name") ;;
    *) echo "ci.sh: unknown stage \"$name\"" >&2; exit 2 ;;
    esac
done
for name in "${stages[@]}"; do
    say "$name"
    # In a shell of its own, so that one stage's environment is not the next one's. Not in a condition: that would switch `set -e` off.
    ( "stage_$name" )
done
say "passed: ${stages[*]}"
