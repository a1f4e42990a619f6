"""Restores an earlier version's content as a new version."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from freezeframe.log.actions.action_columns import file_keys, to_adds
from freezeframe.log.actions.actions import Action, DomainMetadata
from freezeframe.log.scan.rows import require_present
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.write.row_deletion import removal
from freezeframe.log.write.transaction import Transaction, require_committed

_ROW_TRACKING_DOMAIN = "delta.rowTracking"  # its mark only grows


def restore_version(transaction: Transaction, wanted: Snapshot) -> int:
    """Commit files, schema, properties and domains of ``wanted``; the protocol is never lowered.

    Raises:
        CorruptData: a data file of ``wanted`` is missing; nothing is committed.
        ConflictError: another writer committed meanwhile.
    """
    now = transaction.snapshot
    live = transaction.read_whole_table()
    back = _missing(wanted.files, live)
    require_present(now.storage, now.table, back)
    adds = [replace(add, data_change=True) for add in to_adds(back)]
    removes = [removal(add) for add in to_adds(_missing(live, wanted.files))]
    actions: list[Action] = [*removes, *adds, *_domains(now, wanted)]
    if wanted.metadata != now.metadata:
        actions.append(wanted.metadata)
    if not actions:
        return now.version
    outcome = transaction.commit(
        actions,
        "RESTORE",
        {"version": str(wanted.version), "timestamp": ""},
        {"numRestoredFiles": len(adds), "numRemovedFiles": len(removes)},
    )
    return require_committed(outcome)


def _missing(files: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of ``files`` without a row of the same file and deletion vector in ``others``."""
    known = set(file_keys(others).to_pylist())
    return files.filter(pa.array([key not in known for key in file_keys(files).to_pylist()], pa.bool_()))


def _domains(now: Snapshot, wanted: Snapshot) -> list[DomainMetadata]:
    before, after = now.domains, wanted.domains
    ended = [replace(one, removed=True) for name, one in before.items() if name not in after]
    changed = [one for name, one in after.items() if before.get(name) != one]
    return [one for one in (*ended, *changed) if one.domain != _ROW_TRACKING_DOMAIN]
