"""Rows that are brought back."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import Answer, Order, example
from freezeframe.asgi.models.row_differences import ChangedRow
from freezeframe.asgi.models.streams import Counts

KeyValue = str | int | float | bool | None


class RowRestorationOrder(Order):
    """Bring single rows of a stream back to what they were at a version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(version=9, keys=[{"Id": "007"}], dry_run=True))

    version: int = Field(ge=0, le=2**53, description="The tenant's version.")
    keys: list[dict[str, KeyValue]] = Field(
        min_length=1, max_length=5000, description="For each row its key's columns and values."
    )
    dry_run: bool = False
    message: str = Field(default="", max_length=1000)


class RowRestoration(Answer):
    """What a restoration of rows did, or would do: `committed` says which."""

    version: int
    tenant_version: int
    committed: bool
    key: list[str]
    counts: Counts = Field(description="Rows brought back (inserted), changed back and removed.")
    rows: list[ChangedRow] = Field(description="The rows that differ from what they were.")
