"""Reads a sync folder: one frame for each stream.

``read_csv_folder`` and ``read_parquet_folder`` are what a transformation script begins with;
names and first parameters are gluestick's. They differ from it where it loses data: all files
of a stream are read, not one of them, and a CSV value becomes a number or boolean only
if its text can be derived from it again. ``read_json_folder`` reads JSON Lines in the same way.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from freezeframe.engine.frames.frames import DtypeBackend, Library, require_library, to_frame
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.script.current_job import job_folder
from freezeframe.script.formats.columnar_files import ParquetFormat
from freezeframe.script.formats.csv_rows import CsvFormat
from freezeframe.script.formats.input_parts import UNLIMITED, UnpackLimits
from freezeframe.script.formats.json_rows import JsonFormat
from freezeframe.script.formats.row_format import RowFormat
from freezeframe.script.inputs.spark_reading import spark_frames
from freezeframe.script.inputs.stream_files import (
    CSV_EXTENSIONS,
    JSON_EXTENSIONS,
    PARQUET_EXTENSIONS,
    stream_files,
)
from freezeframe.script.snapshots import Directory, stored_schemas
from freezeframe.script.spark_format import spark
from freezeframe.script.types.known_types import NO_CSV_OPTIONS, CsvOptions, DateColumns, catalog_beside
from freezeframe.script.types.typed_columns import NOTHING_KNOWN, KnownTypes

SNAPSHOTS = "snapshots"
Converters = Mapping[str, Callable[[str], Any]]
IndexColumns = str | int | Sequence[str | int]


def read_csv_folder(
    path: str | os.PathLike[str],
    converters: Mapping[str, Converters] | None = None,
    index_cols: Mapping[str, IndexColumns] | None = None,
    ignore: Collection[str] = (),
    as_: Library = "pandas",
    *,
    types: Mapping[str, Any] | None = None,
    parse_dates: DateColumns = None,
    escape: str = "",
    schemas: Mapping[str, pa.Schema] | None = None,
    snapshot_dir: Directory | None = None,
    dtype_backend: DtypeBackend | None = None,
    session: Any = None,
) -> dict[str, Any]:
    r"""Read each stream's rows from the CSV files (``.csv``, ``.tsv``, ``.csv.gz``) of a folder, or a file.

    The stream is the file's name up to the last ``-``, if only digits, ``T``, ``Z`` and ``_`` follow it;
    several files of one stream are appended in the order of these stamps. A column's type is the one that
    is stored, else what ``catalog.json`` beside the folder declares, if every value of the column is exact
    in it; else that of ``types``; else it is inferred so that no letter is lost ("Types of CSV columns" in
    the documentation). Dates and times are text, unless ``parse_dates`` asks for them. An empty field is
    NULL, an empty quoted one the empty text; "NA" and "null" are text.

    Args:
        path: the folder, for example ``sync-output``.
        converters: by stream and column, a function that gets each value as text ("" for an
            empty field) and returns the value to keep.
        index_cols: by stream, the column or columns (names or positions) that become the index;
            for pandas only.
        ignore: streams to leave out.
        as_: ``"pandas"``, ``"arrow"``, ``"polars"`` or ``"spark"``; the rows are the same in all.
        types: by column, or by stream and column, a type of which every value must be: a name that
            pandas, Arrow or Spark has for it (``{"Phone": "string"}``), or an Arrow type.
        parse_dates: true, columns, or either by stream: columns of ISO 8601 dates or times become
            dates and timestamps, where every value is one.
        escape: what stands before a quote in a quoted field, if not a quote: ``"\\"`` in what Spark writes.
        schemas: by stream, the types that are stored already; without it, those of ``snapshot_dir``.
        snapshot_dir: the tenant's directory; without it that of the job in whose script this is called,
            else the directory ``snapshots`` beside the folder, where there is one.
        dtype_backend: which types the columns of pandas frames have, as of ``get_snapshot``.
        session: whose Spark frames are wanted; without it those of ``freezeframe.spark()``.

    Raises:
        InputNotFound: there is no such folder.
        UnreadableInput: a file is empty, ragged, cut off, wrongly quoted or not UTF-8, or a value is not
            exact in the type that ``types`` names; file and line are named.
        MissingColumn: an index column is not in the file.
        InvalidOption: an unknown ``as_`` or type, or options that do not go together.
        SetupError: Spark's workers cannot run freezeframe; or do not see the folder (``StorageNotShared``).
    """
    require_library(as_, dtype_backend)
    _check_options(as_, converters, index_cols)
    options = CsvOptions(types, parse_dates, escape)
    streams = _typed_streams(path, CSV_EXTENSIONS, ignore, schemas, snapshot_dir, options)
    if as_ == "spark":
        return spark_frames(CsvFormat(escape), session or spark(), streams)
    frames = {}
    for stream, (files, known) in streams.items():
        own = (converters or {}).get(stream, {})
        table = CsvFormat(escape).whole(files, replace(known, texts=frozenset(own)))
        converted: dict[str, list[Any]] = {
            name: [convert(value) for value in table.column(name).fill_null("").to_pylist()]
            for name, convert in own.items()
            if name in table.column_names
        }
        frame = _to_frame(
            table.drop_columns(list(converted)), converted, table.column_names, as_, dtype_backend
        )
        frames[stream] = _set_index(frame, stream, (index_cols or {}).get(stream))
    return frames


def read_json_folder(
    path: str | os.PathLike[str],
    ignore: Collection[str] = (),
    as_: Library = "pandas",
    *,
    types: Mapping[str, Any] | None = None,
    parse_dates: DateColumns = None,
    schemas: Mapping[str, pa.Schema] | None = None,
    snapshot_dir: Directory | None = None,
    dtype_backend: DtypeBackend | None = None,
    session: Any = None,
) -> dict[str, Any]:
    """Return each stream's rows from the JSON files of a folder, or from one file.

    ``.jsonl`` and ``.ndjson`` hold an object a line, ``.json`` the same or one array of objects.
    Names, order of files and parameters are those of ``read_csv_folder``. A column is of the type of
    ``schemas``, else of the one that ``catalog.json`` declares, if every value of it is exact in that type;
    else of that of ``types``; else of its JSON values' own: ``bool``, ``int64``, ``double``, ``decimal``,
    text, lists, structs; numbers lose nothing (decision 0042). A column that the catalog or ``types`` calls
    text takes values of any kind. A text is a value of a known type where a CSV field would be; dates,
    times, decimals and binary (base64) are texts in JSON. What a line lacks is NULL; a stream of empty files
    has no columns.

    Raises:
        InputNotFound: there is no such folder.
        UnreadableInput: a line is not a JSON object or not UTF-8, gives a member twice, or no type holds all
            values of a column (several kinds; numbers of more than 38 digits); file and line are named.
        InvalidOption: an unknown ``as_``.
        SetupError: as of ``read_csv_folder``.
    """
    require_library(as_, dtype_backend)
    options = CsvOptions(types, parse_dates)
    streams = _typed_streams(path, JSON_EXTENSIONS, ignore, schemas, snapshot_dir, options)
    return _frames(JsonFormat(), streams, as_, dtype_backend, session)


def read_parquet_folder(
    path: str | os.PathLike[str],
    ignore: Collection[str] = (),
    as_: Library = "pandas",
    *,
    dtype_backend: DtypeBackend | None = None,
    session: Any = None,
    limits: UnpackLimits = UNLIMITED,
) -> dict[str, Any]:
    """Return each stream's rows from the Parquet files of a folder (or from one file).

    Names, order of files, ``ignore``, ``as_``, ``dtype_backend`` and ``session`` are those of
    ``read_csv_folder``; types are the files' own, joined without loss where several files differ. Dates and
    times are read as by Spark: a footer that names the old calendar is heeded, and INT96 is a time in UTC.
    ``limits`` bound what each file may unpack to.

    Raises:
        TooLarge: a file unpacks to more than a limit.
        InputNotFound: there is no such folder.
        UnreadableInput: a file is damaged; it is named.
        SchemaDriftError: the types of a stream's files cannot be joined; the files are named.
        InvalidOption: an unknown ``as_``.
        SetupError: as of ``read_csv_folder``.
    """
    require_library(as_, dtype_backend)
    files = stream_files(path, PARQUET_EXTENSIONS, ignore)
    streams = {stream: (parts, NOTHING_KNOWN) for stream, parts in files.items()}
    return _frames(ParquetFormat(limits), streams, as_, dtype_backend, session)


def _frames(
    form: RowFormat,
    streams: Mapping[str, tuple[list[Path], KnownTypes]],
    as_: Library,
    dtype_backend: DtypeBackend | None,
    session: Any,
) -> dict[str, Any]:
    if as_ == "spark":
        return spark_frames(form, session or spark(), streams)
    tables = {stream: form.whole(files, known) for stream, (files, known) in streams.items()}
    return {stream: to_frame(table, as_, dtype_backend) for stream, table in tables.items()}


def _typed_streams(
    path: str | os.PathLike[str],
    extensions: Collection[str],
    ignore: Collection[str],
    schemas: Mapping[str, pa.Schema] | None,
    snapshot_dir: Directory | None = None,
    options: CsvOptions = NO_CSV_OPTIONS,
) -> dict[str, tuple[list[Path], KnownTypes]]:
    """Return each stream's files, and what is known of its columns."""
    files = stream_files(path, extensions, ignore)
    resolved = Path(path).resolve()
    folder = resolved if resolved.is_dir() else resolved.parent
    catalog = catalog_beside(folder)
    snapshots = snapshot_dir or job_folder() or folder.parent / SNAPSHOTS
    stored = stored_schemas(snapshots) if schemas is None else schemas
    return {
        stream: (parts, options.known(stream, stored.get(stream), catalog.columns(stream)))
        for stream, parts in files.items()
    }


