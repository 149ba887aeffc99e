#!/bin/sh
# Makes every committed golden anew from the reference implementations and compares: `tests/reference/regenerate.sh [--write] [SET…]`.
# Needs the packages of requirements.txt in the Python named by ST_REFERENCE_PYTHON (default: python3). About two minutes on two cores.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${ST_REFERENCE_PYTHON:-python3}
if ! "$python" -c 'import torch, transformers, safetensors, open_clip, pycocotools, skimage' 2>/dev/null; then
    echo "regenerate.sh: $python lacks the reference packages; try: python3 -m venv ref && ref/bin/pip install -r $here/requirements.txt" >&2
    echo "then: ST_REFERENCE_PYTHON=ref/bin/python $0" >&2
    exit 1
fi
exec "$python" "$here/goldens.py" "$@"
