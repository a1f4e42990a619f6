"""The state of a delivery: what a target answered about the rows of a stream, and which rows differ from it.

It is a stream of the tenant, ``{stream}.delivery.{target}``, with the key of the stream. Of a row it has the
last answer, the target's id, and two hashes of its other cells: of what the target took, and of what it
answered. Empty text is none: the hash of a row that is gone, the id of a row that the target has no more.
It has no value of a row but its key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.equality import key_codes
from freezeframe.engine.frames.row_hashes import content_hashes
from freezeframe.errors import InvalidName, InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.format.actions import Metadata
from freezeframe.log.scan import rows
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.diff.row_changes import BEFORE, CHANGE_TYPE
from freezeframe.store.schema.columns import (
    DELETED,
    arrow_columns,
    read_system_columns,
    stored_key,
    stored_notes,
)
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.schema.type_compatibility import exact_cast, is_number
from freezeframe.store.table.keys import PIECE_ROWS, KeyNumbers, keys_as, positions_of
from freezeframe.store.table.reader import (
    in_schema,
    read_row_batches,
    read_rows,
    read_rows_at,
    row_columns,
    sort_rows,
)

COMMIT_VERSION, TARGET_ID, ROW_HASH, ERROR = "_commit_version", "_target_id", "_row_hash", "_error"
STATUS, ACCEPTED_HASH, ANSWERED_AT = "_status", "_accepted_hash", "_answered_at"
ANSWER = pa.schema(
    [
        (STATUS, pa.string()),
        (TARGET_ID, pa.string()),
        (ERROR, pa.string()),
        (ROW_HASH, pa.string()),
        (ACCEPTED_HASH, pa.string()),
        (COMMIT_VERSION, pa.int64()),
        (ANSWERED_AT, pa.timestamp("us", "UTC")),
    ]
)
"""The columns of a state behind those of the key."""
ACCEPTED, REJECTED, RETRY = "accepted", "rejected", "retry"
INSERT, UPDATE, DELETE = "insert", "update_postimage", "delete"
SENT = (CHANGE_TYPE, COMMIT_VERSION, TARGET_ID, ROW_HASH)
"""The columns of pending rows behind those of the stream, as Spark names changes."""

_INFIX = ".delivery."
_NOTE = "delivery"
_HASHED_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Settled:
    """Committed versions of a stream's table and of its state between which no row was open.

    Each row was accepted, or rejected, as it was. It stays true, so only rows of either table that changed
    since can be open. The ids are those of the tables: another table of that name has other versions.
    """

    stream: int
    state: int
    stream_id: str
    state_id: str

    @classmethod
    def at(cls, stream: Snapshot, state: Snapshot) -> Settled:
        """Return the versions of two tables."""
        return cls(stream.version, state.version, stream.metadata.id or "", state.metadata.id or "")

    def is_of(self, stream: Snapshot, state: Snapshot) -> bool:
        """Return whether the versions are those of just these tables."""
        there = Settled.at(stream, state)
        return (self.stream_id, self.state_id) == (there.stream_id, there.state_id)


def state_name(stream: StreamName, target: str) -> StreamName:
    """Return the name of the stream that keeps the state of a delivery.

    Raises:
        InvalidName: no delivery can have that name.
    """
    if "." in target:
        raise InvalidName(
            f"{target!r} cannot be the name of a delivery.",
            cause="Its state is the stream NAME.delivery.TARGET, and the target has no dot.",
            remedy="Use letters, digits, spaces, _ and -.",
            name=target,
        )
    return StreamName(f"{stream}{_INFIX}{StreamName(target)}")


def split_name(name: str) -> tuple[str, str] | None:
    """Return the stream and the target whose state a stream of that name may keep; None for another name."""
    stream, infix, target = name.rpartition(_INFIX)
    return (stream, target) if infix and stream and target and "." not in target else None


def note_of(settled: Settled | None) -> tuple[str, str]:
    """Return the note of a state, by which it is told from a stream of that name."""
    return _NOTE, json.dumps(None if settled is None else astuple(settled))


def is_state(name: str, metadata: Metadata | None) -> bool:
    """Return whether the stream keeps the state of a delivery."""
    return split_name(name) is not None and _NOTE in stored_notes(metadata)


def delivery_states(
    names: Iterable[str], read: Callable[[StreamName], Snapshot], stream: str | None = None
) -> tuple[str, ...]:
    """Return those of some streams' names that keep the state of a delivery (of one stream), sorted."""
    split = ((name, split_name(name)) for name in names)
    near = (name for name, parts in split if parts and stream in (None, parts[0]))
    return tuple(sorted(name for name in near if is_state(name, read(StreamName(name)).metadata)))


