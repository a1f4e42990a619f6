"""Check that the files which Spark says it wrote are there, with all their rows."""

from __future__ import annotations

from collections.abc import Sequence

from freezeframe.errors import StorageNotShared


def require_found(names: Sequence[str], rows: int, expected: int) -> None:
    """Check that the files, which have so many rows, are all that Spark wrote.

    Spark writes a file even for no rows: where there is none, Spark wrote into another folder.

    Raises:
        StorageNotShared: they are not; what was written must not be used.
    """
    if rows == expected and names:
        return
    raise StorageNotShared(
        f"Spark wrote {expected} rows, and {rows} of them are in the {len(names)} files that are here.",
        cause="Spark, or one of its executors, writes to another disk than this process reads under"
        " the same path; or somebody removed a file meanwhile. Nothing was committed.",
        remedy="Use a folder that all of them see under the same path, or an object store.",
        written=expected,
        found=rows,
    )
