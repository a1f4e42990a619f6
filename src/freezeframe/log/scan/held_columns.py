"""Columns of data files that several reads of one call share, so that each is decoded once.

A data file never changes and its name is never used again, so what was decoded stays right whatever is
committed meanwhile.
"""

import threading
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq


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

    def read(
        self, name: str, file: pq.ParquetFile, group: int, wanted: Mapping[str, str]
    ) -> dict[str, pa.Array]:
        """Return columns of a row group of the file ``name``; what another thread decodes is waited for.

        ``wanted`` has their names in the file by those of the result.
        """
        keys = {column: (name, group, column) for column in wanted.values()}
        absent: dict[tuple[str, int, str], Future[pa.Array]] = {}
        try:
            with self._lock:
                absent = {key: Future() for key in keys.values() if key not in self.columns}
                self.columns |= absent
                take = self.columns.pop if self.releases else self.columns.__getitem__
                found = {column: take(key) for column, key in keys.items()}
            if absent:
                is_shared = self.files is not None and self.files.get(name) is file
                with self._file_lock if is_shared else nullcontext():  # threads share a file that is held
                    table = file.read_row_group(group, columns=[column for _, _, column in absent])
                for (_, _, column), future in absent.items():
                    chunks = table[column].chunks
                    future.set_result(chunks[0] if len(chunks) == 1 else table[column].combine_chunks())
        except BaseException as error:  # an interrupt as well: others wait for these columns
            with self._lock:  # a later read tries again
                for key, future in absent.items():
                    self.columns.pop(key, None)
                    if not future.done():
                        future.set_exception(error)
            raise
        return {column: found[own].result() for column, own in wanted.items()}

    def release(self, files: Collection[str]) -> None:
        """Hold columns of these files only, each until it is read: the reads that follow are the last."""
        with self._lock:
            self.releases = True
            self.columns = {key: column for key, column in self.columns.items() if key[0] in files}


_held: ContextVar[HeldColumns | None] = ContextVar("held_columns", default=None)


@contextmanager
def columns_held(*, with_files: bool = False) -> Iterator[HeldColumns]:
    """Decode each column of a row group once within the block; all of them stay in memory meanwhile.

    ``with_files``: so do the files, where they are verified; each is then opened once. A block within
    another one shares what that holds.
    """
    token = _held.set(held := _held.get() or HeldColumns())
    if with_files and held.files is None:
        held.files = {}
    try:
        yield held
    finally:
        _held.reset(token)


def held_columns() -> HeldColumns | None:
    """Return the columns of the block of ``columns_held``; None outside of one."""
    return _held.get()
