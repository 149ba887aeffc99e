#!/usr/bin/env bash
# parity.sh: exported labels read by the tools they are meant for (label_readers.sh); the demo model in stock transformers: does it load as it
# is, and does it score the same there on DEMO_SCENES (default 100) scenes as in Stencil; labels of the demo model on LABEL_SCENES (default
# 300) scenes, scored beside the reference's own answers; then full-size models with seeded random weights, stage by stage and end to end
# against the reference modules in PyTorch. Needs a Python with the packages of tests/reference/requirements.txt, named by
# ST_REFERENCE_PYTHON (default python3), and about 20 GB of memory.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${ST_REFERENCE_PYTHON:-python3}
if ! "$python" -c 'import torch, transformers, safetensors' 2>/dev/null; then
    echo "parity: NOT RUN: $python has no torch, transformers or safetensors; see tests/reference/README.md, then set ST_REFERENCE_PYTHON" >&2
    exit 1
fi
cmake --preset gcc >/dev/null
cmake --build --preset gcc --target golden_test stencil label_make_store -- --quiet
tools/label_readers.sh build/gcc "$python"
"$python" tests/reference/demo_loads.py
"$python" tests/reference/demo_scores.py --stencil build/gcc/stencil --scenes "${DEMO_SCENES:-100}"
"$python" tests/reference/label_parity.py --stencil build/gcc/stencil --scenes "${LABEL_SCENES:-300}"
exec "$python" tests/reference/parity.py "$@"
