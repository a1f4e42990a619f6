"""Gluestick's names without snapshots: delegated to the installed gluestick."""

from __future__ import annotations

import importlib
from typing import Any

from freezeframe.errors import SetupError

_PACKAGE = "gluestick"
_DROP_IN = "freezeframe.gluestick"


def __getattr__(name: str) -> Any:
    """The attribute of that name in the installed gluestick, which is loaded now at the latest.

    Raises:
        SetupError: gluestick is not installed.
        AttributeError: it has no such name either.
    """
    if name.startswith("__"):
        # Names that Python's import system asks of the module itself.
        raise AttributeError(f"module {_DROP_IN!r} has no attribute {name!r}")
    try:
        installed = importlib.import_module(_PACKAGE)
    except ModuleNotFoundError as error:
        if error.name != _PACKAGE:
            raise
        raise SetupError(
            f"{_DROP_IN}.{name} needs the package gluestick, which is not installed.",
            cause="freezeframe has the functions about snapshots; all others are gluestick's own.",
            remedy="Install it beside freezeframe: pip install gluestick.",
            package=_PACKAGE,
            name=name,
        ) from error
    try:
        return getattr(installed, name)
    except AttributeError as error:
        raise AttributeError(f"neither {_DROP_IN!r} nor {_PACKAGE!r} has an attribute {name!r}") from error
