"""Small derived files of a log: the hint to the newest checkpoint, and checksums."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from freezeframe.errors import CorruptLog, StorageUnavailable
from freezeframe.log.format.actions import Add, DomainMetadata, Metadata, Protocol, Txn, from_json
from freezeframe.log.primitives.json_fields import (
    DeltaFields,
    Reader,
    optional,
    parse_json,
    text,
    texts,
    whole,
)
from freezeframe.log.primitives.paths import HINT_NAME, in_folder
from freezeframe.storage import Storage
from freezeframe.storage.base import Readable

# ``_last_checkpoint``: a hint at the newest checkpoint, validated against the listing.
#
# Writers overwrite the file without a lock, so it may be missing, stale, truncated or foreign. An
# invalid hint costs time, never correctness (protocol, section "Last Checkpoint File").

TRIES_MAX = 3
RETRY_SECONDS = 1.0
THRESHOLD_ACTIONS = 30
_VERSION_MAX = 10**20  # a name has twenty digits


@dataclass(frozen=True, slots=True)
class Hint:
    """Content of the hint: version, number of actions, parts and checksum of the checkpoint."""

    version: int
    size: int | None = None
    parts: int | None = None
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None
    checkpoint_schema: Mapping[str, Any] | None = None
    v2_checkpoint: Mapping[str, Any] | None = None
    checksum: str | None = None
    tags: Mapping[str, str] | None = None


class GarbledHint(ValueError):
    """Invalid content of the hint file; internal, callers get ``None``."""


def read_hint(
    storage: Storage, folder: str, *, sleep: Callable[[float], None] = time.sleep, verify: bool = True
) -> tuple[Hint | None, bool]:
    """Return the hint (``None`` where it is missing or invalid) and whether a garbled file was found.

    A garbled file is read up to three times, one second apart: on a storage without atomic rename
    a writer may be overwriting it (protocol, section "Last Checkpoint File").
    """
    name = in_folder(folder, HINT_NAME)
    for attempt in range(TRIES_MAX):
        try:
            return parse_hint(storage.read(name), verify=verify), False
        except FileNotFoundError:
            return None, False
        except GarbledHint:
            if attempt + 1 < TRIES_MAX:
                sleep(RETRY_SECONDS)
    return None, True


def parse_hint(content: bytes, *, verify: bool = True) -> Hint:
    """Return the hint in the file's bytes."""
    try:
        value = parse_json(content, object_pairs_hook=_without_repeats)
        if not isinstance(value, dict) or not _is_count(value.get("version")):
            raise GarbledHint("no version")
        checksum, expected = text(value.get("checksum")), canonical_checksum(value)
        if verify and checksum is not None and checksum != expected:
            raise GarbledHint("the checksum does not match")
        return Hint(
            version=value["version"],
            size=whole(value.get("size")),
            parts=whole(value.get("parts")),
            size_in_bytes=whole(value.get("sizeInBytes")),
            num_of_add_files=whole(value.get("numOfAddFiles")),
            checkpoint_schema=_object(value.get("checkpointSchema")),
            v2_checkpoint=_object(value.get("v2Checkpoint")),
            checksum=checksum,
            tags=texts(value.get("tags")),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise GarbledHint(str(error)) from error


def hint_text(hint: Hint) -> str:
    """Return the file's content: version, size and parts first, checksum last, no ``None``.

    More than thirty sidecars, or other actions, of a V2 checkpoint are left out, as by Delta.
    """
    fields: dict[str, Any] = {
        "version": hint.version,
        "size": hint.size,
        "parts": hint.parts,
        "sizeInBytes": hint.size_in_bytes,
        "numOfAddFiles": hint.num_of_add_files,
        "checkpointSchema": hint.checkpoint_schema,
        "v2Checkpoint": None
        if hint.v2_checkpoint is None
        else {
            name: value
            for name, value in hint.v2_checkpoint.items()
            if not isinstance(value, list) or len(value) <= THRESHOLD_ACTIONS
        },
        "tags": hint.tags,
    }
    fields = {name: value for name, value in fields.items() if value is not None}
    fields["checksum"] = canonical_checksum(fields)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def canonical_checksum(value: Mapping[str, Any]) -> str:
    """Return the MD5 of the canonical form of the JSON (protocol, section "JSON checksum").

    Every leaf becomes ``path=value`` with URL-encoded text, paths joined by ``+``; leaves are
    sorted and joined by ``,``; the top-level ``checksum`` is left out.
    """
    leaves: list[str] = []
    for key, item in value.items():
        if key != "checksum":
            _canonicalise(item, _quote(key), leaves)
    text = ",".join(sorted(leaves))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _canonicalise(value: Any, path: str, leaves: list[str]) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _canonicalise(item, f"{path}+{_quote(key)}", leaves)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _canonicalise(item, f"{path}+{index}", leaves)
    else:
        leaves.append(f"{path}={_quote(value) if isinstance(value, str) else json.dumps(value)}")


def _quote(text: str) -> str:
    return '"' + quote(text, safe="") + '"'


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise GarbledHint("a key is repeated")
    return found


def _object(value: Any) -> Mapping[str, Any] | None:
    if value is None or isinstance(value, Mapping):
        return value
    raise TypeError(f"{value!r:.80} is not an object")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _VERSION_MAX


# Version checksums (``N.crc``): optional statistics of a version that spare readers its log files.
#
# A missing, empty, garbled or incomplete checksum is ignored.

_log = logging.getLogger(__name__)


def _actions(key: str) -> Reader:
    """Return the reader of a list of actions."""
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
    """Return the checksum in the file ``name``; ``None`` where it is missing or invalid.

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
