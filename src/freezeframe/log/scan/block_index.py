"""A two-level index for data skipping over very many files: blocks first, then files.

Arrow's simplifier takes some fifty microseconds per file, so a minute for a million files. Files
that are adjacent in the log mostly hold similar values, so the first pass tests blocks of files
with their common bounds. The second pass tests single files of the matching blocks: the result
equals that of ``data_skipping.keep`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.log.format.conversion import PartitionColumns
from freezeframe.log.primitives.arrow import Bools, instants, to_flags
from freezeframe.log.scan.data_skipping import (
    FileFacts,
    bound_claim,
    is_only_nulls,
    keep,
    keep_claimed,
    outwards,
    partition_claim,
    value_bounds,
)
from freezeframe.log.scan.parsed_statistics import read_texts

BLOCK_FILES = 512
BLOCKS_FROM_FILES = 4 * BLOCK_FILES

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Skipper:
    """A predicate for data skipping: ``schema`` has its columns, ``names`` their keys in the statistics.

    ``partition`` are the table's partition columns. From ``blocks_from_files`` on, blocks of
    ``block_files`` are tested first.
    """

    where: pc.Expression
    schema: pa.Schema
    names: Mapping[str, str]
    partition: PartitionColumns
    block_files: int = BLOCK_FILES
    blocks_from_files: int = BLOCKS_FROM_FILES

    def mask(self, files: pa.Table) -> Bools:
        """Return the mask of the rows of ``FILE_SCHEMA`` whose files may hold a matching row."""
        wanted = np.ones(files.num_rows, np.bool_)
        if files.num_rows >= self.blocks_from_files:
            wanted = self.by_block(files)
            if all(field.name in self.partition.columns for field in self.schema):
                return wanted  # all files of a block share their partition values: the first pass is exact
        rows = np.flatnonzero(wanted)
        for at in range(0, len(rows), self.block_files):
            here = rows[at : at + self.block_files]
            facts = [
                FileFacts(self.partition.values(dict(row["partition_values"] or ())), row["stats"])
                for row in _take(files, here)
            ]
            wanted[here] = keep(self.where, self.schema, facts, self.names)
        return wanted

    def by_block(self, files: pa.Table) -> Bools:
        """Return the mask of the files whose block may hold a matching row; errors as for ``kept``."""
        order, blocks, values = self._blocks(files)
        claims = [{name: partition_claim(name, scalar) for name, scalar in value.items()} for value in values]
        for field in self.schema:
            if field.name not in self.partition.columns:
                bounds = self._block_bounds(field, files["stats"], order, blocks, len(values))
                claims = [{**claim, field.name: found} for claim, found in zip(claims, bounds, strict=True)]
        kept = np.array(keep_claimed(self.where, self.schema, claims), np.bool_)
        wanted = np.empty(files.num_rows, np.bool_)
        wanted[order] = kept[blocks]
        return wanted

    def _blocks(self, files: pa.Table) -> tuple[_Ints, _Ints, list[dict[str, pa.Scalar]]]:
        """Return (order of the files, block number of each in that order, partition values of each block)."""
        partition = self.partition.only(self.schema.names)
        codes = np.zeros(files.num_rows, np.int64)
        for key, _ in partition.columns.values():
            texts = pc.map_lookup(files["partition_values"].combine_chunks(), key, "last")
            # Null counts as a value here.
            encoded = texts.dictionary_encode(null_encoding="encode")
            own = encoded.indices.to_numpy().astype(np.int64)
            _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + own, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        begins_code = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        place_in_code = np.arange(len(ordered)) - np.repeat(
            begins_code, np.diff(np.append(begins_code, len(ordered)))
        )
        begins = place_in_code % self.block_files == 0
        blocks = np.cumsum(begins) - 1
        firsts = _take(files, order[begins])
        values = [partition.values(dict(row["partition_values"] or ())) for row in firsts]
        return order, blocks, values

    def _block_bounds(
        self, field: pa.Field, statistics: pa.ChunkedArray, order: _Ints, blocks: _Ints, count: int
    ) -> list[pc.Expression]:
        """Return the bounds common to all files of a block, as one expression per block."""
        bounds = column_bounds(statistics, field, self.names.get(field.name, field.name))
        valued = ~bounds.only_nulls[order]
        rows = pa.table(
            {
                "block": pa.array(blocks[valued]),
                "low": bounds.low.take(pa.array(order[valued])),
                "high": bounds.high.take(pa.array(order[valued])),
            }
        )
        # One file without bounds leaves its whole block without bounds.
        strict = pc.ScalarAggregateOptions(skip_nulls=False)
        found = rows.group_by("block").aggregate([("low", "min", strict), ("high", "max", strict)])
        claims = [pc.field(field.name).is_null() for _ in range(count)]
        lows, highs = found["low_min"].combine_chunks(), found["high_max"].combine_chunks()
        for index, block in enumerate(found["block"].to_pylist()):
            claims[block] = bound_claim(field.name, _known_scalar(lows[index]), _known_scalar(highs[index]))
        return claims


def _known_scalar(value: pa.Scalar) -> pa.Scalar | None:
    return value if value.is_valid else None


def _take(files: pa.Table, indexes: _Ints) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        files.select(["partition_values", "stats"]).take(pa.array(indexes)).to_pylist()
    )
    return rows


# Minimum and maximum of a column in each file, parsed from the statistics of all files in bulk.
#
# The statistics of a file are a JSON text. Parsing a million of them one by one takes a minute and
# some gigabytes; Arrow's JSON reader takes a second. It supports the texts of this package and of
# Spark; other texts are parsed one by one, with the same result.

_PIECE_ROWS = 1 << 16
_FEW_TEXTS = 8  # the bulk parser costs what some ten texts one by one do
_AS_TEXT: tuple[Callable[[pa.DataType], bool], ...] = (kinds.is_string, kinds.is_date, kinds.is_timestamp)


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Minimum and maximum of a column in each file; null where unknown.

    The bounds exclude nulls and NaN. ``only_nulls`` flags the files that hold only nulls.
    """

    low: pa.ChunkedArray
    high: pa.ChunkedArray
    only_nulls: Bools


