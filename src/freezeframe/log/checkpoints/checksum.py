"""Version checksums (``N.crc``): optional statistics of a version that spare readers its log files.

A missing, empty, garbled or incomplete checksum is ignored (behaviours 57, 61, 65).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from freezeframe.errors import CorruptLog, StorageUnavailable
from freezeframe.log.actions.actions import Add, DomainMetadata, Metadata, Protocol, Txn, from_json
from freezeframe.log.primitives.json_fields import DeltaFields, Reader, optional, parse_json, text, whole
from freezeframe.storage.base import Readable

_log = logging.getLogger(__name__)


def _actions(key: str) -> Reader:
    """The reader of a list of actions."""
    return lambda value, name: (
        None if value.get(name) is None else tuple(from_json(key, item) for item in value[name])
    )


def _action(kind: type[Metadata | Protocol]) -> Reader:
    return lambda value, name: None if value.get(name) is None else kind.from_json(value[name])


@dataclass(frozen=True, slots=True)
class Checksum(DeltaFields):
    """Content of a checksum file; a field that is ``None`` was not written."""

    FIELDS: ClassVar = {
        "txn_id": ("txnId", optional(text)),
        "table_size_bytes": ("tableSizeBytes", optional(whole)),
        "num_files": ("numFiles", optional(whole)),
        "num_deleted_records": ("numDeletedRecordsOpt", optional(whole)),
        "num_deletion_vectors": ("numDeletionVectorsOpt", optional(whole)),
        "num_metadata": ("numMetadata", optional(whole)),
        "num_protocol": ("numProtocol", optional(whole)),
        "in_commit_timestamp": ("inCommitTimestampOpt", optional(whole)),
        "transactions": ("setTransactions", _actions("txn")),
        "domains": ("domainMetadata", _actions("domainMetadata")),
        "metadata": ("metadata", _action(Metadata)),
        "protocol": ("protocol", _action(Protocol)),
        "histogram": ("histogramOpt", lambda value, name: value.get("fileSizeHistogram") or value.get(name)),
        "all_files": ("allFiles", _actions("add")),
    }

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


def parse_checksum(content: bytes) -> Checksum | None:
    """Parse a checksum; ``None`` for invalid content."""
    try:
        value = parse_json(content)
        if not isinstance(value, dict):
            return None
        return Checksum.from_json(value)
    except (ValueError, TypeError, KeyError, AttributeError, CorruptLog):
        return None


def read_checksum(storage: Readable, name: str) -> Checksum | None:
    """The checksum in the file ``name``; ``None`` where it is missing or invalid.

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
