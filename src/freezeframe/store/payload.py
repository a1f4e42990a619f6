"""One hash of all that a job was given, in order: whether a job that comes again has the same input.

Values count, not their memory: how a column is cut into chunks, what lies under a null, and whether
the rows came as pandas or Arrow make no difference. A Spark frame has no order of its rows, so its
rows are hashed one by one and added up.
"""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freezeframe.identifiers import StreamName
from freezeframe.storage import Storage
from freezeframe.store.incoming import Incoming
from freezeframe.store.layout import table_folder
from freezeframe.store.update import Update

_ROW_KEYS = ("freezeframe/rows", "rows/freezeframe")


class Payload:
    """The running hash of a job's input."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """The hash of everything so far."""
        return self._hash.hexdigest()

    def add_update(self, storage: Storage, name: StreamName, update: Update, incoming: Incoming) -> None:
        """An update of a stream: its options and its rows."""
        options = {option: getattr(update, option) for option in update.__dataclass_fields__}
        self._add("update", str(name), options)
        self._hash.update(str(incoming.table.schema.remove_metadata()).encode())
        if incoming.in_memory:
            for column in incoming.table.columns:
                self._hash.update(_column_digest(column))
        else:
            self._hash.update(_landed_digest(storage, table_folder(name), incoming.paths))

    def add_file(self, path: str, content_sha256: str | None, *, sealed: bool) -> None:
        """A file written with a content (None: deleted)."""
        self._add("file", path, content_sha256, sealed)

    def add_call(self, name: str, *arguments: Any) -> None:
        """Any other change, by the name of the call and what it was given."""
        self._add("call", name, *arguments)

    def _add(self, *parts: Any) -> None:
        text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
        self._hash.update(f"{len(text)}:{text}".encode())


def _column_digest(column: pa.ChunkedArray) -> bytes:
    found = hashlib.sha256()
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # combining no chunks, or too many bytes, leaves chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, array.type)
    found.update(np.packbits(pc.is_valid(array).to_numpy(zero_copy_only=False)).tobytes())
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        filled = pc.fill_null(array, "" if pa.types.is_string(kind) else b"")
        lengths = pc.binary_length(filled).to_numpy(zero_copy_only=False)
        found.update(lengths.astype("<i8").tobytes())
        found.update(_text_bytes(filled))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        filled = pc.fill_null(array, pa.scalar(0).cast(kind))
        found.update(np.ascontiguousarray(filled.to_numpy(zero_copy_only=False)).tobytes())
    else:
        found.update(repr(array.to_pylist()).encode())
    return found.digest()


def _text_bytes(array: pa.Array) -> bytes:
    if not len(array):
        return b""
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    return b"" if data is None else bytes(memoryview(data)[int(offsets[0]) : int(offsets[-1])])


def _landed_digest(storage: Storage, folder: str, paths: tuple[str, ...]) -> bytes:
    import pandas as pd  # noqa: PLC0415 - half a second that only a Spark frame with a job id pays

    totals = np.zeros(len(_ROW_KEYS), dtype=np.uint64)
    rows = 0
    for path in paths:
        name = f"{folder}/{path}"
        local = storage.local_path(name)
        table = pq.read_table(local if local is not None else io.BytesIO(storage.read(name)))
        rows += len(table)
        frame = table.to_pandas(types_mapper=pd.ArrowDtype)
        texts = pd.DataFrame({column: frame[column].map(repr) for column in sorted(frame.columns)})
        for place, key in enumerate(_ROW_KEYS):
            hashes = pd.util.hash_pandas_object(texts, index=False, hash_key=key)
            totals[place] += np.uint64(int(hashes.to_numpy(dtype=np.uint64).sum(dtype=np.uint64)))
    return totals.tobytes() + rows.to_bytes(8, "little")
