#!/usr/bin/env bash
# setup.sh [build|test|score]: installs what is missing on Debian 12 or Ubuntu 24.04, and nothing else. `build` is what the library and the
# program need; `test` adds what `make test` runs, `score` what `make demo-score` draws its scenes with. Does nothing, and needs no rights,
# where everything is there.
set -euo pipefail
export LC_ALL=C
mode=${1:-build}

build_packages=(build-essential cmake ninja-build pkg-config libjpeg-dev libpng-dev libwebp-dev libtiff-dev libexif-dev libheif-dev
    libutf8proc-dev libjansson-dev zlib1g-dev nettle-dev)
test_packages=(git python3 python3-venv pmccabe clang libcmocka-dev groff-base zsh fish)
score_packages=(python3 python3-numpy python3-pil fonts-noto-color-emoji)
modules=(libjpeg libpng libwebp libwebpdemux libtiff-4 libexif libutf8proc jansson zlib nettle)

fail() {
    echo "setup: $1" >&2
    exit 1
}

case $mode in
build | test | score) ;;
*) fail "expected build, test or score, got \"$mode\"" ;;
esac

# Elsewhere packages have other names: look for what they bring, and say what is missing.
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    missing=()
    tools=(cc cmake ninja pkg-config)
    if [ "$mode" = test ]; then
        modules+=(cmocka)
        tools+=(git python3 pmccabe clang groff zsh fish)
    fi
    for tool in "${tools[@]}"; do command -v $tool >/dev/null || missing+=("$tool"); done
    for module in "${modules[@]}"; do pkg-config --exists "$module" 2>/dev/null || missing+=("$module"); done
    [ ${#missing[@]} = 0 ] || fail "this system has no apt-get; install these by hand, then run make again: ${missing[*]}"
    echo "setup: no apt-get here, but all that a build needs is there"
    exit 0
fi

case $(dpkg --print-architecture) in
amd64)
    test_packages+=(qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
    ;;
esac

installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Clang's sanitizer runtimes come in a package whose name holds the version; which one, clang knows once it is there.
clang_runtime() {
    command -v clang >/dev/null || return 0
    local version
    version=$(clang -dumpversion)
    echo "libclang-rt-${version%%.*}-dev"
}

# Installs those of the named packages that are not there.
ensure() {
    local missing=() sudo=()
    for package in "$@"; do installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} = 0 ] && return 0
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "not root and no sudo; as root run: apt-get install ${missing[*]}"
        sudo=(sudo)
        [ -t 0 ] || sudo=(sudo -n) # nobody there to type a password
    fi
    echo "setup: installing ${missing[*]}"
    if [ -z "${updated:-}" ]; then
        "${sudo[@]}" apt-get update -qq -o Acquire::Retries=3 || fail "apt-get update failed (is there a network, and the right to run it?)"
        updated=1
    fi
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o Acquire::Retries=3 \
        -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null || fail "apt-get could not install: ${missing[*]}"
}

ensure "${build_packages[@]}"
if [ "$mode" = test ]; then
    ensure "${test_packages[@]}"
    runtime=$(clang_runtime)
    [ -n "$runtime" ] || fail "clang was installed, but is not in PATH"
    ensure "$runtime"
elif [ "$mode" = score ]; then
    ensure "${score_packages[@]}"
fi
echo "setup: everything for '$mode' is there"
