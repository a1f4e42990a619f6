#!/bin/sh
# tools/test.sh all|fast [pytest options]: the tests of `make test` or of `make fast`, in processes side by side.
# Those that need Spark wait for its server most of the time, and those in a browser for pages; the others,
# in two processes, use the cores meanwhile. With options one process runs the others: a path that
# is named belongs to one of the two only.
set -u
case "${1:-}" in
    all | fast) which=$1 ;;
    *) echo "tools/test.sh takes all or fast first, and then pytest's options." >&2 && exit 2 ;;
esac
shift
cd "$(dirname "$0")/.." || exit
mkdir -p .cache
started='' interrupted=''

# A commit waits for the disk a few times, which thousands of tests need not do: their folders are in memory
# where there is room for them. What a test that failed has left is kept.
if [ "$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')" -gt 6000000 ] 2>/dev/null; then
    PYTEST_DEBUG_TEMPROOT=$(mktemp -d /dev/shm/freezeframe-tests.XXXXXX)
    export PYTEST_DEBUG_TEMPROOT
fi

begin() { # begin NAME MARKS [pytest options]: its output goes to a file, which is shown when its turn comes
    name=$1 marks=$2
    rm -rf ".cache/pytest/$1"
    shift 2
    : >".cache/$name-tests.log" # `follow` may look at it before the process has begun
    pytest -o tmp_path_retention_policy=failed -o cache_dir=".cache/pytest/$name" -m "$marks and not nightly" "$@" \
        >".cache/$name-tests.log" 2>&1 &
    started="$name:$! $started"
}

others="not spark and not browser and not stateful"
if [ "$which" = fast ]; then
    others="$others and not long"
else
    begin spark "spark" "$@"
    begin browser "(browser or stateful) and not spark" "$@"
fi
if [ $# -eq 0 ]; then
    begin store "$others" tests/store tests/log tests/storage
    begin other "$others" tests --ignore=tests/store --ignore=tests/log --ignore=tests/storage
else
    begin other "$others" "$@"
fi

follow() { # follow LOG PROCESS: shows what the process writes, until it has ended (macOS has no tail --pid)
    shown=0 is_over=''
    while [ -z "$is_over" ]; do
        kill -0 "$2" 2>/dev/null || is_over=yes
        size=$(wc -c <"$1")
        if [ "$size" -gt "$shown" ]; then tail -c +$((shown + 1)) "$1" | head -c $((size - shown)); fi
        shown=$size
        if [ -z "$is_over" ]; then sleep 1; fi
    done
}

processes=$(for part in $started; do echo "${part##*:}"; done)
# shellcheck disable=SC2086 # each of the numbers is a word
trap 'kill $processes 2>/dev/null; interrupted=yes' INT TERM

statuses='' failed=''
for part in $started; do
    name=${part%%:*} process=${part##*:}
    echo "--- the $name tests:"
    follow ".cache/$name-tests.log" "$process"
    wait "$process"
    status=$?
    if [ "$status" -eq 1 ]; then failed="$failed $name"; else statuses="$statuses $status"; fi
done

# Four parts on two cores leave a test waiting for seconds at a time. Up to three tests that failed there are run
# once more with nothing beside them, and named: what fails again, or more than three, fails the run.
for name in $failed; do
    count=$(grep -c '": true' ".cache/pytest/$name/v/cache/lastfailed" || true)
    if [ -z "$interrupted" ] && [ "$count" -ge 1 ] && [ "$count" -le 3 ]; then
        echo "--- $count of the $name tests failed beside the others; alone:"
        pytest -o tmp_path_retention_policy=failed -o cache_dir=".cache/pytest/$name" -m "not nightly" \
            --last-failed --last-failed-no-failures none -v
        statuses="$statuses $?"
    else
        statuses="$statuses 1"
    fi
done

remove_folders() {
    if [ -n "${PYTEST_DEBUG_TEMPROOT:-}" ]; then rm -rf "$PYTEST_DEBUG_TEMPROOT"; fi
}

if [ -n "$interrupted" ]; then remove_folders; fi
# Pytest answers 5 where no test was chosen; options such as a file name may well choose of one kind only.
found=5
for status in $statuses; do
    case $status in
        0) if [ "$found" -eq 5 ]; then found=0; fi ;;
        5) ;;
        *) exit "$status" ;;
    esac
done
remove_folders
exit "$found"
