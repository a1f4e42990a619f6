#!/bin/sh
# tools/audit.sh: asks the public databases for known vulnerabilities of the locked packages.
# Where a database cannot be reached it says so and goes on; a package with a known vulnerability ends it with 1.
set -u
cd "$(dirname "$0")/.." || exit
uv=${UV:-.cache/uv/bin/uv}
status=0

audit() { # audit WHAT COMMAND...
    what=$1
    shift
    if told=$("$@" 2>&1); then
        echo "No known vulnerability in $what."
        return
    fi
    case $told in
        *"error sending request"* | *"endpoint returned an error"* | *ENOTFOUND* | *ECONNREFUSED* | *"failed to fetch"*)
            echo "Not audited: $what. The database of vulnerabilities cannot be reached from here." ;;
        *)
            echo "$told" && status=1 ;;
    esac
}

audit "the Python packages" "$uv" audit --frozen
if command -v npm >/dev/null; then
    audit "the packages of the console" npm --prefix ui audit --omit dev
else
    echo "Not audited: the packages of the console. There is no npm here."
fi
exit $status
