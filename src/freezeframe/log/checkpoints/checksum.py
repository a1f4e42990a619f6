"""``N.crc``: what a writer knew about version N. It saves reading, and is never needed.

A checksum that is missing, empty, garbled or incomplete is none (behaviours 57, 61, 65).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freezeframe.errors import CorruptLog, StorageUnavailable
from freezeframe.log.actions.actions import (
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Txn,
    from_json,
    without_nulls,
)
from freezeframe.log.primitives.json_fields import parsed, text, whole
from freezeframe.storage import Storage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checksum:
    """The content of a checksum file; a field that is ``None`` was not written."""

    table_size_bytes: int | None = None
    num_files: int | None = None
    num_metadata: int | None = None
    num_protocol: int | None = None
    in_commit_timestamp: int | None = None
    transactions: tuple[Txn, ...] | None = None
    domains: tuple[DomainMetadata, ...] | None = None
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    histogram: Mapping[str, Any] | None = None
    all_files: tuple[Add, ...] | None = None
    txn_id: str | None = None
    num_deleted_records: int | None = None
    num_deletion_vectors: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields under Delta's names, without those that are ``None``."""
        found: dict[str, Any] = {
            "txnId": self.txn_id,
            "tableSizeBytes": self.table_size_bytes,
            "numFiles": self.num_files,
            "numDeletedRecordsOpt": self.num_deleted_records,
            "numDeletionVectorsOpt": self.num_deletion_vectors,
            "numMetadata": self.num_metadata,
            "numProtocol": self.num_protocol,
            "inCommitTimestampOpt": self.in_commit_timestamp,
            "setTransactions": _bodies(self.transactions),
            "domainMetadata": _bodies(self.domains),
            "metadata": None if self.metadata is None else self.metadata.to_json(),
            "protocol": None if self.protocol is None else self.protocol.to_json(),
            "histogramOpt": None if self.histogram is None else dict(self.histogram),
            "allFiles": _bodies(self.all_files),
        }
        return without_nulls(found)


def parse_checksum(content: bytes) -> Checksum | None:
    """The checksum in the bytes, or ``None`` where they are none."""
    try:
        value = parsed(content)
        if not isinstance(value, dict):
            return None
        return _checksum(value)
    except (ValueError, TypeError, KeyError, AttributeError, CorruptLog):
        return None


def read_checksum(storage: Storage, name: str) -> Checksum | None:
    """The checksum in the file ``name``, or ``None``: reading goes on without it.

    Seed: ``readChecksum``.
    """
    try:
        found = parse_checksum(storage.read(name))
    except (FileNotFoundError, StorageUnavailable) as error:
        _log.warning("The checksum %s could not be read: %s", name, error)
        return None
    if found is None:
        _log.warning("The checksum %s is garbled and is not used", name)
    return found


def _checksum(value: Mapping[str, Any]) -> Checksum:
    metadata, protocol = value.get("metadata"), value.get("protocol")
    return Checksum(
        table_size_bytes=whole(value.get("tableSizeBytes")),
        num_files=whole(value.get("numFiles")),
        num_metadata=whole(value.get("numMetadata")),
        num_protocol=whole(value.get("numProtocol")),
        in_commit_timestamp=whole(value.get("inCommitTimestampOpt")),
        transactions=_actions(value, "setTransactions", "txn"),
        domains=_actions(value, "domainMetadata", "domainMetadata"),
        metadata=None if metadata is None else Metadata.from_json(metadata),
        protocol=None if protocol is None else Protocol.from_json(protocol),
        histogram=value.get("fileSizeHistogram") or value.get("histogramOpt"),
        all_files=_actions(value, "allFiles", "add"),
        txn_id=text(value.get("txnId")),
        num_deleted_records=whole(value.get("numDeletedRecordsOpt")),
        num_deletion_vectors=whole(value.get("numDeletionVectorsOpt")),
    )


def _actions(value: Mapping[str, Any], name: str, key: str) -> Any:
    found = value.get(name)
    return None if found is None else tuple(from_json(key, one) for one in found)


def _bodies(actions: Any) -> list[dict[str, Any]] | None:
    return None if actions is None else [action.to_json() for action in actions]
