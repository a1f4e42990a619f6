"""Plan of an update: its key and columns, before any row is read (pure)."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from freezeframe.errors import BadInput, InvalidOption, NullKeyError
from freezeframe.log import Snapshot
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.column_mapping import (
    arrow_columns,
    delta_columns,
    physical_names,
    written_columns,
)
from freezeframe.store.schema.schema_evolution import (
    BatchValues,
    Evolution,
    Ranges,
    SchemaRules,
    decided_columns,
    evolve,
)
from freezeframe.store.schema.system_columns import SystemColumns, agree_system_columns, read_system_columns
from freezeframe.store.schema.table_properties import stored_key
from freezeframe.store.updates.source import Incoming

NO_COLUMNS: dict[str, Any] = {"type": "struct", "fields": []}


@dataclass(frozen=True, slots=True)
class Plan:
    """Effect of an update on a stream's columns and key, before any row is read (pure)."""

    update: Update
    key: tuple[str, ...]
    evolution: Evolution
    stored_schema: dict[str, Any] | None
    schema: dict[str, Any]
    own: SystemColumns
    """What the stream keeps beside its columns after the update; ``schema_evolution`` knows nothing of it."""
    stored_own: SystemColumns

    @property
    def is_plain(self) -> bool:
        """Whether the stream has no system columns, before and after."""
        return self.own == self.stored_own == SystemColumns()

    @property
    def filled_key(self) -> tuple[str, ...]:
        """The key's columns except those that never had a value."""
        known = set(decided_columns(self.evolution.target).names)
        return tuple(name for name in self.key if name in known)

    @property
    def changes_schema(self) -> bool:
        """Whether the table's metadata changes."""
        return self.stored_schema != self.schema

    @property
    def batch_schema(self) -> dict[str, Any]:
        """The columns of the batch."""
        return written_columns(self.schema, set(self.evolution.batch.column_names))


def plan_update(snapshot: Snapshot, incoming: Incoming, update: Update) -> Plan:
    """Plan the update's changes of the stream's key and columns.

    Raises:
        SchemaDriftError, BadInput: the columns do not fit what is stored.
        InvalidOption: the key is not the stream's.
    """
    is_new = snapshot.version < 0
    stored_schema = None if is_new else dict(snapshot.schema)
    key = update.key if is_new else _agree_key(update, stored_key(snapshot.metadata))
    if not incoming.table.num_columns:
        raise BadInput(
            "The frame has no columns.",
            cause="A stream needs at least one.",
            remedy="Pass a frame with the columns of the stream, even if it has no rows.",
        )
    stored_own = read_system_columns(snapshot.metadata if not is_new else None)
    stored = arrow_columns(stored_schema or NO_COLUMNS)
    own = agree_system_columns(update, stored_own, key, stored.names, incoming.table.column_names)
    evolution = _evolution(snapshot, stored_own.removed_from(stored), key, incoming, update)
    if incoming.rows and not decided_columns(evolution.target).names:
        raise BadInput(
            "The rows have no value at all.",
            cause="A row of nothing but nulls, in columns whose type nobody knows, cannot be written.",
            remedy="Leave such rows out, or pass a PyArrow table whose columns have types."
            if is_new
            else "Leave such rows out.",
        )
    schema = delta_columns(own.added_to(evolution.target), stored_schema)
    plan = Plan(update, key, evolution, stored_schema, schema, own, stored_own)
    if key and incoming.rows and not plan.filled_key:
        raise NullKeyError(
            f"Every row has a null in the key ({', '.join(key)}), and no column of it ever had a value.",
            cause="Rows cannot be told apart by it.",
            remedy="Fill the key, or pass null_keys='drop' to leave such rows out.",
        )
    return plan


def _evolution(
    snapshot: Snapshot, stored: pa.Schema, key: tuple[str, ...], incoming: Incoming, update: Update
) -> Evolution:
    keeps_columns = snapshot.version >= 0 and update.mode != "overwrite"
    evolution = evolve(
        stored if keeps_columns else None,
        incoming.table,
        key=key,
        drop=update.drop_columns,
        ranges=_ranges(snapshot) if keeps_columns else None,
        values=BatchValues(incoming.values_known, incoming.values),
        rules=SchemaRules(update.schema == "frozen", update.on_drift == "string"),
    )
    if update.mode != "overwrite":
        return evolution
    names = evolution.target.names
    known, kept = set(stored.names), set(names)
    return replace(
        evolution,
        added=tuple(name for name in names if name not in known),
        dropped=tuple(name for name in stored.names if name not in kept),
    )


def _agree_key(update: Update, stored: tuple[str, ...] | None) -> tuple[str, ...]:
    if update.mode == "overwrite":
        return update.key if update.sets_key else update.key or stored or ()
    if stored is None or not update.key or set(update.key) == set(stored):
        return stored or update.key
    made = f"It was made with the key {list(stored)}." if stored else "It was made without a key."
    raise InvalidOption(
        f"The stream cannot be updated by the key {list(update.key)}.",
        cause=f"{made} Under another key, rows that are one now could become two.",
        remedy="Use the stream's key, or replace its content with override=True to give it a new one.",
        key=list(update.key),
        stored_key=list(stored),
    )


def _ranges(snapshot: Snapshot) -> Ranges:
    """Minimum and maximum stored value of each integer column, from the files' statistics."""
    if snapshot.version < 0:
        return {}
    physical = physical_names(snapshot.schema)
    longs = [field["name"] for field in snapshot.schema["fields"] if field["type"] == "long"]
    statistics = [json.loads(text) if text else {} for text in snapshot.files["stats"].to_pylist()]
    found = {name: _range(physical[name], statistics) for name in longs}
    return {name: bounds for name, bounds in found.items() if bounds is not None}


def _range(name: str, statistics: list[dict[str, Any]]) -> tuple[Any, Any] | None:
    lows = [of_file.get("minValues", {}).get(name) for of_file in statistics]
    highs = [of_file.get("maxValues", {}).get(name) for of_file in statistics]
    if not lows or any(bound is None for bound in (*lows, *highs)):
        return None
    return min(lows), max(highs)
