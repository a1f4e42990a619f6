"""A two-level index for data skipping over very many files: blocks first, then files.

Arrow's simplifier takes some fifty microseconds per file, so a minute for a million files. Files
that are adjacent in the log mostly hold similar values, so the first pass tests blocks of files
with their common bounds. The second pass tests single files of the matching blocks: the result
equals that of ``data_skipping.keep`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.primitives.arrow import Bools
from freezeframe.log.schema.conversion import PartitionColumns
from freezeframe.log.statistics.data_skipping import (
    FileFacts,
    bound_claim,
    keep,
    keep_claimed,
    partition_claim,
)
from freezeframe.log.statistics.file_statistics import column_bounds

BLOCK_FILES = 512
BLOCKS_FROM_FILES = 4 * BLOCK_FILES

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Skipper:
    """A predicate for data skipping: ``schema`` has its columns, ``names`` their keys in the statistics.

    ``partition`` are the table's partition columns. From ``blocks_from_files`` on, blocks of
    ``block_files`` are asked about first.
    """

    where: pc.Expression
    schema: pa.Schema
    names: Mapping[str, str]
    partition: PartitionColumns
    block_files: int = BLOCK_FILES
    blocks_from_files: int = BLOCKS_FROM_FILES

    def mask(self, files: pa.Table) -> Bools:
        """Mask of the rows of ``FILE_SCHEMA`` whose files may hold a matching row."""
        wanted = np.ones(files.num_rows, np.bool_)
        if files.num_rows >= self.blocks_from_files:
            wanted = self.by_block(files)
            if all(field.name in self.partition.columns for field in self.schema):
                return wanted  # all files of a block share their partition values: the first pass is exact
        places = np.flatnonzero(wanted)
        for at in range(0, len(places), self.block_files):
            here = places[at : at + self.block_files]
            facts = [self._facts(row) for row in _take(files, here)]
            wanted[here] = keep(self.where, self.schema, facts, self.names)
        return wanted

    def _facts(self, row: Mapping[str, Any]) -> FileFacts:
        return FileFacts(self.partition.values(dict(row["partition_values"] or ())), row["stats"])

    def by_block(self, files: pa.Table) -> Bools:
        """Mask of the files whose block may hold a matching row; errors as for ``kept``."""
        order, blocks, values = self._blocks(files)
        claims = [{name: partition_claim(name, scalar) for name, scalar in value.items()} for value in values]
        for field in self.schema:
            if field.name not in self.partition.columns:
                bounds = self._block_bounds(field, files["stats"], order, blocks, len(values))
                claims = [{**one, field.name: found} for one, found in zip(claims, bounds, strict=True)]
        kept = np.array(keep_claimed(self.where, self.schema, claims), np.bool_)
        wanted = np.empty(files.num_rows, np.bool_)
        wanted[order] = kept[blocks]
        return wanted

    def _blocks(self, files: pa.Table) -> tuple[_Ints, _Ints, list[dict[str, pa.Scalar]]]:
        """(sort order of the files, block number of each in that order, partition values of each block)."""
        asked = self.partition.only(self.schema.names)
        codes = np.zeros(files.num_rows, np.int64)
        for key, _ in asked.columns.values():
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
        values = [asked.values(dict(row["partition_values"] or ())) for row in firsts]
        return order, blocks, values

    def _block_bounds(
        self, field: pa.Field, statistics: pa.ChunkedArray, order: _Ints, blocks: _Ints, count: int
    ) -> list[pc.Expression]:
        """The bounds common to all files of a block, as one expression per block."""
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
        for place, block in enumerate(found["block"].to_pylist()):
            claims[block] = bound_claim(field.name, _known_scalar(lows[place]), _known_scalar(highs[place]))
        return claims


def _known_scalar(value: pa.Scalar) -> pa.Scalar | None:
    return value if value.is_valid else None


def _take(files: pa.Table, places: _Ints) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        files.select(["partition_values", "stats"]).take(pa.array(places)).to_pylist()
    )
    return rows
