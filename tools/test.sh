#!/bin/sh
# tools/test.sh [pytest options]: every test but the nightly ones, in two processes side by side.
# Those that need Spark wait for its server most of the time; the others use the second core meanwhile.
set -u
cd "$(dirname "$0")/.." || exit
mkdir -p .cache
log=.cache/spark-tests.log

pytest -m "spark and not nightly" "$@" >"$log" 2>&1 &
with_spark=$!
trap 'kill "$with_spark" 2>/dev/null' INT TERM
pytest -m "not spark and not nightly" "$@"
others=$?
echo "--- and the tests that need Spark:"
tail -n +1 -f --pid="$with_spark" "$log"
wait "$with_spark"
spark=$?

# Pytest answers 5 where no test was chosen; options such as a file name may well choose of one kind only.
if [ "$others" -eq 5 ] && [ "$spark" -eq 5 ]; then exit 5; fi
for status in "$others" "$spark"; do
    if [ "$status" -ne 0 ] && [ "$status" -ne 5 ]; then exit "$status"; fi
done
