#!/usr/bin/env bash
# label_readers.sh BUILD [PYTHON]: exported labels read back by public tools (tests/reference/readers.txt), in a virtual environment of their own
# below build/, made once and again when the list changes. With PYTHON, one that has torch, also by those of readers_more.txt. BUILD holds the
# built stencil and label_make_store.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
torch_python=${2:-}
lists=(tests/reference/readers.txt)
readers=(pycocotools pillow supervision labelme label-studio-sdk)
venv=build/readers
python=python3
[ -x /usr/bin/python3 ] && python=/usr/bin/python3 # the one that setup.sh installs modules for
if [ -n "$torch_python" ]; then
    lists+=(tests/reference/readers_more.txt)
    readers+=(datumaro ultralytics)
    venv=build/readers-more
    python=$torch_python
fi

fail() {
    echo "label_readers: NOT RUN: $1" >&2
    exit 1
}

made_of() {
    cat "${lists[@]}"
    "$python" -VV
}

if ! made_of | cmp -s - "$venv/made-of"; then
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "$python cannot make a virtual environment (python3-venv is missing?)"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: "${lists[@]/#/--requirement=}" ||
        fail "pip could not install the packages of ${lists[*]}: is there a network, and a package index that it can reach?"
    if [ -n "$torch_python" ]; then # torch is where the reference has it; what is pinned here comes first
        "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$(echo "$venv"/lib/python3*/site-packages)/reference.pth"
    fi
    made_of >"$venv/made-of"
fi
YOLO_OFFLINE=1 YOLO_AUTOINSTALL=false "$venv/bin/python" -W ignore tests/reference/label_readers.py "$build/stencil" "$build/label_make_store" "${readers[@]}"
echo "label_readers: ${readers[*]}: all read what was written"
