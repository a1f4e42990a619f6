"""Output of a notebook's cells in nbformat, limited in size."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, TextIO

from nbformat import NotebookNode
from nbformat.v4 import new_output

CELL_TEXT_MAX = 1_000_000


class CellOutput:
    """The outputs of the cell that runs now; ``begin`` goes on to the next one."""

    def __init__(self) -> None:
        self._outputs: list[NotebookNode] = []
        self._text_left = 0

    def begin(self, cell: NotebookNode) -> None:
        """Begin a cell: outputs from now on are its own."""
        cell.outputs = self._outputs = []
        self._text_left = CELL_TEXT_MAX

    def stream(self, name: str, text: str) -> None:
        """Text that was printed; beyond a million characters a cell it is in the log alone."""
        if self._text_left <= 0 or not text:
            return
        kept = text[: self._text_left]
        self._text_left -= len(text)
        if self._text_left <= 0:
            kept += "\n[the rest is in the log alone]\n"
        last = self._outputs[-1] if self._outputs else None
        if last is not None and last.output_type == "stream" and last.name == name:
            last.text += kept
        else:
            self._add("stream", name=name, text=kept)

    def display(self, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        """Something that was displayed, by MIME type."""
        self._add("display_data", data=data, metadata=metadata or {})

    def result(self, number: int, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        """The value of the cell's last expression, by MIME type."""
        self._add("execute_result", data=data, metadata=metadata or {}, execution_count=number)

    def error(self, name: str, value: str, lines: list[str]) -> None:
        """The exception that ended the cell."""
        self._add("error", ename=name, evalue=value, traceback=lines)

    def _add(self, kind: str, **fields: Any) -> None:
        self._outputs.append(new_output(kind, **fields))  # type: ignore[no-untyped-call]

    def drop_error(self) -> None:
        """Remove the exception that was shown last: it was a successful exit."""
        if self._outputs and self._outputs[-1].output_type == "error":
            self._outputs.pop()


class Echo(io.TextIOBase):
    """A text stream that goes on to the real one and to the cell's outputs."""

    def __init__(self, name: str, stream: TextIO, keep: Callable[[str, str], None]) -> None:
        super().__init__()
        self._name = name
        self._stream = stream
        self._keep = keep

    @property
    def buffer(self) -> Any:
        """The binary buffer of the real stream, whose bytes are in the log alone."""
        return self._stream.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As of the real stream."""
        return self._stream.encoding

    def fileno(self) -> int:
        """As of the real stream."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, text: str) -> int:
        """Print it and keep it."""
        self._stream.write(text)
        self._keep(self._name, text)
        return len(text)

    def flush(self) -> None:
        """Flush the real stream."""
        self._stream.flush()
