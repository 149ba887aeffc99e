#!/bin/sh
# emulated.sh: kcheck on CPUs that this machine is not, under qemu-user.
#   emulated.sh SOURCE_DIR aarch64           builds kernels, base and kcheck for AArch64, static and without libraries, and runs them:
#                                            NEON with and without SDOT
#   emulated.sh SOURCE_DIR x86_64 KCHECK     the same for x86-64 as a Haswell (AVX2), then KCHECK, a build with its libraries, as a Nehalem (ref
#                                            only): no illegal instruction, levels that such a CPU lacks are not run
# Products of many multiplications are left out (--small) and counted.
# Ends with 77 (skipped) when a compiler or emulator is not there.
set -eu
src=$1
need() { command -v "$1" >/dev/null || { echo "NOT RUN: $1 is not installed"; exit 77; }; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
avx512='-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c'

build() { # build OUTPUT COMPILER ARCH SOURCES... with -m flags per folder
    out=$1 cc=$2 arch=$3
    shift 3
    flags="-std=gnu11 -D_GNU_SOURCE -D$arch=1 -O2 -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -I$src/include -I$src/src -I$src/tests/kcheck"
    mkdir "$work/o.$out"
    for f in "$src"/tests/kcheck/*.c "$src"/src/kernels/*.c "$src"/src/kernels/ref/*.c "$src"/src/base/*.c "$@"; do
        case $f in
        */avx2/*) isa='-mavx2 -mfma -mf16c' ;;
        */avx2_vnni/*) isa='-mavx2 -mfma -mf16c -mavxvnni' ;;
        */avx512/*) isa=$avx512 ;;
        */avx512_vnni/*) isa="$avx512 -mavx512vnni" ;;
        */amx/*) isa="$avx512 -mavx512vnni -mamx-tile -mamx-int8" ;;
        */neon_dot/*) isa='-march=armv8.2-a+dotprod' ;;
        *) isa= ;;
        esac
        # shellcheck disable=SC2086
        "$cc" $flags $isa -c "$f" -o "$work/o.$out/$(basename "$f").o"
    done
    "$cc" -static -o "$work/$out" "$work/o.$out"/*.o -lm -lpthread
}

run() { # run OUTPUT_MUST_HAVE COMMAND...
    must=$1
    shift
    echo "+ $*"
    "$@" >"$work/report" || { head -40 "$work/report"; exit 1; }
    cat "$work/report"
    grep -q "$must" "$work/report" || { echo "FAIL: the report does not say: $must"; exit 1; }
}

# Without the features that qemu cannot do, which it would warn of for every process.
haswell=Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm
case $2 in
aarch64)
    need aarch64-linux-gnu-gcc
    need qemu-aarch64
    build kcheck aarch64-linux-gnu-gcc ST_ARCH_ARM "$src"/src/kernels/neon/*.c "$src"/src/kernels/neon_dot/*.c
    run 'neon  *[1-9][0-9]* passed, 0 failed' qemu-aarch64 -cpu max "$work/kcheck" --small --expect neon --expect neon-dot
    run 'neon-dot  *NOT RUN' qemu-aarch64 -cpu cortex-a57 "$work/kcheck" --small --level neon-dot --expect neon --only gemm_u8s8
    ;;
x86_64)
    need qemu-x86_64
    build kcheck cc ST_ARCH_X86 "$src"/src/kernels/avx2/*.c "$src"/src/kernels/avx2_vnni/*.c "$src"/src/kernels/avx512/*.c \
        "$src"/src/kernels/avx512_vnni/*.c "$src"/src/kernels/amx/*.c
    run 'avx512  *NOT RUN' qemu-x86_64 -cpu $haswell "$work/kcheck" --small --level avx2 --level avx512 --expect avx2
    run 'avx2  *NOT RUN' qemu-x86_64 -cpu Nehalem "$3" --small --level avx2 --expect ref --only @start
    ;;
*)
    echo "emulated.sh: unknown CPU family $2" >&2
    exit 2
    ;;
esac
