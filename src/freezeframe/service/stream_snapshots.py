"""A stream's table at a moment, for what the service reads of it column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot, rows
from freezeframe.service.streams import Moment
from freezeframe.store import Tenant
from freezeframe.store.columns import arrow_columns
from freezeframe.store.own_columns import VALID_TO, stored_own_columns
from freezeframe.store.scope import TenantScope


def stream_snapshot(tenant: Tenant, stream: str, moment: Moment) -> Snapshot:
    """The stream's table now, at a version of its own, or at a version or moment of the tenant.

    Raises:
        StreamNotFound, VersionNotFound: there is no such stream (then), version or moment.
        InvalidOption: more than one of the three is given.
    """
    given = (moment.version, moment.tenant_version, moment.as_of)
    if sum(one is not None for one in given) > 1:
        raise InvalidOption(
            "version, as_of and tenant_version cannot be used together.",
            cause="Each of them says by itself which rows are meant.",
            remedy="Give one of them.",
        )
    scope = TenantScope(tenant.place)
    state = scope.state(moment.tenant_version, moment.as_of)
    return scope.snapshot(StreamName(stream), state, moment.version)


def shown_columns(snapshot: Snapshot) -> pa.Schema:
    """The columns that readers see: without those that the stream keeps itself."""
    return stored_own_columns(snapshot.metadata).removed_from(arrow_columns(snapshot.schema))


def require_columns(columns: pa.Schema, names: Sequence[str]) -> None:
    """Refuse a name that is no column.

    Raises:
        MissingColumn: there is no such column.
    """
    for name in names:
        if name not in columns.names:
            raise MissingColumn(
                f"There is no column {name!r}.",
                cause=f"The columns are {', '.join(columns.names)}.",
                remedy="Name one of them; upper and lower case matter.",
                column=name,
            )


def row_batches(
    snapshot: Snapshot, names: Sequence[str], where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows that hold at the snapshot and meet ``where``, a batch at a time, of some columns only.

    Raises:
        CorruptData: a file is missing or damaged, when the reading comes to it.
    """
    if stored_own_columns(snapshot.metadata).has_history:
        holds = pc.field(VALID_TO).is_null()
        where = holds if where is None else holds & where
    return rows.read_batches(snapshot, list(names), where)
