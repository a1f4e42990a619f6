"""A scan of all bytes of a tenant for the keys of rows that were erased.

Parquet is looked at decoded, for compression hides values; all else as it lies on the disk. A key of
fewer than four letters is found by chance anywhere, so it is looked for in the stream's own columns
only, where it is exact.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe import progress
from freezeframe.errors import CorruptData
from freezeframe.identifiers import StreamName
from freezeframe.storage import Storage
from freezeframe.store.comparison import compared_type
from freezeframe.store.key_values import keys_as
from freezeframe.store.layout import OURS, table_folder

_LETTERS_MIN = 4


@dataclass(frozen=True, slots=True)
class Proof:
    """What the scan found.

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
        """Whether nothing of the rows is left where it was."""
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


def scan(storage: Storage, name: StreamName, keys: pa.Table) -> Proof:
    """Look at every byte below the tenant's directory.

    Raises:
        CorruptData: a Parquet file cannot be decoded, so nothing can be said about it.
    """
    texts = {str(value) for column in keys.columns for value in column.to_pylist()}
    needles = tuple(text.encode() for text in texts if len(text) >= _LETTERS_MIN)
    own = (f"{table_folder(name)}/", f"{OURS}/log/", f"{OURS}/staging/")
    files = size = 0
    remaining: list[str] = []
    mentions: list[str] = []
    progress.begin("proving", "bytes")
    for status in storage.list_below(""):
        content = _read(storage, status.name)
        progress.advance(len(content))
        files, size = files + 1, size + len(content)
        is_own = status.name.startswith(own) or status.name.startswith(f"{table_folder(name)}.")
        if _holds(status.name, content, needles, keys if is_own else None):
            (remaining if is_own else mentions).append(status.name)
    short = len(texts) - len(needles)
    return Proof(files, size, tuple(sorted(remaining)), tuple(sorted(mentions)), short)


def _read(storage: Storage, name: str) -> bytes:
    try:
        return storage.read(name)
    except FileNotFoundError:
        return b""  # a heartbeat or a hint that is just being replaced


def _holds(
    name: str,
    content: bytes,
    needles: tuple[bytes, ...],
    own: pa.Table | None,
) -> bool:
    if any(needle in content for needle in needles):
        return True
    if not name.endswith(".parquet") or not content:
        return False
    try:
        table = pq.read_table(io.BytesIO(content), coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError) as error:
        raise CorruptData(
            f"The file {name!r} cannot be scanned.",
            cause=str(error),
            remedy="Delete or restore it.",
            file=name,
        ) from error
    if own is not None and _has_row(table, own):
        return True
    return any(needle in text for text in _texts(table) for needle in needles)


def _has_row(table: pa.Table, keys: pa.Table) -> bool:
    """Whether a row has one of the keys, also in the type that the key had when the file was written."""
    names = keys.column_names
    if not set(names) <= set(table.column_names):
        return False
    if not all(compared_type(keys[name].type, table[name].type) for name in names):
        return False
    wanted, rows = (
        zip(*(one[name].to_pylist() for name in names), strict=True)
        for one in (keys_as(keys, table.schema), table)
    )
    return not set(wanted).isdisjoint(rows)


def _texts(table: pa.Table) -> Iterator[bytes]:
    """Every value of every column as text."""
    for column in table.columns:
        for value in column.to_pylist():
            if value is not None:
                yield value if isinstance(value, bytes) else str(value).encode()
