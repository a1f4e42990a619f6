"""Columns of data files that several reads of one call share, so that each is decoded once.

A data file never changes and its name is never used again, so what was decoded stays right whatever is
committed meanwhile.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import pyarrow as pa
import pyarrow.parquet as pq

_held: ContextVar[dict[tuple[str, int, str], pa.Array] | None] = ContextVar("held_columns", default=None)


@contextmanager
def columns_held() -> Iterator[None]:
    """Decode each column of a row group once within the block; all of them stay in memory meanwhile."""
    token = _held.set({})
    try:
        yield
    finally:
        _held.reset(token)


def held_group(
    name: str, file: pq.ParquetFile, group: int, wanted: Mapping[str, str]
) -> dict[str, pa.Array] | None:
    """Return columns of a row group of the file ``name``; None outside of ``columns_held``.

    ``wanted`` has their names in the file by those of the result.
    """
    held = _held.get()
    if held is None:
        return None
    absent = [column for column in wanted.values() if (name, group, column) not in held]
    if absent:
        table = file.read_row_group(group, columns=absent)
        held.update({(name, group, column): table[column].combine_chunks() for column in absent})
    return {column: held[name, group, own] for column, own in wanted.items()}
