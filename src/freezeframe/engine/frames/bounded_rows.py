"""Reads Parquet files into memory up to a limit of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager

import pyarrow as pa
import pyarrow.parquet as pq


def bounded_rows(files: Iterable[AbstractContextManager[pq.ParquetFile]], bytes_max: int) -> pa.Table | None:
    """All rows of the files, opened one after the other; None if they take more than ``bytes_max``.

    A column that only some of the files have is null in the rows of the others.
    """
    parts, left = [], bytes_max
    for opening in files:
        with opening as file:
            batches = []
            for batch in file.iter_batches():
                left -= batch.nbytes
                if left < 0:
                    return None
                batches.append(batch)
            parts.append(pa.Table.from_batches(batches, file.schema_arrow))
    return pa.concat_tables(parts, promote_options="default")
