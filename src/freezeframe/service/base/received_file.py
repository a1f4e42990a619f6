"""A request's file in temporary storage, for readers that need a path.

An error tells of it by the name that its sender knows, never by where it lay.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from freezeframe.errors import BadInput

_CHUNK_BYTES = 1024 * 1024


@contextmanager
def received_file(content: IO[bytes], kind: str, name: str) -> Iterator[Path]:
    """The content as a temporary file with the ending ``kind``; ``name`` is used in messages.

    Raises:
        BadInput: as the block raises it, in terms of ``name``.
    """
    with tempfile.TemporaryDirectory(prefix="freezeframe-") as folder:
        path = Path(folder) / f"rows.{kind}"
        with path.open("wb") as target:
            shutil.copyfileobj(content, target, _CHUNK_BYTES)
        try:
            yield path
        except BadInput as error:
            error.problem = error.problem.replace(str(path), name)
            error.cause = error.cause.replace(str(path), name)
            error.details.pop("file", None)
            raise
