#!/usr/bin/env bash
# check_install.sh PREFIX: the installed tree as a user meets it: all parts there, each example builds against it with pkg-config, shared and
# static, with GCC and Clang where there, and runs; the installed program runs; no installed file names the folder it was built in.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
. tools/demo_settings.sh
prefix=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "check_install: $1"
    exit 1
}

pc=$(find "$prefix" -name stencil.pc)
[ -n "$pc" ] || fail "no stencil.pc was installed"
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*} LD_LIBRARY_PATH=$libdir
[ "$(pkg-config --modversion stencil)" = "$("$prefix/bin/stencil" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)" ] ||
    fail "stencil.pc and stencil --version disagree on the version"
for header in include/stencil/*.h; do cmp "$header" "$prefix/$header" || fail "$header was not installed"; done
for file in share/man/man1/stencil.1 share/bash-completion/completions/stencil share/zsh/site-functions/_stencil \
    share/fish/vendor_completions.d/stencil.fish share/doc/stencil/LICENSE share/doc/stencil/NOTICE; do
    [ -s "$prefix/$file" ] || fail "$file was not installed"
done
if grep -l "$PWD" "$pc" "$prefix"/include/stencil/*.h; then fail "these name the folder they were built in"; fi

# The libraries that a static link must name itself; the example is linked with libstencil.a and everything else shared.
read -ra cflags < <(pkg-config --cflags stencil)
read -ra shared < <(pkg-config --libs stencil)
read -ra static < <(pkg-config --static --libs stencil)
static=("${static[@]/#-lstencil/-l:libstencil.a}")
warnings=(-Wall -Wextra -Wpedantic -Werror)
n=0
for compiler in gcc clang; do
    command -v $compiler >/dev/null || { echo "check_install: examples with $compiler: NOT RUN, it is not there"; continue; }
    for source in examples/*.c; do
        name=$(basename "$source" .c)
        $compiler -std=c99 "${warnings[@]}" "${cflags[@]}" "$source" -o "$work/$name-shared" "${shared[@]}"
        $compiler -std=c99 "${warnings[@]}" "${cflags[@]}" "$source" -o "$work/$name-static" "${static[@]}"
        readelf -d "$work/$name-shared" | grep -q 'NEEDED.*libstencil\.so\.0' || fail "$name is not linked with the shared library"
        ! readelf -d "$work/$name-static" | grep -q 'NEEDED.*libstencil' || fail "$name is not linked with the static library"
        for kind in shared static; do
            "$work/$name-$kind" "$DEMO_MODEL" "$DEMO_PICTURE" "$DEMO_PHRASE" >"$work/$name-$kind.out" || fail "$name ($kind) failed"
            [ -s "$work/$name-$kind.out" ] || fail "$name ($kind) printed nothing"
        done
        cmp "$work/$name-shared.out" "$work/$name-static.out" || fail "$name prints different things with the two libraries"
        n=$((n + 1))
    done
done
[ $n -gt 0 ] || fail "no example was built"
"$prefix/bin/stencil" segment --picture "$DEMO_PICTURE" --phrase "$DEMO_PHRASE" -m "$DEMO_MODEL" >"$work/out.json"
[ -s "$work/out.json" ] || fail "the installed program printed nothing"

# The same tree, moved: pkg-config must still find its way.
cp -a "$prefix" "$work/moved"
PKG_CONFIG_PATH=$work/moved/${pc#"$prefix"/}
PKG_CONFIG_PATH=${PKG_CONFIG_PATH%/*} pkg-config --cflags stencil | grep -q "$work/moved" || fail "stencil.pc does not move with its tree"
echo "check_install: $n builds of examples, shared and static, ran"
