"""Deletes the rows that match a predicate, by deletion vectors or by rewriting files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.actions.action_columns import to_adds
from freezeframe.log.actions.actions import Action
from freezeframe.log.commits.commit import Conflict
from freezeframe.log.scan.rows import read_without, whole_files
from freezeframe.log.schema.schema import delta_to_arrow, fields_of
from freezeframe.log.statistics.data_skipping import Predicate, as_expression, columns_of
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.write.appending import store_rows
from freezeframe.log.write.row_deletion import allows_vectors, delete_rows, removal
from freezeframe.log.write.transaction import Transaction, require_committed

TRIES_MAX = 5

_Positions = dict[str, npt.NDArray[np.int64]]


def delete_matching(begin: Callable[[], Transaction], where: Predicate | None) -> int:
    """Delete matching rows in a transaction of ``begin``, with a retry after each conflict.

    Returns the new version, or the current one where no row matched.

    Raises:
        MissingColumn, InvalidOption: ``where`` is not a valid predicate for this table.
        ConflictError: ``TRIES_MAX`` attempts lost against other writers.
    """
    for attempt in range(1, TRIES_MAX + 1):
        transaction = begin()
        actions = _all(transaction) if where is None else _matching(transaction, as_expression(where))
        if not actions:
            return transaction.snapshot.version
        predicate = "true" if where is None else str(as_expression(where))
        outcome = transaction.commit(actions, "DELETE", {"predicate": [predicate]})
        if not isinstance(outcome, Conflict) or attempt == TRIES_MAX:
            break
    return require_committed(outcome)


def _all(transaction: Transaction) -> list[Action]:
    return [removal(add) for add in to_adds(transaction.read_whole_table())]


def _matching(transaction: Transaction, where: pc.Expression) -> list[Action]:
    snapshot = transaction.snapshot
    found = _positions(snapshot, transaction.files_matching(where), where)
    if not allows_vectors(snapshot):
        return _rewritten(snapshot, found)
    deletion = delete_rows(snapshot, {path: rows.tolist() for path, rows in found.items()})
    if deletion.file is not None:
        folder = f"{snapshot.table}/" if snapshot.table else ""
        snapshot.storage.put_if_absent(f"{folder}{deletion.file.name}", deletion.file.content)
    return list(deletion.actions)


def _positions(snapshot: Snapshot, files: pa.Table, where: pc.Expression) -> _Positions:
    """The positions of matching rows by file, already deleted ones included, without empty files."""
    whole = delta_to_arrow(snapshot.schema)
    columns = columns_of(where, whole) or [fields_of(snapshot.schema)[0]["name"]]
    position = "position"
    while position in columns:
        position += "_"
    found: _Positions = {}
    reads = whole_files(snapshot, files, columns)
    for path, (_, read) in zip(files["path"].to_pylist(), reads, strict=True):
        (at, batches), hits = read(0, 1), [np.zeros(0, np.int64)]
        for batch in batches:
            numbers = pa.chunked_array([np.arange(at, at + batch.num_rows)])
            rows = pa.Table.from_batches([batch]).append_column(position, numbers)
            hits.append(rows.filter(where)[position].to_numpy())
            at += batch.num_rows
        positions = np.concatenate(hits)
        if len(positions):
            found[path] = positions
    return found


def _rewritten(snapshot: Snapshot, found: _Positions) -> list[Action]:
    adds = {add.path: add for add in to_adds(snapshot.files)} if found else {}
    actions: list[Action] = []
    for path, positions in found.items():
        kept = list(read_without(snapshot, {path: positions}))
        actions.append(removal(adds[path]))
        if kept:
            actions += store_rows(snapshot, pa.Table.from_batches(kept))
    return actions
