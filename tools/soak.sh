#!/usr/bin/env bash
# soak.sh: what `make test` has no time for, SOAK_ROUNDS (default 20) of each: kcheck with new seeds at every level, the threaded tests
# again and again with and without ThreadSanitizer, every fuzz target for SOAK_FUZZ_SECONDS (default 600), one process that segments
# the demo picture over and over, whose memory must stop growing, one that labels SOAK_PICTURES (default 2000) in flat memory, and labelling
# runs killed at other moments each time. Hours rather than minutes.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
. tools/demo_settings.sh
rounds=${SOAK_ROUNDS:-20}
threaded='^unit\.(base_pool|engine|.*thread|.*session|.*parallel)'

echo "== kernels, $rounds seeds"
cmake --preset gcc >/dev/null
cmake --build --preset gcc -- --quiet
first=${SOAK_SEED:-$(date +%s)}
for ((seed = first; seed < first + rounds; seed++)); do
    build/gcc/kcheck --small --seed "$seed" >build/soak.log || { cat build/soak.log; echo "soak: kcheck --small --seed $seed failed"; exit 1; }
    tail -n 1 build/soak.log
done

echo "== threaded tests, $rounds times"
ctest --test-dir build/gcc --output-on-failure --no-tests=error -R "$threaded" --repeat "until-fail:$rounds"
tools/ci.sh tsan
ctest --test-dir build/tsan --output-on-failure --no-tests=error -R "$threaded" --repeat "until-fail:$rounds"

# Peak memory of n pictures in one process, in kB.
peak() {
    local pictures=() i
    for ((i = 0; i < $1; i++)); do pictures+=(--picture "$DEMO_PICTURE"); done
    python3 - "${pictures[@]}" <<PY
import resource, subprocess, sys
subprocess.run(['build/gcc/stencil', 'segment', '--quiet', '-m', '$DEMO_MODEL', '--phrase', '$DEMO_PHRASE', '-o', '/dev/null', *sys.argv[1:]],
               check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PY
}
echo "== memory of one process over many pictures"
few=$(peak 10)
many=$(peak $((10 * rounds)))
echo "peak after 10 pictures: $few kB, after $((10 * rounds)): $many kB"
# Results are kept until the end; a picture's instances are a few tens of kB.
[ "$many" -lt $((few + few / 10 + 10 * rounds * 64)) ] || { echo "soak: memory grows with the number of pictures"; exit 1; }

echo "== memory and open files of a labelling run"
python3 tests/cli/label_soak.py build/gcc/stencil "${SOAK_PICTURES:-2000}"

echo "== labelling runs killed"
for ((i = 0; i < rounds / 4; i++)); do SEED=$((first + i)) python3 tests/cli/label_kill_test.py build/gcc/stencil; done

echo "== fuzzing"
FUZZ_SECONDS=${SOAK_FUZZ_SECONDS:-600} tools/ci.sh fuzz
echo "soak: passed"
