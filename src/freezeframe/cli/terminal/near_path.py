"""Paths relative to the current directory, where that is shorter."""

from __future__ import annotations

import os
from pathlib import Path


def near_path(path: Path) -> str:
    """The path relative to the working directory, or unchanged if that was deleted."""
    whole = str(path)
    try:
        near = os.path.relpath(path)
    except OSError:  # the working directory is gone
        return whole
    return near if len(near) < len(whole) else whole
