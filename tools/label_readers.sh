#!/usr/bin/env bash
# label_readers.sh BUILD: exported labels read back by the tools they are meant for (tests/reference/readers.txt), in a virtual environment
# of their own below BUILD, made once. Ultralytics brings torch: it is taken from ST_READERS_PYTHON, a Python that has it all, or left out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/gcc}
without=()
if [ -n "${ST_READERS_PYTHON:-}" ]; then
    python=$ST_READERS_PYTHON
else
    python=$build/readers/bin/python
    without=(--without ultralytics)
    if ! [ -e "$build/readers/ready" ]; then
        python3 -m venv "$build/readers"
        "$python" -m pip install --quiet --disable-pip-version-check -r tests/reference/readers.txt
        touch "$build/readers/ready"
    fi
fi
YOLO_OFFLINE=1 YOLO_AUTOINSTALL=false "$python" tests/reference/label_readers.py "$build/stencil" "$build/label_make_store" "${without[@]}"
