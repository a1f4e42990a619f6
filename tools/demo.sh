#!/bin/sh
# tools/demo.sh [DIR]: two syncs of a tenant what the second one changed and what it would send, by the commands that a user types.
# DIR, a new or an empty folder, keeps the project; without it the project is removed at the end.
set -eu
# The project's own settings decide where the store is.
unset FREEZEFRAME_ROOT FREEZEFRAME_CONFIG FREEZEFRAME_ENVIRONMENT

folder=${1:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'cd / && rm -rf "$folder"' EXIT
fi

run() { # COMMAND ...: shows a command, and runs it
    printf '\n$ %s\n' "$*"
    "$@"
}

run freezeframe init "$folder"
run cd "$folder"
run freezeframe run etl.py --tenant acme --input sync-1
run freezeframe run etl.py --tenant acme --input sync-2 --output to-send
# What the second sync sends to the target.
run cat to-send/Billed.csv
run freezeframe tenant diff 0 1 --tenant acme
run freezeframe stream diff Account 0 1 --tenant acme
run freezeframe stream show Account --tenant acme
run freezeframe stream show Account --tenant acme --version 0
