#!/bin/sh
# tools/install-debian-package.sh PACKAGE REASON: installs it where that is ours to do, else says who should.
set -eu
package=$1 reason=$2

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing $package: $reason" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq </dev/null >&2
    exec apt-get install -y -qq --no-install-recommends "$package" </dev/null >&2
fi
echo "$reason Install it once as root: apt-get install $package" >&2
exit 1
