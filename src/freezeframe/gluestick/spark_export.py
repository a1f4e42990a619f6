"""``to_export`` and ``to_singer`` for Spark frames: gluestick's files, whatever the number of rows.

Few rows come by one request. More are written as Parquet by Spark, once; this process then reads them in
pieces and joins what gluestick, or pandas, writes for each into one file. Names, options and variables mean
what they mean to gluestick.
"""

import base64
import datetime as dt
import importlib
import importlib.util
import json
import math
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pandas.api.types import is_object_dtype

from freezeframe.engine.frames.frames import is_spark, to_pandas
from freezeframe.engine.frames.untyped import parquet_schema
from freezeframe.engine.protocol import WriteTask
from freezeframe.errors import InvalidOption, SetupError
from freezeframe.log.format.schema import delta_to_arrow
from freezeframe.log.scan.file_statistics import bounded_columns
from freezeframe.script.tenants import shared_engine
from freezeframe.storage.local import failure
from freezeframe.store.table.reader import in_schema
from freezeframe.store.table.written_rows import csv_text

_PACKAGE = "gluestick"
_DROP_IN = "freezeframe.gluestick"


def installed_name(name: str) -> Any:
    """Return the attribute of that name in the installed gluestick, which is loaded now at the latest.

    Raises:
        SetupError: gluestick is not installed.
        AttributeError: it has no such name either.
    """
    if name.startswith("__"):
        # Names that Python's import system asks of the module itself.
        raise AttributeError(f"module {_DROP_IN!r} has no attribute {name!r}")
    try:
        installed = importlib.import_module(_PACKAGE)
    except ModuleNotFoundError as error:
        if error.name != _PACKAGE:
            raise
        raise SetupError(
            f"{_DROP_IN}.{name} needs the package gluestick, which is not installed.",
            cause="freezeframe has only the functions for snapshots; gluestick has the others.",
            remedy="Install it beside freezeframe: pip install gluestick.",
            package=_PACKAGE,
            name=name,
        ) from error
    try:
        return getattr(installed, name)
    except AttributeError as error:
        raise AttributeError(f"neither {_DROP_IN!r} nor {_PACKAGE!r} has an attribute {name!r}") from error


_PIECE_ROWS = 20_000
_NESTED = (dict, list, tuple, np.ndarray, bytes)
_COPY_BYTES = 2**20
_SINGER = "singer"

_POSITIONS = ("keys", "unified_model", "export_format", "output_file_prefix", "schema", "stringify_objects")

Tables = Iterator[pa.Table]
Write = Callable[[pd.DataFrame, str], None]
"""Writes the rows of a piece as gluestick does, into a folder."""


def to_export(data: Any, name: str, output_dir: str | os.PathLike[str], *args: Any, **options: Any) -> None:
    """Gluestick's ``to_export``, which takes Spark frames as well.

    Where gluestick is not installed, a pandas frame becomes a CSV, JSON or Parquet file as gluestick
    writes it. In CSV a list or an object is JSON, and binary base64, from pandas as from Spark; where a
    plugin changes a pandas frame, cells are as gluestick writes them. A Spark frame becomes one file, as the
    same rows from pandas do; it is there whole or not at all, and no more than a piece of the rows is in
    memory. Of its CSV file only missing values are empty (the empty text is ``""``), and times without a
    zone have their time of day also where all are midnight.

    Raises:
        InvalidOption: a format that gluestick does not have, or an option that needs all rows at once.
        SetupError: the format is Singer's or an option is gluestick's own, and it is not installed.
        BadInput, EngineUnavailable, StorageUnavailable: the rows cannot be written.
    """
    values = {**dict(zip(_POSITIONS, args, strict=False)), **options}
    kind = values.setdefault("export_format", os.environ.get("DEFAULT_EXPORT_FORMAT", _SINGER))
    if not is_spark(data):
        is_table = isinstance(data, pd.DataFrame) and kind == "csv" and not _plugin(name).is_file()
        rows = _with_json_cells(data) if is_table else data
        if isinstance(data, pd.DataFrame) and _needs_no_gluestick(name, kind, values):
            Path(output_dir).mkdir(parents=True, exist_ok=True)
            _PANDAS_WRITERS[kind](rows, Path(output_dir) / f"{name}.{kind}")
            return
        installed_name("to_export")(rows, name, output_dir, *args, **options)
        return
    _require_possible(name, kind, values)
    rest = {option: value for option, value in values.items() if option != "export_format"}
    if kind == _SINGER:
        write = installed_name("to_export")
        _singer(data, Path(output_dir), lambda rows, folder: write(rows, name, folder, **values))
        return
    with _rows_of(data, Path(output_dir)) as (scratch, schema, tables):
        part = scratch / "part"
        _WRITERS[kind](part, schema, tables)
        part.replace(Path(output_dir) / _file_name(scratch, name, kind, rest))


