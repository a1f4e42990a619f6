"""Erasure proof: scans all bytes of a tenant for the keys of erased rows.

Parquet and JSON are looked at decoded, all else as it lies on the disk. Values are compared as what they
are (``erased_keys``): the digits of another figure are not a key. A key of fewer than four letters is found
by chance anywhere, so it is looked for in the stream's own columns only, where it is exact.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe import progress
from freezeframe.errors import CorruptData
from freezeframe.identifiers import StreamName
from freezeframe.storage import Storage
from freezeframe.store.directory.paths import OURS, table_folder
from freezeframe.store.keys.key_values import keys_as
from freezeframe.store.maintenance.erased_keys import LETTERS_MIN, ErasedKeys
from freezeframe.store.schema.comparison import comparison_type


@dataclass(frozen=True, slots=True)
class Proof:
    """Result of the scan.

    ``remaining``: files of the stream or the log that still hold a key; none, if the erasure is whole.
    ``mentions``: other streams and files that hold a key's text, which the erasure
    of a stream does not touch: whoever asked for it decides about them.

    ``keys_too_short``: keys that were looked for in the stream's own columns only.
    """

    files_scanned: int
    bytes_scanned: int
    remaining: tuple[str, ...]
    mentions: tuple[str, ...]
    keys_too_short: int

    @property
    def is_clean(self) -> bool:
        """Whether no trace of the rows was found."""
        return not self.remaining

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return {
            "files_scanned": self.files_scanned,
            "bytes_scanned": self.bytes_scanned,
            "remaining": list(self.remaining),
            "mentions": list(self.mentions),
            "keys_too_short": self.keys_too_short,
        }


def scan(
    storage: Storage, name: StreamName, keys: pa.Table, physical: Mapping[str, str], ours: str = ""
) -> Proof:
    """Scan every byte below the tenant's directory.

    ``physical`` has the names of columns in the files; ``ours`` is the erasure's own message in the log.

    Raises:
        CorruptData: a Parquet file cannot be decoded, so nothing can be said about it.
    """
    columns = {column: keys[column].to_pylist() for column in keys.column_names}
    wanted = ErasedKeys.of(columns, physical)
    own = (f"{table_folder(name)}/", f"{table_folder(name)}.", f"{OURS}/log/", f"{OURS}/staging/")
    files = size = 0
    remaining: list[str] = []
    mentions: list[str] = []
    progress.begin("proving", "bytes")
    for status in storage.list_below(""):
        content = _read(storage, status.name)
        progress.advance(len(content))
        files, size = files + 1, size + len(content)
        is_own = status.name.startswith(own)
        if is_own and _holds(status.name, content, wanted, keys, ours):
            remaining.append(status.name)
        elif not is_own and _mentions(status.name, content, wanted):
            mentions.append(status.name)
    short = sum(len(text) < LETTERS_MIN for text in wanted.texts)
    return Proof(files, size, tuple(sorted(remaining)), tuple(sorted(mentions)), short)


def _read(storage: Storage, name: str) -> bytes:
    try:
        return storage.read(name)
    except FileNotFoundError:
        return b""  # a heartbeat or a hint that is just being replaced


def _holds(name: str, content: bytes, wanted: ErasedKeys, keys: pa.Table, ours: str) -> bool:
    """Whether a file of the stream or of the log contains a key."""
    if name.endswith((".json", ".crc", ".commit", "/_last_checkpoint")):
        return wanted.in_json(content, ours=ours)
    if name.endswith(".csv"):
        return _has_csv_row(content, keys) or wanted.in_bytes(content)
    if not name.endswith(".parquet") or not content:
        return wanted.in_bytes(content)
    table = _table(name, content)
    if "/_delta_log/" in name:
        return any(wanted.in_record(row, ours=ours) for row in table.to_pylist())
    return _has_row(table, keys) or any(map(wanted.in_texts, _cells(table)))


def _mentions(name: str, content: bytes, wanted: ErasedKeys) -> bool:
    """Whether any other file contains a key."""
    if name.endswith(".parquet") and content:
        return any(map(wanted.in_value, _cells(_table(name, content))))
    return wanted.in_json(content) if name.endswith((".json", ".crc")) else wanted.in_bytes(content)


def _table(name: str, content: bytes) -> pa.Table:
    try:
        return pq.read_table(io.BytesIO(content), coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError) as error:
        raise CorruptData(
            f"The file {name!r} cannot be scanned.",
            cause=str(error),
            remedy="Delete or restore it.",
            file=name,
        ) from error


def _has_row(table: pa.Table, keys: pa.Table) -> bool:
    """Whether a row has one of the keys, including in the key's type at the time of the file."""
    names = keys.column_names
    if not set(names) <= set(table.column_names):
        return False
    if not all(comparison_type(keys[name].type, table[name].type) for name in names):
        return False
    wanted, rows = (
        zip(*(one[name].to_pylist() for name in names), strict=True)
        for one in (keys_as(keys, table.schema), table)
    )
    return not set(wanted).isdisjoint(rows)


def _has_csv_row(content: bytes, keys: pa.Table) -> bool:
    """Whether a CSV file with the key's columns has a row with one of the keys, compared as text."""
    rows = csv.reader(io.StringIO(content.decode("utf-8-sig", errors="replace"), newline=""))
    header = next(rows, [])
    if not set(keys.column_names) <= set(header):
        return False
    places = [header.index(column) for column in keys.column_names]
    wanted = {tuple(map(str, row.values())) for row in keys.to_pylist()}
    return any(
        tuple(row[place] for place in places) in wanted for row in rows if len(row) > max(places, default=0)
    )


def _cells(table: pa.Table) -> Iterator[Any]:
    for column in table.columns:
        yield from column.to_pylist()
