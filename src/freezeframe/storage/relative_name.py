"""Validation of storage names: relative, and inside the root."""

from __future__ import annotations

from freezeframe.errors import InvalidName


def check_name(name: str, root: str) -> str:
    """Validate a name and return it; ``root`` is for the message.

    Raises:
        InvalidName: the name is absolute, holds a NUL, or refers to a parent folder.
    """
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise InvalidName(
            f"{name!r} is not a name below {root}.",
            cause="It is absolute, holds a NUL, or refers to a parent folder.",
            remedy="Use a relative name without '..'.",
            name=name,
        )
    return name
