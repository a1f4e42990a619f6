"""What a stream's columns hold."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from freezeframe.asgi.models.base import Answer


class Bar(Answer):
    """How many values lie from `low` to `high`; of a single value both are that value."""

    low: Any
    high: Any
    count: int


class ColumnStatistics(Answer):
    """One column; its figures are of `rows_read` rows where they are not of all."""

    name: str
    type: str
    rows_read: int = Field(description="0: the column was not read in time; ask for it by name.")
    nulls: int | None
    nulls_of_all: bool = Field(description="Whether `nulls` counts all rows.")
    distinct: int | None = Field(description="Different values in the rows that were read.")
    low: Any
    high: Any
    ends_of_all: bool = Field(description="Whether `low` and `high` are those of all rows.")
    bars: list[Bar] = Field(description="Ranges of equal width, or the most frequent values.")


class StreamStatistics(Answer):
    """A stream's columns at one version."""

    version: int = Field(description="The version of the tenant that made the stream so.")
    stream_version: int = Field(description="The stream's own version.")
    rows: int
    columns: list[ColumnStatistics]
