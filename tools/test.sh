#!/bin/sh
# tools/test.sh [pytest options]: every test but the nightly ones, in three processes side by side.
# Those that need Spark wait for its server most of the time, and those in a browser for pages; the others
# use the cores meanwhile, and no long one is left to be run alone at the end.
set -u
cd "$(dirname "$0")/.." || exit
mkdir -p .cache

begin() { # begin NAME MARKS [pytest options]: its output goes to a file, which is shown when its turn comes
    name=$1 marks=$2
    shift 2
    pytest -m "$marks and not nightly" "$@" >".cache/$name-tests.log" 2>&1 &
}

begin spark "spark" "$@"
spark=$!
begin stateful "(browser or stateful) and not spark" "$@"
stateful=$!
trap 'kill "$spark" "$stateful" 2>/dev/null' INT TERM
pytest -m "not spark and not browser and not stateful and not nightly" "$@"
statuses=$?
for part in "stateful:$stateful" "spark:$spark"; do
    name=${part%%:*} process=${part##*:}
    echo "--- and the ${name} tests:"
    tail -n +1 -f --pid="$process" ".cache/$name-tests.log"
    wait "$process"
    statuses="$statuses $?"
done

# Pytest answers 5 where no test was chosen; options such as a file name may well choose of one kind only.
found=5
for status in $statuses; do
    case $status in
        0) if [ "$found" -eq 5 ]; then found=0; fi ;;
        5) ;;
        *) exit "$status" ;;
    esac
done
exit "$found"