def column_bounds(statistics: pa.ChunkedArray, field: pa.Field, key: str) -> ColumnBounds:
    """Return the bounds of ``field`` per file; ``key`` is its name in the statistics' JSON texts."""
    found = [_piece(texts, field, key) for texts in _pieces(statistics)]
    return ColumnBounds(
        pa.chunked_array([low for low, _, _ in found], field.type),
        pa.chunked_array([high for _, high, _ in found], field.type),
        np.concatenate([flags for _, _, flags in found]) if found else np.zeros(0, np.bool_),
    )


def _pieces(statistics: pa.ChunkedArray) -> Iterator[pa.StringArray]:
    for chunk in statistics.chunks:
        for at in range(0, len(chunk), _PIECE_ROWS):
            yield chunk.slice(at, _PIECE_ROWS)


def _piece(texts: pa.StringArray, field: pa.Field, key: str) -> tuple[pa.Array, pa.Array, Bools]:
    if any(is_kind(field.type) for is_kind in _AS_TEXT):
        stored = pa.string()
    elif kinds.is_signed_integer(field.type):
        stored = pa.int64()
    else:  # Arrow's JSON reader parses other types differently from this package
        stored = pa.float64() if kinds.is_float64(field.type) else None
    if stored is None or len(texts) <= _FEW_TEXTS:
        return _read_each(texts, field, key)
    try:
        values = pa.struct([(key, stored)])
        schema = pa.schema(
            [
                ("numRecords", pa.int64()),
                ("minValues", values),
                ("maxValues", values),
                ("nullCount", pa.struct([(key, pa.int64())])),
            ]
        )
        table = read_texts(texts, schema, memory_pool=pa.system_memory_pool())
        found = {
            name: pc.struct_field(table[name].combine_chunks(), [key])
            for name in ("minValues", "maxValues", "nullCount")
        }
        nulls = pc.equal(found["nullCount"], table["numRecords"].combine_chunks())
        low, high = (_convert(found[name], field.type) for name in ("minValues", "maxValues"))
        return *outwards(low, high, field.type), to_flags(nulls)
    except pa.ArrowException:
        return _read_each(texts, field, key)


def _convert(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if kinds.is_float64(kind):
        return pc.if_else(pc.is_nan(values), None, values)  # NaN is not a bound
    if not kinds.is_timestamp(kind):
        return values if values.type == kind else values.cast(kind)
    return instants(values, kind)


def _read_each(texts: pa.StringArray, field: pa.Field, key: str) -> tuple[pa.Array, pa.Array, Bools]:
    each = texts.to_pylist()
    bounds = [value_bounds(field, key, text) for text in each]
    sides = [_array([pair[side] for pair in bounds], field.type) for side in (0, 1)]
    return sides[0], sides[1], np.array([is_only_nulls(key, text) for text in each], np.bool_)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    nothing = pa.scalar(None, kind)
    return pa.array([nothing if value is None else value for value in values], kind)
