"""The path of a local store's control database, found without SQLAlchemy."""

from __future__ import annotations

from pathlib import Path

_FILE = Path("_freezeframe") / "control.db"


def control_file(root: str) -> Path:
    """Return the file that the control database of a local store is, unless the settings name another one."""
    return Path(root).resolve() / _FILE
