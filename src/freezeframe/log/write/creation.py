"""Creates a table: version 0 with its metadata, under the lowest possible protocol."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa

from freezeframe.clock import now_ms
from freezeframe.errors import InvalidOption
from freezeframe.log.actions.actions import Action, Metadata
from freezeframe.log.actions.features import lowest_protocol
from freezeframe.log.schema.column_mapping import MODE_KEY
from freezeframe.log.schema.schema import arrow_to_delta, delta_to_arrow


def first_actions(
    schema: pa.Schema, partition_by: Sequence[str], configuration: Mapping[str, str]
) -> list[Action]:
    """Protocol and metadata of a new table.

    Raises:
        InvalidOption: a type without a Delta counterpart, partition columns that are missing from the
            schema or all of it, or column mapping, whose ids an engine must assign.
    """
    if configuration.get(MODE_KEY, "none").lower() != "none":
        raise _creation_error("Column mapping asks for an id and a name in the files of each column.")
    try:
        delta = arrow_to_delta(schema)
        delta_to_arrow(delta)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise _creation_error(str(error)) from error
    missing = [name for name in partition_by if name not in schema.names]
    if missing:
        raise _creation_error(f"The partition column {missing[0]!r} is not among the columns.")
    if len(partition_by) == len(schema.names):
        raise _creation_error("Every column is a partition column, so files would hold nothing.")
    metadata = Metadata(
        str(uuid.uuid4()), json.dumps(delta), tuple(partition_by), dict(configuration), created_time=now_ms()
    )
    return [lowest_protocol(metadata), metadata]


def _creation_error(cause: str) -> InvalidOption:
    return InvalidOption(
        "The definition of the table is invalid.", cause=cause, remedy="Correct its definition."
    )
