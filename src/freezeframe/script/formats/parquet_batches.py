"""Reads a Parquet file in batches of bounded size.

Texts and binary values are read as dictionaries: a value that is there a million times is one value, until
it is known how many bytes they all take.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.script.formats.unpacking import PART_BYTES, Unpacking, UnpackLimits

_ROWS_MAX = 65_536
_BITS = {"BOOLEAN": 1, "INT32": 32, "INT64": 64, "INT96": 64, "FLOAT": 32, "DOUBLE": 64}


def parquet_batches(file: Path, limits: UnpackLimits) -> Iterator[pa.RecordBatch]:
    """The rows, in the columns of the file; texts and binary values may be dictionaries.

    Raises:
        TooLarge: it unpacks to more than a limit, by its footer or by what is found.
        pa.ArrowException, OSError: it is damaged or no Parquet.
    """
    unpacking = Unpacking(file.name, file.stat().st_size, limits)
    with pq.ParquetFile(file) as described:
        metadata = described.metadata
        unpacking.expect(metadata.num_rows, announced_bytes(metadata))
        rows = _rows_at_once(metadata)
        texts = [one.path for one in _leaves(metadata) if one.physical_type == "BYTE_ARRAY"]
    with ForeignParquetFile(file, read_dictionary=texts, page_checksum_verification=True) as parquet:
        for number in range(metadata.num_row_groups):  # nested texts have one dictionary for each group
            for batch in parquet.iter_batches(rows, row_groups=[number]):
                yield from unpacking.decode(batch)


def announced_bytes(metadata: pq.FileMetaData) -> int:
    """The least that the file unpacks to: its pages, or values of fixed width as often as they are."""
    size = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place, leaf in enumerate(_leaves(metadata)):
            chunk = group.column(place)
            size += max(chunk.total_uncompressed_size, chunk.num_values * _width_bits(leaf) // 8)
    return size


def _rows_at_once(metadata: pq.FileMetaData) -> int:
    bits = sum(map(_width_bits, _leaves(metadata)))
    return max(1, min(_ROWS_MAX, PART_BYTES * 8 // max(1, bits)))


def _leaves(metadata: pq.FileMetaData) -> list[pq.ColumnSchema]:
    return [metadata.schema.column(place) for place in range(metadata.num_columns)]


def _width_bits(leaf: pq.ColumnSchema) -> int:
    if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(leaf.length) * 8
    return _BITS.get(leaf.physical_type, 32)
