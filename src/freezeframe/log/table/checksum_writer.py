"""Writes ``N.crc``, incrementally from the previous one where possible.

A checksum is redundant and optional. It is never overwritten (protocol, section "Version Checksum File").
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import CorruptLog, FreezeframeError
from freezeframe.log.format.action_columns import to_adds
from freezeframe.log.format.actions import Action, Add, CommitInfo, DomainMetadata, Metadata, Protocol, Txn
from freezeframe.log.primitives.paths import checksum_name, in_folder
from freezeframe.log.segments.hint import Checksum
from freezeframe.log.table.snapshot import TRANSACTION_RETENTION, Snapshot
from freezeframe.storage.base import Storage

ALL_FILES_MAX = 50
TRANSACTIONS_MAX = 100
VECTORS_KEY = "delta.enableDeletionVectors"

T = TypeVar("T", Txn, DomainMetadata)
K = TypeVar("K", Protocol, Metadata)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NotIncremental:
    """The reason against an incremental checksum; ``code`` is Delta's name for it."""

    code: str


def checksum_of(snapshot: Snapshot) -> Checksum:
    """Return the checksum of a snapshot's state."""
    files = snapshot.file_list
    transactions = tuple(sorted(snapshot.transactions.values(), key=lambda txn: txn.app_id))
    is_lasting = TRANSACTION_RETENTION not in snapshot.metadata.configuration
    info = snapshot.commit_info
    has_vectors = str(snapshot.metadata.configuration.get(VECTORS_KEY, "")).lower() == "true"
    return Checksum(
        table_size_bytes=snapshot.size,
        num_files=snapshot.count,
        num_metadata=1,
        num_protocol=1,
        in_commit_timestamp=None if info is None else info.in_commit_timestamp,
        transactions=transactions if is_lasting and len(transactions) <= TRANSACTIONS_MAX else None,
        domains=tuple(sorted(snapshot.domains.values(), key=lambda domain: domain.domain)),
        metadata=snapshot.metadata,
        protocol=snapshot.protocol,
        all_files=tuple(to_adds(snapshot.files)) if snapshot.count <= ALL_FILES_MAX else None,
        num_deleted_records=_deleted_records(files) if has_vectors else None,
        num_deletion_vectors=_deletion_vectors(files) if has_vectors else None,
    )


def checksum_after(
    previous: Checksum | None, actions: Sequence[Action], replaced: pa.Table
) -> Checksum | NotIncremental:
    """Add ``actions`` to the previous checksum (pure; section "Version Checksum File").

    ``replaced`` are the rows of the previous state for the files in the actions, because an add may
    repeat a live file. File lists are not carried over, nor are transactions that can expire, since
    their expiry depends on the reader's clock.
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
    metadata = _latest(actions, Metadata) or previous.metadata
    added = [action for action in actions if isinstance(action, Add)]
    vectors = [add.deletion_vector for add in added if add.deletion_vector is not None]
    transactions = _merge_records(previous.transactions, (a for a in actions if isinstance(a, Txn)), "app_id")
    return Checksum(
        table_size_bytes=previous.table_size_bytes + sum(add.size for add in added) - _sum(replaced["size"]),
        num_files=previous.num_files + len(added) - replaced.num_rows,
        num_metadata=1,
        num_protocol=1,
        in_commit_timestamp=info.in_commit_timestamp,
        transactions=None if TRANSACTION_RETENTION in metadata.configuration else transactions,
        domains=_merge_records(
            previous.domains, (a for a in actions if isinstance(a, DomainMetadata)), "domain"
        ),
        metadata=metadata,
        protocol=protocol,
        txn_id=info.fields.get("txnId"),
        num_deleted_records=_shift(
            previous.num_deleted_records,
            sum(vector.cardinality for vector in vectors),
            _deleted_records(replaced),
        ),
        num_deletion_vectors=_shift(previous.num_deletion_vectors, len(vectors), _deletion_vectors(replaced)),
    )


def write_checksum(storage: Storage, folder: str, version: int, checksum: Checksum) -> bool:
    """Write ``N.crc`` if absent; False where it exists already or the write failed."""
    name = in_folder(folder, checksum_name(version))
    try:
        storage.put_if_absent(name, checksum_text(checksum).encode())
    except FileExistsError:
        return False
    except FreezeframeError as error:
        _log.warning("The checksum %s could not be written: %s", name, error)
        return False
    return True


def checksum_text(checksum: Checksum) -> str:
    """Return the content of the file."""
    return json.dumps(checksum.to_json(), separators=(",", ":"), ensure_ascii=False)


def verify_checksum(snapshot: Snapshot, checksum: Checksum) -> None:
    """Compare a checksum with the state of its version (protocol, section "Version Checksum File")."""
    actual = checksum_of(snapshot)
    wrong = [
        f"{name}: the checksum says {_short(claimed)}, the log {_short(found)}"
        for name, claimed, found in _differences(checksum, actual)
        if claimed is not None and found is not None and claimed != found
    ]
    if wrong:
        raise CorruptLog(
            f"Version {snapshot.version} of {snapshot.path} does not match its checksum.",
            cause="; ".join(wrong),
            remedy="Restore the log from a copy; if only the .crc file is wrong, delete it.",
            code="DELTA_TXN_LOG_FAILED_INTEGRITY",
            version=snapshot.version,
        )


def _differences(claimed: Checksum, found: Checksum) -> Iterable[tuple[str, object, object]]:
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


def _merge_records(before: Sequence[T] | None, new: Iterable[T], name: str) -> tuple[T, ...] | None:
    if before is None:
        return None
    merged = {getattr(item, name): item for item in itertools.chain(before, new)}
    live = (item for item in merged.values() if not getattr(item, "removed", False))
    return tuple(sorted(live, key=lambda item: str(getattr(item, name))))


def _by_name(actions: Sequence[T] | None, name: str) -> Mapping[str, T] | None:
    return None if actions is None else {getattr(action, name): action for action in actions}


def _shift(before: int | None, more: int, less: int) -> int | None:
    return None if before is None else before + more - less


def _deleted_records(files: pa.Table) -> int:
    return _sum(pc.struct_field(files["deletion_vector"], "cardinality"))


def _deletion_vectors(files: pa.Table) -> int:
    return int(files.num_rows - files["deletion_vector"].null_count)


def _sum(values: pa.ChunkedArray) -> int:
    return int(pc.sum(values).as_py() or 0)
