#!/usr/bin/env bash
# check_commits.sh [RANGE]: commit subjects read `area: verb ...`. Default: the commits that the main branch of origin lacks, or all
# of them where there is no such branch or it lacks none.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! git rev-parse --git-dir >/dev/null 2>&1; then
    echo "check_commits: NOT RUN, this is no git repository"
    exit 0
fi
range=${1:-HEAD}
if [ $# = 0 ] && git rev-parse -q --verify origin/main >/dev/null && [ "$(git rev-list --count origin/main..HEAD)" -gt 0 ]; then
    range=origin/main..HEAD
fi
bad=0
n=0
while IFS= read -r line; do
    subject=${line#* }
    n=$((n + 1))
    if ! [[ $subject =~ ^[a-z][a-z0-9_/.-]*:\ [a-z][^[:cntrl:]]*[^.[:space:]]$ ]] || [ ${#subject} -gt 100 ]; then
        echo "check_commits: ${line%% *}: expected \"area: verb ...\", at most 100 characters, no full stop; got \"$subject\""
        bad=1
    fi
done < <(git log --no-merges --format='%h %s' "$range")
[ $bad = 0 ] && echo "check_commits: $n subjects read as they should"
exit $bad
