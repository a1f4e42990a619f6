#!/bin/sh
# Prints the path of a Python that this project runs on (3.11 to 3.13), or says what is missing.
set -eu

for name in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
    [ -n "$name" ] || continue
    # A version manager may put a command on the PATH that only says "not installed": it has to run.
    if found=$("$name" -c 'import sys; assert (3, 11) <= sys.version_info < (3, 14); print(sys.executable)' 2>/dev/null); then
        echo "$found"
        exit 0
    fi
done
echo "freezeframe needs Python 3.11, 3.12 or 3.13 and found none: install python3 (Debian: apt-get install python3 python3-venv; macOS: brew install python@3.13) or name one by PYTHON=/path/to/python3.11." >&2
exit 1
