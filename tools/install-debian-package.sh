#!/bin/sh
# tools/install-debian-package.sh PACKAGES REASON: installs the first of them that Debian's release has, where that is
# ours to do; else says in one sentence who should install what. PACKAGES are names separated by blanks.
set -eu
packages=$1 reason=$2

brew_name() { # Homebrew's name of a Debian package
    case $1 in
        openjdk-*) echo "openjdk@21" ;;
        python3-venv) echo "python@3.13" ;;
        *) echo "--cask $1" ;;
    esac
}

if ! command -v apt-get >/dev/null; then
    if [ "$(uname -s)" = Darwin ]; then
        echo "$reason Install it once: brew install $(brew_name "${packages%% *}")" >&2
    else
        echo "$reason Install it once with the packages of your system (Debian's name: $packages)." >&2
    fi
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    # What apt says is of interest only where it fails.
    if apt-get update -qq </dev/null >"$log" 2>&1; then
        for package in $packages; do
            if ! apt-cache show "$package" >/dev/null 2>&1; then continue; fi
            echo "Installing $package: $reason" >&2
            if apt-get install -y -qq --no-install-recommends "$package" </dev/null >>"$log" 2>&1; then exit 0; fi
        done
    fi
    cat "$log" >&2
    echo "$reason apt-get could not install it ($packages): see above, and check that a mirror is reached." >&2
    exit 1
fi
echo "$reason Install it once as root: apt-get install ${packages%% *}" \
    "$(for package in ${packages#"${packages%% *}"}; do printf '(or %s)' "$package"; done)" >&2
exit 1
