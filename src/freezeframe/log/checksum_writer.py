"""Writing ``N.crc``: from the one before and the commit's actions where that suffices, else from the state.

A checksum is a second opinion. It is never overwritten, and a version without one is as good
as any (behaviours 60 to 66).
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow.compute as pc

from freezeframe.errors import CorruptLog, FreezeframeError
from freezeframe.log.action_columns import to_adds
from freezeframe.log.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
)
from freezeframe.log.checksum import Checksum
from freezeframe.log.paths import checksum_name
from freezeframe.log.snapshot import Snapshot
from freezeframe.storage.base import Storage

ALL_FILES_MAX = 50
TRANSACTIONS_MAX = 100
VECTORS_KEY = "delta.enableDeletionVectors"

# After these operations adds repeat files that are live already.
_RESTATING = frozenset({"COMPUTE STATS", "ROW TRACKING BACKFILL", "DROP FEATURE"})

T = TypeVar("T", Txn, DomainMetadata)
K = TypeVar("K", Protocol, Metadata)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NotIncremental:
    """Why a checksum cannot be made from the one before; ``code`` is Delta's word for it."""

    code: str


def checksum_of(snapshot: Snapshot, transaction_id: str | None = None) -> Checksum:
    """The checksum of a snapshot's state."""
    files = snapshot.files
    transactions = tuple(sorted(snapshot.transactions.values(), key=lambda txn: txn.app_id))
    info = snapshot.commit_info
    has_vectors = str(snapshot.metadata.configuration.get(VECTORS_KEY, "")).lower() == "true"
    gone = pc.struct_field(files["deletion_vector"], "cardinality")
    return Checksum(
        table_size_bytes=snapshot.size,
        num_files=snapshot.count,
        num_metadata=1,
        num_protocol=1,
        in_commit_timestamp=None if info is None else info.in_commit_timestamp,
        transactions=transactions if len(transactions) <= TRANSACTIONS_MAX else None,
        domains=tuple(sorted(snapshot.domains.values(), key=lambda domain: domain.domain)),
        metadata=snapshot.metadata,
        protocol=snapshot.protocol,
        all_files=tuple(to_adds(files)) if snapshot.count <= ALL_FILES_MAX else None,
        txn_id=transaction_id,
        num_deleted_records=int(pc.sum(gone).as_py() or 0) if has_vectors else None,
        num_deletion_vectors=len(gone) - gone.null_count if has_vectors else None,
    )


def checksum_after(previous: Checksum | None, actions: Sequence[Action]) -> Checksum | NotIncremental:
    """The checksum of the version that ``actions`` make of the one before (pure; behaviour 62).

    Lists of files are not carried on: two spellings of one path would make them wrong.
    """
    if previous is None:
        return NotIncremental("MISSING_OLD_CRC")
    if previous.table_size_bytes is None or previous.num_files is None or previous.metadata is None:
        return NotIncremental("OLD_CRC_INCOMPLETE")
    info = next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo())
    if info.operation == "MANUAL UPDATE":
        return NotIncremental("INVALID_OPERATION_MANUAL_UPDATE")
    protocol = _latest(actions, Protocol) or previous.protocol
    if protocol is None:
        return NotIncremental("PROTOCOL_MISSING")
    removes = [action for action in actions if isinstance(action, Remove)]
    if any(remove.size is None for remove in removes):
        return NotIncremental("ENCOUNTERED_REMOVE_FILE_MISSING_SIZE")
    adds = [action for action in actions if isinstance(action, Add)]
    restates = info.operation in _RESTATING
    added = [] if restates else adds
    taken = [] if restates else removes
    return Checksum(
        table_size_bytes=previous.table_size_bytes
        + sum(add.size for add in added)
        - sum(remove.size or 0 for remove in taken),
        num_files=previous.num_files + len(added) - len(taken),
        num_metadata=1,
        num_protocol=1,
        in_commit_timestamp=info.in_commit_timestamp,
        transactions=_merged(previous.transactions, (a for a in actions if isinstance(a, Txn)), "app_id"),
        domains=_merged(previous.domains, (a for a in actions if isinstance(a, DomainMetadata)), "domain"),
        metadata=_latest(actions, Metadata) or previous.metadata,
        protocol=protocol,
        txn_id=info.fields.get("txnId"),
        num_deleted_records=_shifted(previous.num_deleted_records, added, taken, by_rows=True),
        num_deletion_vectors=_shifted(previous.num_deletion_vectors, added, taken, by_rows=False),
    )


