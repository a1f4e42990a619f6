"""The operating system's user, the default author of changes."""

from __future__ import annotations

import os
import pwd
from functools import cache


@cache
def system_user() -> str:
    """The name of the process's user, or its number where the system knows no name."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container's user that is in no list
        return f"uid {number}"