def settled_in(state: Snapshot) -> Settled | None:
    """Return the versions that the state's note names; None where an earlier release wrote no ids."""
    found = json.loads(stored_notes(state.metadata)[_NOTE]) or ()
    return Settled(*found) if len(found) == len(fields(Settled)) else None


def require_deliverable(name: str, table: Snapshot) -> tuple[str, ...]:
    """Return the key of a stream whose rows can be delivered.

    Raises:
        InvalidOption: it has no key, or a column that answers have.
    """
    key = stored_key(table.metadata) or ()
    if not key:
        raise InvalidOption(
            f"The stream {name!r} has no key, so its rows cannot be delivered one by one.",
            cause="What a target answered is kept by the key of the row.",
            remedy="Give the stream a key: an update with override=True and key=.",
        )
    taken = [
        item for item in arrow_columns(table.delta_schema).names if item in {*SENT, *ANSWER.names, BEFORE}
    ]
    if taken:
        raise InvalidOption(
            f"The rows of {name!r} cannot be delivered: it has a column {taken[0]!r} of its own.",
            cause="Pending rows and answers have a column of that name.",
            remedy="Rename the column.",
            column=taken[0],
        )
    return key


def hashes_alike(table: Snapshot, before: Snapshot) -> bool:
    """Return whether a row that did not change has the hash that it had at another version.

    A comparison of versions takes no dropped column, and no other type of a value, for a change of the row.
    """
    key = stored_key(table.metadata) or ()
    now, then = (row_columns(item) for item in (table, before))
    return key == stored_key(before.metadata) and all(
        field.name in now.names
        and (
            field.type == now.field(field.name).type
            or is_undecided(field)
            or (is_number(field.type) and is_number(now.field(field.name).type))
        )
        for field in then
        if field.name not in key
    )


def changed_keys(table: Snapshot, before: Snapshot) -> pa.Table | None:
    """Return the keys of the rows that changed since a version; None where they cannot be told by key."""
    comparison = Comparison(before, table)
    if not comparison.is_by_key:
        return None
    return pa.concat_tables([changes.keys for changes in comparison.batches()])


def join_keys(table: Snapshot, parts: Iterable[pa.Table]) -> pa.Table:
    """Return the keys of several tables, each once, in the types of the stream."""
    columns = arrow_columns(table.delta_schema)
    names = list(stored_key(table.metadata) or ())
    whole = pa.concat_tables([keys_as(keys.select(names), columns) for keys in parts])
    first = np.unique(key_codes(whole), return_index=True)[1]
    return whole.take(pa.array(first))


def differing_rows(
    name: str, version: int, table: Snapshot | None, state: Snapshot | None, keys: pa.Table | None = None
) -> pa.Table:
    """Return the rows (with ``keys``: of these only) that are not what the target has, in order of the key.

    They have the stream's columns (a deleted row its key alone), those of ``SENT`` with the ``version``, and
    the last answer: its status is ``REJECTED`` where the target refused just this row, as it is. Without a
    ``table`` the stream is no longer there, and all that the target has is deleted.

    Raises:
        InvalidOption: the state has another key than the stream.
    """
    known = _answers(name, table, state, keys)
    key = [item for item in known.column_names if item not in ANSWER.names]
    numbers = KeyNumbers(known.select(key)) if len(known) else None
    is_met = np.zeros(len(known), np.bool_)
    found = []
    schema = known.select(key).schema
    for piece in () if table is None else _live_rows(table, keys, max(PIECE_ROWS, len(known))):
        schema = piece.schema
        places = np.full(len(piece), -1)
        if numbers is not None:
            at, number = numbers.found_in(piece.select(key))
            places[at] = number
            is_met[number] = True
        answers = known.select(ANSWER.names).take(pa.array(places, mask=places < 0))
        found.append(_differing(piece, _hashes(piece, key), answers, version))
    gone = known.filter(pa.array(~is_met))
    nothing = pa.array([""] * len(gone), pa.string())
    deleted = in_schema(gone.select(key), schema)
    found.append(_differing(deleted, nothing, gone.select(ANSWER.names), version))
    return sort_rows(pa.concat_tables(found), key)


