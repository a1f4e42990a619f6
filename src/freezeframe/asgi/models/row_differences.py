"""Rows that differ between two versions of a tenant."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from freezeframe.asgi.models.base import Answer
from freezeframe.asgi.models.streams import Counts


class ChangedRow(Answer):
    """A row that differs: `before` is empty for a new one, `after` for a deleted one."""

    fate: Literal["insert", "update", "delete"]
    before: dict[str, Any]
    after: dict[str, Any]
    changed: list[str] = Field(description="Of an update: the columns whose values are not the same.")


class RowDifference(Answer):
    """Some of the rows of a stream that differ, and what became of all of them.

    Pages after the first one tell `changed` of their own rows.
    """

    key: list[str]
    columns: list[str] = Field(description="The key, then the others: most often changed first.")
    changed: dict[str, int] = Field(description="In how many updated rows each column changed.")
    columns_added: dict[str, str] = Field(description="Delta's types by name.")
    columns_dropped: dict[str, str]
    columns_retyped: dict[str, tuple[str, str]] = Field(description="The old type and the new one.")
    counts: Counts
    total: int = Field(description="How many rows differ, or at least.")
    is_total_exact: bool = Field(
        description="False: more rows differ than are counted unasked (`count=true`); `counts` are then 0, "
        "and `changed` is of the rows of this page."
    )
    before: int = Field(description="The tenant's version that is compared with `after`.")
    after: int
    next_cursor: str | None = Field(description="Where the next page begins; null: there is none.")
    rows: list[ChangedRow]
