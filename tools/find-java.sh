#!/bin/sh
# Prints the home of a Java that Spark runs on (17 or 21): JAVA_HOME, then the PATH, then where systems install it.
# Where there is none it fails, and names on standard error those that Spark does not run on.
set -eu
root=${JAVA_ROOT:-}

found=''
for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" "$root"/usr/lib/jvm/*/bin/java \
    "$root"/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java "$root"/opt/homebrew/opt/openjdk@*/bin/java; do
    [ -x "$java" ] || continue
    version=$("$java" -version 2>&1 </dev/null | sed -n '1,/version "/s/.*version "\([0-9]*\).*/\1/p') || continue
    case $version in
        17 | 21)
            # The command on the PATH is a link to a link; a home is where its bin/ really is.
            dirname "$(dirname "$(readlink -f "$java")")"
            exit 0
            ;;
        ?*) found="$found $java is Java $version." ;;
    esac
done
if [ -n "$found" ]; then echo "Spark does not run on the Java of this machine:$found" >&2; fi
exit 1
