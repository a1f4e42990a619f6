#!/bin/sh
# tools/run.sh COMMAND ...: runs a command of the virtual environment with what setup.sh found.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

export PATH="${UV_PROJECT_ENVIRONMENT:-$root/.venv}/bin:$PATH"
# A JAVA_HOME of another version than Spark runs on gives way to the Java that setup.sh found.
if ! grep -qE '^JAVA_VERSION="(17|21)' "${JAVA_HOME:-}/release" 2>/dev/null && [ -f "$root/.cache/stamps/java" ]; then
    JAVA_HOME=$(cat "$root/.cache/stamps/java")
    export JAVA_HOME
fi

# Compiled modules are kept: the tests start hundreds of processes, and each would compile all it imports.
unset PYTHONDONTWRITEBYTECODE

# A machine need not know its own name (small containers do not); Spark here serves this machine only.
export SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}"

# Two folders beside the repository take part in the tests where they exist; without them those tests skip.
shared=$(dirname "$root")/shared
if [ -z "${FREEZEFRAME_CONFORMANCE:-}" ] && [ -d "$shared/conformance" ]; then
    export FREEZEFRAME_CONFORMANCE="$shared/conformance"
fi
if [ -z "${FREEZEFRAME_SAMPLES:-}" ] && [ -d "$shared/samples" ]; then
    export FREEZEFRAME_SAMPLES="$shared/samples"
fi
exec "$@"
