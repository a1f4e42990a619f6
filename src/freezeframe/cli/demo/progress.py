"""Says what the demo is doing: a moving line on a terminal, plain lines elsewhere, nothing for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape


class Progress:
    """Steps of a long command, on standard error, so that results can be piped."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=is_quiet, highlight=False, soft_wrap=True)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show ``text`` while the block runs, and keep it as a line."""
        self._console.print(f"• {escape(text)}")
        if not self._console.is_terminal:
            yield
            return
        with self._console.status("working"):
            yield
