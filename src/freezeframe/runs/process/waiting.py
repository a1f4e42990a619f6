"""A file by which a script's process reports what it waits for."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from freezeframe.progress import Unit
from freezeframe.storage.safe_open import open_regular

_TEXT_MAX = 8_000


class WaitingFile:
    """A watcher that writes to a file what the script waits for and keeps remarks; it ignores the rest."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "waiting.txt"
        self.remarks: list[str] = []

    def begin(self, doing: str, unit: Unit, total: int | None) -> None:
        """See ``Watcher.begin``: a script's own parts are its business."""

    def advance(self, count: int) -> None:
        """See ``Watcher.advance``."""

    def wait_for(self, what: str) -> None:
        """See ``Watcher.wait_for``."""
        with suppress(OSError):
            self._path.write_text(what, encoding="utf-8")

    def remark(self, text: str) -> None:
        """See ``Watcher.remark``: the run's report has it."""
        if text not in self.remarks:
            self.remarks.append(text)

    def read(self) -> str:
        """The description of what the script waits for; empty if nothing."""
        with suppress(OSError), open_regular(self._path.parent, self._path.name) as file:
            return file.read(_TEXT_MAX).decode("utf-8", "replace")
        return ""
