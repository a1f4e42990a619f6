"""Bodies that are received and sent in pieces."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from freezeframe.errors import BadInput

# A request's file in temporary storage, for readers that need a path.
#
# An error tells of it by the name that its sender knows, never by where it lay.

_CHUNK_BYTES = 1024 * 1024


@contextmanager
def received_file(content: IO[bytes], kind: str, name: str) -> Iterator[Path]:
    """The content as a temporary file with the ending ``kind``; ``name`` is used in messages."""
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


# Write buffer drained by a streaming response.


class StreamingBuffer:
    """A writable file whose content is drained by a response; not seekable."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        """True: the buffer is written to."""
        return True

    def readable(self) -> bool:
        """False: content is taken by ``taken``."""
        return False

    def seekable(self) -> bool:
        """False: taken content is gone."""
        return False

    def write(self, content: bytes) -> int:
        """Add bytes."""
        self._pieces.append(bytes(content))
        self.size += len(content)
        return len(content)

    def flush(self) -> None:
        """Nothing to do: no content is buffered elsewhere."""

    def close(self) -> None:
        """Nothing to do: written content can still be taken."""

    def drain(self) -> bytes:
        """All that was written since the last call."""
        content = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return content
