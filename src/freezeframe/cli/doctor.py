"""``freezeframe doctor``: does this machine have what jobs need, asked before the first job asks."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from freezeframe.cli.exit_codes import FAILED
from freezeframe.cli.output import Output
from freezeframe.errors import FreezeframeError, InputNotFound


def doctor(
    directory: Annotated[
        Path | None, typer.Option("--dir", help="A folder on the disk that will hold snapshots.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check Python, Java and the storage; the exit code is 1 if jobs could not run or lose commits."""
    findings = [
        _finding("Python", platform.python_version),
        _finding("Java", _java),
        _finding("Storage", lambda: _storage(directory)),
    ]
    Output(as_json=as_json).table("This machine", findings)
    if not all(finding["ok"] for finding in findings):
        raise typer.Exit(FAILED)


def _finding(part: str, look: Callable[[], str]) -> dict[str, object]:
    try:
        return {"part": part, "ok": True, "found": look()}
    except FreezeframeError as error:
        return {"part": part, "ok": False, "found": str(error)}


def _java() -> str:
    from freezeframe.engine.java import find_java

    java = find_java()
    return f"Java {java.version} ({java.command})"


def _storage(directory: Path | None) -> str:
    from freezeframe.storage import LocalStorage
    from freezeframe.storage.probe import require_atomic_create

    if directory is not None and not directory.is_dir():
        raise InputNotFound(f"There is no directory {directory}.", remedy="Name one that exists by --dir.")
    with tempfile.TemporaryDirectory(prefix="freezeframe-doctor-", dir=directory) as folder:
        require_atomic_create(LocalStorage(folder), "probe")
        return f"{Path(folder).parent} creates files atomically and keeps them"