def to_singer(df: Any, stream: str, output_dir: str | os.PathLike[str], *args: Any, **options: Any) -> None:
    """Gluestick's ``to_singer``, which takes Spark frames as well; errors as of ``to_export``."""
    write = installed_name("to_singer")
    if is_spark(df):
        _singer(df, Path(output_dir), lambda rows, folder: write(rows, stream, folder, *args, **options))
    else:
        write(df, stream, output_dir, *args, **options)


def _require_possible(name: str, kind: str, values: dict[str, Any]) -> None:
    if kind != _SINGER and kind not in _WRITERS:
        raise InvalidOption(
            f"export_format cannot be {kind!r}.", remedy=f"Use one of {', '.join([_SINGER, *_WRITERS])}."
        )
    plugin = _plugin(name)
    for what, is_given in (
        ("stringify_objects", values.get("stringify_objects")),
        (plugin, plugin.is_file()),
    ):
        if is_given:
            raise InvalidOption(
                f"{what} cannot be used with a Spark frame.",
                cause="gluestick applies it to all rows in memory.",
                remedy="Change the columns with Spark first, or export frame.toPandas().",
            )


def _needs_no_gluestick(name: str, kind: str, values: dict[str, Any]) -> bool:
    """Return whether gluestick is absent, and would only call pandas."""
    return (
        kind in _PANDAS_WRITERS
        and not values.get("output_file_prefix", os.environ.get("OUTPUT_FILE_PREFIX"))
        and not values.get("stringify_objects")
        and not _plugin(name).is_file()
        and importlib.util.find_spec(_PACKAGE) is None
    )


_PANDAS_WRITERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "json": lambda frame, path: frame.to_json(path, orient="records", date_format="iso"),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True, date_format="iso"),
    "parquet": lambda frame, path: frame.to_parquet(path, compression="zstd", compression_level=3),
}


def _plugin(name: str) -> Path:
    return Path(os.environ.get("ROOT_DIR", "."), "plugins", f"{name}_post_process.py")


