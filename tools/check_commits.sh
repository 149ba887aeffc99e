#!/usr/bin/env bash
# check_commits.sh [RANGE]: commit subjects read `area: verb ...`. Default: the commits that the main branch of origin lacks, the last one where
# it lacks none, all of them where there is no such branch.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! git rev-parse --git-dir >/dev/null 2>&1; then
    echo "check_commits: NOT RUN, this is no git repository"
    exit 0
fi
range=${1:-HEAD}
if [ $# = 0 ] && git rev-parse -q --verify origin/main >/dev/null; then
    range=origin/main..HEAD
    [ "$(git rev-list --no-merges --count $range)" -gt 0 ] || range="-1"
fi
bad=0
n=0
while IFS= read -r line; do
    subject=${line#* }
    n=$((n + 1))
    # A capital is fine where an acronym stands first.
    if ! [[ $subject =~ ^[a-z][a-z0-9_/.-]*:\ ([a-z]|[A-Z][A-Z0-9])[^[:cntrl:]]*[^.[:space:]]$ ]] || [ ${#subject} -gt 100 ]; then
        echo "check_commits: ${line%% *}: expected \"area: verb ...\", at most 100 characters, no full stop; got \"$subject\""
        bad=1
    fi
done < <(git log --no-merges --format='%h %s' "$range")
[ $bad = 0 ] && echo "check_commits: $n subjects read as they should"
exit $bad
