"""The snapshot file that gluestick's functions write beside a stream, for scripts that open it.

gluestick keeps a snapshot as ``{stream}.snapshot.parquet`` or, with ``use_csv=True``, as ``.csv``. Here the
stream is the truth, and such a file is written from it after each update. A record beside the tenant's
log tells our own copy from a file that somebody wrote, which is adopted (``legacy``).
Rules: ``docs/reference/gluestick.md``, "The files that are left".
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path

from freezeframe.errors import StorageUnavailable
from freezeframe.script.tenant.exported_file import (
    FileState,
    KnownFile,
    alone,
    file_sha256,
    known_file,
    record_text,
    rows_as_file,
)
from freezeframe.storage import LocalStorage
from freezeframe.store import Stream
from freezeframe.store.model.directory import OURS

PARQUET, CSV = ".snapshot.parquet", ".snapshot.csv"

_logger = logging.getLogger(__name__)


def leave_file(directory: str | os.PathLike[str], stream: Stream, suffix: str) -> None:
    """Write the stream's newest rows to its file of that kind; a failure is a warning.

    The update that came before is committed. A file that the stream adopted is kept up to date by
    ``export``, and is the only one then, save that CSV is written where it is asked for. A file of
    somebody else's is left as it is.
    """
    folder = Path(directory)
    adopted = known_file(folder, stream)
    if stream.stream_version() < 0 or (adopted is not None and adopted.name.endswith((suffix, CSV))):
        return
    _write(folder, stream, suffix)


def refresh_left(directory: str | os.PathLike[str], stream: Stream) -> None:
    """Bring those files up to date that were left before and are still ours."""
    for suffix in (PARQUET, CSV):
        path = Path(directory) / f"{stream.name}{suffix}"
        if path.is_file() and left_version(path.parent, path.name) is not None:
            _write(path.parent, stream, suffix)


def is_left(directory: Path, name: str, sha256: str) -> bool:
    """Whether a file of that content is our own copy."""
    known = _find_known(directory, name)
    return known is not None and known.holds(sha256)


def left_version(directory: Path, name: str) -> int | None:
    """The version of its stream that a file held when it was left; None for one that never was."""
    known = _find_known(directory, name)
    return None if known is None else known.held.version


def _write(folder: Path, stream: Stream, suffix: str) -> None:
    try:
        with alone(folder, stream):
            _replace(folder, stream, f"{stream.name}{suffix}")
    except (StorageUnavailable, OSError):
        _logger.warning("Committed, but the file of %s could not be written.", stream.name, exc_info=True)


def _replace(folder: Path, stream: Stream, name: str) -> None:
    path, known, version = folder / name, _find_known(folder, name), stream.stream_version()
    found = file_sha256(path) if path.is_file() else None
    if found is not None and not (known is not None and known.holds(found)) and not _is_passed_over(path):
        return  # it is adopted next
    content = rows_as_file(path, stream, version)
    new = FileState(hashlib.sha256(content).hexdigest(), version)
    if found == new.sha256 and known is not None and known.held == new:
        return
    held = _present(known, found) or new
    storage = LocalStorage(folder)
    # Write the intent, then the file, then the result, as ``exported_file`` does.
    storage.replace(_record_name(name), record_text(name, held, new))
    storage.replace(name, content)
    storage.replace(_record_name(name), record_text(name, new, None))


def _present(known: KnownFile | None, found: str | None) -> FileState | None:
    """Which of the two recorded contents the file has, also after a crash."""
    if known is None or known.pending is None or known.pending.sha256 != found:
        return None if known is None else known.held
    return known.pending


def _is_passed_over(path: Path) -> bool:
    """Whether nobody adopts the file: a CSV file beside a Parquet file does not count."""
    return path.name.endswith(CSV) and path.with_name(path.name.removesuffix(CSV) + PARQUET).is_file()


def _find_known(folder: Path, name: str) -> KnownFile | None:
    try:
        record = json.loads(LocalStorage(folder).read(_record_name(name)))
    except (FileNotFoundError, ValueError):
        return None
    pending = record["pending"]
    return KnownFile(name, FileState(**record["held"]), FileState(**pending) if pending else None)


def _record_name(name: str) -> str:
    return f"{OURS}/exported/left/{name}.json"