def _with_json_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with text in place of lists, objects and bytes."""
    nested = [
        index
        for index, kind in enumerate(frame.dtypes)
        if is_object_dtype(kind) and any(isinstance(value, _NESTED) for value in frame.iloc[:, index])
    ]
    if not nested:
        return frame
    columns = [
        frame.iloc[:, index].map(_cell_text) if index in nested else frame.iloc[:, index]
        for index in range(frame.shape[1])
    ]
    return pd.concat(columns, axis=1)


def _cell_text(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return json.dumps(_json_value(value), ensure_ascii=False) if isinstance(value, _NESTED) else value


def _json_value(value: Any) -> Any:
    """Return a value in a list or object as ``json_form`` has it; pandas has a map as a list of pairs."""
    if isinstance(value, dict):
        return {str(name): _json_value(inner) for name, inner in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        pairs = [(name, _json_value(inner)) for name, inner in value]
        is_object = all(isinstance(name, str) for name, _ in pairs) and len(dict(pairs)) == len(pairs)
        return dict(pairs) if is_object else [[_json_value(name), inner] for name, inner in pairs]
    if isinstance(value, list | tuple | np.ndarray):
        return [_json_value(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if pd.isna(value):
        return None
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and math.isinf(plain):
        return "Infinity" if plain > 0 else "-Infinity"
    return plain if isinstance(plain, bool | int | float | str) else str(plain)


@contextmanager
def _rows_of(frame: Any, output: Path) -> Iterator[tuple[Path, pa.Schema, Tables]]:
    """A folder that is removed afterwards, the columns, and the rows as Spark has written them there."""
    scratch = output / f".export-{uuid.uuid4().hex}"
    try:
        scratch.mkdir(parents=True)
        scratch = scratch.resolve()
        task = WriteTask(str(scratch / "rows"), takes_table=True, within=str(scratch))
        landed = shared_engine().write_batch(frame, task)
        schema = delta_to_arrow(landed.schema)
        if landed.table is not None:
            yield scratch, schema, iter([in_schema(landed.table, schema)])
            return
        files = [scratch / "rows" / name for name in landed.files]
        yield scratch, schema, _tables(files, schema)
    except OSError as error:
        raise failure("write", str(output), error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _tables(files: list[Path], schema: pa.Schema) -> Tables:
    for file in files:
        with pq.ParquetFile(file, pre_buffer=False) as parquet:  # else it holds all bytes of the file
            for batch in parquet.iter_batches(_PIECE_ROWS):
                yield in_schema(batch, schema)


def _file_name(scratch: Path, name: str, kind: str, options: dict[str, Any]) -> str:
    """Return the name that gluestick gives the file; without gluestick the plain one."""
    if not options.get("output_file_prefix", os.environ.get("OUTPUT_FILE_PREFIX")):
        return f"{name}.{kind}"  # its import takes longer than writing ten thousand rows
    try:
        write = installed_name("to_export")
    except SetupError:
        return f"{name}.{kind}"
    folder = scratch / "name"
    folder.mkdir()
    write(pd.DataFrame({"none": [None]}), name, str(folder), export_format=kind, **options)
    return next(folder.iterdir()).name


def _write_csv(part: Path, schema: pa.Schema, tables: Tables) -> None:
    header = csv_text(schema.empty_table())
    with part.open("w", encoding="utf-8", newline="") as file:
        file.write(header)
        for table in tables:
            file.write(csv_text(table).removeprefix(header))


def _write_lines(part: Path, _: pa.Schema, tables: Tables) -> None:
    with part.open("w", encoding="utf-8") as file:
        for table in tables:
            to_pandas(table, "numpy_nullable").to_json(file, orient="records", lines=True, date_format="iso")


def _write_json(part: Path, _: pa.Schema, tables: Tables) -> None:
    with part.open("w", encoding="utf-8") as file:
        before = "["
        for table in tables:
            file.write(
                before + to_pandas(table, "numpy_nullable").to_json(orient="records", date_format="iso")[1:-1]
            )
            before = ","
        file.write("[]" if before == "[" else "]")


def _write_parquet(part: Path, schema: pa.Schema, tables: Tables) -> None:
    held = parquet_schema(schema)
    with pq.ParquetWriter(
        part, held, compression="zstd", compression_level=3, write_statistics=bounded_columns(held)
    ) as writer:
        for table in tables:
            writer.write_table(in_schema(table, held))


_WRITERS: dict[str, Callable[[Path, pa.Schema, Tables], None]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
    "json": _write_json,
    "jsonl": _write_lines,
}


def _singer(frame: Any, output: Path, write: Write) -> None:
    """Append the messages that gluestick writes for all rows: their schema, a record a row, and the state."""
    with _rows_of(frame, output) as (scratch, schema, tables):
        firsts: dict[str, pa.Array] = {}
        records = scratch / "records"
        with records.open("wb") as part:
            for table in tables:
                firsts |= _first_values(table, firsts)
                part.writelines(_messages(table, scratch, write)[1][1:-1])
        # The schema names the columns that have a value, and their types by the first one.
        inner = {field.name: firsts.get(field.name, pa.nulls(1, field.type)) for field in schema}
        name, messages = _messages(pa.table(inner, schema=schema), scratch, write)
        _append(output / name, messages[0], records, messages[-1])


def _first_values(table: pa.Table, known: dict[str, pa.Array]) -> dict[str, pa.Array]:
    columns = {name: pc.drop_null(table.column(name)) for name in table.column_names if name not in known}
    return {name: column.slice(0, 1).combine_chunks() for name, column in columns.items() if len(column)}


def _messages(table: pa.Table, scratch: Path, write: Write) -> tuple[str, list[bytes]]:
    """Return the name of the file that gluestick writes for the rows, and its messages as lines."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    write(to_pandas(table, "numpy_nullable"), str(folder))
    (file,) = folder.iterdir()
    messages = file.read_bytes().splitlines(keepends=True)
    shutil.rmtree(folder)
    return file.name, messages


def _append(target: Path, head: bytes, records: Path, end: bytes) -> None:
    """Add to the file, which holds other streams' messages; if that fails, it is as it was."""
    size = target.stat().st_size if target.exists() else None
    try:
        with target.open("ab") as file, records.open("rb") as lines:
            file.write(head)
            shutil.copyfileobj(lines, file, _COPY_BYTES)
            file.write(end)
    except BaseException:
        target.unlink(missing_ok=True) if size is None else os.truncate(target, size)
        raise
