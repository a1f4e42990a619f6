"""Columns of data files that several reads of one call share, so that each is decoded once.

A data file never changes and its name is never used again, so what was decoded stays right whatever is
committed meanwhile.
"""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.storage.read_ahead import begin


@dataclass(slots=True)
class HeldColumns:
    """The columns of row groups that were decoded, or are just now, by file, group and name."""

    columns: dict[tuple[str, int, str], Future[pa.Array]] = field(default_factory=dict)
    releases: bool = False
    """Whether the reads that follow are the last: a column that was read is not held any longer."""
    files: dict[str, pq.ParquetFile] | None = None
    """The files that were opened and verified, by name; None where they are not held."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _file_lock: threading.Lock = field(default_factory=threading.Lock)
    _ahead: list[Future[None]] = field(default_factory=list)

    def read(
        self, name: str, file: pq.ParquetFile, group: int, wanted: Mapping[str, str]
    ) -> dict[str, pa.Array]:
        """Return columns of a row group of the file ``name``; what another thread decodes is waited for.

        ``wanted`` has their names in the file by those of the result.
        """
        keys = {column: (name, group, column) for column in wanted.values()}
        with self._lock:
            absent = {keys[column]: Future[pa.Array]() for column in keys if keys[column] not in self.columns}
            self.columns |= absent
            take = self.columns.pop if self.releases else self.columns.__getitem__
            found = {column: take(key) for column, key in keys.items()}
        try:
            if absent:
                with nullcontext() if self.files is None else self._file_lock:  # threads may share the file
                    table = file.read_row_group(group, columns=[column for _, _, column in absent])
                for (_, _, column), future in absent.items():
                    chunks = table[column].chunks
                    future.set_result(chunks[0] if len(chunks) == 1 else table[column].combine_chunks())
        except BaseException as error:
            with self._lock:  # a later read tries again
                for key, future in absent.items():
                    self.columns.pop(key, None)
                    if not future.done():
                        future.set_exception(error)
            raise
        return {column: found[own].result() for column, own in wanted.items()}

    def read_ahead(self, reads: Iterator[object]) -> None:
        """Carry out reads in the background, one after the other, as long as columns are held."""

        def carry_out() -> None:
            with suppress(Exception):  # the read that needs the columns raises it again
                while not self.releases and next(reads, None) is not None:
                    pass

        self._ahead.append(begin(carry_out))

    def end(self) -> None:
        """Let no read ahead begin any more, and wait for those that have begun."""
        self.releases = True
        for future in self._ahead:
            future.cancel()
        wait([future for future in self._ahead if not future.cancelled()])


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
        held.end()


def held_columns() -> HeldColumns | None:
    """Return the columns of the block of ``columns_held``; None outside of one."""
    return _held.get()
