#!/usr/bin/env bash
# check_symbols.sh LIBSTENCIL.SO LIBSTENCIL.A: what the libraries show and hold.
# 1. The shared library exports exactly the functions that the public headers declare.
# 2. Every symbol with external linkage begins with st_, also in the static library.
# 3. Writable variables are only those listed, with a reason, in tools/mutable_state.allow.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
shared=$1
static=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# A declaration may span lines: ST_API ... name(
cat "$root"/include/stencil/*.h | tr '\n' ' ' | grep -oE 'ST_API [^;({]*\(' | grep -oE 'st_[a-z0-9_]+ *\($' |
    tr -d ' (' | sort -u >"$work/declared"
nm -D --defined-only "$shared" | awk '{print $3}' | sort -u >"$work/exported"
if [ ! -s "$work/declared" ] || [ ! -s "$work/exported" ]; then
    echo "check_symbols: found no declarations or no symbols: the check itself is broken"
    exit 1
fi
comm -23 "$work/declared" "$work/exported" | sed 's/^/declared but not exported: /' >"$work/report"
comm -13 "$work/declared" "$work/exported" | sed 's/^/exported but not declared in include: /' >>"$work/report"

nm -g --defined-only "$static" | awk 'NF == 3 && $3 !~ /^st_/ {print "external linkage without st_: " $3}' | sort -u >>"$work/report"

# .data and .bss of the static library, as "file.c:name"; .data.rel.ro is constant once loaded. Statics inside functions carry a numeric suffix.
objdump -t "$static" | awk '/file format/ {sub(/\.o:$/, "", $1); file = $1}
    / O / && /[ \t]\.(t?data|t?bss)(\.[a-z]+)*[ \t]/ && !/\.data\.rel\.ro/ {print file ":" $NF}' |
    sed -E 's/\.[0-9]+$//' | sort -u >"$work/state"
sed -E 's/#.*//; s/[ \t].*//' "$root/tools/mutable_state.allow" | grep -v '^$' | sort -u >"$work/allowed" || true
comm -23 "$work/state" "$work/allowed" | sed 's/^/writable global state: /' >>"$work/report"

if [ -s "$work/report" ]; then
    sed 's/^/check_symbols: /' "$work/report"
    bad=1
fi
[ $bad = 0 ] && echo "check_symbols: $(wc -l <"$work/exported") exported symbols, all declared"
exit $bad
