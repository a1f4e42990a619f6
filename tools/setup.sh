#!/bin/sh
# tools/setup.sh python|java|jars|bench ...: brings the named parts to where everything runs.
# What is there already is skipped: each part leaves a stamp that names what it was made from.
set -eu
cd "$(dirname "$0")/.."

uv_version=0.13.8
stamps=.cache/stamps
mkdir -p "$stamps"

is_done() { # part key
    [ -f "$stamps/$1" ] && [ "$(cat "$stamps/$1")" = "$2" ]
}

setup_python() {
    # Scripts in a virtual environment hold its absolute path, so a moved folder needs a new one.
    key="$uv_version $(cat uv.lock pyproject.toml | cksum) $PWD ${PYTHON:-}"
    if [ -x .venv/bin/python ] && is_done python "$key"; then return; fi
    python=$(tools/find-python.sh)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        tools/install-debian-package.sh python3-venv "Python's venv module is not complete on this machine."
    fi
    if [ "$(.cache/uv/bin/uv --version 2>/dev/null | cut -d' ' -f2)" != "$uv_version" ]; then
        echo "Installing uv $uv_version into .cache/uv" >&2
        rm -rf .cache/uv
        "$python" -m venv .cache/uv
        .cache/uv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$uv_version" </dev/null
    fi
    echo "Installing the locked packages into .venv (the first time takes a few minutes)" >&2
    sync_packages --python "$python"
    # The benchmarks' packages have just been removed: they are in a group of their own.
    rm -f "$stamps/bench"
    echo "$key" >"$stamps/python"
}

setup_bench() {
    setup_python
    key=$(cat "$stamps/python")
    if is_done bench "$key"; then return; fi
    echo "Installing what the benchmarks compare with into .venv" >&2
    sync_packages --group bench
    echo "$key" >"$stamps/bench"
}

sync_packages() { # option ...
    # uv brings its own list of certificate authorities; a company's own one is in the system's.
    if [ -f /etc/ssl/certs/ca-certificates.crt ]; then export UV_SYSTEM_CERTS=1; fi
    UV_PYTHON_DOWNLOADS=never .cache/uv/bin/uv sync --locked --quiet "$@" </dev/null
}

setup_java() {
    if [ -f "$stamps/java" ] && [ -x "$(cat "$stamps/java")/bin/java" ]; then return; fi
    if ! home=$(tools/find-java.sh); then
        tools/install-debian-package.sh openjdk-17-jre-headless "Spark needs Java 17 or 21 and there is none."
        home=$(tools/find-java.sh)
    fi
    echo "$home" >"$stamps/java"
}

setup_jars() {
    key=$(cksum <tools/jars.toml)
    if is_done jars "$key"; then return; fi
    JAVA_HOME=$(cat "$stamps/java") .venv/bin/python tools/fetch_jars.py .cache/jars
    echo "$key" >"$stamps/jars"
}

for part in "$@"; do
    case $part in
        python | java | jars | bench) "setup_$part" ;;
        *) echo "tools/setup.sh knows python, java, jars and bench, not '$part'." >&2 && exit 2 ;;
    esac
done
