#!/usr/bin/env bash
# size_gate.sh [FILE...]: no function over 120 lines or a complexity of 25 (pmccabe, modified McCabe), no file over 800 lines, unless
# tools/size_gate.allow lists it with a reason. An entry that no longer needs to be there fails as well. Default: every C file of src/.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
allow=${SIZE_GATE_ALLOW:-tools/size_gate.allow}
if [ $# = 0 ]; then
    mapfile -t files < <(find src -name '*.c' | sort)
else
    files=("$@")
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pmccabe's columns: modified complexity, traditional, statements, first line, lines, "file(line): function"
pmccabe "${files[@]}" >"$work/measured"
n=$(wc -l <"$work/measured")
if [ "$n" = 0 ]; then
    echo "size_gate: found no functions: the check itself is broken"
    exit 1
fi
awk -F'\t' -v L=120 -v C=25 '$5 > L || $1 > C {
    split($6, at, /\([0-9]+\): /); print at[1] ":" at[2] "\t" $5 " lines, complexity " $1 }' "$work/measured" >"$work/big"
wc -l "${files[@]}" | awk '$2 != "total" && $1 > 800 {print $2 "\t" $1 " lines"}' >>"$work/big"
sed -E 's/#.*//; s/[ \t]+$//' "$allow" 2>/dev/null | awk 'NF == 1 {print "size_gate: " $1 ": listed without a reason"; bad = 1}
    NF > 1 {print $1 >listed} END {exit bad}' listed="$work/listed" || exit 1
touch "$work/listed"

bad=0
while IFS=$'\t' read -r name what; do
    if ! grep -qxF "$name" "$work/listed"; then
        echo "size_gate: $name: $what (limits: 120 lines, complexity 25; files 800 lines)"
        bad=1
    fi
done <"$work/big"
if [ $# = 0 ]; then
    while read -r name; do
        if ! cut -f1 "$work/big" | grep -qxF "$name"; then
            echo "size_gate: $name: listed in $allow, but within the limits: drop the entry"
            bad=1
        fi
    done <"$work/listed"
fi
[ $bad = 0 ] && echo "size_gate: $n functions within the limits"
exit $bad
