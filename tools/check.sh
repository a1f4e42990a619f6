#!/bin/sh
# What needs no test run: style, format, types, the direction of dependencies, the shell scripts themselves.
set -eu
cd "$(dirname "$0")/.."

tools/run.sh ruff check .
tools/run.sh ruff format --check .
tools/run.sh mypy
tools/run.sh lint-imports
if command -v shellcheck >/dev/null; then
    shellcheck tools/*.sh .ci/run
fi
