"""Rows of a stream by a column."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import Answer, example


class SortedRows(Answer):
    """Some rows in order; what JSON has no value for (dates, decimals) is text."""

    model_config = ConfigDict(
        json_schema_extra=example(total=2, columns=["Id", "City"], rows=[{"Id": "1", "City": "Basel"}])
    )

    total: int = Field(description="How many rows meet the conditions.")
    columns: list[str]
    rows: list[dict[str, Any]]
