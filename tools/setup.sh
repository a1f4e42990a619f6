#!/bin/sh
# tools/setup.sh python|java|jars|oracle|classes|console|browser|bench|ducklake|nightly ...: brings the named parts to where everything runs.
# What is there already is skipped: each part leaves a stamp that names what it was made from.
set -eu
cd "$(dirname "$0")/.."

uv_version=0.13.8
stamps=.cache/stamps
mkdir -p "$stamps"

is_done() { # part key
    [ -f "$stamps/$1" ] && [ "$(cat "$stamps/$1")" = "$2" ]
}

download() { # WHAT COMMAND ...: where the network is the reason of a failure, one sentence says so
    what=$1
    shift
    log=$(mktemp)
    if "$@" </dev/null >"$log" 2>&1; then
        cat "$log" >&2 && rm -f "$log"
        return
    fi
    offline='failed to establish a new connection|no matching distribution|name resolution|dns error|failed to fetch'
    if grep -qiE "$offline|connection refused|network is unreachable" "$log"; then
        echo "$what cannot be downloaded: this machine does not reach the Python package index. Connect it, or" \
            "name a mirror by PIP_INDEX_URL and UV_DEFAULT_INDEX." >&2
    else
        cat "$log" >&2
    fi
    rm -f "$log"
    exit 1
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
        download "uv $uv_version" .cache/uv/bin/python -m pip install --quiet --disable-pip-version-check \
            --retries 1 "uv==$uv_version"
    fi
    echo "Installing the locked packages into .venv (the first time takes a few minutes)" >&2
    sync_packages --python "$python"
    # Packages of groups of their own have just been removed.
    rm -f "$stamps/bench" "$stamps/nightly"
    echo "$key" >"$stamps/python"
}

setup_group() { # bench|nightly: each removes the other's packages
    setup_python
    key=$(cat "$stamps/python")
    if is_done "$1" "$key"; then return; fi
    echo "Installing what $2 into .venv" >&2
    sync_packages --group "$1"
    rm -f "$stamps/bench" "$stamps/nightly"
    echo "$key" >"$stamps/$1"
}

setup_bench() { setup_group bench "the benchmarks compare with"; }

setup_ducklake() { # a peer of the benchmarks, whose wheels need an older DuckDB than the project's
    setup_python
    key="duckdb 1.5.5 $(cat "$stamps/python")"
    if is_done ducklake "$key"; then return; fi
    rm -rf .cache/ducklake
    download "DuckLake" .cache/uv/bin/uv pip install --quiet --no-deps --python .venv/bin/python \
        --target .cache/ducklake duckdb==1.5.5 duckdb-extension-ducklake==1.5.5
    echo "$key" >"$stamps/ducklake"
}

setup_nightly() { setup_group nightly "the nightly tests need besides"; }

sync_packages() { # option ...
    # uv brings its own list of certificate authorities; a company's own one is in the system's.
    if [ -f /etc/ssl/certs/ca-certificates.crt ]; then export UV_SYSTEM_CERTS=1; fi
    # The console's pages are a part of their own (below): most commands need none, and so no Node.js.
    export FREEZEFRAME_SKIP_CONSOLE="${with_console-1}" UV_PYTHON_DOWNLOADS=never
    download "The locked packages" .cache/uv/bin/uv sync --locked --quiet "$@"
}

setup_console() {
    setup_python
    key=$(find ui -name node_modules -prune -o -name dist -prune -o -type f -exec cksum {} + | sort | cksum)
    if [ -f ui/dist/index.html ] && is_done console "$key"; then return; fi
    echo "Building the console's pages (npm's packages are fetched the first time)" >&2
    # Building the package anew builds them, with Node.js from a package where the machine has none.
    with_console='' sync_packages --inexact --reinstall-package freezeframe
    echo "$key" >"$stamps/console"
}

setup_browser() {
    if [ -n "${CHROMIUM:-}" ] || command -v chromium >/dev/null; then return; fi
    tools/install-debian-package.sh chromium "The console's tests need the browser Chromium and there is none."
}

setup_java() {
    if [ -f "$stamps/java" ] && [ -x "$(cat "$stamps/java")/bin/java" ]; then return; fi
    if ! home=$(tools/find-java.sh); then
        tools/install-debian-package.sh "openjdk-17-jre-headless openjdk-21-jre-headless" \
            "Spark needs Java 17 or 21 and there is none."
        home=$(tools/find-java.sh)
    fi
    echo "$home" >"$stamps/java"
}

setup_jars() {
    key=$(cat tools/jars.toml | cksum)
    if is_done jars "$key"; then return; fi
    rm -rf .cache/jars
    JAVA_HOME=$(cat "$stamps/java") .venv/bin/python tools/fetch_jars.py .cache/jars s3
    echo "$key" >"$stamps/jars"
}

setup_oracle() { # the newest Spark that Delta has been built for, apart from the product's
    setup_python
    spark=4.2.0
    key="$spark $(cat tools/jars.toml | cksum)"
    if is_done oracle "$key"; then return; fi
    echo "Fetching Spark $spark with Delta, which the tests compare with, into .cache/oracle" >&2
    rm -rf .cache/oracle
    export UV_SYSTEM_CERTS=1
    download "Spark $spark" .cache/uv/bin/uv pip install --quiet --no-deps --python .venv/bin/python \
        --target .cache/oracle "pyspark==$spark"
    JAVA_HOME=$(cat "$stamps/java") .venv/bin/python tools/fetch_jars.py .cache/oracle/jars delta
    echo "$key" >"$stamps/oracle"
}

setup_classes() {
    key=$(cat "$stamps/python" "$stamps/java" src/freezeframe/engine/server/launch.py | cksum)
    if is_done classes "$key"; then return; fi
    echo "Archiving the classes of Spark, so that servers in tests start sooner (about a minute)" >&2
    # Without the archive the tests are slower, and no less right.
    if FREEZEFRAME_STATE_DIR=$PWD/.cache/classes JAVA_HOME=$(cat "$stamps/java") \
        .venv/bin/freezeframe spark archive >&2; then
        echo "$key" >"$stamps/classes"
    fi
}

for part in "$@"; do
    case $part in
        python | java | jars | oracle | classes | console | browser | bench | ducklake | nightly) "setup_$part" ;;
        *) echo "tools/setup.sh knows python, java, jars, oracle, classes, console, browser, bench, ducklake and nightly, not '$part'." >&2 && exit 2 ;;
    esac
done
