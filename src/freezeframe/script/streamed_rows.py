"""A file's rows piece by piece, for files that are larger than memory: the same rows, types and errors.

Types are settled before the first row is given: a file of text is gone through twice, first to learn
what every value of a column agrees with.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames import to_arrow
from freezeframe.errors import UnreadableInput
from freezeframe.script.csv_file import LongRow, block_sizes, csv_text_pieces
from freezeframe.script.inference import InferenceByPieces
from freezeframe.script.json_lines import json_line_pieces
from freezeframe.script.parquet_batches import parquet_batches
from freezeframe.script.text_values import exact_values
from freezeframe.script.unpacking import UNLIMITED, UnpackLimits
from freezeframe.storage.passing_failures import reads_of
from freezeframe.store.evolution import is_undecided

_ROWS = 100_000


def streamed_csv(file: Path, columns: pa.Schema | None) -> pa.RecordBatchReader:
    """A CSV file's rows, in the types of ``columns`` where every value is exact in them, else as inferred.

    Raises:
        UnreadableInput: as ``read_csv_text`` does; the whole file has been gone through by then.
    """
    known = {one.name: one.type for one in columns or () if not is_undecided(one)}
    block_bytes, readers = _settled(file, known)
    schema = pa.schema([pa.field(name, reader.kind) for name, reader in readers.items()])

    def typed() -> Iterator[pa.Table]:
        for piece in csv_text_pieces(file, block_bytes):
            read = [reader.read(piece.column(name)) for name, reader in readers.items()]
            yield pa.table(read, schema=schema)

    return _reader(schema, typed)


def streamed_json_lines(
    file: Path, columns: pa.Schema | None, limits: UnpackLimits = UNLIMITED
) -> pa.RecordBatchReader:
    """A JSON Lines file's rows, in the types of ``columns``, others as their values are.

    Raises:
        UnreadableInput: as ``read_json_lines`` does; the whole file has been gone through by then.
    """
    found: pa.Schema | None = columns
    for piece in json_line_pieces(file, columns, _ROWS, limits):
        found = piece.schema if found is None else _joined(file, found, piece.schema)
    schema = found if found is not None else pa.schema([])
    return _reader(schema, lambda: json_line_pieces(file, schema, _ROWS, limits))


def streamed_parquet(file: Path, limits: UnpackLimits = UNLIMITED) -> pa.RecordBatchReader:
    """A Parquet file's rows.

    Raises:
        TooLarge: it unpacks to more than a limit; at the start, or when the reading comes to it.
        UnreadableInput: it is damaged or no Parquet; at the start, or when the reading comes to it.
        SchemaDriftError: it holds what a stream cannot keep.
    """
    with _opened(file) as parquet:
        empty = to_arrow(pa.Table.from_batches([], parquet.schema_arrow).replace_schema_metadata())

    def tables() -> Iterator[pa.Table]:
        with _opened(file) as parquet:
            bounded = limits is not UNLIMITED
            batches = parquet_batches(file, limits) if bounded else parquet.iter_batches(_ROWS)
            while True:
                try:
                    with reads_of(str(file)):
                        batch = next(batches, None)
                except (pa.ArrowException, OSError) as error:
                    raise _damaged(file, error) from error
                if batch is None:
                    return
                yield to_arrow(pa.Table.from_batches([batch])).cast(empty.schema)

    return _reader(empty.schema, tables)


class _ColumnReader:
    """A column of text in its known type as long as every value is exact in it, else as inferred."""

    def __init__(self, known: pa.DataType | None) -> None:
        self._known = None if known is None or pa.types.is_null(known) else known
        self._inference = InferenceByPieces()

    @property
    def kind(self) -> pa.DataType:
        return self._inference.kind if self._known is None else self._known

    def see(self, text: pa.ChunkedArray) -> None:
        self._inference.see(text)
        if self._known is not None and exact_values(text, self._known) is None:
            self._known = None

    def read(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        exact = None if self._known is None else exact_values(text, self._known)
        return self._inference.read(text) if exact is None else exact


def _settled(file: Path, known: Mapping[str, pa.DataType]) -> tuple[int, dict[str, _ColumnReader]]:
    """The size of blocks in which the file can be read, and how each of its columns is."""
    for block_bytes in block_sizes():
        readers: dict[str, _ColumnReader] = {}
        with suppress(LongRow):
            for piece in csv_text_pieces(file, block_bytes):
                for name in piece.column_names:
                    reader = readers.setdefault(name, _ColumnReader(known.get(name)))
                    reader.see(piece.column(name))
            return block_bytes, readers
    raise UnreadableInput(
        f"{str(file)!r} has a row of more than 2 GiB.",
        cause="A quote may never be closed.",
        remedy="Repair the file, or import it as Parquet.",
        file=str(file),
    )


def _reader(schema: pa.Schema, tables: Callable[[], Iterator[pa.Table]]) -> pa.RecordBatchReader:
    batches = itertools.chain.from_iterable(table.to_batches(_ROWS) for table in tables())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _joined(file: Path, one: pa.Schema, other: pa.Schema) -> pa.Schema:
    try:
        return pa.unify_schemas([one, other], promote_options="permissive")
    except pa.ArrowException as error:
        raise UnreadableInput(
            f"{str(file)!r} cannot be read as JSON Lines.",
            cause=str(error).splitlines()[0],
            remedy="Write one JSON object a line, with one kind of value in each column.",
            file=str(file),
        ) from error


def _opened(file: Path) -> pq.ParquetFile:
    try:
        with reads_of(str(file)):
            return pq.ParquetFile(file, page_checksum_verification=True, coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError) as error:
        raise _damaged(file, error) from error


def _damaged(file: Path, error: Exception) -> UnreadableInput:
    return UnreadableInput(
        f"{str(file)!r} cannot be read as Parquet.",
        cause=str(error).splitlines()[0],
        remedy="Have the file written again.",
        file=str(file),
    )
