"""Columns of data files that several reads of one call share, so that each is decoded once.

A data file never changes and its name is never used again, so what was decoded stays right whatever is
committed meanwhile.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(slots=True)
class HeldColumns:
    """The columns of row groups that were decoded, by file, group and name."""

    columns: dict[tuple[str, int, str], pa.Array] = field(default_factory=dict)
    releases: bool = False
    """Whether the reads that follow are the last: a column that was read is not held any longer."""
    files: dict[str, pq.ParquetFile] | None = None
    """The files that were opened and verified, by name; None where they are not held."""

    def read(
        self, name: str, file: pq.ParquetFile, group: int, wanted: Mapping[str, str]
    ) -> dict[str, pa.Array]:
        """Return columns of a row group of the file ``name``.

        ``wanted`` has their names in the file by those of the result.
        """
        keys = {column: (name, group, column) for column in wanted.values()}
        absent = [column for column, key in keys.items() if key not in self.columns]
        if absent:
            table = file.read_row_group(group, columns=absent)
            self.columns.update({keys[column]: table[column].combine_chunks() for column in absent})
        take = self.columns.pop if self.releases else self.columns.__getitem__
        return {column: take(keys[own]) for column, own in wanted.items()}


_held: ContextVar[HeldColumns | None] = ContextVar("held_columns", default=None)


@contextmanager
def columns_held(*, with_files: bool = False) -> Iterator[HeldColumns]:
    """Decode each column of a row group once within the block; all of them stay in memory meanwhile.

    ``with_files``: so do the files, where they are verified; each is then opened once.
    """
    token = _held.set(held := HeldColumns(files={} if with_files else None))
    try:
        yield held
    finally:
        _held.reset(token)


def held_columns() -> HeldColumns | None:
    """Return the columns of the block of ``columns_held``; None outside of one."""
    return _held.get()
