"""The scripts that jobs of the service may run, with the parameters that they declare."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freezeframe.errors import FreezeframeError
from freezeframe.runs.model.request import SCRIPT_SUFFIXES
from freezeframe.runs.model.script_header import ScriptHeader, read_script_header

SCRIPTS_MAX = 500
# Modules that scripts import, and what is no code of the user's.
_SKIPPED = frozenset({"lib", "__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class Script:
    """A script by its name in the folder; ``problem`` says why its header could not be read."""

    name: str
    header: ScriptHeader
    problem: str = ""


def list_scripts(folder: Path | None) -> tuple[Script, ...]:
    """The scripts below the folder by name, at most 500; none without a folder.

    Left out: names that begin with a dot or an underscore, folders called ``lib``, and what a link leads
    out of the folder to.
    """
    if folder is None or not folder.is_dir():
        return ()
    root = folder.resolve()
    found = sorted(path for path in _files(root) if path.resolve().is_relative_to(root))
    return tuple(_script(path, path.relative_to(root).as_posix()) for path in found[:SCRIPTS_MAX])


def _files(root: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _SKIPPED and name[0] not in "._"]
        yield from (
            Path(place, name) for name in names if name.endswith(SCRIPT_SUFFIXES) and name[0] not in "._"
        )


def _script(path: Path, name: str) -> Script:
    try:
        return Script(name, read_script_header(path))
    except FreezeframeError as error:
        return Script(name, ScriptHeader(), f"{error.problem} {error.cause}")
    except OSError as error:
        return Script(name, ScriptHeader(), f"It cannot be read: {error.strerror}.")
