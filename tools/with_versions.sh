#!/bin/sh
# tools/with_versions.sh "pandas==2.2.3 pyspark==4.1.1" COMMAND ...: runs a command in an environment of its own, which has
# the locked packages apart from those named. PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/.."

packages=$1
shift
name=$(echo "$packages" | tr -c 'a-z0-9.\n' '-')
UV_PROJECT_ENVIRONMENT=$PWD/.cache/versions/${PYTHON:+$(basename "$PYTHON")-}$name
export UV_PROJECT_ENVIRONMENT

key="$packages $(cat uv.lock pyproject.toml | cksum)"
if [ "$(cat "$UV_PROJECT_ENVIRONMENT/made-of" 2>/dev/null)" != "$key" ]; then
    echo "Making an environment with $packages in $UV_PROJECT_ENVIRONMENT" >&2
    # uv brings its own list of certificate authorities; a company's own one is in the system's.
    if [ -f /etc/ssl/certs/ca-certificates.crt ]; then export UV_SYSTEM_CERTS=1; fi
    export FREEZEFRAME_SKIP_CONSOLE=1
    .cache/uv/bin/uv sync --locked --quiet --group nightly --python "${PYTHON:-$(tools/find-python.sh)}"
    # shellcheck disable=SC2086 - several packages are several words
    .cache/uv/bin/uv pip install --quiet --python "$UV_PROJECT_ENVIRONMENT/bin/python" $packages
    echo "$key" >"$UV_PROJECT_ENVIRONMENT/made-of"
fi
exec tools/run.sh "$@"
