"""Paths relative to the current directory, where that is shorter."""

from __future__ import annotations

import os
from pathlib import Path


def near_path(path: Path) -> str:
    """The path from the working directory, or as it is where that is no longer."""
    whole = str(path)
    try:
        near = os.path.relpath(path)
    except OSError:  # the working directory is gone
        return whole
    return near if len(near) < len(whole) else whole