def write_checksum(storage: Storage, folder: str, version: int, checksum: Checksum) -> bool:
    """Write ``N.crc`` if there is none; False where it is there already or could not be written."""
    name = f"{folder}/{checksum_name(version)}" if folder else checksum_name(version)
    try:
        storage.put_if_absent(name, checksum_text(checksum).encode())
    except FileExistsError:
        return False
    except FreezeframeError as error:
        _log.warning("The checksum %s could not be written: %s", name, error)
        return False
    return True


def checksum_text(checksum: Checksum) -> str:
    """The content of the file."""
    return json.dumps(checksum.to_json(), separators=(",", ":"), ensure_ascii=False)


def verify_checksum(snapshot: Snapshot, checksum: Checksum) -> None:
    """Compare a checksum with the state it speaks of (behaviour 63).

    Raises:
        CorruptLog: ``DELTA_TXN_LOG_FAILED_INTEGRITY``, naming each field that differs.
    """
    actual = checksum_of(snapshot)
    wrong = [
        f"{name}: the checksum says {_short(claimed)}, the log {_short(found)}"
        for name, claimed, found in _compared(checksum, actual)
        if claimed is not None and found is not None and claimed != found
    ]
    if wrong:
        raise CorruptLog(
            f"Version {snapshot.version} of {snapshot.path} is not what its checksum says.",
            cause="; ".join(wrong),
            remedy="Restore the log from a copy; if only the .crc file is wrong, delete it.",
            code="DELTA_TXN_LOG_FAILED_INTEGRITY",
            version=snapshot.version,
        )


def _compared(claimed: Checksum, found: Checksum) -> Iterable[tuple[str, object, object]]:
    yield "tableSizeBytes", claimed.table_size_bytes, found.table_size_bytes
    yield "numFiles", claimed.num_files, found.num_files
    yield "metadata", claimed.metadata, found.metadata
    yield "protocol", claimed.protocol, found.protocol
    yield "setTransactions", _by_name(claimed.transactions, "app_id"), _by_name(found.transactions, "app_id")
    yield "domainMetadata", _by_name(claimed.domains, "domain"), _by_name(found.domains, "domain")
    yield "numDeletedRecordsOpt", claimed.num_deleted_records, found.num_deleted_records
    yield "numDeletionVectorsOpt", claimed.num_deletion_vectors, found.num_deletion_vectors


def _short(value: object) -> str:
    return str(value)[:200]


def _latest(actions: Sequence[Action], kind: type[K]) -> K | None:
    found = [action for action in actions if isinstance(action, kind)]
    return found[-1] if found else None


def _merged(before: Sequence[T] | None, new: Iterable[T], name: str) -> tuple[T, ...] | None:
    if before is None:
        return None
    merged = {getattr(one, name): one for one in itertools.chain(before, new)}
    live = (one for one in merged.values() if not getattr(one, "removed", False))
    return tuple(sorted(live, key=lambda one: str(getattr(one, name))))


def _by_name(actions: Sequence[T] | None, name: str) -> Mapping[str, T] | None:
    return None if actions is None else {getattr(one, name): one for one in actions}


def _shifted(
    before: int | None, added: Sequence[Add], taken: Sequence[Remove], *, by_rows: bool
) -> int | None:
    if before is None:
        return None

    def weight(action: Add | Remove) -> int:
        vector = action.deletion_vector
        return 0 if vector is None else vector.cardinality if by_rows else 1

    return before + sum(map(weight, added)) - sum(map(weight, taken))
