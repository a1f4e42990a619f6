"""Write buffer drained by a streaming response."""

from __future__ import annotations


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
