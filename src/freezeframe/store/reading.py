"""Rows on their way out: as pandas, Arrow or Spark, from one table at one version."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import unquote

import pyarrow as pa

from freezeframe.engine.base import TableEngine
from freezeframe.engine.frames import to_pandas
from freezeframe.errors import InvalidOption
from freezeframe.log import Snapshot
from freezeframe.storage import Storage
from freezeframe.store.columns import written_columns

FrameKind = Literal["pandas", "arrow", "spark"]
_KINDS = ("pandas", "arrow", "spark")


def as_kind(table: pa.Table, kind: str) -> Any:
    """The rows as the caller wants them: ``"pandas"`` or ``"arrow"``."""
    require_kind(kind)
    return to_pandas(table) if kind == "pandas" else table


def as_spark(
    snapshot: Snapshot, storage: Storage, folder: str, engine: TableEngine, columns: Sequence[str] | None
) -> Any:
    """A lazy Spark frame over the snapshot's files."""
    schema = written_columns(snapshot.schema, None if columns is None else set(columns))
    paths = [unquote(path) for path in snapshot.files["path"].to_pylist()]
    frame = engine.read(tuple(storage.uri(f"{folder}/{path}") for path in paths), schema)
    return frame if columns is None else frame.select(*(f"`{name.replace('`', '``')}`" for name in columns))


def require_kind(kind: str) -> None:
    """Refuse an ``as_`` that is none of ours."""
    if kind not in _KINDS:
        raise InvalidOption(f"as_ cannot be {kind!r}.", remedy=f"Use one of {', '.join(_KINDS)}.")


def ordered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows sorted by columns, nulls last; what is not there or cannot be sorted is skipped."""
    sortable = [
        (name, "ascending")
        for name in names
        if name in table.column_names and not pa.types.is_nested(table.schema.field(name).type)
    ]
    return table.sort_by(sortable) if sortable else table


def moment(given: datetime | str) -> datetime:
    """A moment with its zone; without one it is UTC.

    Raises:
        InvalidOption: it is no moment.
    """
    try:
        when = datetime.fromisoformat(given) if isinstance(given, str) else given
        return when if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, AttributeError) as error:
        raise InvalidOption(
            f"{given!r} is no moment.", remedy="Pass a datetime or ISO text such as 2026-11-20T14:05:00Z."
        ) from error
