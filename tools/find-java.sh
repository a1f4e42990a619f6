#!/bin/sh
# Prints the home of a Java that Spark runs on (17 or 21): JAVA_HOME, then the PATH, then /usr/lib/jvm.
# Prints nothing and fails where there is none.
set -eu

for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
    [ -x "$java" ] || continue
    version=$("$java" -version 2>&1 </dev/null | sed -n '1,/version "/s/.*version "\([0-9]*\).*/\1/p') || continue
    case $version in
        17 | 21)
            # The command on the PATH is a link to a link; a home is where its bin/ really is.
            dirname "$(dirname "$(readlink -f "$java")")"
            exit 0
            ;;
    esac
done
exit 1
