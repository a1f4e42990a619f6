"""The first version of the input hash, for jobs that were committed with it.

Rows in memory are hashed column by column and in their order; a landed frame by the text of its cells,
through pandas. Job ids are kept for 30 days by default, so this module can go one release after `input_hash`.
"""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freezeframe.storage import Storage
from freezeframe.store.model.update_options import Update
from freezeframe.store.updates.source import Incoming

_OPTIONS = (
    "key",
    "mode",
    "nulls",
    "null_keys",
    "drop_duplicates",
    "drop_columns",
    "where",
    "schema",
    "on_drift",
    "sets_key",
    "expected_version",
    "notes",
    "deletes",
    "max_delete_ratio",
    "history",
    "order_by",
    "begins_flags",
)
_ROW_KEYS = ("freezeframe/rows", "rows/freezeframe")


def options_of(update: Update) -> dict[str, object]:
    """The options of an update in this version."""
    return {option: getattr(update, option) for option in _OPTIONS}


def digest_parts(storage: Storage, folder: str, incoming: Incoming) -> list[bytes]:
    """The contribution of the rows to the hash; ``folder`` is the stream's table."""
    schema = str(incoming.table.schema.remove_metadata()).encode()
    if incoming.in_memory:
        return [schema, *(_column_digest(column) for column in incoming.table.columns)]
    return [schema, _files_digest(storage, folder, incoming.paths)]


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


def _files_digest(storage: Storage, folder: str, paths: tuple[str, ...]) -> bytes:
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