def _differing(piece: pa.Table, hashes: pa.Array, answers: pa.Table, version: int) -> pa.Table:
    had = pc.fill_null(answers[ACCEPTED_HASH], "")
    differs = pc.not_equal(hashes, had)
    is_new, is_gone = pc.equal(had, ""), pc.equal(hashes, "")
    is_refused = pc.and_(
        pc.fill_null(pc.equal(answers[STATUS], REJECTED), fill_value=False),
        pc.fill_null(pc.equal(answers[ROW_HASH], hashes), fill_value=False),
    )
    kinds = pc.if_else(is_gone, DELETE, pc.if_else(is_new, INSERT, UPDATE))
    ids, none = answers[TARGET_ID], pa.scalar(None, pa.string())
    columns = {
        CHANGE_TYPE: kinds,
        COMMIT_VERSION: pa.array(np.full(len(piece), version)),
        TARGET_ID: pc.if_else(pc.or_(is_new, pc.fill_null(pc.equal(ids, ""), fill_value=True)), none, ids),
        ROW_HASH: pc.if_else(is_gone, none, hashes),
        STATUS: pc.if_else(is_refused, pa.scalar(REJECTED), none),
        ERROR: answers[ERROR],
        ANSWERED_AT: answers[ANSWERED_AT],
    }
    whole = pa.table([*piece.columns, *columns.values()], names=[*piece.column_names, *columns])
    return whole.filter(differs)


def _answers(name: str, table: Snapshot | None, state: Snapshot | None, keys: pa.Table | None) -> pa.Table:
    """Return the rows of the state (with ``keys``: these only), the key in the types of the stream."""
    there = table or state
    assert there is not None  # noqa: S101 - one of them is there
    key, columns = stored_key(there.metadata) or (), arrow_columns(there.delta_schema)
    fields = [columns.field(item).remove_metadata() for item in key]
    if state is None:
        return pa.schema([*fields, *ANSWER]).empty_table()
    problem = "The stream had another key when the rows were delivered."
    if stored_key(state.metadata) == key:
        held = read_rows(state) if keys is None else rows_with(state, keys)
        typed = [exact_cast(held[field.name], field.type) for field in fields]
        if None not in typed:
            answers = in_schema(held, ANSWER)
            return pa.table([*typed, *answers.columns], schema=pa.schema([*fields, *ANSWER]))
        problem = "The type of the key changed since the rows were delivered."
    raise InvalidOption(
        f"The delivery does not know the rows of {name!r} by the key that the stream has now.",
        cause=problem,
        remedy="Drop the delivery's state: all rows are pending then, as if the target had none.",
        code="DELIVERY_KEY_CHANGED",
    )


def rows_with(snapshot: Snapshot, keys: pa.Table, columns: list[str] | None = None) -> pa.Table:
    """Return the current rows with one of some distinct keys."""
    names = row_columns(snapshot).names if columns is None else columns
    positions = positions_of(snapshot, keys_as(keys, arrow_columns(snapshot.delta_schema)))
    if not positions:
        return read_rows(rows.part_of(snapshot, snapshot.files.slice(0, 0)), names)
    return read_rows_at(snapshot, positions, names)


def _live_rows(table: Snapshot, keys: pa.Table | None, rows_min: int) -> Iterator[pa.Table]:
    """Yield the current rows that are not flagged as deleted; at least one table, which may have none."""
    batches = read_row_batches(table)
    names = batches.schema.names
    flag = DELETED if read_system_columns(table.metadata).flags_deleted else None
    schema = pa.schema([field for field in batches.schema if field.name != flag])
    yield schema.empty_table()
    for piece in _pieces(batches, rows_min) if keys is None else [rows_with(table, keys, names)]:
        if flag is not None:
            piece = piece.filter(pc.invert(pc.fill_null(piece[flag], fill_value=False)))  # noqa: PLW2901
        yield in_schema(piece, schema)


def _pieces(batches: Iterable[pa.RecordBatch], rows_min: int) -> Iterator[pa.Table]:
    """Yield the rows of batches, of several together: each look-up takes a hash table of all answers."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= rows_min:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _hashes(piece: pa.Table, key: list[str]) -> pa.Array:
    """Return the hash of the cells of each row, without its key."""
    names = [name for name in piece.column_names if name not in key]
    cells = piece.select(names) if names else pa.table([pa.nulls(len(piece))], names=[""])
    # A part of the rows at once, as bytes of them all take several times their memory.
    texts = [
        text
        for start in range(0, len(piece), _HASHED_ROWS)
        for text in content_hashes(cells.slice(start, _HASHED_ROWS))
    ]
    return pa.array(texts, pa.string())
