#!/bin/sh
# tools/install-debian-package.sh PACKAGE REASON: installs it where that is ours to do, else says who should.
set -eu
package=$1 reason=$2

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing $package: $reason" >&2
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    # What apt says is of interest only where it fails.
    if apt-get update -qq </dev/null >"$log" 2>&1 &&
        apt-get install -y -qq --no-install-recommends "$package" </dev/null >>"$log" 2>&1; then
        exit 0
    fi
    cat "$log" >&2
    echo "$package could not be installed; see above." >&2
    exit 1
fi
echo "$reason Install it once as root: apt-get install $package" >&2
exit 1