def _check_options(as_: str, converters: Any, index_cols: Any) -> None:
    if index_cols and as_ != "pandas":
        raise InvalidOption(
            f"index_cols cannot be used with as_={as_!r}.",
            cause="Only pandas frames have an index.",
            remedy="Leave index_cols out; the columns are there.",
        )
    if converters and as_ == "spark":
        raise InvalidOption(
            'converters cannot be used with as_="spark".',
            cause="They are Python functions of one value each, which Spark would call row by row.",
            remedy="Leave them out and use Spark's functions; a column keeps its text by"
            ' types={column: "string"}.',
        )


def _to_frame(
    table: pa.Table,
    converted: Mapping[str, list[Any]],
    names: Sequence[str],
    as_: Library,
    dtype_backend: str | None,
) -> Any:
    """Return the table and the converted columns, in the order of ``names``, as the kind wanted."""
    if as_ == "pandas":
        frame = to_frame(table, as_, dtype_backend)
        # As pandas does with converters: it keeps whatever they return.
        return frame.assign(**converted)[list(names)] if converted else frame
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for name, values in converted.items():
        columns[name] = Rows(pd.DataFrame({name: pd.Series(values, dtype=object)})).to_arrow().column(0)
    return to_frame(pa.table({name: columns[name] for name in names}), as_)


def _set_index(frame: Any, stream: str, columns: IndexColumns | None) -> Any:
    if columns is None:
        return frame
    wanted = [columns] if isinstance(columns, str | int) else list(columns)
    available = list(frame.columns)
    names = []
    for column in wanted:
        is_position = isinstance(column, int) and 0 <= column < len(available)
        if column not in available and not is_position:
            raise MissingColumn(
                f"The index column {column!r} is not in the stream {stream!r}.",
                cause=f"Its columns are {', '.join(map(repr, available))}.",
                remedy="Name one of them in index_cols.",
                column=column,
                columns=available,
            )
        names.append(available[column] if isinstance(column, int) else column)
    return frame.set_index(names)
