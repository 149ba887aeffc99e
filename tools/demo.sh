#!/usr/bin/env bash
# demo.sh PROGRAM OVERLAY: the bundled picture, the bundled model, one phrase; says where the outlined picture is.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/demo_settings.sh
set -x
"$1" segment --picture "$DEMO_PICTURE" --phrase "$DEMO_PHRASE" -m "$DEMO_MODEL" --overlay "$2"
{ set +x; } 2>/dev/null
echo
echo "The picture with every instance of \"$DEMO_PHRASE\" outlined: $2"
