"""Conflict detection against winning commits (pure).

The rules are Delta's: a transaction may be rebased onto a winning commit exactly when it would have
read and written the same after it. The isolation level decides about blind appends (see
``Isolation``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pyarrow as pa

from freezeframe.log.actions.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
)
from freezeframe.log.primitives.canonical_paths import canonical_path
from freezeframe.log.schema.column_mapping import Mode, physical_name
from freezeframe.log.schema.partition_values import PartitionColumns
from freezeframe.log.schema.schema import delta_to_arrow, fields_of
from freezeframe.log.statistics.data_skipping import FileFacts, columns_of, keep


class Isolation(Enum):
    """Isolation level of a transaction.

    ``WRITE_SERIALIZABLE`` (Delta's default) may order a winning blind append after this transaction.
    ``SERIALIZABLE`` may not.
    """

    WRITE_SERIALIZABLE = "WriteSerializable"
    SERIALIZABLE = "Serializable"


@dataclass(frozen=True, slots=True)
class Reads:
    """Read set of a transaction: everything, files, predicates, applications."""

    whole_table: bool = False
    files: frozenset[str] = frozenset()
    predicates: tuple[Any, ...] = ()
    applications: frozenset[str] = frozenset()

    @property
    def any_rows(self) -> bool:
        """Whether the transaction read rows of the table, so that its commit is not a blind append."""
        return self.whole_table or bool(self.files) or bool(self.predicates)


@dataclass(frozen=True, slots=True)
class Clash:
    """A conflict with a winning commit: Delta's error class and the reason as a sentence."""

    code: str
    explanation: str


@dataclass(frozen=True, slots=True)
class CommitAttempt:
    """Input of conflict detection: the table that was read, the read set, and the actions."""

    schema: dict[str, Any]
    partition: PartitionColumns
    mode: Mode
    reads: Reads
    actions: tuple[Action, ...]
    isolation: Isolation = Isolation.WRITE_SERIALIZABLE
    removed: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "removed", frozenset(_paths(self.actions, Remove)))


def clash(attempt: CommitAttempt, winner: Sequence[Action]) -> Clash | None:
    """The conflict that forbids a rebase onto the winning commit, or None."""
    return (
        _definition_clash(attempt, winner)
        or _removal_clash(attempt, winner)
        or _append_clash(attempt, winner)
        or _progress_clash(attempt, winner)
    )


def _definition_clash(attempt: CommitAttempt, winner: Sequence[Action]) -> Clash | None:
    if any(isinstance(action, Protocol) for action in winner):
        return Clash("DELTA_PROTOCOL_CHANGED", "The table's protocol was changed.")
    if any(isinstance(action, Metadata) for action in winner):
        return Clash("DELTA_METADATA_CHANGED", "The table's schema or properties were changed.")
    # Stricter than Delta in the reverse case: the winner wrote its files under the schema or protocol
    # that this commit replaces, and nothing has checked that they still fit.
    changes_table = any(isinstance(action, Protocol | Metadata) for action in attempt.actions)
    if changes_table and any(isinstance(action, Add) for action in winner):
        return Clash("DELTA_CONCURRENT_WRITE", "Files were added while the table itself is being changed.")
    return None


def _removal_clash(attempt: CommitAttempt, winner: Sequence[Action]) -> Clash | None:
    gone = {action.path: action for action in winner if isinstance(action, Remove)}
    for path, action in gone.items():
        name = canonical_path(path)
        if name in attempt.removed:
            return Clash("DELTA_CONCURRENT_DELETE_DELETE", f"The file {path} was removed as well.")
        if name in attempt.reads.files or (attempt.reads.whole_table and action.data_change):
            return Clash("DELTA_CONCURRENT_DELETE_READ", f"The file {path}, which was read, was removed.")
    return None


def _append_clash(attempt: CommitAttempt, winner: Sequence[Action]) -> Clash | None:
    reads = attempt.reads
    if not reads.whole_table and not reads.predicates:
        return None
    adds = [action for action in winner if isinstance(action, Add) and action.data_change]
    is_overlooked = attempt.isolation is Isolation.WRITE_SERIALIZABLE and _is_blind_append(winner)
    if not adds or is_overlooked:
        return None
    if reads.whole_table:
        return Clash("DELTA_CONCURRENT_APPEND", f"{len(adds)} files were added to the table that was read.")
    matching = _matching(attempt, adds)
    if matching:
        return Clash(
            "DELTA_CONCURRENT_APPEND", f"The file {matching[0]} may hold rows that would have been read."
        )
    return None


def _is_blind_append(winner: Sequence[Action]) -> bool:
    info = next((action for action in winner if isinstance(action, CommitInfo)), None)
    says_so = info is not None and info.fields.get("isBlindAppend") is True
    return says_so and not any(isinstance(action, Remove) for action in winner)


def _matching(attempt: CommitAttempt, adds: Sequence[Add]) -> list[str]:
    whole = delta_to_arrow(attempt.schema)
    fields = {one["name"]: one for one in fields_of(attempt.schema)}
    keys = {name: physical_name(one, attempt.mode) for name, one in fields.items()}
    facts = [FileFacts(attempt.partition.values(add.partition_values), add.stats) for add in adds]
    found: list[str] = []
    for where in attempt.reads.predicates:
        wanted = pa.schema([whole.field(name) for name in columns_of(where, whole)])
        kept = keep(where, wanted, facts, keys)
        found += [add.path for add, is_kept in zip(adds, kept, strict=True) if is_kept]
    return found


def _progress_clash(attempt: CommitAttempt, winner: Sequence[Action]) -> Clash | None:
    ours = attempt.reads.applications | {a.app_id for a in attempt.actions if isinstance(a, Txn)}
    for action in winner:
        if isinstance(action, Txn) and action.app_id in ours:
            return Clash("DELTA_CONCURRENT_TRANSACTION", f"The application {action.app_id} made progress.")
    domains = {action.domain for action in attempt.actions if isinstance(action, DomainMetadata)}
    for action in winner:
        if isinstance(action, DomainMetadata) and action.domain in domains:
            return Clash("DELTA_CONCURRENT_WRITE", f"The domain {action.domain} was changed as well.")
    return None


def _paths(actions: Iterable[Action], kind: type[Add | Remove]) -> Iterable[str]:
    return (canonical_path(action.path) for action in actions if isinstance(action, kind))
