"""HTML tables for ``_repr_html_`` in notebooks (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A caption, a heading and rows; every text is escaped, numbers stand to the right, None is empty."""
    heading = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    # Notebooks put captions below a table and in grey without it.
    style = "caption-side: top; text-align: left; font-weight: bold"
    return (
        f'<table><caption style="{style}">{escape(caption)}</caption>'
        f"<thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align: right">{value}</td>'
    return f'<td style="text-align: left">{"" if value is None else escape(str(value))}</td>'
