"""A stream's table at a version or time, for the service's column-wise readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import MissingColumn
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.service.rows.streams import Moment
from freezeframe.store import Tenant
from freezeframe.store.schema.column_mapping import arrow_columns
from freezeframe.store.schema.system_columns import VALID_TO, read_system_columns


def stream_snapshot(tenant: Tenant, stream: str, moment: Moment) -> Snapshot:
    """The stream's table now, or at a moment; errors as of ``Stream.read``."""
    return tenant.stream(stream).snapshot(**moment.arguments())


def shown_columns(snapshot: Snapshot) -> pa.Schema:
    """The columns that readers see: without those that the stream keeps itself."""
    return read_system_columns(snapshot.metadata).removed_from(arrow_columns(snapshot.schema))


def require_columns(columns: pa.Schema, names: Sequence[str]) -> None:
    """Refuse a name that is not a column.

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
    """The rows of the snapshot that meet ``where``, a batch at a time, of some columns only.

    Raises:
        CorruptData: a file is missing or damaged, when the reading comes to it.
    """
    if read_system_columns(snapshot.metadata).has_history:
        holds = pc.field(VALID_TO).is_null()
        where = holds if where is None else holds & where
    return rows.read_batches(snapshot, list(names), where)
