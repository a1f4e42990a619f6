"""A small Parquet checkpoint, decoded at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import pyarrow as pa

WHOLE_FILE_BYTES_MAX = 256 * 1024
"""Up to this size of a file, reading column by column takes several times what reading all of it does."""


class WholeFile:
    """What ``checkpoint_columns`` asks of a ``pyarrow.parquet.ParquetFile``, from the decoded table.

    Columns that nobody asks for are decoded as well.

    Raises:
        pa.ArrowException, OSError: a column cannot be decoded.
    """

    num_row_groups = 1

    def __init__(self, file: Any) -> None:
        self.schema_arrow = file.schema_arrow
        self._table: pa.Table = file.read(use_threads=False).combine_chunks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: the file is not open."""

    def read_row_group(self, _: int, columns: Sequence[str], *, use_threads: bool = True) -> pa.Table:  # noqa: ARG002
        """The top-level columns that the named leaves are of, with all of their fields."""
        return self._table.select(list(dict.fromkeys(name.partition(".")[0] for name in columns)))

    def iter_batches(
        self,
        rows: int,
        row_groups: Sequence[int],  # noqa: ARG002 - there is one
        columns: Sequence[str],
    ) -> Iterator[pa.RecordBatch]:
        """The same columns, so many rows at a time."""
        yield from self.read_row_group(0, columns).to_batches(rows)
