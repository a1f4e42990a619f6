"""An engine for a service without Spark that also finds stored rows by key, for changes of few rows.

With it an upsert of some thousand rows is carried out or previewed in this process: the key's columns
of the files that may hold them are read by PyArrow. What goes through all rows stays a job's work.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.base import FindTask
from freezeframe.engine.batch import comparable_key
from freezeframe.errors import CorruptData
from freezeframe.service.row_counter import RowCounter
from freezeframe.storage import Storage

_PHYSICAL_KEY = "delta.columnMapping.physicalName"


class RowFinder(RowCounter):
    """Counts an override as ``RowCounter`` does, and finds rows by key."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._files = storage

    def find(self, task: FindTask) -> pa.Table:
        """See ``TableEngine.find``.

        Raises:
            CorruptData: a stored file is missing or damaged.
        """
        own = [str(field["name"]) for field in task.target_schema["fields"]]
        physical = [
            str((field.get("metadata") or {}).get(_PHYSICAL_KEY, field["name"]))
            for field in task.stored_schema["fields"]
        ]
        keys = pa.concat_tables([self._columns(file, own) for file in task.keys])
        found = [
            _places(number, self._columns(file, physical).rename_columns(own), keys)
            for number, file in enumerate(task.stored)
        ]
        nothing = pa.table(
            {
                "file": pa.array([], pa.int32()),
                "row": pa.array([], pa.int64()),
                "place": pa.array([], pa.int64()),
            }
        )
        return pa.concat_tables([nothing, *found])

    def _columns(self, file: str, names: list[str]) -> pa.Table:
        """Some columns of a file; one that it lacks is null throughout."""
        name = self._name(file)
        try:
            path = self._files.local_path(name)
            source = pa.BufferReader(self._files.read(name)) if path is None else str(path)
            with pq.ParquetFile(source, page_checksum_verification=True) as parquet:
                there = [one for one in names if one in parquet.schema_arrow.names]
                table = parquet.read(there)
                rows = parquet.metadata.num_rows
        except (OSError, pa.ArrowException) as error:
            raise CorruptData(
                f"The file {name!r} cannot be read.",
                cause=f"{type(error).__name__}.",
                remedy="Restore it from a backup, or restore another version.",
            ) from error
        return pa.table({one: table[one] if one in there else pa.nulls(rows) for one in names})


def _places(number: int, stored: pa.Table, keys: pa.Table) -> pa.Table:
    """Where the file's rows have one of the keys: numbers of the file, of the row, and of the key."""
    left, right = {}, {}
    for place, name in enumerate(keys.column_names):
        left[f"k{place}"], right[f"k{place}"] = _codes(stored[name], keys[name])
    names = list(left)
    ours = pa.table({**left, "row": np.arange(len(stored), dtype=np.int64)})
    theirs = pa.table({**right, "place": np.arange(len(keys), dtype=np.int64)})
    both = ours.join(theirs, names, join_type="inner")
    return pa.table(
        {
            "file": pa.array(np.full(len(both), number, np.int32)),
            "row": both["row"].cast(pa.int64()),
            "place": both["place"].cast(pa.int64()),
        }
    )


def _codes(stored: pa.ChunkedArray, keys: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Numbers that stand for the values of both sides, so that null equals null and NaN equals NaN."""
    both = comparable_key(pa.chunked_array([*stored.cast(keys.type).chunks, *keys.chunks], keys.type))
    codes = both.combine_chunks().dictionary_encode("encode").indices
    return codes.slice(0, len(stored)), codes.slice(len(stored))
