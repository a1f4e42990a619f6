"""Rows that are erased: found by their keys or by a condition, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import and_
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.errors import InvalidOption
from freezeframe.service.rows.differences import key_table, plain_row
from freezeframe.store import Stream, Tenant
from freezeframe.store.maintenance.erasure import Erasure, WhatIsLeft
from freezeframe.store.model.update_options import Author
from freezeframe.store.table.keys import KeyNumbers
from freezeframe.store.transaction.conditions import stream_subject

ROWS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class RowErasure:
    """What erasing rows did, or would do: `committed` says which."""

    stream: str
    keys: int
    rows_erased: Annotated[int, Field(description="Of a dry run: rows of the newest version that would go.")]
    tenant_version: Annotated[int, Field(description="The tenant's version after the call.")]
    committed: bool
    files_deleted: Annotated[int, Field(description="Files of the past that this call deleted.")]
    bytes_deleted: int
    left: Annotated[WhatIsLeft, Field(description="What was found at the end; of a dry run, now.")]
    deliveries: Annotated[
        dict[str, int], Field(description="Rows that left what targets accepted; the targets may have them.")
    ]
    key: tuple[str, ...]
    rows: Annotated[
        tuple[dict[str, Any], ...], Field(description=f"Of a dry run the rows, at most {ROWS_SHOWN} of them.")
    ]
    etag: Annotated[str | None, Field(description="Of a dry run the stream's `ETag`.")]


def erased_keys(stream: Stream, keys: Sequence[Mapping[str, Any]] | None, where: str | None) -> pa.Table:
    """Return the keys of the rows to erase: they are given, or those of the rows that meet a condition."""
    if (keys is None) == (where is None):
        raise InvalidOption("Keys or a condition are to be named.", remedy="Send keys or where, not both.")
    if not stream.key:
        return pa.table({})  # the store refuses it
    none = key_table(stream.schema, stream.key, keys or ())
    if where is None:
        return none
    return stream.read(columns=list(stream.key), where=where, as_="arrow").select(none.column_names)


def erasure_preview(
    tenant: Tenant, stream: Stream, given: Sequence[Mapping[str, Any]] | None, where: str | None
) -> RowErasure:
    """Return which rows an erasure would take away, and where else the keys are."""
    # It is read before the rows: a condition by it does not hold if others come in between.
    etag = stream_subject(stream.name).tag(tenant.context, tenant.context.log.current_state())
    keys = erased_keys(stream, given, where)
    rows = _first_rows(stream, keys.slice(0, ROWS_SHOWN)) if len(keys) else ()
    return _shown(tenant.erase(stream.name, keys, dry_run=True), stream, tuple(rows), etag)


def erase(tenant: Tenant, stream: Stream, keys: pa.Table, author: Author) -> RowErasure:
    """Erase the rows of the keys for good; errors as of the store."""
    done = tenant.erase(stream.name, keys, message=author.message, who=author.who)
    return _shown(done, stream, (), None)


def _shown(done: Erasure, stream: Stream, rows: tuple[dict[str, Any], ...], etag: str | None) -> RowErasure:
    told = {field.name: getattr(done, field.name) for field in fields(done)}
    told["deliveries"] = dict(done.deliveries)
    return RowErasure(**told, key=stream.key, rows=rows, etag=etag)


def _first_rows(stream: Stream, keys: pa.Table) -> list[dict[str, Any]]:
    # Values narrow the files to read, but of floats: both zeros, and all NaNs, are one key.
    where = [
        pc.field(name).isin(keys[name].combine_chunks())
        for name in keys.column_names
        if not pa.types.is_floating(keys[name].type)
    ]
    table = stream.read(where=reduce(and_, where) if where else None, as_="arrow")
    at, _ = KeyNumbers(keys).found_in(table.select(keys.column_names))
    return [plain_row(row) for row in shown_rows(table.take(pa.array(at[:ROWS_SHOWN])))]
